//! Progress bars on standard error, for commands that take long; nothing where standard error is no terminal.

use indicatif::{ProgressBar, ProgressStyle};
use kumi_jobs::{Counts, Filter, Jobs, TaskId, TaskState};
use std::future::Future;
use std::time::Duration;

/// How often the progress of a task is read while it is waited for.
const LOOK: Duration = Duration::from_secs(1);

/// A bar that is removed when it is dropped.
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// A bar over the tasks that a filter admits.
    pub(super) fn over(counts: &Counts, filter: &Filter) -> Self {
        Self::new(total(counts, filter), "{bar:30} {pos}/{len} {eta}")
    }

    fn new(total: u64, template: &str) -> Self {
        // indicatif draws nothing unless standard error is a terminal.
        let bar = ProgressBar::new(total);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Shows that so many tasks are done.
    pub(super) fn at(&self, count: usize) {
        self.0.set_position(count as u64);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// How many tasks a filter admits by state and type.
fn total(counts: &Counts, filter: &Filter) -> u64 {
    let types = counts.by_type.iter();
    let counts = types.flat_map(|(name, states)| states.iter().map(move |state| (name, state)));
    counts
        .filter(|(name, (state, _))| filter.admits(**state, name))
        .map(|(_, (_, count))| count)
        .sum()
}

/// Shows the state and the progress of a task while a future is awaited.
pub(super) async fn watch<T>(jobs: &Jobs, id: TaskId, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    if !std::io::IsTerminal::is_terminal(&std::io::stderr()) {
        return work.await;
    }
    let bar = Bar::new(100, "{bar:30} {pos}% {msg}");
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(LOOK) => {}
        }
        if let Ok(Some(record)) = jobs.get_status(id).await {
            let progress = record
                .progress
                .filter(|_| record.state == TaskState::Running);
            let (percent, note) = progress.map_or((0, String::new()), |p| (p.percent, p.note));
            bar.at(usize::from(percent));
            bar.0.set_message(format!(
                "{} {}",
                record.state,
                crate::command_line::terminal::shown(&note)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_what_is_admitted() {
        let mut counts = Counts::default();
        let states = [
            (TaskState::Queued, 5),
            (TaskState::Dead, 2),
            (TaskState::Succeeded, 1),
        ];
        counts.by_type.insert("a".into(), states.into());
        counts
            .by_type
            .insert("b".into(), [(TaskState::Dead, 7)].into());
        assert_eq!(total(&counts, &Filter::default()), 15);
        let filter = Filter::of(TaskState::Dead).task_type("a");
        assert_eq!(total(&counts, &filter), 2);
    }
}
