//! A client that speaks bytes, and remembers enough to say what went wrong.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::bytes::{command, visible};
use crate::lang::Lang;

/// How long a reply may take before it counts as missing.
pub const TIMEOUT: Duration = Duration::from_secs(4);

/// What a test saw that it did not expect.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The bytes that were sent last.
    pub sent: Vec<u8>,
    /// What should have come back.
    pub expected: Expected,
    /// What came back.
    pub got: Vec<u8>,
    /// How the reading ended.
    pub ending: Ending,
}

/// What a test waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// Exactly these bytes.
    Bytes(Vec<u8>),
    /// A line that begins like this.
    Line(Vec<u8>),
    /// That the server closes the connection, perhaps after an error.
    Closed,
    /// That the server accepts a connection.
    Connection,
    /// That a reply becomes this while time passes.
    Becomes(Vec<u8>),
}

/// Why the reading ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ending {
    /// Other bytes came.
    Different,
    /// Nothing more came in time.
    Silence,
    /// The server closed the connection.
    Closed,
    /// The connection could not be made.
    Refused,
}

impl Failure {
    /// The failure as lines: sent, expected, got.
    pub fn lines(&self, lang: Lang) -> Vec<String> {
        let expected = match &self.expected {
            Expected::Bytes(bytes) => visible(bytes),
            Expected::Line(start) => format!("{}...\\r\\n", visible(start)),
            Expected::Closed => lang.pick("the end of the connection", "接続のクローズ").to_string(),
            Expected::Connection => lang.pick("a connection", "接続の受け入れ").to_string(),
            Expected::Becomes(bytes) => {
                format!("{} {}", visible(bytes), lang.pick("(after a while)", "（しばらくすると）"))
            }
        };
        let ending = match self.ending {
            Ending::Different => String::new(),
            Ending::Silence => lang.pick("(then nothing, for 4 s)", "（その後 4 秒間、応答なし）").to_string(),
            Ending::Closed => {
                lang.pick("(then the server closed the connection)", "（その後サーバが接続をクローズ）").to_string()
            }
            Ending::Refused => lang.pick("(could not connect)", "（接続できない）").to_string(),
        };
        let got = format!("{} {ending}", visible(&self.got)).trim().to_string();
        let label = |en, ja| lang.pick(en, ja).to_string();
        vec![
            format!("{}  {}", label("sent    ", "送信"), visible(&self.sent)),
            format!("{}  {expected}", label("expected", "期待")),
            format!("{}  {got}", label("got     ", "結果")),
        ]
    }
}

/// One connection.
pub struct Client {
    stream: TcpStream,
    address: SocketAddr,
    sent: Vec<u8>,
}

impl Client {
    /// Connects to the server.
    pub fn connect(address: SocketAddr) -> Result<Client, Failure> {
        let refused =
            |_| Failure { sent: Vec::new(), expected: Expected::Connection, got: Vec::new(), ending: Ending::Refused };
        let stream = TcpStream::connect_timeout(&address, TIMEOUT).map_err(refused)?;
        stream.set_nodelay(true).map_err(refused)?;
        Ok(Client { stream, address, sent: Vec::new() })
    }

    /// The server's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends bytes. An error is not one here: the reply that does not come will show it.
    pub fn send(&mut self, bytes: &[u8]) {
        self.sent = bytes.to_vec();
        let _ = self.stream.write_all(bytes);
    }

    /// Sends bytes one by one, each in a packet of its own as far as the system allows.
    pub fn send_one_by_one(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let _ = self.stream.write_all(&[*byte]);
            // Not to wait for something: a pause is what makes the pieces arrive as pieces.
            std::thread::sleep(Duration::from_millis(2));
        }
        self.sent = bytes.to_vec();
    }

    /// Sends a command and expects exactly these bytes.
    pub fn call(&mut self, arguments: &[&[u8]], expected: &[u8]) -> Result<(), Failure> {
        self.send(&command(arguments));
        self.expect(expected)
    }

    /// Sends a command and expects a line that begins like this, such as an error.
    pub fn call_line(&mut self, arguments: &[&[u8]], start: &[u8]) -> Result<Vec<u8>, Failure> {
        self.send(&command(arguments));
        self.expect_line(start)
    }

    /// Sends the command again and again until the reply is the expected one.
    pub fn call_until(&mut self, arguments: &[&[u8]], expected: &[u8], limit: Duration) -> Result<(), Failure> {
        let deadline = Instant::now() + limit;
        loop {
            self.send(&command(arguments));
            let (got, ending) = self.read_reply();
            if got == expected {
                return Ok(());
            }
            if Instant::now() > deadline || ending != Ending::Different {
                return Err(self.failure(Expected::Becomes(expected.to_vec()), got, ending));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Expects exactly these bytes next.
    pub fn expect(&mut self, expected: &[u8]) -> Result<(), Failure> {
        let mut got = Vec::new();
        while got.len() < expected.len() {
            if let Some(ending) = self.read_some(&mut got, expected.len()) {
                return Err(self.failure(Expected::Bytes(expected.to_vec()), got, ending));
            }
            if !expected.starts_with(&got) {
                self.read_rest(&mut got);
                return Err(self.failure(Expected::Bytes(expected.to_vec()), got, Ending::Different));
            }
        }
        Ok(())
    }

    /// Expects a line with this beginning; the whole line, without CRLF.
    pub fn expect_line(&mut self, start: &[u8]) -> Result<Vec<u8>, Failure> {
        let (mut got, ending) = self.read_line();
        if ending == Ending::Different && got.starts_with(start) {
            got.truncate(got.len() - 2);
            return Ok(got);
        }
        if ending == Ending::Different {
            self.read_rest(&mut got);
        }
        Err(self.failure(Expected::Line(start.to_vec()), got, ending))
    }

    /// Expects that the server closes the connection; an error reply may come first.
    pub fn expect_closed(&mut self) -> Result<(), Failure> {
        let (got, ending) = self.read_line();
        match ending {
            Ending::Closed if got.is_empty() => return Ok(()),
            Ending::Different if got.starts_with(b"-ERR") => {}
            _ => return Err(self.failure(Expected::Closed, got, ending)),
        }
        let (rest, ending) = self.read_line();
        if rest.is_empty() && ending == Ending::Closed {
            return Ok(());
        }
        Err(self.failure(Expected::Closed, [got, rest].concat(), ending))
    }

    /// A failure on this connection.
    pub fn failure(&self, expected: Expected, got: Vec<u8>, ending: Ending) -> Failure {
        Failure { sent: self.sent.clone(), expected, got, ending }
    }

    /// A line with its CRLF, byte by byte, so that nothing behind it is taken.
    fn read_line(&mut self) -> (Vec<u8>, Ending) {
        let mut got = Vec::new();
        while !got.ends_with(b"\r\n") {
            let next = got.len() + 1;
            if let Some(ending) = self.read_some(&mut got, next) {
                return (got, ending);
            }
        }
        (got, Ending::Different)
    }

    /// A reply of one line, or a bulk string.
    pub fn read_reply(&mut self) -> (Vec<u8>, Ending) {
        let (mut got, ending) = self.read_line();
        if ending != Ending::Different || got.first() != Some(&b'$') {
            return (got, ending);
        }
        let digits = String::from_utf8_lossy(&got[1..got.len() - 2]).into_owned();
        let length = digits.parse::<usize>().map_or(0, |length| length + 2);
        let end = got.len() + length.min(1 << 21);
        while got.len() < end {
            if let Some(ending) = self.read_some(&mut got, end) {
                return (got, ending);
            }
        }
        (got, Ending::Different)
    }

    /// Reads what is there, up to `length` in all. An ending if nothing came.
    fn read_some(&mut self, got: &mut Vec<u8>, length: usize) -> Option<Ending> {
        let mut buffer = vec![0; length - got.len()];
        let _ = self.stream.set_read_timeout(Some(TIMEOUT));
        match self.stream.read(&mut buffer) {
            Ok(0) => Some(Ending::Closed),
            Ok(count) => {
                got.extend_from_slice(&buffer[..count]);
                None
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Some(Ending::Silence),
            Err(_) => Some(Ending::Closed),
        }
    }

    /// After a wrong byte: what else is on its way, to be shown.
    fn read_rest(&mut self, got: &mut Vec<u8>) {
        let _ = self.stream.set_read_timeout(Some(Duration::from_millis(100)));
        let mut buffer = [0; 512];
        while let Ok(count @ 1..) = self.stream.read(&mut buffer) {
            got.extend_from_slice(&buffer[..count]);
            if got.len() > 4096 {
                return;
            }
        }
    }
}
