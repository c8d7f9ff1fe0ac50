//! `kumi muf serve`: a backend that runs a program for its requests.

use super::Server;
use super::failure::Failure;
use super::options::ServeOptions;
use crate::command_line::hangup;
use crate::command_line::process::{self, StandardError};
use crate::command_line::terminal;
use kumi_muf::{Connection, Muf, Request, Service};
use kumi_node::programs::{Closing, Finished, Program, RestartRule, Supervised, answer};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// How long stopping may take before a note says what it waits for.
const NOTE_AFTER: Duration = Duration::from_secs(1);

pub(super) async fn run(server: &Server, options: ServeOptions) -> Result<(), Failure> {
    let mut stop = Stop::new()?;
    let unit = options
        .unit
        .clone()
        .unwrap_or_else(|| default_unit(&options.pattern));
    let muf = server
        .unit(&unit)
        .version(kumi_store::KUMI_VERSION)
        .connect()
        .await?;
    let launcher = process::launcher().map_err(|error| Failure::io("starting the guard", error))?;
    let command = options.pipe.as_ref().or(options.exec.as_ref());
    let command = command.map_or("", String::as_str);
    let runs = Program::new(&unit, command, &launcher, Arc::new(StandardError));
    let mut program = match options.pipe {
        Some(_) => Some(
            Supervised::start(runs.clone(), RestartRule::after_crashes())
                .map_err(|error| Failure::io("starting sh", error))?,
        ),
        None => None,
    };
    show_ignored();
    let _service = start(&muf, &options, program.as_ref(), runs).await?;
    terminal::note(format_args!("serving {} as {unit}", options.pattern));
    let url = server.shown_url();
    let ended = tokio::select! {
        () = stop.asked() => None,
        reason = keep_running(&mut program) => Some(reason),
        () = tell_connection(&muf, &url) => None,
    };
    tokio::select! {
        closed = close(muf, program.map(Supervised::close)) => match (closed, ended) {
            (Ok(()), Some(reason)) => Err(Failure::Other(anyhow::anyhow!(reason))),
            (closed, _) => closed,
        },
        () = stop.asked() => Err(Failure::Other(anyhow::anyhow!("stopped before all was answered"))),
    }
}

/// Shows on standard error which requests are ignored because of their keys. The unit logs the first one of each caller.
fn show_ignored() {
    let ignored = filter_fn(|metadata| metadata.target() == "kumi_muf::ignored");
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .with_level(false)
        .without_time();
    // It fails only where the process has a subscriber already, which is kept.
    let _ = tracing_subscriber::registry()
        .with(lines.with_filter(ignored))
        .try_init();
}

/// Says when the server is away and when it is back, until the unit is closed.
async fn tell_connection(muf: &Muf, url: &str) {
    let mut changes = muf.connection_changes();
    let mut away = None;
    while let Some(now) = changes.next().await {
        match (&now, away.take()) {
            (Connection::Away { since, .. }, before) => {
                away = Some(*since);
                if before.is_none() {
                    terminal::note(format_args!(
                        "{url} is away; requests wait until it is back"
                    ));
                }
                if let Some(reason) = now.reason() {
                    terminal::note(terminal::shown(reason));
                }
            }
            (Connection::Connected, Some(since)) => {
                let gone = since.elapsed().as_secs_f32();
                terminal::note(format_args!("{url} is back after {gone:.1} s"));
            }
            _ => {}
        }
    }
    std::future::pending().await
}

/// Answers what was taken, and then ends the program. Dropping the future kills what still runs.
async fn close(muf: Muf, mut program: Option<Closing>) -> Result<(), Failure> {
    {
        let closing = muf.close();
        tokio::pin!(closing);
        let mut waiting = true;
        loop {
            tokio::select! {
                closed = &mut closing => break closed?,
                // It may end before it has answered.
                () = ended(&mut program) => {}
                () = sleep(NOTE_AFTER), if waiting => {
                    waiting = false;
                    terminal::note("waiting for what is being worked on; a second signal stops it at once");
                }
            }
        }
    }
    if let Some(program) = program {
        program.stop().await;
    }
    Ok(())
}

async fn start(
    muf: &Muf,
    options: &ServeOptions,
    program: Option<&Supervised>,
    command: Program,
) -> Result<Service, Failure> {
    let serve = match program {
        Some(program) => {
            let way = program.way();
            muf.serve(&options.pattern, move |request: Request| {
                let way = way.clone();
                async move { way.answer(&request).await }
            })
        }
        None => {
            let command = Arc::new(command);
            muf.serve(&options.pattern, move |request: Request| {
                let command = command.clone();
                async move { answer(&command, &request).await }
            })
        }
    };
    let serve = serve
        .concurrency(options.concurrency.into())
        .handler_timeout(options.handler_timeout);
    Ok(serve.await?)
}

/// Runs the program until it is not to be started again, or for ever if there is none.
async fn keep_running(program: &mut Option<Supervised>) -> &'static str {
    match program {
        Some(program) => match program.keep_running().await {
            Finished::CannotRun => "the program cannot be run",
            _ => "the program has ended",
        },
        None => std::future::pending().await,
    }
}

/// Waits for the end of a program, or for ever if there is none.
async fn ended(program: &mut Option<Closing>) {
    match program {
        Some(program) => program.ended().await,
        None => std::future::pending().await,
    }
}

/// `thumb.*` becomes `thumb-4711`: two backends of a service on one machine differ.
fn default_unit(pattern: &str) -> String {
    let service = pattern.split(['.', '*']).next().unwrap_or_default();
    let service = if service.is_empty() { "all" } else { service };
    format!("{service}-{}", std::process::id())
}

/// Ctrl-c and SIGTERM, each of them as often as it comes, and the terminal's end.
struct Stop {
    interrupt: Signal,
    terminate: Signal,
    /// Counts once: a closed terminal and the shell on it may both send it. None where it is ignored, as with nohup.
    hangup: Option<Signal>,
}

impl Stop {
    fn new() -> Result<Self, Failure> {
        let signal_failure = |error| Failure::io("listening for signals", error);
        let on = |kind| signal(kind).map_err(signal_failure);
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hangup: hangup::listen().map_err(signal_failure)?,
        })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = hangup::received(&mut self.hangup) => self.hangup = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_named_after_its_service() {
        let pid = std::process::id();
        assert_eq!(default_unit("thumb.*"), format!("thumb-{pid}"));
        assert_eq!(default_unit("thumb.resize"), format!("thumb-{pid}"));
        assert_eq!(default_unit("*"), format!("all-{pid}"));
    }
}
