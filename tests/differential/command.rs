//! The data a test sequence is made of, and how it is written for people.
//!
//! A sequence is plain data: it can be cut, printed and run again. It says what is sent and when; it does not know
//! what the answers should be.

use std::fmt::Write as _;

use crate::support::client::encode;

/// One argument. Some are known only when the sequence runs, and differ between the two servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Arg {
    Bytes(Vec<u8>),
    /// The server's id of one of the sequence's clients.
    ClientId(usize),
    /// The address under which the server lists clients of its Unix socket.
    SocketAddress,
    /// Seconds since 1970, so many from the start of the run.
    UnixSeconds(i64),
    /// Milliseconds since 1970, so many from the start of the run.
    UnixMillis(i64),
}

impl From<&str> for Arg {
    fn from(text: &str) -> Arg {
        Arg::Bytes(text.as_bytes().to_vec())
    }
}

impl From<&[u8]> for Arg {
    fn from(bytes: &[u8]) -> Arg {
        Arg::Bytes(bytes.to_vec())
    }
}

impl From<i64> for Arg {
    fn from(number: i64) -> Arg {
        Arg::Bytes(number.to_string().into_bytes())
    }
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    pub(crate) args: Vec<Arg>,
}

/// How the requests of a step reach the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Delivery {
    /// Each answer is read before the next request goes out.
    OneByOne,
    /// All in one write, answers read afterwards.
    OnePacket,
    /// One write per piece of so many bytes.
    Pieces(usize),
}

/// One thing a sequence does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// A client sends requests and reads all their answers.
    Run {
        client: usize,
        requests: Vec<Request>,
        delivery: Delivery,
    },
    /// A client sends bytes as they are; `requests` is what they mean, as far as they mean something.
    Raw {
        client: usize,
        bytes: Vec<u8>,
        requests: Vec<Request>,
        /// Whether the server is expected to close the connection over it.
        closes: bool,
    },
    /// A client sends requests that will be answered later.
    Send {
        client: usize,
        requests: Vec<Request>,
    },
    /// The server has executed a command of a client: it waits now, unless it was answered.
    AwaitExecuted { client: usize, command: String },
    /// A client reads the answers to what it sent before.
    Collect { client: usize },
    /// Both servers' clocks move on by so many milliseconds.
    PassTime { millis: u64 },
    /// The subscriber hears `expired` of this key, without anybody touching it.
    AwaitExpired { key: Vec<u8> },
}

/// A whole test case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sequence {
    /// What to call it in a report.
    pub(crate) name: String,
    /// The protocol each client speaks from its start.
    pub(crate) protocols: Vec<u8>,
    /// The protocol the subscriber to keyspace events speaks.
    pub(crate) subscriber: u8,
    /// The value of `notify-keyspace-events`.
    pub(crate) notify: String,
    /// Whether expired keys leave by themselves.
    pub(crate) active_expiry: bool,
    pub(crate) steps: Vec<Step>,
}

impl Sequence {
    /// Whether a client turns client-side caching on.
    pub(crate) fn uses_tracking(&self) -> bool {
        let requests = self.steps.iter().flat_map(Step::requests);
        let mut names = requests.map(|request| (request.word(0), request.word(1)));
        names.any(|(command, subcommand)| command == "client" && subcommand == "tracking")
    }
}

/// What the arguments that differ between servers stand for.
pub(crate) struct Context {
    pub(crate) client_ids: Vec<i64>,
    pub(crate) address: String,
    pub(crate) start_millis: i64,
}

impl Request {
    pub(crate) fn new<A: Into<Arg>>(args: impl IntoIterator<Item = A>) -> Request {
        Request {
            args: args.into_iter().map(Into::into).collect(),
        }
    }

    /// The arguments as this server gets them.
    pub(crate) fn resolve(&self, context: &Context) -> Vec<Vec<u8>> {
        self.args
            .iter()
            .map(|arg| match arg {
                Arg::Bytes(bytes) => bytes.clone(),
                Arg::ClientId(client) => {
                    let id = context.client_ids.get(*client).copied().unwrap_or(0);
                    id.to_string().into_bytes()
                }
                Arg::SocketAddress => context.address.clone().into_bytes(),
                Arg::UnixSeconds(offset) => (context.start_millis / 1000 + offset)
                    .to_string()
                    .into_bytes(),
                Arg::UnixMillis(offset) => (context.start_millis + offset).to_string().into_bytes(),
            })
            .collect()
    }

    pub(crate) fn encode(&self, context: &Context) -> Vec<u8> {
        encode(&self.resolve(context))
    }

    /// The argument as lower-case text; empty where there is none or it is not known yet.
    pub(crate) fn word(&self, index: usize) -> String {
        match self.args.get(index) {
            Some(Arg::Bytes(bytes)) => String::from_utf8_lossy(bytes).to_ascii_lowercase(),
            _ => String::new(),
        }
    }

    /// The request as a line for redis-cli.
    pub(crate) fn line(&self) -> String {
        let mut line = String::new();
        for arg in &self.args {
            if !line.is_empty() {
                line.push(' ');
            }
            // Writing into a String cannot fail.
            let _ = match arg {
                Arg::Bytes(bytes) => write!(line, "{}", quote(bytes)),
                Arg::ClientId(client) => write!(line, "<id of client {client}>"),
                Arg::SocketAddress => write!(line, "<socket>:0"),
                Arg::UnixSeconds(offset) => write!(line, "<now{offset:+} s>"),
                Arg::UnixMillis(offset) => write!(line, "<now{offset:+} ms>"),
            };
        }
        line
    }
}

impl Step {
    pub(crate) fn requests(&self) -> &[Request] {
        match self {
            Step::Run { requests, .. }
            | Step::Raw { requests, .. }
            | Step::Send { requests, .. } => requests,
            _ => &[],
        }
    }

    fn lines(&self) -> Vec<String> {
        let (client, requests, note) = match self {
            Step::Run {
                client,
                requests,
                delivery,
            } => {
                let note = match delivery {
                    Delivery::OneByOne => String::new(),
                    Delivery::OnePacket if requests.len() == 1 => String::new(),
                    Delivery::OnePacket => "   (one packet)".into(),
                    Delivery::Pieces(size) => format!("   (one packet, in pieces of {size} bytes)"),
                };
                (client, requests, note)
            }
            Step::Send { client, requests } => (client, requests, "   (answer read later)".into()),
            Step::Raw { client, bytes, .. } => {
                return vec![format!("client {client} sends the bytes {}", quote(bytes))];
            }
            Step::Collect { client } => return vec![format!("client {client} reads its answers")],
            Step::AwaitExecuted { client, command } => {
                return vec![format!(
                    "the server has executed client {client}'s {command}"
                )];
            }
            Step::PassTime { millis } => return vec![format!("{millis} ms pass")],
            Step::AwaitExpired { key } => {
                return vec![format!("the subscriber hears that {} expired", quote(key))];
            }
        };
        requests
            .iter()
            .map(|request| format!("client {client}> {}{note}", request.line()))
            .collect()
    }
}

impl Sequence {
    /// The sequence for a report.
    pub(crate) fn describe(&self) -> String {
        let protocols: Vec<String> = self
            .protocols
            .iter()
            .enumerate()
            .map(|(client, protocol)| format!("client {client} RESP{protocol}"))
            .collect();
        let mut text = format!(
            "  {}, subscriber RESP{}, notify-keyspace-events {:?}, active expiry {}\n",
            protocols.join(", "),
            self.subscriber,
            self.notify,
            if self.active_expiry { "on" } else { "off" },
        );
        for line in self.steps.iter().flat_map(Step::lines) {
            text.push_str("  ");
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}

/// An argument as redis-cli would read it back.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let plain = !bytes.is_empty()
        && bytes
            .iter()
            .all(|&byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\'));
    if bytes.len() > 400 {
        let head = bytes[..40].escape_ascii();
        return format!("\"{head}...\" ({} bytes)", bytes.len());
    }
    if plain {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut quoted = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(char::from(byte));
            }
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => {
                let _ = write!(quoted, "\\x{byte:02x}");
            }
        }
    }
    quoted.push('"');
    quoted
}
