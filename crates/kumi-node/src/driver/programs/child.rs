//! One command from its start to its end: its input, its output, and its end with everything it started.

use super::launch::Group;
use rustix::process::Signal;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tokio::time::{Instant, sleep_until, timeout_at};

/// Largest output of a command, and largest standard error, in bytes.
pub(super) const OUTPUT_LIMIT: usize = 1 << 20;

/// What becomes of a command that prints more than [`OUTPUT_LIMIT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excess {
    /// It is killed, and that is an error.
    Fails,
    /// It goes on. Of its output the first `OUTPUT_LIMIT` bytes and one more are kept, of its standard error the last
    /// `OUTPUT_LIMIT` bytes.
    IsDropped,
}

/// How long after a command's end its output may stay open. What the command wrote is there by then; only what it left
/// in the background is cut off.
pub(super) const LEFTOVER: Duration = Duration::from_millis(200);

/// Feeds a command its input and waits for its end. Answers how it ended, what it printed, and what it wrote to standard
/// error. When `stop` resolves, the command and all that it started get SIGTERM, and SIGKILL if they have not ended after
/// `grace`. Dropping the future kills them at once.
pub(super) async fn finish(
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
