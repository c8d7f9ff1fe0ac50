//! A blocking client on a Unix socket that hands out replies with their raw bytes.
//!
//! It keeps no notion of requests and answers: who sends knows how many replies to read. It does not reconnect.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::frame::{Malformed, Reply, split};

/// How much one read asks the socket for.
const READ_BYTES: usize = 64 * 1024;

/// Why no reply could be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// The server closed the connection and every reply before that has been read.
    Closed,
    /// Nothing came within the client's timeout.
    TimedOut,
    /// What came is no RESP.
    Malformed(String),
}

/// One connection.
pub(crate) struct Client {
    stream: UnixStream,
    buffer: Vec<u8>,
    /// How far `buffer` has been handed out.
    start: usize,
    /// Messages that were found inside a reply and are handed out after it.
    lifted: VecDeque<Reply>,
    /// How many messages were found inside replies: a server of Redis 7.2's kind leaves this at 0.
    pub(crate) messages_inside_replies: usize,
}

impl Client {
    /// Connects, and gives up on a reply after `timeout`.
    pub(crate) fn connect(path: &Path, timeout: Duration) -> std::io::Result<Client> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Client {
            stream,
            buffer: Vec::new(),
            start: 0,
            lifted: VecDeque::new(),
            messages_inside_replies: 0,
        })
    }

    /// Writes bytes as they are. `Err(Closed)` when the server no longer listens.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Silence> {
        self.stream
            .write_all(bytes)
            .map_err(|error| match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Silence::TimedOut,
                _ => Silence::Closed,
            })
    }

    /// The next reply or message, whichever the server wrote first.
    pub(crate) fn reply(&mut self) -> Result<Reply, Silence> {
        if let Some(message) = self.lifted.pop_front() {
            return Ok(message);
        }
        loop {
            let unread = &self.buffer[self.start..];
            match split(unread) {
                Ok(Some(taken)) => {
                    self.start += taken.consumed;
                    if self.start == self.buffer.len() {
                        self.buffer.clear();
                        self.start = 0;
                    }
                    self.messages_inside_replies += taken.messages.len();
                    self.lifted.extend(taken.messages);
                    return Ok(taken.reply);
                }
                Ok(None) => self.fill()?,
                Err(Malformed(reason)) => {
                    let shown: String = unread[..unread.len().min(200)].escape_ascii().to_string();
                    return Err(Silence::Malformed(format!("{reason}: {shown}")));
                }
            }
        }
    }

    /// Sends one command and reads one reply.
    pub(crate) fn call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Result<Reply, Silence> {
        self.send(&encode(args))?;
        self.reply()
    }

    fn fill(&mut self) -> Result<(), Silence> {
        let filled = self.buffer.len();
        self.buffer.resize(filled + READ_BYTES, 0);
        let outcome = loop {
            match self.stream.read(&mut self.buffer[filled..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                outcome => break outcome,
            }
        };
        let read = *outcome.as_ref().unwrap_or(&0);
        self.buffer.truncate(filled + read);
        match outcome {
            Ok(0) => Err(Silence::Closed),
            Ok(_) => Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(Silence::TimedOut)
            }
            Err(_) => Err(Silence::Closed),
        }
    }
}

/// A request in RESP: an array of bulk strings.
pub(crate) fn encode<A: AsRef<[u8]>>(args: &[A]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
    out
}
