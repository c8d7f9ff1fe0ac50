//! A program's set of schedules, declared as a whole.

use crate::core::Timestamp;
use crate::error::QueueError;
use crate::jobs::{Jobs, check_schedule, encode};
use crate::queue::Schedule;
use crate::task::Task;

/// The schedules of a program. [`declare`](Self::declare) stores them, and removes those that the set had before and has no
/// more: a schedule that was taken out of the program, or renamed, is gone from the queue.
///
/// ```
/// use kumi_jobs::{Jobs, Task};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Digest;
/// impl Task for Digest {
///     const TYPE: &'static str = "digest";
///     type Output = ();
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let jobs = Jobs::memory();
/// let old = jobs.schedules("mailer").cron("daily", "0 9 * * *", "UTC", Digest);
/// old.declare().await?;
/// let new = jobs.schedules("mailer").cron("weekly", "0 9 * * MON", "UTC", Digest);
/// assert_eq!(new.declare().await?, ["daily"]);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is stored before declare"]
pub struct Schedules {
    jobs: Jobs,
    set: String,
    schedules: Vec<Result<Schedule, QueueError>>,
}

impl Schedules {
    pub(crate) fn new(jobs: Jobs, set: &str) -> Self {
        Self {
            jobs,
            set: set.to_owned(),
            schedules: Vec::new(),
        }
    }

    /// Adds a schedule, as [`Jobs::cron`].
    pub fn cron<T: Task>(mut self, name: &str, expression: &str, zone: &str, task: T) -> Self {
        let schedule = encode(&task).map(|task| Schedule {
            name: name.into(),
            expression: expression.into(),
            zone: zone.into(),
            envelope: task.envelope,
            max_attempts: task.max_attempts,
            priority: task.priority,
            last_slot: Timestamp::default(),
        });
        self.schedules.push(schedule);
        self
    }

    /// Adds a schedule whose task is data.
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedules.push(Ok(schedule));
        self
    }

    /// Stores the set in one step. Answers the names of the schedules that were removed.
    ///
    /// # Errors
    /// As of [`Jobs::cron`]; nothing is stored then.
    pub async fn declare(self) -> Result<Vec<String>, QueueError> {
        let schedules = self.schedules.into_iter();
        let schedules: Vec<Schedule> = schedules.collect::<Result<_, _>>()?;
        let queue = self.jobs.queue();
        for schedule in &schedules {
            check_schedule(schedule, queue.settings())?;
        }
        let removed = queue.declare_schedules(&self.set, schedules).await?;
        for name in &removed {
            tracing::info!(
                schedule = name,
                set = self.set,
                "removed: it is not declared any more"
            );
        }
        Ok(removed)
    }
}
