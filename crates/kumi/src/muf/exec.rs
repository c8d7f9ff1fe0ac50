//! `serve --exec`: a shell command per request.
//!
//! A request is answered when the command itself has ended. What it left running in the background may hold its output
//! open and is not waited for. What a command prints is limited, because it is held in memory until it ends; one that
//! prints more is killed, and so is one that is given up, with everything it started.

use super::group::Group;
use kumi_muf::{Outcome, Request};
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Largest output: the payload limit of a unit.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// How long after a command's end its output may stay open. What the command wrote is there by then; only what it left
/// in the background is cut off.
pub(super) const LEFTOVER: Duration = Duration::from_millis(200);

/// `sh` with a command, whose input and output are ours. It is a process group of its own: it does not see a ctrl-c of
/// our terminal, so that it can end its work while we drain, and what it starts can be ended with it.
pub(super) fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    shell
}

/// Runs the command with the payload as its input, and turns how it ended into an answer. Dropping the future kills it.
pub(super) async fn answer(command: &str, request: &Request) -> Outcome {
    let child = shell(command)
        .env("MUF_ID", request.id())
        .env("MUF_METHOD", request.target().unwrap_or_default())
        .env("MUF_UNIT", request.unit())
        .env("MUF_ATTEMPT", request.attempt().to_string())
        .stderr(Stdio::piped())
        .spawn();
    let finished = match child {
        Ok(child) => finish(child, request.payload()).await,
        Err(error) => Err(error),
    };
    match finished {
        Ok((status, output, complaint)) if status.success() => {
            // What a command that succeeded grumbles is for whoever started the backend.
            let _ = io::Write::write_all(&mut io::stderr(), &complaint);
            Outcome::Good(output.into())
        }
        Ok((status, _, complaint)) if complaint.is_empty() => {
            Outcome::Bad(format!("the command ended with {status}").into())
        }
        Ok((_, _, complaint)) => Outcome::Bad(complaint.into()),
        Err(error) => Outcome::Bad(format!("the command failed: {error}").into()),
    }
}

async fn finish(mut child: Child, input: &[u8]) -> io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
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
            tokio::try_join!(
                feed,
                read(stdout, &mut output),
                read(stderr, &mut complaint)
            )
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

async fn read(stream: Option<impl AsyncRead + Unpin>, bytes: &mut Vec<u8>) -> io::Result<()> {
    if let Some(stream) = stream {
        stream.take(OUTPUT_LIMIT + 1).read_to_end(bytes).await?;
    }
    match bytes.len() as u64 > OUTPUT_LIMIT {
        true => Err(io::Error::other(format!(
            "it printed more than {OUTPUT_LIMIT} bytes"
        ))),
        false => Ok(()),
    }
}
