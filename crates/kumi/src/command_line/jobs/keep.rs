//! `kumi jobs keep`: what a queue keeps of done tasks.

use super::failure::Failure;
use crate::command_line::terminal::{self, Terminal};
use clap::Args;
use kumi_jobs::{Jobs, Retention};
use kumi_node::config::duration;
use serde_json::json;
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct KeepOptions {
    /// Succeeded tasks, and as many cancelled ones
    #[arg(long, value_name = "N")]
    succeeded: Option<usize>,
    /// For how long
    #[arg(long, value_name = "TIME", value_parser = duration)]
    succeeded_for: Option<Duration>,
    /// Dead tasks
    #[arg(long, value_name = "N")]
    dead: Option<usize>,
    /// For how long
    #[arg(long, value_name = "TIME", value_parser = duration)]
    dead_for: Option<Duration>,
}

impl KeepOptions {
    /// What is to be kept, where the queue keeps this now.
    fn over(&self, now: Retention) -> Retention {
        Retention {
            succeeded: self.succeeded.unwrap_or(now.succeeded),
            succeeded_for: self.succeeded_for.unwrap_or(now.succeeded_for),
            dead: self.dead.unwrap_or(now.dead),
            dead_for: self.dead_for.unwrap_or(now.dead_for),
        }
    }
}

/// Changes what is named, and shows what is kept.
pub(super) async fn run(
    jobs: &Jobs,
    terminal: &Terminal,
    options: KeepOptions,
) -> Result<(), Failure> {
    let queue = jobs.queue();
    let before = queue.retention().await?;
    let kept = options.over(before);
    if kept != before {
        queue.keep(kept).await?;
    }
    Ok(terminal::say(&shown(terminal, &kept))?)
}

fn shown(terminal: &Terminal, kept: &Retention) -> String {
    if terminal.is_json {
        let value = json!({
            "succeeded": kept.succeeded, "succeeded_for_ms": kept.succeeded_for.as_millis() as u64,
            "dead": kept.dead, "dead_for_ms": kept.dead_for.as_millis() as u64,
        });
        return value.to_string();
    }
    format!(
        "succeeded {} for {}, cancelled likewise\ndead {} for {}",
        kept.succeeded,
        time(kept.succeeded_for),
        kept.dead,
        time(kept.dead_for)
    )
}

/// A time as the options take it.
fn time(time: Duration) -> String {
    let ms = time.as_millis();
    match [(3_600_000, "h"), (60_000, "m"), (1_000, "s")]
        .into_iter()
        .find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit))
    {
        Some((unit, name)) => format!("{}{name}", ms / unit),
        None => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        keep: KeepOptions,
    }

    #[test]
    fn what_is_not_named_is_kept_as_before() {
        let kept = |words: &[&str]| {
            let words = [&["keep"][..], words].concat();
            Line::parse_from(words).keep.over(Retention::default())
        };
        assert_eq!(kept(&[]), Retention::default());
        let expected = Retention {
            succeeded: 1,
            dead_for: Duration::from_secs(4),
            ..Retention::default()
        };
        assert_eq!(kept(&["--succeeded=1", "--dead-for=4s"]), expected);
    }

    #[test]
    fn times_are_shown_as_they_are_given() {
        for text in ["168h", "90m", "61s", "1500ms"] {
            assert_eq!(time(duration(text).unwrap()), text);
        }
    }
}
