//! A program that is kept running: started again after its end, stopped with everything it started.

use super::Program;
use super::child::LEFTOVER;
use super::launch::{Group, Watched};
use super::lines::pass_on;
use crate::config::{Restart, Run};
use crate::core::programs::{Action, End, Finished, RestartRule, Supervision};
use rustix::process::Signal;
use std::io;
use std::process::{ExitStatus, Stdio};
use tokio::process::Child;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// A program and its successors. Dropping it kills the one that runs.
pub struct RunningProgram {
    stop: CancellationToken,
    task: JoinHandle<()>,
    state: watch::Receiver<ProgramState>,
}

/// How a program is, for status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramState {
    /// The process that runs; none between two, and at the end.
    pub pid: Option<u32>,
    /// How often it was started.
    pub starts: u64,
    /// How the last one ended, in words.
    pub last_end: Option<String>,
    /// How often it ended in a row without having run for long.
    pub crashes: u32,
    /// When the next one is started; none while one runs, and at the end.
    pub next_start: Option<std::time::Instant>,
    /// It is not started any more.
    pub is_finished: bool,
}

impl RestartRule {
    /// The rule of an entry of `kumi.kdl`.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        Self {
            after_success: run.restart == Restart::Always,
            grace: run.stop_grace,
            ..Self::default()
        }
    }
}

impl RunningProgram {
    /// Starts it, on the current runtime.
    #[must_use]
    pub fn start(program: Program, rule: RestartRule) -> Self {
        let (sender, state) = watch::channel(ProgramState::default());
        let stop = CancellationToken::new();
        let keeper = Keeper {
            program,
            supervision: Supervision::new(rule),
            origin: Instant::now(),
            child: None,
            state: sender,
        };
        Self {
            task: tokio::spawn(keeper.keep(stop.clone())),
            stop,
            state,
        }
    }

    /// How it is now.
    #[must_use]
    pub fn state(&self) -> ProgramState {
        self.state.borrow().clone()
    }

    /// Waits for another state than the last one that was seen. False when there will be no other.
    pub async fn changed(&mut self) -> bool {
        self.state.changed().await.is_ok()
    }

    /// Sends it SIGTERM, and SIGKILL after its grace, and returns when it has ended. Dropping the future kills it at once.
    pub async fn stop(mut self) {
        self.stop.cancel();
        // A task that panicked has dropped its program, which killed it.
        let _ = (&mut self.task).await;
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Runs the core of one program.
struct Keeper {
    program: Program,
    supervision: Supervision,
    origin: Instant,
    child: Option<RunningChild>,
    state: watch::Sender<ProgramState>,
}

impl Keeper {
    async fn keep(mut self, stop: CancellationToken) {
        loop {
            match self.supervision.poll(self.origin.elapsed()) {
                Action::Start => self.start(),
                Action::Watch => tokio::select! {
                    end = ended(&mut self.child) => self.note_end(end),
                    () = stop.cancelled() => self.supervision.stop(),
                },
                Action::Sleep(until) => tokio::select! {
                    () = sleep_until(self.origin + until) => {}
                    end = ended(&mut self.child) => self.note_end(end),
                    // Only a pause is cut short; a program that was told to stop keeps its grace.
                    () = stop.cancelled(), if self.child.is_none() => self.supervision.stop(),
                },
                Action::Terminate(_) => self.signal(Signal::TERM),
                Action::Kill => {
                    self.signal(Signal::KILL);
                    let end = ended(&mut self.child).await;
                    self.note_end(end);
                }
                Action::Finished(why) => {
                    if why != Finished::Stopped {
                        self.program
                            .note("the program has ended, and is not started again");
                    }
                    self.state.send_modify(|state| state.is_finished = true);
                    return;
                }
            }
        }
    }

    fn start(&mut self) {
        match RunningChild::start(&self.program) {
            Ok(child) => {
                let pid = child.child.id();
                self.child = Some(child);
                self.supervision.started(self.origin.elapsed());
                self.state.send_modify(|state| {
                    state.pid = pid;
                    state.starts += 1;
                    state.next_start = None;
                });
            }
            Err(error) => self.note_ending(End::NotStarted, format!("cannot be started: {error}")),
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(child) = &self.child {
            child.group.signal(signal);
        }
    }

    fn note_end(&mut self, status: io::Result<ExitStatus>) {
        // What it left running is killed: its successor may need the same port.
        self.child = None;
        let (end, how) = match status {
            Ok(status) => (
                status.code().map_or(End::Killed, End::Exited),
                format!("ended with {status}"),
            ),
            Err(error) => (
                End::Killed,
                format!("ended, and its status is not known: {error}"),
            ),
        };
        self.note_ending(end, how);
    }

    fn note_ending(&mut self, end: End, how: String) {
        let pause = self.supervision.ended(end, self.origin.elapsed());
        if let Some(pause) = pause {
            let pause = pause.as_secs_f32();
            self.program.note(format_args!(
                "the program {how}; it is started again in {pause:.1} s"
            ));
        }
        self.state.send_modify(|state| {
            state.pid = None;
            state.last_end = Some(how);
            state.crashes = self.supervision.ends_in_a_row();
            state.next_start = pause.map(|pause| (Instant::now() + pause).into_std());
        });
    }
}

/// Waits for the end of a child, or for ever if there is none. Nothing is lost if the future is dropped.
async fn ended(child: &mut Option<RunningChild>) -> io::Result<ExitStatus> {
    match child {
        Some(child) => child.ended().await,
        None => std::future::pending().await,
    }
}

/// The process that runs. Dropping it kills its group.
struct RunningChild {
    child: Child,
    group: Group,
    _watched: Watched,
    /// What read its output and its standard error; aborted when they are dropped.
    readers: Vec<JoinHandle<()>>,
}

impl RunningChild {
    fn start(program: &Program) -> io::Result<Self> {
        let mut command = program.prepared()?;
        let mut child = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let stdout = child
            .stdout
            .take()
            .map(|stream| tokio::spawn(pass_on(stream, program.clone())));
        let stderr = child
            .stderr
            .take()
            .map(|stream| tokio::spawn(pass_on(stream, program.clone())));
        Ok(Self {
            group: Group::of(&child),
            _watched: program.launcher.watch(&child),
            child,
            readers: stdout.into_iter().chain(stderr).collect(),
        })
    }

    async fn ended(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        // Its last lines are on their way, unless it left a process behind that keeps its output open.
        let drained = async {
            while let Some(reader) = self.readers.last_mut() {
                // A reader that panicked has ended too. One that ended is not awaited again.
                let _ = reader.await;
                self.readers.pop();
            }
        };
        let _ = timeout(LEFTOVER, drained).await;
        status
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        self.readers.iter().for_each(JoinHandle::abort);
    }
}

/// What programs of a node have in their environment besides its own.
pub(super) fn node_variables(node: &str, url: &str) -> Vec<(String, String)> {
    vec![
        ("KUMI_NODE".into(), node.into()),
        ("KUMI_URL".into(), url.into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::heard::{gone, is_running, program};
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn lines_of_both_streams_arrive_with_the_name() {
        let command =
            "echo \"$KUMI_NODE $KUMI_URL $PWD $A $B\"; sleep 0.1; echo err >&2; exec sleep 60";
        let (mut program, mut heard) = program(command);
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("env"), "A=from-file\nB=too\n").unwrap();
        program.surroundings.dir = Some(directory.path().canonicalize().unwrap());
        program.surroundings.env_file = Some(directory.path().join("env"));
        program
            .surroundings
            .env
            .insert("B".into(), "from-entry".into());
        program.variables = node_variables("a~000000000000002a", "redis://h");
        let shown = program
            .surroundings
            .dir
            .clone()
            .unwrap()
            .display()
            .to_string();
        let running = RunningProgram::start(program, RestartRule::default());
        let expected = format!("api: a~000000000000002a redis://h {shown} from-file from-entry");
        assert_eq!(heard.next().await, expected);
        assert_eq!(heard.next().await, "api: err");
        assert_eq!(running.state().starts, 1);
        running.stop().await;
        assert!(
            heard.is_silent().await,
            "a stop is no news, and nothing is started again"
        );
    }

    #[tokio::test]
    async fn a_program_that_ends_is_started_again() {
        let (program, mut heard) = program("echo up; exit 3");
        let running = RunningProgram::start(program, RestartRule::default());
        assert_eq!(heard.next().await, "api: up");
        let note = heard.next().await;
        assert_eq!(
            note,
            "!api: the program ended with exit status: 3; it is started again in 0.1 s"
        );
        assert_eq!(heard.next().await, "api: up");
        assert!(heard.next().await.ends_with("in 0.2 s"));
        assert!(running.state().last_end.unwrap().contains("exit status: 3"));
        running.stop().await;
    }

    #[tokio::test]
    async fn a_program_that_may_end_well_is_not_started_again() {
        let (program, mut heard) = program("echo once");
        let rule = RestartRule {
            after_success: false,
            ..RestartRule::default()
        };
        let mut running = RunningProgram::start(program, rule);
        assert_eq!(heard.next().await, "api: once");
        assert!(
            heard
                .next()
                .await
                .starts_with("!api: the program has ended")
        );
        while !running.state().is_finished {
            assert!(running.changed().await);
        }
        assert_eq!((running.state().pid, running.state().starts), (None, 1));
    }

    #[tokio::test]
    async fn a_stop_is_sigterm_and_then_sigkill_for_all_that_was_started() {
        let (program, mut heard) =
            program("trap 'echo term' TERM; sleep 60 & echo $!; while :; do wait; done");
        let rule = RestartRule {
            grace: Duration::from_millis(300),
            ..RestartRule::default()
        };
        let running = RunningProgram::start(program, rule);
        let pid = heard.next().await.replace("api: ", "");
        assert!(is_running(&pid));
        running.stop().await;
        assert_eq!(heard.next().await, "api: term");
        gone(&pid).await;
    }

    #[tokio::test]
    async fn a_dropped_program_is_killed_with_all_that_it_started() {
        let (program, mut heard) = program("trap '' TERM; sleep 60 & echo $!; wait");
        let running = RunningProgram::start(program, RestartRule::default());
        let pid = heard.next().await.replace("api: ", "");
        drop(running);
        gone(&pid).await;
    }

    #[tokio::test]
    async fn a_stop_ends_a_pause() {
        let (program, mut heard) = program("exit 1");
        let rule = RestartRule {
            first_pause: Duration::from_secs(3_600),
            longest_pause: Duration::from_secs(3_600),
            ..RestartRule::default()
        };
        let running = RunningProgram::start(program, rule);
        assert!(heard.next().await.contains("started again"));
        timeout(Duration::from_secs(30), running.stop())
            .await
            .expect("it does not wait for an hour");
    }

    #[tokio::test]
    async fn what_cannot_be_started_says_why() {
        let (mut program, mut heard) = program("true");
        program.surroundings.env_file = Some("/nowhere/env".into());
        let running = RunningProgram::start(program, RestartRule::default());
        let note = heard.next().await;
        assert!(
            note.starts_with("!api: the program cannot be started: /nowhere/env: "),
            "{note}"
        );
        running.stop().await;
    }
}
