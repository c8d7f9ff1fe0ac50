//! The command line of `kumi muf`, and how its small languages (durations, payloads) are read.

use super::failure::{EXIT_CODES, Failure};
use crate::command_line::terminal::Form;
use crate::command_line::tls_options::TlsOptions;
use clap::{ArgGroup, Args, Subcommand};
use kumi_node::config::duration;
use std::fs::File;
use std::io::Read;
use std::time::Duration;

/// Largest payload: the default of a unit.
const PAYLOAD_LIMIT: u64 = 1 << 20;

/// Options of every command, and the command.
#[derive(Debug, Args)]
pub(crate) struct MufOptions {
    /// The server: redis://[user:password@]host[:port][/db], rediss:// for TLS, or unix:///path [default: KUMI_URL,
    /// else redis://127.0.0.1:6379]
    #[arg(long, value_name = "URL", global = true)]
    pub(super) url: Option<String>,
    #[command(flatten)]
    pub(super) tls: TlsOptions,
    #[command(subcommand)]
    pub(super) task: MufTask,
}

#[derive(Debug, Subcommand)]
pub(super) enum MufTask {
    /// Call a service and print its answer
    ///
    /// The answer's bytes go to standard output as they are. A request that fails says why on standard error, and
    /// with its exit code.
    #[command(after_long_help = format!("{CALL_EXAMPLES}\n\n{EXIT_CODES}"))]
    Call(CallOptions),
    /// Be a backend: answer requests with a program in any language
    ///
    /// Ctrl-c, SIGTERM and the end of its terminal stop it after it has answered what it has taken; a second signal
    /// stops it at once. It reports on standard error when its server is away and back.
    #[command(after_long_help = format!("{SERVE_NOTES}\n\n{EXIT_CODES}"))]
    Serve(ServeOptions),
    /// Show requests, claims and answers of all units as they happen
    ///
    /// On a terminal, lines of text; otherwise JSON lines with a "kind": watching (once, from when on nothing is
    /// missed), request, claim, answer, error, unanswered, ignored (a key that no unit takes part in, and why), gap.
    #[command(after_long_help = EXIT_CODES)]
    Watch(WatchOptions),
    /// Keep, read or watch values
    #[command(
        override_usage = "kumi muf keep [OPTIONS] <UNIT> <ID> <VALUE>\n       \
                          kumi muf keep [OPTIONS] <UNIT> <ID> --get\n       \
                          kumi muf keep [OPTIONS] <UNIT> <ID> --delete\n       \
                          kumi muf keep [OPTIONS] --watch <PATTERN>",
        after_long_help = EXIT_CODES
    )]
    Keep(KeepOptions),
    /// List the units that run, and when each was last seen
    #[command(after_long_help = EXIT_CODES)]
    Units(UnitsOptions),
}

const CALL_EXAMPLES: &str = "\
Examples:
  kumi muf call web thumb.resize @cat.png --timeout 2s > small.png
  kumi muf call web sum.add '[1, 2]' --json
  date | kumi muf call web echo.say -
  kumi muf call web cache.size --all --idle 200ms";

// A paragraph is one line: the terminal's width decides where it wraps.
const SERVE_NOTES: &str = "\
Examples:
  kumi muf serve 'text.upper' --exec 'tr a-z A-Z'
  kumi muf serve '*' --pipe ./backend.py --concurrency 1

With --exec, sh runs the command once per request. The payload is its standard input, its standard output is the \
answer (RES). If it ends with another exit code than 0, its standard error is the answer (ERR). The command is over when \
sh ends; --handler-timeout bounds it. Its environment has:
  MUF_ID       the request's ID
  MUF_METHOD   service.method; empty for a bare ID
  MUF_UNIT     the unit that calls
  MUF_ATTEMPT  1, or more if the request may have run before

With --pipe, sh runs the command once. Each request is a line of JSON on its standard input:
  {\"id\": 7, \"request\": \"a.b~01J...\", \"method\": \"a.b\", \"unit\": \"web\",
   \"attempt\": 1, \"payload\": \"text\"}
It writes a line for each to its standard output, in any order, with the same id:
  {\"id\": 7, \"payload\": \"text\"}  or  {\"id\": 7, \"error\": \"text\"}

A payload that is not UTF-8 text is in payload_base64 instead, both ways. A payload that is another kind of JSON value is \
answered as JSON text. An error or payload_base64 that is null counts as absent. A line whose id can be read and that holds \
no answer is answered as an error; any other line is reported on standard error. A line has at most 8 MiB. method is null for \
a bare ID.

When standard input ends, the program should end. A program that crashes is started again, after a pause that grows from \
0.1 s to 10 s. If it ends with exit code 0, or if sh cannot run it, 'serve' ends with exit code 1.";

#[derive(Debug, Args)]
pub(super) struct CallOptions {
    /// The caller: the name that backends and watchers see. Any name will do
    pub(super) unit: String,
    /// The method to call
    #[arg(value_name = "SERVICE.METHOD")]
    pub(super) target: String,
    /// Text, @file, or - for standard input; @@ for text that begins with @ [default: nothing]
    pub(super) payload: Option<String>,
    /// Send and expect JSON; both are checked
    #[arg(long, conflicts_with = "text")]
    pub(super) json: bool,
    /// Expect text, and end it with a newline
    #[arg(long)]
    pub(super) text: bool,
    /// How long to wait for the answer, such as 2s or 500ms [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) timeout: Option<Duration>,
    /// How long the request exists while no backend claims it; at most the timeout [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) ttl: Option<Duration>,
    /// Call all backends, and print a line for each answer
    ///
    /// On a terminal, lines of text; otherwise JSON lines with "backend" and "payload" or "error". It ends when
    /// --count backends have answered, when none has for --idle, or after --timeout [default: 2s]. Backends of one name
    /// give one answer.
    #[arg(long, conflicts_with_all = ["json", "text", "ttl"])]
    pub(super) all: bool,
    /// With --all: how many answers are enough
    #[arg(long, value_name = "N", requires = "all", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) count: Option<u32>,
    /// With --all: how long after an answer to wait for the next
    // Elsewhere --quiet is a flag.
    #[arg(long, alias = "quiet", value_name = "TIME", requires = "all", value_parser = duration)]
    pub(super) idle: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("program").args(["exec", "pipe"]).required(true))]
pub(super) struct ServeOptions {
    /// service.method, 'service.*', or '*' for everything, bare IDs too
    pub(super) pattern: String,
    /// Run a shell command for each request
    #[arg(long, value_name = "CMD")]
    pub(super) exec: Option<String>,
    /// Run one shell command that answers all requests, line by line
    #[arg(long, value_name = "CMD")]
    pub(super) pipe: Option<String>,
    /// The backend's name [default: the service and the process id]
    #[arg(long, value_name = "NAME")]
    pub(super) unit: Option<String>,
    /// Requests that are worked on at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) concurrency: u16,
    /// How long a request may be worked on before it is answered as an error
    ///
    /// With --exec, the command and everything it started are killed then. With --pipe, the program may go on, and what
    /// it answers later is ignored.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    pub(super) handler_timeout: Duration,
}

#[derive(Debug, Args)]
pub(super) struct WatchOptions {
    /// Show payloads whole, instead of their beginnings
    #[arg(long)]
    pub(super) full: bool,
    /// How to show it
    #[arg(long, value_name = "FORM", default_value = "auto")]
    pub(super) output: Form,
}

#[derive(Debug, Args)]
pub(super) struct KeepOptions {
    /// The unit that has the value
    #[arg(required_unless_present = "watch")]
    pub(super) unit: Option<String>,
    /// The value's name
    #[arg(required_unless_present = "watch")]
    pub(super) id: Option<String>,
    /// Text, @file, or - for standard input; @@ for text that begins with @
    #[arg(required_unless_present_any = ["get", "delete", "watch"])]
    pub(super) value: Option<String>,
    /// How long it stays, such as 90s, 15m or 24h [default: 24h]
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with_all = ["get", "delete", "watch"])]
    pub(super) ttl: Option<Duration>,
    /// Without a TTL
    #[arg(long, conflicts_with_all = ["ttl", "get", "delete", "watch"])]
    pub(super) forever: bool,
    /// Print the value
    #[arg(long, conflicts_with_all = ["value", "watch"])]
    pub(super) get: bool,
    /// End the value: it gets a millisecond to live, because the protocol deletes nothing
    #[arg(long, conflicts_with_all = ["value", "get", "watch"])]
    pub(super) delete: bool,
    /// Show what is kept and every change of it: 'unit/name', with * and ? in both
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["unit", "id", "value"])]
    pub(super) watch: Option<String>,
    /// With --watch: look this often where the server does not send all events, instead of failing
    #[arg(long, value_name = "TIME", requires = "watch", value_parser = duration)]
    pub(super) poll: Option<Duration>,
    /// How to show what is watched
    #[arg(long, value_name = "FORM", default_value = "auto")]
    pub(super) output: Form,
}

#[derive(Debug, Args)]
pub(super) struct UnitsOptions {
    /// How to show them
    #[arg(long, value_name = "FORM", default_value = "auto")]
    pub(super) output: Form,
}

/// Reads a payload as it stands on a command line. Of what is too long, no more is read than shows that.
pub(super) fn payload(text: Option<String>) -> Result<Vec<u8>, Failure> {
    let Some(text) = text else {
        return Ok(Vec::new());
    };
    if text == "-" {
        return limited(std::io::stdin(), "standard input")
            .map_err(|error| Failure::io("reading standard input", error))?;
    }
    match text.strip_prefix('@') {
        Some(rest) if rest.starts_with('@') => Ok(rest.as_bytes().to_vec()),
        Some(file) => File::open(file)
            .and_then(|open| limited(open, file))
            .map_err(|error| Failure::Usage(format!("cannot read {file}: {error}")))?,
        None => Ok(text.into_bytes()),
    }
}

fn limited(source: impl Read, name: &str) -> std::io::Result<Result<Vec<u8>, Failure>> {
    let mut bytes = Vec::new();
    source.take(PAYLOAD_LIMIT + 1).read_to_end(&mut bytes)?;
    Ok(match bytes.len() as u64 > PAYLOAD_LIMIT {
        true => Err(Failure::Usage(format!(
            "{name} holds more than the {PAYLOAD_LIMIT} bytes that a payload may have"
        ))),
        false => Ok(bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_text_unless_it_says_otherwise() {
        let check = |text: Option<&str>, bytes: &[u8]| {
            assert_eq!(payload(text.map(str::to_owned)).unwrap(), bytes, "{text:?}");
        };
        check(None, b"");
        check(Some("hello"), b"hello");
        check(Some("@@home"), b"@home");
        for unusable in ["@/no/such/file", "@/", "@/dev/zero"] {
            assert!(
                matches!(payload(Some(unusable.into())), Err(Failure::Usage(_))),
                "{unusable}"
            );
        }
    }
}
