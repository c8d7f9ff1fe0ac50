//! `kumi muf`: calls, backends, kept values and live traffic from the shell.
//!
//! Each command is a unit of `kumi-muf` for as long as it runs. Only the output and the exit codes are decided here.

mod call;
mod failure;
mod keep;
mod options;
mod serve;
mod shown;
mod units;
mod watch;

use crate::command_line::terminal;
use crate::command_line::tls_options::{Certificates, TlsOptions};
pub(crate) use failure::EXIT_CODES;
use failure::Failure;
use kumi_muf::{Builder, Error, Muf, ServerError};
pub(crate) use options::MufOptions;
use options::MufTask;
use std::process::ExitCode;
use std::time::Duration;

/// The server's URL when neither `--url` nor `KUMI_URL` is given.
const DEFAULT_URL: &str = "redis://127.0.0.1:6379";

/// How often a short command polls, on a server that sends no events.
const POLL: Duration = Duration::from_millis(100);

/// Runs the command. A failure is one message on standard error and an exit code.
pub(crate) fn run(options: MufOptions) -> ExitCode {
    let url = options
        .url
        .or_else(|| std::env::var("KUMI_URL").ok().filter(|url| !url.is_empty()))
        .unwrap_or_else(|| DEFAULT_URL.into());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = match (runtime, Server::new(url, &options.tls)) {
        (Ok(runtime), Ok(server)) => {
            let done = runtime.block_on(perform(&server, options.task));
            let done = done.map_err(|failure| server.named(failure));
            // Does not wait for tasks that are left, such as a reconnection.
            runtime.shutdown_background();
            done
        }
        (Err(error), _) => Err(Failure::io("starting", error)),
        (_, Err(failure)) => Err(failure),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            failure.exit_code()
        }
    }
}

async fn perform(server: &Server, task: MufTask) -> Result<(), Failure> {
    match task {
        MufTask::Call(options) => call::run(server, options).await,
        MufTask::Serve(options) => serve::run(server, options).await,
        MufTask::Watch(options) => watch::run(server, options).await,
        MufTask::Keep(options) => keep::run(server, options).await,
        MufTask::Units(options) => units::run(server, options).await,
    }
}

/// Where the server is, and why it is trusted.
struct Server {
    url: String,
    certificates: Certificates,
}

impl Server {
    fn new(url: String, tls: &TlsOptions) -> Result<Self, Failure> {
        let certificates = tls.read().map_err(Failure::Usage)?;
        Ok(Self { url, certificates })
    }

    /// The URL as it may be shown: without user and password, and without a query.
    fn shown_url(&self) -> String {
        terminal::shown(&kumi_muf::without_password(&self.url))
    }

    /// A failure that names this server, if it is that the server does not answer.
    fn named(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Muf(error) if is_unreachable(&error) => {
                Failure::Unreachable(self.shown_url(), error)
            }
            failure => failure,
        }
    }

    /// A unit on this server.
    fn unit(&self, name: &str) -> Builder {
        let mut builder = Muf::builder(&self.url, name);
        if let Some(roots) = &self.certificates.roots {
            builder = builder.root_certificates(roots.clone());
        }
        if let Some((cert, key)) = &self.certificates.identity {
            builder = builder.client_certificate(cert.clone(), key.clone());
        }
        builder
    }

    /// A unit of a short command, which is not listed.
    fn short_lived(&self, name: &str) -> Builder {
        self.unit(name).discovery(false)
    }
}

/// Whether the server does not answer.
fn is_unreachable(error: &Error) -> bool {
    match error {
        Error::Server(ServerError::Connect { source, .. }) => source.code().is_none(),
        Error::Server(ServerError::ConnectTimeout { .. }) | Error::Disconnected { .. } => true,
        _ => false,
    }
}

/// The name of a unit that only reads.
fn reader_name() -> String {
    format!("kumi-cli-{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_what_is_secret() {
        let check = |url: &str, expected: &str| {
            let server = Server {
                url: url.into(),
                certificates: Certificates::default(),
            };
            assert_eq!(server.shown_url(), expected);
        };
        check("redis://ann:se//same@h:1/2?a=b", "redis://h:1/2");
        check("unix:///run/a@b.sock?pass=sesame", "unix:///run/a@b.sock");
        // The user forgot the scheme.
        check("ann:se//same@h:1", "h:1");
        check("redis://h\u{202e}", "redis://h\\u{202e}");
    }
}
