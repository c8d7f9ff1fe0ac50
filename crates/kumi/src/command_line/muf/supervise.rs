//! Keeps the program of `serve --pipe` running: one that crashes is started again, after a pause that grows.
//!
//! Requests that the program had when it crashed are answered with ERR, because they may have run. Requests that it did
//! not have, and those that arrive while no program runs, wait for the next one.

use super::failure::Failure;
use super::pipe::{Pipe, Program, gone};
use crate::command_line::process::Guard;
use crate::command_line::terminal;
use kumi_jobs::{Exponential, RetryPolicy};
use kumi_muf::{Outcome, Request};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// A program that ran for this long before it crashed starts the pauses from the beginning.
const STEADY: Duration = Duration::from_secs(10);

/// The pause after the first crash, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The way to the program that runs now; none between two.
#[derive(Clone)]
pub(super) struct Way(watch::Receiver<Option<Arc<Pipe>>>);

impl Way {
    /// Gives the request to the program, or to the next one if this one does not get it any more. Dropping the future
    /// closes the request.
    pub(super) async fn answer(mut self, request: &Request) -> Outcome {
        let mut tried: Option<Arc<Pipe>> = None;
        loop {
            let is_new = |pipe: &Option<Arc<Pipe>>| match (pipe, &tried) {
                (Some(pipe), Some(tried)) => !Arc::ptr_eq(pipe, tried),
                (pipe, _) => pipe.is_some(),
            };
            let pipe = match self.0.wait_for(is_new).await {
                Ok(pipe) => pipe.clone(),
                Err(_) => None,
            };
            let Some(pipe) = pipe else {
                return gone();
            };
            if let Some(outcome) = pipe.answer(request).await {
                return outcome;
            }
            tried = Some(pipe);
        }
    }
}

/// The program and its successors. Dropping it kills the one that runs.
pub(super) struct Supervised {
    command: String,
    guard: Arc<Guard>,
    program: Option<Program>,
    pipes: watch::Sender<Option<Arc<Pipe>>>,
    /// Crashes in a row, none of them after a long run.
    crashes: u32,
    started: Instant,
}

impl Supervised {
    pub(super) fn start(command: &str, guard: &Arc<Guard>) -> Result<Self, Failure> {
        let program = Program::start(command, guard)?;
        Ok(Self {
            command: command.to_owned(),
            guard: guard.clone(),
            pipes: watch::Sender::new(Some(program.pipe.clone())),
            program: Some(program),
            crashes: 0,
            started: Instant::now(),
        })
    }

    pub(super) fn way(&self) -> Way {
        Way(self.pipes.subscribe())
    }

    /// Returns when the program has ended and is not to be started again, with the reason. Nothing is lost if the future
    /// is dropped.
    pub(super) async fn keep_running(&mut self) -> &'static str {
        loop {
            if let Some(program) = &mut self.program {
                let status = program.ended().await;
                self.pipes.send_replace(None);
                // Kills what closed its output and runs on.
                self.program = None;
                if let Some(reason) = ended_for_good(status) {
                    return reason;
                }
                self.note_crash(status);
            }
            sleep(self.pause()).await;
            self.started = Instant::now();
            match Program::start(&self.command, &self.guard) {
                Ok(program) => {
                    self.pipes.send_replace(Some(program.pipe.clone()));
                    self.program = Some(program);
                }
                Err(failure) => {
                    failure.report();
                    self.crashes += 1;
                }
            }
        }
    }

    fn note_crash(&mut self, status: Option<ExitStatus>) {
        self.crashes = match self.started.elapsed() >= STEADY {
            true => 1,
            false => self.crashes + 1,
        };
        let how = match status {
            Some(status) => format!("ended with {status}"),
            None => "closed its output".to_owned(),
        };
        let pause = self.pause().as_secs_f32();
        terminal::note(format_args!(
            "the program {how}; it is started again in {pause:.1} s"
        ));
    }

    fn pause(&self) -> Duration {
        let policy = Exponential {
            first: FIRST_PAUSE,
            factor: 2.0,
            cap: LONGEST_PAUSE,
            jitter: false,
        };
        policy
            .delay(self.crashes.max(1), "")
            .unwrap_or(LONGEST_PAUSE)
    }

    /// Starts nothing any more: requests that wait for another program are answered with ERR. The program that runs goes
    /// on.
    pub(super) fn close(self) -> Closing {
        // Without its sender the way still leads to the program that runs, and a wait for another one ends.
        Closing {
            program: self.program,
        }
    }
}

/// A program that is not started again.
pub(super) struct Closing {
    program: Option<Program>,
}

impl Closing {
    /// Waits until the program has ended by itself, or for ever if none runs.
    pub(super) async fn ended(&mut self) {
        match &mut self.program {
            Some(program) => drop(program.ended().await),
            None => std::future::pending().await,
        }
        self.program = None;
    }

    /// Ends the program's input and waits for its end, but not for ever.
    pub(super) async fn stop(self) {
        if let Some(program) = self.program {
            program.stop().await;
        }
    }
}

/// Why a program that ended so is not started again: it was done, or the shell cannot run it at all.
fn ended_for_good(status: Option<ExitStatus>) -> Option<&'static str> {
    match status.and_then(|status| status.code()) {
        Some(0) => Some("the program has ended"),
        // POSIX: the shell found no such command, or may not execute it.
        Some(126 | 127) => Some("the program cannot be run"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn only_crashes_lead_to_another_start() {
        let ended = |code: i32| ended_for_good(Some(ExitStatus::from_raw(code << 8)));
        assert!(ended(0).is_some() && ended(126).is_some() && ended(127).is_some());
        assert_eq!(ended(1), None);
        let killed = ExitStatus::from_raw(9);
        assert_eq!(ended_for_good(Some(killed)), None);
        assert_eq!(ended_for_good(None), None);
    }
}
