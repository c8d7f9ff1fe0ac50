//! The command line of `kumi jobs`.

use super::backoff::{TypeBackoff, type_backoff};
use super::failure::EXIT_CODES;
use super::keep::KeepOptions;
use super::time::point;
use crate::command_line::terminal::Form;
use crate::command_line::tls_options::TlsOptions;
use clap::{Args, Subcommand, ValueEnum};
use kumi_jobs::{Backoff, Filter, IdPrefix, Order, Owner, Priority, TaskId, TaskState};
use kumi_node::config::{backoff, duration};
use std::time::{Duration, SystemTime};
use tracing_subscriber::filter::LevelFilter;

/// The heading of options that every command has, which comes last in its help.
const EVERY: &str = "Options of every command";

/// Whether something is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

/// Options of every command, and the command.
#[derive(Debug, Args)]
pub(crate) struct JobsOptions {
    /// The server and the queue: redis://[user:password@]host[:port][/db][?queue=NAME], or rediss:// for TLS [default:
    /// KUMI_URL, else redis://127.0.0.1:6379]
    #[arg(long, value_name = "URL", global = true, help_heading = EVERY)]
    pub(super) url: Option<String>,
    /// The queue, where the URL does not name it [default: default]
    // Elsewhere -q is --quiet.
    #[arg(long, short_alias = 'q', value_name = "NAME", global = true, help_heading = EVERY)]
    pub(super) queue: Option<String>,
    /// Text on a terminal and JSON lines otherwise, or one of them
    #[arg(long, value_name = "FORM", default_value = "auto", global = true, help_heading = EVERY)]
    pub(super) output: Form,
    #[command(flatten, next_help_heading = EVERY)]
    pub(super) tls: TlsOptions,
    #[command(subcommand)]
    pub(super) task: JobsTask,
}

#[derive(Debug, Subcommand)]
pub(super) enum JobsTask {
    /// Enqueue a task and print its id
    #[command(after_long_help = EXIT_CODES)]
    Enqueue(EnqueueOptions),
    /// Show what is known of a task
    Status {
        /// The task: its id, or as much of its beginning as no other task has
        id: IdPrefix,
    },
    /// List tasks, newest first
    ///
    /// State after state: queued tasks in the order of their lines, running ones by worker, scheduled ones by the time at
    /// which they are due, done ones by the time at which they ended. --id and --search look at one task after the other;
    /// on standard error stands how far they looked.
    List(ListOptions),
    /// Show how many tasks are in each state, and types that no worker serves
    Counts {
        /// In the text format of Prometheus
        #[arg(long)]
        prometheus: bool,
    },
    /// Bring dead tasks back
    #[command(after_long_help = EXIT_CODES)]
    Retry {
        /// These tasks: ids, or as much of their beginnings as no other task has
        #[arg(required_unless_present_any = ["all", "task_type", "search"])]
        ids: Vec<IdPrefix>,
        /// All dead tasks
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// All dead tasks of this type
        #[arg(long = "type", value_name = "TYPE", conflicts_with = "ids")]
        task_type: Option<String>,
        /// All dead tasks whose payload or error holds this text
        #[arg(long, value_name = "TEXT", conflicts_with = "ids")]
        search: Option<String>,
    },
    /// Cancel tasks
    #[command(after_long_help = EXIT_CODES)]
    Cancel {
        /// These tasks: ids, or as much of their beginnings as no other task has
        #[arg(required_unless_present_any = ["state", "task_type", "search"])]
        ids: Vec<IdPrefix>,
        /// All tasks in these states
        #[arg(
            long,
            value_name = "STATE",
            value_delimiter = ',',
            conflicts_with = "ids"
        )]
        state: Vec<TaskState>,
        /// All unfinished tasks of this type
        #[arg(long = "type", value_name = "TYPE", conflicts_with = "ids")]
        task_type: Option<String>,
        /// All unfinished tasks whose payload or error holds this text
        #[arg(long, value_name = "TEXT", conflicts_with = "ids")]
        search: Option<String>,
    },
    /// Forget done tasks: succeeded and cancelled ones, and dead ones only with '--state dead'
    ///
    /// Says what it will forget before it does so.
    Purge(PurgeOptions),
    /// Stop claims, on all workers, until 'resume'
    Pause,
    /// Let workers claim again
    Resume,
    /// Bound how many tasks of a type run at once, on all workers together
    Limit {
        /// The type
        #[arg(value_name = "TYPE")]
        task_type: String,
        /// The bound; without it, the bound is lifted
        #[arg(value_name = "N")]
        limit: Option<u32>,
    },
    /// Show or change what the queue keeps of done tasks, for all its programs
    ///
    /// What is not named stays as it is. A queue that was never told keeps 10,000 succeeded and as many cancelled tasks for an
    /// hour, and 100,000 dead ones for 168 hours.
    Keep(KeepOptions),
    /// Show or change whether the tasks of a node that died are given back at once, for all programs of the queue
    ///
    /// Switched off, they come back when the leases of its workers end. `release` works either way.
    Releases {
        /// What is to be; without it, what is
        #[arg(value_enum)]
        switch: Option<Switch>,
    },
    /// Move a queue of an earlier version of kumi to the format of this one
    ///
    /// Stop all programs of the earlier version first. A queue of this version stays as it is.
    Upgrade {
        /// The queue
        #[arg(value_name = "QUEUE")]
        name: String,
        /// Move it though a worker seems to be alive
        #[arg(long)]
        force: bool,
    },
    /// Give back at once what a crashed worker runs
    ///
    /// The worker is refused from then on. Nothing changes if it has renewed its lease within --silent-for.
    Release {
        /// The worker, as 'status' shows it: name~life
        owner: Owner,
        /// All lives of the name before this one, instead of this one; this also refuses later starts whose clock is
        /// behind, and ends an idle worker of an earlier life
        #[arg(long)]
        before: bool,
        /// How long it has to have been silent; 0s if it is known to be gone
        #[arg(long, value_name = "TIME", default_value = "3s", value_parser = silence)]
        silent_for: Duration,
    },
    /// Show every move of every task as it happens
    Tail,
    /// Show the server's queues and how many tasks they have
    Queues,
    /// Show the workers that run tasks, and the types that workers ask for
    ///
    /// A worker without a task has no entry in the queue: the types that were asked for within a minute show that there
    /// are some.
    Workers,
    /// Be a worker: run a program for each task
    ///
    /// The payload is the program's standard input, and what it prints is the result. Exit code 0 is success, 65 is an
    /// error that no retry cures, 75 means not yet; any other is an error to be tried again. What the program writes to
    /// standard error becomes the task's error. KUMI_TASK_ID, KUMI_TASK_TYPE, KUMI_ATTEMPT, KUMI_MAX_ATTEMPTS and
    /// TRACEPARENT are in its environment.
    ///
    /// A program whose task is cancelled or over its time limit gets SIGTERM, and SIGKILL after --kill-after, with all that
    /// it started. Ctrl-c and SIGTERM stop the worker after its running tasks; a second one stops it at once. A worker
    /// that is killed takes its programs with it. If three different tasks in a row end with exit code 126 or 127, the
    /// command cannot be run: the worker gives back what it holds and ends.
    Work(WorkOptions),
    /// Store, list and remove schedules; workers enqueue their tasks
    Cron {
        #[command(subcommand)]
        task: CronTask,
    },
}

/// A time, which may be none.
fn silence(text: &str) -> Result<Duration, &'static str> {
    match text {
        "0" | "0s" => Ok(Duration::ZERO),
        text => duration(text),
    }
}

#[derive(Debug, Args)]
pub(super) struct EnqueueOptions {
    /// The task's type: names the handler
    #[arg(value_name = "TYPE")]
    pub(super) task_type: String,
    /// The payload; '-' reads standard input [default: null]
    pub(super) payload: Option<String>,
    /// Run it no earlier than that much later
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) delay: Option<Duration>,
    /// Run it no earlier than at this time: 2026-11-18T09:00 by this machine's time zone, or with Z or an offset
    #[arg(long, value_name = "TIME", value_parser = point, conflicts_with = "delay")]
    pub(super) at: Option<SystemTime>,
    /// Attempts, the first included
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(super) max_attempts: u32,
    /// When failed attempts are repeated: 5s, or 1s..10m to double from the first to the second, or 1s..10m*4; each delay is
    /// drawn between half of that and all of it [default: what the worker says]
    #[arg(long, value_name = "TIME", value_parser = backoff)]
    pub(super) backoff: Option<Backoff>,
    /// high, normal, low or bulk
    #[arg(long, value_name = "LEVEL", default_value = "normal")]
    pub(super) priority: Priority,
    /// Enqueue nothing if an unfinished task has this key
    #[arg(long, value_name = "KEY")]
    pub(super) unique: Option<String>,
    /// Keep the unique key at least that long after the enqueue, even if the task succeeds earlier
    #[arg(long, value_name = "TIME", requires = "unique", value_parser = duration)]
    pub(super) unique_for: Option<Duration>,
    /// Run it after all earlier tasks with this key
    #[arg(long, value_name = "KEY")]
    pub(super) serial: Option<String>,
    /// If it ends dead, later tasks with its serial key wait until it is retried or purged
    #[arg(long, requires = "serial")]
    pub(super) serial_strict: bool,
    /// The payload's media type
    #[arg(long, value_name = "TYPE", default_value = kumi_jobs::JSON)]
    pub(super) content_type: String,
    /// The id, so that a script can repeat the command safely
    #[arg(long, value_name = "ID")]
    pub(super) id: Option<TaskId>,
    /// Wait for the task's end and print its result; on a terminal, show its progress meanwhile
    #[arg(short, long)]
    pub(super) wait: bool,
}

#[derive(Debug, Args)]
pub(super) struct FilterOptions {
    /// Only tasks in these states
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    pub(super) state: Vec<TaskState>,
    /// Only tasks of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub(super) task_type: Option<String>,
    /// Only tasks whose id begins so
    #[arg(long, value_name = "PREFIX")]
    pub(super) id: Option<IdPrefix>,
    /// Only tasks whose payload or error holds this text
    #[arg(long, value_name = "TEXT")]
    pub(super) search: Option<String>,
}

impl FilterOptions {
    pub(super) fn filter(self) -> Filter {
        Filter {
            states: self.state,
            task_type: self.task_type.map(Into::into),
            id_prefix: self.id,
            text: self.search,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct ListOptions {
    #[command(flatten)]
    pub(super) filter: FilterOptions,
    /// How many tasks at most [default: 50 as text, all as JSON]
    #[arg(long, short = 'n', value_name = "N")]
    pub(super) limit: Option<usize>,
    /// What comes first: newest or oldest
    #[arg(long, value_name = "ORDER", default_value = "newest")]
    pub(super) order: Order,
    /// Go on where an earlier listing with the same options ended
    #[arg(long, value_name = "CURSOR")]
    pub(super) cursor: Option<String>,
    /// How many tasks --id and --search look at, at most
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub(super) look: u64,
}

#[derive(Debug, Args)]
pub(super) struct PurgeOptions {
    #[command(flatten)]
    pub(super) filter: FilterOptions,
    /// Only say what would be forgotten
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Args)]
pub(super) struct WorkOptions {
    /// The shell command that runs a task
    #[arg(long, value_name = "COMMAND")]
    pub(super) exec: String,
    /// The types it runs
    #[arg(
        long = "type",
        value_name = "TYPE",
        required = true,
        value_delimiter = ','
    )]
    pub(super) types: Vec<String>,
    /// Tasks at once
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub(super) concurrency: usize,
    /// A run that takes longer is stopped and counts as failed
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) time_limit: Option<Duration>,
    /// How long after SIGTERM a program is killed, if its task is cancelled or over its time limit
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(super) kill_after: Duration,
    /// How long running tasks may go on after ctrl-c or SIGTERM; then they are stopped and given back
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub(super) stop_within: Duration,
    /// The worker's name [default: a random one]
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// What is logged on standard error: off, error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    pub(super) log: LevelFilter,
    /// When failed tasks are tried again, unless their producer said it: 5s, or 1s..10m to double from the first to the second,
    /// or 1s..10m*4; TYPE=1s..10m is for one type. Each delay is drawn between half of that and all of it [default:
    /// 4s..1h*4]
    #[arg(long, value_name = "[TYPE=]TIME", value_parser = type_backoff)]
    pub(super) backoff: Vec<TypeBackoff>,
}

#[derive(Debug, Subcommand)]
pub(super) enum CronTask {
    /// Store a schedule
    Set {
        /// Names the schedule
        name: String,
        /// Minute, hour, day of month, month, day of week
        expression: String,
        /// The type of its tasks
        #[arg(value_name = "TYPE")]
        task_type: String,
        /// Their payload [default: null]
        payload: Option<String>,
        /// The time zone
        #[arg(long, value_name = "ZONE", default_value = "UTC")]
        zone: String,
        /// high, normal, low or bulk
        #[arg(long, value_name = "LEVEL", default_value = "normal")]
        priority: Priority,
    },
    /// Show all schedules
    List,
    /// Remove a schedule
    Remove {
        /// The schedule
        name: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        work: WorkOptions,
    }

    #[test]
    fn a_worker_logs_warnings_unless_told_otherwise() {
        let words = ["work", "--exec", "true", "--type", "a"];
        assert_eq!(Line::parse_from(words).work.log, LevelFilter::WARN);
    }
}
