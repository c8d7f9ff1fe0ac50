//! Programs that commands run for a request or a task: a shell, its input and output, and its end with everything it
//! started.

use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

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

/// `sh` with a command, whose input and output are ours. It is a process group of its own: it does not see a ctrl-c of
/// our terminal, so that it can end its work while we drain, and what it starts can be ended with it.
pub(crate) fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    shell
}

/// Feeds a command its input and waits for its end. Answers how it ended, what it printed, and what it wrote to standard
/// error. Dropping the future kills it.
pub(crate) async fn finish(
    mut child: Child,
    input: &[u8],
    excess: Excess,
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
        tokio::pin!(talk);
        let mut talking = true;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                talked = &mut talk, if talking => {
                    talked?;
                    talking = false;
                }
            }
        };
        group.leave();
        if talking && let Ok(talked) = timeout(LEFTOVER, &mut talk).await {
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

    /// The child has ended: its number may soon be another's. What it left in the background is left alone.
    pub(crate) fn leave(&mut self) {
        self.leader = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.leader {
            // It fails only if the group has no process left.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
