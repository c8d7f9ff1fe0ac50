//! Programs that commands run for a request or a task: a shell, its input and output, and its end with everything it
//! started.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{ChildStdin, ExitCode, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep_until, timeout_at};

/// Largest output of a command, and largest standard error, in bytes.
pub(crate) const OUTPUT_LIMIT: usize = 1 << 20;

/// What becomes of a command that prints more than [`OUTPUT_LIMIT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    /// It is killed, and that is an error.
    Fails,
    /// It goes on. Of its output the first `OUTPUT_LIMIT` bytes and one more are kept, of its standard error the last
    /// `OUTPUT_LIMIT` bytes.
    IsDropped,
}

/// How long after a command's end its output may stay open. What the command wrote is there by then; only what it left
/// in the background is cut off.
pub(crate) const LEFTOVER: Duration = Duration::from_millis(200);

/// The hidden first words of the command line by which this program starts itself: [`exec`] and [`guard`].
pub(crate) const EXEC: &str = "__exec";
pub(crate) const GUARD: &str = "__guard";

/// This program, even if its file was replaced since it was started.
fn this_program() -> PathBuf {
    match cfg!(target_os = "linux") {
        true => "/proc/self/exe".into(),
        false => std::env::current_exe().unwrap_or_else(|_| "kumi".into()),
    }
}

/// `sh` with a command, whose input and output are ours. It is a process group of its own: it does not see a ctrl-c of
/// our terminal, so that it can end its work while we drain, and what it starts can be ended with it. It is started through
/// [`exec`], so that it ends with us however we end.
pub(crate) fn shell(command: &str) -> Command {
    let mut shell = Command::new(this_program());
    shell
        .arg0("kumi")
        .args([EXEC, &std::process::id().to_string()])
        .args(["sh", "-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    shell
}

/// Becomes a program that is killed when its parent ends: `PARENT PROGRAM ARGUMENTS`. The signal is asked for first and the
/// parent is looked at after that, so that a parent that ended in between is noticed. The signal comes when the thread ends
/// that started this process; threads of a runtime end with it.
pub(crate) fn exec(args: &[OsString]) -> ExitCode {
    let [parent, program, args @ ..] = args else {
        return ExitCode::from(2);
    };
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        eprintln!("kumi: the end of the parent will not be noticed: {error}");
    }
    let parent = parent.to_str().and_then(|parent| parent.parse().ok());
    if parent != Some(std::os::unix::process::parent_id()) {
        return ExitCode::FAILURE;
    }
    let error = std::process::Command::new(program).args(args).exec();
    eprintln!("kumi: {} cannot be run: {error}", program.display());
    ExitCode::from(match error.kind() {
        io::ErrorKind::NotFound => 127,
        _ => 126,
    })
}

/// Kills process groups when its standard input ends: lines `+GROUP` and `-GROUP` say which there are.
pub(crate) fn guard() -> ExitCode {
    let mut groups = HashSet::new();
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else {
            break;
        };
        let (sign, number) = line.split_at_checked(1).unwrap_or_default();
        let group = number.parse().ok().and_then(Pid::from_raw);
        match (sign, group) {
            ("+", Some(group)) => drop(groups.insert(group)),
            ("-", Some(group)) => drop(groups.remove(&group)),
            _ => {}
        }
    }
    for group in groups {
        // It fails only if the group has no process left.
        let _ = kill_process_group(group, Signal::KILL);
    }
    ExitCode::SUCCESS
}

/// A process beside this one that kills the groups of its children when this one ends, even if it is killed. The signal
/// that [`exec`] asks for reaches a child, but not what the child started.
pub(crate) struct Guard {
    input: Mutex<ChildStdin>,
}

/// A child's group, as long as it is to be killed with us.
pub(crate) struct Watched {
    guard: Arc<Guard>,
    group: Option<u32>,
}

impl Guard {
    pub(crate) fn start() -> io::Result<Arc<Self>> {
        let mut guard = std::process::Command::new(this_program());
        let mut child = guard
            .arg0("kumi")
            .arg(GUARD)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let input = child.stdin.take();
        let input = input.ok_or_else(|| io::Error::other("a child without an input"))?;
        // It ends when its input does, and is never waited for.
        Ok(Arc::new(Self {
            input: Mutex::new(input),
        }))
    }

    /// Kills the child's group with this process, until the reply is dropped.
    pub(crate) fn watch(self: &Arc<Self>, child: &Child) -> Watched {
        let (guard, group) = (self.clone(), child.id());
        self.say('+', group);
        Watched { guard, group }
    }

    /// A guard that was killed is missed only if this process is killed too.
    fn say(&self, sign: char, group: Option<u32>) {
        if let Some(group) = group {
            let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = input.write_all(format!("{sign}{group}\n").as_bytes());
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.guard.say('-', self.group);
    }
}

/// Feeds a command its input and waits for its end. Answers how it ended, what it printed, and what it wrote to standard
/// error. When `stop` resolves, the command and all that it started get SIGTERM, and SIGKILL if they have not ended after
/// `grace`. Dropping the future kills them at once.
pub(crate) async fn finish(
    mut child: Child,
    input: &[u8],
    excess: Excess,
    stop: impl Future<Output = ()>,
    grace: Duration,
) -> io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
    let mut group = Group::of(&child);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut output, mut complaint) = (Vec::new(), Vec::new());
    let status = {
        let talk = async {
            let feed = async {
                if let Some(mut stdin) = stdin {
                    // A command need not read its input to the end, or at all.
                    let _ = stdin.write_all(input).await;
                }
                Ok(())
            };
            tokio::try_join!(feed, read_start(stdout, &mut output, excess), async {
                match excess {
                    Excess::Fails => read_start(stderr, &mut complaint, excess).await,
                    Excess::IsDropped => read_end(stderr, &mut complaint).await,
                }
            })
        };
        tokio::pin!(talk, stop);
        let (mut talking, mut kill_at) = (true, None);
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                talked = &mut talk, if talking => {
                    talked?;
                    talking = false;
                }
                () = &mut stop, if kill_at.is_none() => {
                    group.signal(Signal::TERM);
                    kill_at = Some(Instant::now() + grace);
                }
                () = sleep_until(kill_at.unwrap_or_else(Instant::now)), if kill_at.is_some() => {
                    group.signal(Signal::KILL);
                    break child.wait().await?;
                }
            }
        };
        let leftover = match kill_at {
            // What it started has the rest of the grace, and is killed then.
            Some(kill_at) => kill_at.max(Instant::now() + LEFTOVER),
            None => Instant::now() + LEFTOVER,
        };
        if kill_at.is_none() {
            group.leave();
        }
        if talking && let Ok(talked) = timeout_at(leftover, &mut talk).await {
            talked?;
        }
        status
    };
    Ok((status, output, complaint))
}

/// Reads a stream to its end and keeps its start: [`OUTPUT_LIMIT`] bytes, and one more if there are more.
async fn read_start(
    stream: Option<impl AsyncRead + Unpin>,
    bytes: &mut Vec<u8>,
    excess: Excess,
) -> io::Result<()> {
    let Some(mut stream) = stream else {
        return Ok(());
    };
    let mut start = (&mut stream).take(OUTPUT_LIMIT as u64 + 1);
    start.read_to_end(bytes).await?;
    match excess {
        _ if bytes.len() <= OUTPUT_LIMIT => Ok(()),
        Excess::Fails => Err(io::Error::other(format!(
            "it printed more than {OUTPUT_LIMIT} bytes"
        ))),
        Excess::IsDropped => tokio::io::copy(&mut stream, &mut tokio::io::sink())
            .await
            .map(drop),
    }
}

/// Reads a stream to its end and keeps its last [`OUTPUT_LIMIT`] bytes.
async fn read_end(stream: Option<impl AsyncRead + Unpin>, bytes: &mut Vec<u8>) -> io::Result<()> {
    let Some(mut stream) = stream else {
        return Ok(());
    };
    let mut part = vec![0; 16 << 10];
    loop {
        let read = stream.read(&mut part).await?;
        if read == 0 {
            bytes.drain(..bytes.len().saturating_sub(OUTPUT_LIMIT));
            return Ok(());
        }
        bytes.extend_from_slice(&part[..read]);
        // Seldom, because it moves what is kept.
        if bytes.len() > 2 * OUTPUT_LIMIT {
            bytes.drain(..bytes.len() - OUTPUT_LIMIT);
        }
    }
}

/// The process group of a child that leads one. Dropping it kills the group, unless the child was seen to end.
pub(crate) struct Group {
    leader: Option<Pid>,
}

impl Group {
    pub(crate) fn of(child: &Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            leader: leader.and_then(Pid::from_raw),
        }
    }

    /// Sends a signal to all processes of the group.
    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // It fails only if the group has no process left.
            let _ = kill_process_group(leader, signal);
        }
    }

    /// The child has ended: its number may soon be another's. What it left in the background is left alone.
    pub(crate) fn leave(&mut self) {
        self.leader = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
