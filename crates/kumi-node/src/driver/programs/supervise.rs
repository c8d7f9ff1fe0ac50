//! Keeps the program of `pipe.rs` running: one that crashes is started again, after a pause that grows.
//!
//! Requests that the program had when it crashed are answered with ERR, because they may have run. Requests that it did
//! not have, and those that arrive while no program runs, wait for the next one.

use super::Program;
use super::pipe::{Pipe, PipeProgram, gone};
use crate::core::programs::{Action, End, Finished, RestartRule, Supervision};
use kumi_muf::{Outcome, Request};
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// The way to the program that runs now; none between two.
#[derive(Clone)]
pub struct Way(watch::Receiver<Option<Arc<Pipe>>>);

impl Way {
    /// Gives the request to the program, or to the next one if this one does not get it any more. Dropping the future
    /// closes the request.
    pub async fn answer(mut self, request: &Request) -> Outcome {
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
pub struct Supervised {
    program: Program,
    running: Option<PipeProgram>,
    pipes: watch::Sender<Option<Arc<Pipe>>>,
    supervision: Supervision,
    origin: Instant,
}

impl Supervised {
    /// Starts it.
    ///
    /// # Errors
    /// If `sh` cannot be started, or the file with variables not be read.
    pub fn start(program: Program, rule: RestartRule) -> io::Result<Self> {
        let running = PipeProgram::start(&program)?;
        let origin = Instant::now();
        let mut supervision = Supervision::new(rule);
        supervision.started(origin.elapsed());
        Ok(Self {
            program,
            pipes: watch::Sender::new(Some(running.pipe.clone())),
            running: Some(running),
            supervision,
            origin,
        })
    }

    /// The way to the program, for handlers of requests.
    #[must_use]
    pub fn way(&self) -> Way {
        Way(self.pipes.subscribe())
    }

    /// Returns when the program has ended and is not to be started again, with the reason. Nothing is lost if the future
    /// is dropped.
    pub async fn keep_running(&mut self) -> Finished {
        loop {
            let action = self.supervision.poll(self.origin.elapsed());
            match (action, &mut self.running) {
                (Action::Start, _) => self.start_again(),
                (Action::Sleep(until), _) => sleep_until(self.origin + until).await,
                (Action::Finished(why), _) => return why,
                (_, Some(running)) => {
                    let status = running.ended().await;
                    self.note_end(status);
                }
                // A start that was not noted cannot be: `start_again` does both.
                (_, None) => self.note_end(None),
            }
        }
    }

    fn start_again(&mut self) {
        match PipeProgram::start(&self.program) {
            Ok(running) => {
                self.pipes.send_replace(Some(running.pipe.clone()));
                self.running = Some(running);
                self.supervision.started(self.origin.elapsed());
            }
            Err(error) => {
                self.program.note(format_args!("starting sh: {error}"));
                self.supervision
                    .ended(End::NotStarted, self.origin.elapsed());
            }
        }
    }

    fn note_end(&mut self, status: Option<ExitStatus>) {
        self.pipes.send_replace(None);
        // Kills what closed its output and runs on.
        self.running = None;
        let (end, how) = match status {
            Some(status) => {
                let end = status.code().map_or(End::Killed, End::Exited);
                (end, format!("ended with {status}"))
            }
            None => (End::ClosedOutput, "closed its output".to_owned()),
        };
        if let Some(pause) = self.supervision.ended(end, self.origin.elapsed()) {
            let pause = pause.as_secs_f32();
            self.program.note(format_args!(
                "the program {how}; it is started again in {pause:.1} s"
            ));
        }
    }

    /// Starts nothing any more: requests that wait for another program are answered with ERR. The program that runs goes
    /// on.
    #[must_use]
    pub fn close(self) -> Closing {
        // Without its sender the way still leads to the program that runs, and a wait for another one ends.
        Closing {
            program: self.running,
        }
    }
}

/// A program that is not started again.
pub struct Closing {
    program: Option<PipeProgram>,
}

impl Closing {
    /// Waits until the program has ended by itself, or for ever if none runs.
    pub async fn ended(&mut self) {
        match &mut self.program {
            Some(program) => drop(program.ended().await),
            None => std::future::pending().await,
        }
        self.program = None;
    }

    /// Ends the program's input and waits for its end, but not for ever.
    pub async fn stop(self) {
        if let Some(program) = self.program {
            program.stop().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::heard::program;
    use super::*;

    #[tokio::test]
    async fn a_program_that_crashes_is_started_again_and_its_errors_are_passed_on() {
        let (mut program, mut heard) = program("echo oops >&2; exit 3");
        program.captures_errors = true;
        let mut supervised = Supervised::start(program, RestartRule::after_crashes()).unwrap();
        let (mut notes, mut errors) = (Vec::new(), Vec::new());
        tokio::select! {
            why = supervised.keep_running() => panic!("{why:?}"),
            () = async {
                // They come from two tasks.
                while notes.len() < 2 || errors.len() < 2 {
                    let line = heard.next().await;
                    match line.starts_with('!') {
                        true => notes.push(line),
                        false => errors.push(line),
                    }
                }
            } => {}
        }
        assert_eq!(errors[..2], ["api: oops", "api: oops"]);
        let again = "!api: the program ended with exit status: 3; it is started again in";
        assert_eq!(
            notes[..2],
            [format!("{again} 0.1 s"), format!("{again} 0.2 s")]
        );
    }

    #[tokio::test]
    async fn a_program_that_is_done_or_cannot_be_run_is_not_started_again() {
        for (command, expected) in [
            ("true", Finished::Succeeded),
            ("exit 126", Finished::CannotRun),
            ("exit 127", Finished::CannotRun),
        ] {
            let (program, _heard) = program(command);
            let rule = RestartRule::after_crashes();
            let mut supervised = Supervised::start(program, rule).unwrap();
            assert_eq!(supervised.keep_running().await, expected, "{command}");
        }
    }
}
