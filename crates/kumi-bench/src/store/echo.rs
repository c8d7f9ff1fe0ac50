//! The floor: a server that answers the workloads' requests with the right bytes and does nothing else.
//!
//! `kumi-bench echo-server` runs it as a process of its own, on the same kind of loop as kumi-server (mio: read all
//! connections that are ready, then write all replies), so its CPU time per operation is what the system calls and the
//! loop cost. It parses the first request of a connection only. redis-benchmark sends requests of one length on one
//! connection, so the later ones are counted by dividing the number of bytes received by that length.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use kumi_resp::encode;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use crate::args::EchoServerArgs;
use crate::store::workloads::VALUE_BYTES;

const LISTENER: Token = Token(usize::MAX);
const EVENTS_PER_TURN: usize = 1024;
/// One read takes at most this much, as in kumi-server.
const READ_BYTES: usize = 16 * 1024;
/// A reply is kept this many times in a row, so that a pipeline is answered with one write.
const REPLIES_PER_WRITE: usize = 256;

/// Serves until the process is ended.
pub(crate) fn run(args: &EchoServerArgs) -> Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let mut listener = TcpListener::bind(address).context("cannot listen")?;
    let mut poll = Poll::new()?;
    poll.registry()
        .register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut events = Events::with_capacity(EVENTS_PER_TURN);
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    let mut unanswered: Vec<usize> = Vec::new();
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            outcome => outcome?,
        }
        for event in &events {
            if event.token() == LISTENER {
                accept(&listener, &poll, &mut connections)?;
                continue;
            }
            let slot = event.token().0;
            let Some(connection) = connections.get_mut(slot).and_then(Option::as_mut) else {
                continue;
            };
            match connection.read(&mut buffer) {
                Some(0) => {}
                Some(_) => unanswered.push(slot),
                None => connections[slot] = None,
            }
        }
        for slot in unanswered.drain(..) {
            let Some(connection) = connections[slot].as_mut() else {
                continue;
            };
            if !connection.answer() {
                connections[slot] = None;
            }
        }
    }
}

fn accept(
    listener: &TcpListener,
    poll: &Poll,
    connections: &mut Vec<Option<Connection>>,
) -> Result<()> {
    loop {
        let mut stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error).context("cannot accept"),
        };
        stream.set_nodelay(true)?;
        let free = connections.iter().position(Option::is_none);
        let slot = free.unwrap_or(connections.len());
        poll.registry()
            .register(&mut stream, Token(slot), Interest::READABLE)?;
        let connection = Some(Connection {
            stream,
            requests: Requests::default(),
        });
        match free {
            Some(slot) => connections[slot] = connection,
            None => connections.push(connection),
        }
    }
}

struct Connection {
    stream: TcpStream,
    requests: Requests,
}

impl Connection {
    /// Reads until nothing is left; the number of requests that became complete, or `None` at the connection's end.
    fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return None,
                Ok(count) => {
                    self.requests.take(&buffer[..count])?;
                    if count < buffer.len() {
                        return Some(self.requests.complete);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Some(self.requests.complete);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    /// Writes the replies of all complete requests. The replies of a pipeline fit a socket's buffer; a connection
    /// whose buffer is full is closed, which redis-benchmark reports.
    fn answer(&mut self) -> bool {
        while self.requests.complete > 0 {
            let count = self.requests.complete.min(REPLIES_PER_WRITE);
            let bytes = &self.requests.replies[..count * self.requests.reply_bytes];
            match self.stream.write(bytes) {
                Ok(written) if written == bytes.len() => self.requests.complete -= count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => return false,
            }
        }
        true
    }
}

/// Counts the requests of one connection.
#[derive(Debug, Default)]
struct Requests {
    /// The first bytes of every request, up to the command's name; empty for a command that is parsed each time.
    header: Vec<u8>,
    request_bytes: usize,
    /// One reply, [`REPLIES_PER_WRITE`] times.
    replies: Vec<u8>,
    reply_bytes: usize,
    /// Bytes received of a request that is not complete.
    partial: usize,
    /// Complete requests that are not answered.
    complete: usize,
}

impl Requests {
    /// Counts the requests in `bytes`; `None` for bytes that are not what redis-benchmark sends.
    fn take(&mut self, bytes: &[u8]) -> Option<()> {
        if self.partial == 0 && (self.header.is_empty() || !bytes.starts_with(&self.header)) {
            self.learn(bytes)?;
        }
        let received = self.partial + bytes.len();
        self.complete += received / self.request_bytes;
        self.partial = received % self.request_bytes;
        Some(())
    }

    /// Takes the length of a request and its reply from the first request in `bytes`.
    fn learn(&mut self, bytes: &[u8]) -> Option<()> {
        let (args, length) = first_request(bytes)?;
        let name = args.first()?;
        let reply = reply_to(name, args.len() - 1);
        self.header = match reply {
            Some(_) => {
                let start = bytes.windows(name.len()).position(|word| word == *name)?;
                bytes[..start + name.len()].to_vec()
            }
            None => Vec::new(),
        };
        let reply = reply.unwrap_or_else(|| other_reply(&args));
        self.request_bytes = length;
        self.reply_bytes = reply.len();
        self.replies = reply.repeat(REPLIES_PER_WRITE);
        Some(())
    }
}

/// What a store with the workloads' data answers to a command of theirs with this many arguments.
fn reply_to(name: &[u8], arguments: usize) -> Option<Vec<u8>> {
    let mut reply = Vec::new();
    match name.to_ascii_uppercase().as_slice() {
        b"SET" | b"MSET" => encode::simple(&mut reply, b"OK"),
        b"GET" => encode::bulk(&mut reply, &[b'x'; VALUE_BYTES]),
        b"MGET" => {
            encode::array(&mut reply, arguments);
            for _ in 0..arguments {
                encode::bulk(&mut reply, &[b'x'; VALUE_BYTES]);
            }
        }
        b"INCR" => encode::integer(&mut reply, 10),
        _ => return None,
    }
    Some(reply)
}

/// Replies to what is sent around the workloads: PING at the start, and the CONFIG GET of redis-benchmark.
fn other_reply(args: &[&[u8]]) -> Vec<u8> {
    let mut reply = Vec::new();
    match args {
        [name, _, directive] if name.eq_ignore_ascii_case(b"CONFIG") => {
            encode::array(&mut reply, 2);
            encode::bulk(&mut reply, directive);
            encode::bulk(&mut reply, b"");
        }
        _ => encode::simple(&mut reply, b"PONG"),
    }
    reply
}

/// The arguments of the first request and its length in bytes; `None` unless it is complete.
fn first_request(bytes: &[u8]) -> Option<(Vec<&[u8]>, usize)> {
    let mut rest = bytes;
    let count = number_line(&mut rest, b'*')?;
    let mut args = Vec::new();
    for _ in 0..count {
        let length = number_line(&mut rest, b'$')?;
        let (arg, after) = rest.split_at_checked(length)?;
        rest = after.strip_prefix(b"\r\n")?;
        args.push(arg);
    }
    Some((args, bytes.len() - rest.len()))
}

/// Takes a line like `*3` off the front of `rest`.
fn number_line(rest: &mut &[u8], kind: u8) -> Option<usize> {
    let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
    let (line, after) = (&rest[..end], &rest[end + 2..]);
    let digits = line.strip_prefix(&[kind])?;
    *rest = after;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(commands: &[&[&[u8]]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for command in commands {
            crate::wire::push_command(&mut bytes, command);
        }
        bytes
    }

    #[test]
    fn requests_of_one_length_are_counted_wherever_they_are_cut() {
        let bytes = requests(&[
            &[b"GET", b"key:000000000001"],
            &[b"GET", b"key:000000000002"],
            &[b"GET", b"key:000000000003"],
        ]);
        let length = bytes.len() / 3;
        for cut in length..bytes.len() {
            let mut counted = Requests::default();
            counted.take(&bytes[..cut]).unwrap();
            counted.take(&bytes[cut..]).unwrap();
            assert_eq!((counted.complete, counted.partial), (3, 0), "cut at {cut}");
        }
    }

    #[test]
    fn replies_are_those_of_a_store_with_the_workloads_data() {
        let check = |command: &[&[u8]], expected: &str| {
            let mut counted = Requests::default();
            counted.take(&requests(&[command])).unwrap();
            assert_eq!(counted.complete, 1);
            let reply = &counted.replies[..counted.reply_bytes];
            assert_eq!(String::from_utf8_lossy(reply), expected);
        };
        check(&[b"SET", b"k", b"v"], "+OK\r\n");
        check(&[b"GET", b"k"], "$16\r\nxxxxxxxxxxxxxxxx\r\n");
        check(&[b"INCR", b"k"], ":10\r\n");
        check(
            &[b"MGET", b"a", b"b"],
            "*2\r\n$16\r\nxxxxxxxxxxxxxxxx\r\n$16\r\nxxxxxxxxxxxxxxxx\r\n",
        );
        check(
            &[b"CONFIG", b"GET", b"save"],
            "*2\r\n$4\r\nsave\r\n$0\r\n\r\n",
        );
    }

    #[test]
    fn a_connection_may_change_its_command() {
        let mut counted = Requests::default();
        for command in [
            &[b"CONFIG".as_slice(), b"GET", b"save"],
            &[b"CONFIG".as_slice(), b"GET", b"appendonly"],
            &[b"SET".as_slice(), b"key:000000000001", b"v"],
        ] {
            counted.complete = 0;
            counted.take(&requests(&[command])).unwrap();
            assert_eq!((counted.complete, counted.partial), (1, 0));
        }
        assert_eq!(&counted.replies[..counted.reply_bytes], b"+OK\r\n");
    }

    #[test]
    fn what_is_not_a_request_ends_the_connection() {
        assert_eq!(Requests::default().take(b"GET / HTTP/1.1\r\n"), None);
        assert_eq!(
            Requests::default().take(b"*2\r\n$3\r\nGET\r\n$9\r\nk"),
            None
        );
    }
}
