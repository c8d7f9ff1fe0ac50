//! A raw RESP2 client, just enough to load keys and listen to events.
//!
//! It reads replies as lines, or skips whole ones and looks for errors only. That is all a loader needs, it costs little
//! client CPU, and it is the same for every server measured.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kumi_resp::encode;

/// Commands in flight while loading. Their replies, a few bytes each, fit any socket buffer, so writing never deadlocks.
const LOAD_BATCH: usize = 500;
/// A server that says nothing for this long is taken for stuck.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);
const READ_BYTES: usize = 64 * 1024;

/// One connection to a server.
pub(crate) struct Connection {
    stream: TcpStream,
    /// What `start..end` of it holds is read and not consumed.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The stream's read timeout.
    timeout: Duration,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Result<Connection> {
        let stream =
            TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        Ok(Connection {
            stream,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            timeout: REPLY_TIMEOUT,
        })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream
            .write_all(bytes)
            .context("the server closed the connection")
    }

    /// Sends one command and takes a one-line reply that is not an error.
    pub(crate) fn command(&mut self, args: &[&[u8]]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        push_command(&mut bytes, args);
        self.send(&bytes)?;
        self.reply()
    }

    /// A one-line reply that is not an error.
    pub(crate) fn reply(&mut self) -> Result<Vec<u8>> {
        loop {
            if let Some(line) = self.buffered_line() {
                if line.first() == Some(&b'-') {
                    bail!("the server answered {}", String::from_utf8_lossy(line));
                }
                return Ok(line.to_vec());
            }
            if self.fill(REPLY_TIMEOUT)? == 0 {
                bail!(
                    "the server did not answer for {} s",
                    REPLY_TIMEOUT.as_secs()
                );
            }
        }
    }

    /// The next whole line already read, without its end.
    pub(crate) fn buffered_line(&mut self) -> Option<&[u8]> {
        let rest = &self.buffer[self.start..self.end];
        let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
        let from = self.start;
        self.start += end + 2;
        Some(&self.buffer[from..from + end])
    }

    /// Takes `count` replies of any shape, none of which may be an error.
    pub(crate) fn replies(&mut self, count: usize) -> Result<()> {
        let mut left = count;
        while left > 0 {
            match reply_bytes(&self.buffer[self.start..self.end])? {
                Some(bytes) => {
                    self.start += bytes;
                    left -= 1;
                }
                None if self.fill(REPLY_TIMEOUT)? == 0 => bail!(
                    "the server did not answer for {} s",
                    REPLY_TIMEOUT.as_secs()
                ),
                None => {}
            }
        }
        Ok(())
    }

    /// Reads once; 0 means that nothing came in time.
    pub(crate) fn fill(&mut self, timeout: Duration) -> Result<usize> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < self.end + READ_BYTES {
            self.buffer.resize(self.end + READ_BYTES, 0);
        }
        let timeout = timeout.max(Duration::from_millis(1));
        if timeout != self.timeout {
            self.stream.set_read_timeout(Some(timeout))?;
            self.timeout = timeout;
        }
        match self.stream.read(&mut self.buffer[self.end..]) {
            Ok(0) => bail!("the server closed the connection"),
            Ok(count) => {
                self.end += count;
                Ok(count)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(0)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error).context("cannot read from the server"),
        }
    }
}

/// Sends `count` commands, pipelined, and checks that none is refused. `command` appends the command of an index.
pub(crate) fn load(
    address: SocketAddr,
    count: usize,
    mut command: impl FnMut(usize, &mut Vec<u8>),
) -> Result<()> {
    let mut connection = Connection::open(address)?;
    let mut bytes = Vec::new();
    let mut next = 0;
    while next < count {
        let end = count.min(next + LOAD_BATCH);
        bytes.clear();
        for index in next..end {
            command(index, &mut bytes);
        }
        connection.send(&bytes)?;
        connection.replies(end - next)?;
        next = end;
    }
    Ok(())
}

/// Fails unless the server holds exactly `keys` keys, so that no figure is about keys it refused or lost.
pub(crate) fn check_count(address: SocketAddr, keys: usize) -> Result<()> {
    let answer = Connection::open(address)?.command(&[b"DBSIZE"])?;
    if answer != format!(":{keys}").as_bytes() {
        let answer = String::from_utf8_lossy(&answer);
        bail!("{keys} keys were set, but DBSIZE answers {answer}");
    }
    Ok(())
}

/// Fails unless a key has a TTL.
pub(crate) fn check_ttl(address: SocketAddr, key: &str) -> Result<()> {
    let answer = Connection::open(address)?.command(&[b"PTTL", key.as_bytes()])?;
    let answer = String::from_utf8_lossy(&answer);
    let ttl_ms = answer
        .strip_prefix(':')
        .and_then(|text| text.parse::<i64>().ok());
    if ttl_ms.is_none_or(|ms| ms <= 0) {
        bail!("a key set with a TTL answers PTTL with {answer}");
    }
    Ok(())
}

/// The length of the RESP2 reply at the start of `bytes`; `None` while it is incomplete.
fn reply_bytes(bytes: &[u8]) -> Result<Option<usize>> {
    let mut pos = 0;
    let mut left = 1_usize;
    while left > 0 {
        let rest = &bytes[pos..];
        let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else {
            return Ok(None);
        };
        let (kind, text) = rest[..end]
            .split_first()
            .context("the server sent an empty line")?;
        let text = String::from_utf8_lossy(text);
        pos += end + 2;
        left -= 1;
        match kind {
            b'-' => bail!("the server answered -{text}"),
            b'*' | b'$' => {
                let count: i64 = text.parse().context("a length is no number")?;
                let count = usize::try_from(count).ok();
                match (kind, count) {
                    (b'*', Some(count)) => left += count,
                    (_, Some(count)) => pos += count + 2,
                    (_, None) => {}
                }
            }
            _ => {}
        }
        if pos > bytes.len() {
            return Ok(None);
        }
    }
    Ok(Some(pos))
}

/// Appends a command as an array of bulk strings.
pub(crate) fn push_command(out: &mut Vec<u8>, args: &[&[u8]]) {
    encode::array(out, args.len());
    for arg in args {
        encode::bulk(out, arg);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// A connection whose peer sends `pieces` one write at a time and closes.
    fn answered_by(pieces: &'static [&'static [u8]]) -> Connection {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            peer.set_nodelay(true).unwrap();
            for piece in pieces {
                peer.write_all(piece).unwrap();
            }
        });
        Connection::open(address).unwrap()
    }

    #[test]
    fn commands_are_arrays_of_bulk_strings() {
        let mut out = Vec::new();
        push_command(&mut out, &[b"SET", b"key", b""]);
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$0\r\n\r\n");
    }

    #[test]
    fn replies_split_anywhere_are_whole_lines() {
        let mut connection = answered_by(&[b"+O", b"K\r", b"\n:12\r\n"]);
        assert_eq!(connection.reply().unwrap(), b"+OK");
        assert_eq!(connection.reply().unwrap(), b":12");
    }

    #[test]
    fn an_error_reply_is_an_error() {
        let error = answered_by(&[b"-ERR no\r\n"]).reply().unwrap_err();
        assert!(error.to_string().contains("ERR no"), "{error}");
    }

    #[test]
    fn replies_of_any_shape_are_skipped_whole() {
        let mut connection = answered_by(&[
            b"*2\r\n$3\r\na\r\n",
            b"\r\n*1\r\n:1\r",
            b"\n$-1\r\n*-1\r\n+last\r\n",
        ]);
        connection.replies(3).unwrap();
        assert_eq!(connection.reply().unwrap(), b"+last");
    }

    #[test]
    fn an_error_inside_a_skipped_reply_is_an_error() {
        let error = answered_by(&[b"*1\r\n-ERR no\r\n"]).replies(1);
        assert!(error.unwrap_err().to_string().contains("ERR no"));
    }

    #[test]
    fn a_closed_connection_is_an_error() {
        assert!(answered_by(&[b"+half"]).reply().is_err());
    }
}
