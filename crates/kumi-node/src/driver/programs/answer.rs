//! A shell command per request.
//!
//! A request is answered when the command itself has ended. What it left running in the background may hold its output
//! open and is not waited for. What a command prints is limited, because it is held in memory until it ends; one that
//! prints more is killed, and so is one that is given up, with everything it started.

use super::Program;
use super::child::{Excess, finish};
use kumi_muf::{Outcome, Request};
use std::future::pending;
use std::process::Stdio;
use std::time::Duration;

/// Runs the command with the payload as its input, and turns how it ended into an answer. Dropping the future kills it.
pub async fn answer(program: &Program, request: &Request) -> Outcome {
    let child = program.prepared().and_then(|mut command| {
        command
            .env("MUF_ID", request.id())
            .env("MUF_METHOD", request.target().unwrap_or_default())
            .env("MUF_UNIT", request.unit())
            .env("MUF_ATTEMPT", request.attempt().to_string())
            .stderr(Stdio::piped())
            .spawn()
    });
    let finished = match child {
        // A request that is given up drops the future.
        Ok(child) => {
            let _watched = program.launcher.watch(&child);
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
            if !complaint.is_empty() {
                // What a command that succeeded wrote to standard error is for the operator.
                program.output.text(&program.name, &complaint);
            }
            Outcome::Good(output.into())
        }
        Ok((status, _, complaint)) if complaint.is_empty() => {
            Outcome::Bad(format!("the command ended with {status}").into())
        }
        Ok((_, _, complaint)) => Outcome::Bad(complaint.into()),
        Err(error) => Outcome::Bad(format!("the command failed: {error}").into()),
    }
}
