//! `kumi jobs work --exec`: a worker whose handler is a program.

use super::backoff;
use super::failure::Failure;
use super::log::Log;
use super::options::WorkOptions;
use crate::command_line::process;
use kumi_jobs::{Jobs, Owner, TaskId, Worker};
use kumi_node::programs::{Output, Program, TaskProgram};
use std::os::unix::fs::PermissionsExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Exit codes of a shell whose command cannot be executed, and is not found.
const CANNOT_RUN: [i32; 2] = [126, 127];

/// Different tasks in a row whose command could not be run, after which the worker ends.
const TROUBLES: usize = 3;

/// How long a worker that stops at once waits for its tasks to be given back.
const GIVE_BACK: Duration = Duration::from_secs(2);

/// Checks what can be known before the first task: that the program exists.
pub(super) fn check(options: &WorkOptions) -> Result<(), Failure> {
    let Some(word) = first_word(&options.exec) else {
        return Ok(());
    };
    let wrong = |why: &str| Err(Failure::Usage(format!("--exec: {why}")));
    if word.contains('/') {
        return match std::fs::metadata(word) {
            Err(error) => wrong(&format!("'{word}' cannot be run: {error}")),
            Ok(file) if !file.is_file() => wrong(&format!("'{word}' is not a program")),
            Ok(file) if file.permissions().mode() & 0o111 == 0 => {
                wrong(&format!("'{word}' is not executable"))
            }
            Ok(_) => Ok(()),
        };
    }
    // The shell knows its own words and where programs are.
    let found = std::process::Command::new("sh")
        .args(["-c", "command -v \"$1\"", "sh", word])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match found {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => wrong(&format!("there is no program '{word}' in PATH")),
        Err(error) => wrong(&format!("sh cannot be run: {error}")),
    }
}

/// The first word of a shell command, if it is plain: no assignment, quote, expansion or operator is in it, and it is
/// neither the name of a function that is defined there nor the number of a descriptor.
fn first_word(command: &str) -> Option<&str> {
    let command = command.trim_start();
    let end = command
        .find(|c: char| c.is_whitespace() || ";|&<>()".contains(c))
        .unwrap_or(command.len());
    let (word, rest) = command.split_at(end);
    let is_special = |c: char| "=$`'\"\\*?[]{}~#!".contains(c);
    let is_descriptor = word.chars().all(|c| c.is_ascii_digit()) && rest.starts_with(['<', '>']);
    let defines = rest.trim_start().starts_with('(');
    let is_plain = !(word.is_empty() || word.contains(is_special) || is_descriptor || defines);
    is_plain.then_some(word)
}

pub(super) async fn run(jobs: &Jobs, options: WorkOptions) -> Result<(), Failure> {
    let other = |error: std::io::Error| Failure::Other(error.into());
    let mut signals = signals().map_err(other)?;
    let owner = match &options.name {
        Some(name) => Owner::new(name).map_err(|error| Failure::Usage(error.to_string()))?,
        None => Owner::random(),
    };
    let mut worker = Worker::new(jobs, ())
        .concurrency(options.concurrency)
        .shutdown_within(options.stop_within)
        .owner(owner.clone());
    let log = Log::start().map_err(other)?;
    let launcher = process::launcher().map_err(other)?;
    let trouble = Arc::new(Trouble::default());
    for task_type in &options.types {
        let program = Program::new(task_type, &options.exec, &launcher, Arc::new(log.clone()));
        let mut program = TaskProgram::new(task_type, program);
        program.time_limit = options.time_limit;
        program.backoff = backoff::of_type(&options.backoff, task_type);
        program.kill_after = options.kill_after;
        program.error_limit = jobs.queue().settings().error_limit_bytes;
        let trouble = trouble.clone();
        program.on_end = Some(Arc::new(move |id, status, error| {
            trouble.note(id, status, error);
        }));
        worker = worker.handler(program);
    }
    log.note(format_args!("working on {}", options.types.join(", ")));
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(options.log)
        .with_writer(move || writer.clone())
        .with_ansi(false);
    // It fails only where the process has a subscriber already, which is kept.
    let _ = subscriber.try_init();
    let mut again = signals.clone();
    let stop = async {
        let limit = options.stop_within;
        tokio::select! {
            () = received(&mut signals, 1) => log.note(format_args!(
                "finishing what runs, for at most {limit:?}; ctrl-c again stops at once"
            )),
            () = trouble.is_too_much() => log.note(format_args!(
                "the command cannot be run; finishing what runs, for at most {limit:?}"
            )),
        }
    };
    let ended = tokio::select! {
        ended = worker.run_until(stop) => Some(ended),
        // The worker's future is dropped: its programs are killed, and their tasks given back.
        () = received(&mut again, 2) => None,
    };
    let done = match ended {
        Some(ended) => ended.map_err(Failure::from),
        None => {
            log.note("stopping at once");
            given_back(jobs, &owner).await
        }
    };
    log.finish();
    match trouble.report() {
        Some(report) => done.and(Err(Failure::Other(anyhow::anyhow!(report)))),
        None => done,
    }
}

/// A worker writes what its programs wrote as it is.
impl Output for Log {
    fn text(&self, _program: &str, text: &[u8]) {
        self.push(text);
    }

    fn note(&self, _program: &str, line: &str) {
        Log::note(self, line);
    }
}

/// Signals within this time are one: `timeout` and other wrappers send theirs to the process and to its group.
const SAME_SIGNAL: Duration = Duration::from_millis(100);

/// How many times a signal to stop has arrived so far.
fn signals() -> std::io::Result<watch::Receiver<usize>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (sender, receiver) = watch::channel(0);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            let _ = timeout(SAME_SIGNAL, async {
                loop {
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                    }
                }
            })
            .await;
            sender.send_modify(|count| *count += 1);
        }
    });
    Ok(receiver)
}

/// Waits for so many signals.
async fn received(signals: &mut watch::Receiver<usize>, count: usize) {
    if signals.wait_for(|seen| *seen >= count).await.is_err() {
        // The task that counts them ends only with the runtime.
        std::future::pending().await
    }
}

/// Waits until a worker that was dropped holds nothing more.
async fn given_back(jobs: &Jobs, owner: &Owner) -> Result<(), Failure> {
    let back = async {
        loop {
            match jobs.queue().running(owner).await {
                Ok(claims) if !claims.is_empty() => sleep(Duration::from_millis(50)).await,
                ended => return ended.map(drop),
            }
        }
    };
    match timeout(GIVE_BACK, back).await {
        Ok(ended) => Ok(ended?),
        Err(_) => Err(Failure::Other(anyhow::anyhow!(
            "some tasks were not given back; they come back when the lease ends"
        ))),
    }
}

/// Tasks whose command could not be run, one after the other. Any other end of a task forgets them.
#[derive(Default)]
struct Trouble {
    tasks: Mutex<Vec<TaskId>>,
    /// What the last one said, once there are too many.
    reported: Mutex<Option<String>>,
    too_much: tokio::sync::Notify,
}

impl Trouble {
    fn note(&self, id: TaskId, status: ExitStatus, error: &str) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if !status.code().is_some_and(|code| CANNOT_RUN.contains(&code)) {
            tasks.clear();
            return;
        }
        if !tasks.contains(&id) {
            tasks.push(id);
        }
        if tasks.len() >= TROUBLES {
            let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
            reported.get_or_insert_with(|| {
                let error = crate::command_line::terminal::shown(error);
                format!(
                    "the command could not be run for {TROUBLES} tasks in a row ({status}): {error}"
                )
            });
            self.too_much.notify_one();
        }
    }

    async fn is_too_much(&self) {
        self.too_much.notified().await;
    }

    fn report(&self) -> Option<String> {
        let reported = self.reported.lock();
        reported.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn exited(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn the_first_word_is_checked_where_it_is_plain() {
        let check = |command: &str, expected: Option<&str>| {
            assert_eq!(first_word(command), expected, "{command}");
        };
        check("./resize.py --fast", Some("./resize.py"));
        check(" cat|sort", Some("cat"));
        check("read n; echo $n", Some("read"));
        check("A=1 cat", None);
        check("\"$HOME/x\" y", None);
        check("(cd /; ls)", None);
        check("f() { echo hi; }; f", None);
        check("2>/dev/null cat", None);
        check("~/bin/x", None);
        check("", None);
    }

    #[test]
    fn three_different_tasks_in_a_row_are_trouble() {
        let trouble = Trouble::default();
        let [one, two, three] = [(); 3].map(|()| TaskId::random());
        let failed = |id| trouble.note(id, exited(127), "sh: reszie: not found");
        failed(one);
        failed(one);
        failed(two);
        assert_eq!(
            trouble.report(),
            None,
            "a task that is tried again counts once"
        );
        trouble.note(three, exited(1), "");
        failed(three);
        failed(one);
        assert_eq!(trouble.report(), None, "another end begins anew");
        failed(two);
        let report = trouble.report().unwrap();
        assert!(report.contains("exit status: 127") && report.ends_with("reszie: not found"));
    }
}
