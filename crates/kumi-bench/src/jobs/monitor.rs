//! Counts what a server carries out: commands that clients send, and calls inside scripts. MONITOR tells them apart.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};

/// The counts so far.
#[derive(Default)]
pub(super) struct Counts {
    sent: AtomicU64,
    inside: AtomicU64,
}

/// A connection that watches a server until it is dropped.
pub(super) struct Monitor {
    counts: Arc<Counts>,
    stream: TcpStream,
}

impl Monitor {
    pub(super) fn start(address: SocketAddr) -> Result<Monitor> {
        let mut stream = TcpStream::connect(address).context("cannot connect to the server")?;
        stream.write_all(b"MONITOR\r\n")?;
        let mut lines = BufReader::new(stream.try_clone()?);
        let mut first = Vec::new();
        lines.read_until(b'\n', &mut first)?;
        let counts = Arc::new(Counts::default());
        let counted = counts.clone();
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while lines
                .read_until(b'\n', &mut line)
                .is_ok_and(|read| read > 0)
            {
                match is_inside(&line) {
                    Some(true) => counted.inside.fetch_add(1, Ordering::Relaxed),
                    Some(false) => counted.sent.fetch_add(1, Ordering::Relaxed),
                    None => 0,
                };
                line.clear();
            }
        });
        Ok(Monitor { counts, stream })
    }

    /// Commands sent and calls inside scripts, up to now.
    pub(super) fn read(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.counts.sent), read(&self.counts.inside))
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // Ends the thread that reads; a connection that is gone already has ended it.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Whether a line such as `+1700000000.000000 [0 lua] "GET" "key"` is of a call inside a script; None if it is of none.
fn is_inside(line: &[u8]) -> Option<bool> {
    let open = line.iter().position(|byte| *byte == b'[')?;
    let close = line.iter().position(|byte| *byte == b']')?;
    let source = line.get(open..close)?;
    Some(source.ends_with(b" lua"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_of_clients_or_of_scripts() {
        let check =
            |line: &str, expected| assert_eq!(is_inside(line.as_bytes()), expected, "{line}");
        check("+1.2 [0 127.0.0.1:5] \"GET\" \"[0 lua]\"\r\n", Some(false));
        check("+1.2 [0 lua] \"HSET\" \"a\"\r\n", Some(true));
        check("+OK\r\n", None);
    }
}
