//! Keeps the program of `pipe.rs` running: one that crashes is started again, after a pause that grows.
//!
//! Requests that the program had when it crashed are answered with ERR, because they may have run. Requests that it did
//! not have, and those that arrive while no program runs, wait for the next one.

use super::Program;
use super::pipe::{Pipe, PipeProgram, STOP_LIMIT, gone};
use crate::core::programs::{Action, End, Finished, RestartRule, Supervision};
use kumi_muf::{Outcome, Request};
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
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
    /// The time between SIGTERM and SIGKILL.
    grace: Duration,
}

impl Supervised {
    /// Starts it.
    ///
    /// # Errors
    /// If `sh` cannot be started, or the file with variables not be read.
    pub fn start(program: Program, rule: RestartRule) -> io::Result<Self> {
        let running = PipeProgram::start(&program)?;
        let mut supervised = Self::new(program, rule);
        supervised.note_start(running);
        Ok(supervised)
    }

    /// A program that [`keep_running`](Self::keep_running) starts. If it cannot be started, that is tried again, as after an
    /// end.
    #[must_use]
    pub fn new(program: Program, rule: RestartRule) -> Self {
        Self {
            program,
            pipes: watch::Sender::new(None),
            running: None,
            supervision: Supervision::new(rule),
            origin: Instant::now(),
            grace: rule.grace,
        }
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
            Ok(running) => self.note_start(running),
            Err(error) => {
                self.program.note(format_args!("starting sh: {error}"));
                self.supervision
                    .ended(End::NotStarted, self.origin.elapsed());
            }
        }
    }

    fn note_start(&mut self, running: PipeProgram) {
        self.pipes.send_replace(Some(running.pipe.clone()));
        self.running = Some(running);
        self.supervision.started(self.origin.elapsed());
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
            grace: self.grace,
        }
    }
}

/// A program that is not started again.
pub struct Closing {
    program: Option<PipeProgram>,
    grace: Duration,
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

    /// Ends the program's input and waits for its end. One that has not ended after 5 s gets SIGTERM, and SIGKILL after the
    /// grace of its rule. Dropping the future kills it at once.
    pub async fn stop(self) {
        if let Some(program) = self.program {
            program.stop(STOP_LIMIT, self.grace).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::heard::{Heard, gone, is_running, program};
    use super::*;
    use rustix::process::{Pid, Signal, kill_process};
    use tokio::time::timeout;

    /// What a program wrote to its standard error.
    async fn error_line(heard: &mut Heard) -> String {
        heard.next().await.replace("api: ", "")
    }

    #[tokio::test]
    async fn what_a_crashed_program_started_is_killed() {
        let (mut program, mut heard) = program("sleep 60 & echo $! >&2; exit 3");
        program.captures_errors = true;
        let mut supervised = Supervised::start(program, RestartRule::after_crashes()).unwrap();
        tokio::select! {
            why = supervised.keep_running() => panic!("{why:?}"),
            () = async {
                let pid = error_line(&mut heard).await;
                gone(&pid).await;
            } => {}
        }
    }

    /// It takes no notice of the end of its input, nor of SIGTERM.
    #[tokio::test]
    async fn a_program_that_does_not_end_gets_sigterm_and_then_sigkill_with_all_that_it_started() {
        let (mut program, mut heard) =
            program("trap 'echo term >&2' TERM; sleep 60 & echo $! >&2; while :; do wait; done");
        program.captures_errors = true;
        let running = PipeProgram::start(&program).unwrap();
        let pid = error_line(&mut heard).await;
        assert!(is_running(&pid));
        let soon = Duration::from_millis(300);
        let stopped = timeout(Duration::from_secs(30), running.stop(soon, soon)).await;
        stopped.expect("it is killed");
        let note = heard.next().await;
        assert!(note.contains("did not end with its input"), "{note}");
        assert_eq!(error_line(&mut heard).await, "term");
        gone(&pid).await;
    }

    #[tokio::test]
    async fn a_program_that_ends_at_sigterm_has_its_grace() {
        let (mut program, mut heard) = program(
            "trap 'echo done >&2; exit' TERM; echo up >&2; sleep 60 & while :; do wait; done",
        );
        program.captures_errors = true;
        let running = PipeProgram::start(&program).unwrap();
        assert_eq!(error_line(&mut heard).await, "up");
        let hour = Duration::from_secs(3_600);
        let stop = running.stop(Duration::from_millis(100), hour);
        let stopped = timeout(Duration::from_secs(30), stop).await;
        stopped.expect("it does not wait for an hour");
        heard.next().await;
        assert_eq!(error_line(&mut heard).await, "done");
    }

    /// What a program that is done left running keeps its standard error open.
    #[tokio::test]
    async fn nothing_reads_the_errors_of_a_program_that_is_gone() {
        let (mut program, mut heard) = program("sleep 60 & echo $! >&2; exit 0");
        program.captures_errors = true;
        let mut supervised = Supervised::start(program, RestartRule::after_crashes()).unwrap();
        assert_eq!(supervised.keep_running().await, Finished::Succeeded);
        drop(supervised);
        let pid = error_line(&mut heard).await;
        let silent = timeout(Duration::from_secs(30), heard.is_silent()).await;
        assert!(is_running(&pid), "it is left alone");
        let number = pid.trim().parse().ok().and_then(Pid::from_raw);
        kill_process(number.expect("a number"), Signal::KILL).unwrap();
        assert_eq!(silent, Ok(true));
    }

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
    async fn a_program_whose_first_start_fails_is_started_when_it_can_be() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("later");
        let (mut program, mut heard) = program("echo up >&2; sleep 60");
        program.captures_errors = true;
        program.surroundings.dir = Some(place.clone());
        let refused = Supervised::start(program.clone(), RestartRule::default());
        assert!(refused.is_err(), "there is no such directory");
        let mut supervised = Supervised::new(program, RestartRule::default());
        tokio::select! {
            why = supervised.keep_running() => panic!("{why:?}"),
            () = async {
                let note = heard.next().await;
                assert!(note.starts_with("!api: starting sh: "), "{note}");
                std::fs::create_dir(&place).expect("made");
                while error_line(&mut heard).await != "up" {}
            } => {}
        }
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
