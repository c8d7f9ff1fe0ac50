//! `serve --exec`: a shell command per request.
//!
//! A request is answered when the command itself has ended. What it left running in the background may hold its output
//! open and is not waited for. What a command prints is limited, because it is held in memory until it ends; one that
//! prints more is killed, and so is one that is given up, with everything it started. The guard does so when this process
//! is killed.

use crate::command_line::process::{Excess, Guard, finish, shell};
use kumi_muf::{Outcome, Request};
use std::future::pending;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

/// Runs the command with the payload as its input, and turns how it ended into an answer. Dropping the future kills it.
pub(super) async fn answer(command: &str, guard: &Arc<Guard>, request: &Request) -> Outcome {
    let child = shell(command)
        .env("MUF_ID", request.id())
        .env("MUF_METHOD", request.target().unwrap_or_default())
        .env("MUF_UNIT", request.unit())
        .env("MUF_ATTEMPT", request.attempt().to_string())
        .stderr(Stdio::piped())
        .spawn();
    let finished = match child {
        // A request that is given up drops the future.
        Ok(child) => {
            let _watched = guard.watch(&child);
            finish(
                child,
                request.payload(),
                Excess::Fails,
                pending(),
                Duration::ZERO,
            )
            .await
        }
        Err(error) => Err(error),
    };
    match finished {
        Ok((status, output, complaint)) if status.success() => {
            // The standard error of a command that succeeded goes to the backend's.
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
