//! A connection: its socket and the bytes of requests that have not been executed yet.
//!
//! Replies wait in the [`Outputs`](kumi_store::Outputs), under the session's key. An idle connection holds no buffer: reads go
//! into a workspace that all connections share, and only what is left of a request that has not
//! arrived completely is kept here.

use crate::net::tls::TlsStream;
use kumi_resp::Decoder;
use kumi_store::{InputUse, SessionKey};
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rustix::buffer::spare_capacity;
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// How much one read may take. Also how much of one client's input is executed before the next
/// client has its turn.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// A request of which more than this has arrived gets a buffer of its own; smaller ones are copied
/// to the front of the shared one, which costs less than a read that is cut short.
const OWN_BUFFER_BYTES: usize = 16 * 1024;

/// Input that is thrown away before a close, in reads. Closing with unread input would reset the
/// connection and may take the last reply with it.
const DRAIN_READS: usize = 16;
const DRAIN_BYTES: usize = 16 * 1024;

/// The socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream>),
}

impl Stream {
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tls(stream) => stream.write(bytes),
        }
    }

    pub(crate) fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write_vectored(slices),
            Stream::Unix(stream) => stream.write_vectored(slices),
            Stream::Tls(stream) => stream.write_vectored(slices),
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tls(stream) => stream.socket.as_fd(),
        }
    }

    pub(crate) fn fd_number(&self) -> i64 {
        i64::from(self.fd().as_raw_fd())
    }

    pub(crate) fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => registry.register(stream, token, interest),
            Stream::Unix(stream) => registry.register(stream, token, interest),
            Stream::Tls(stream) => registry.register(&mut stream.socket, token, interest),
        }
    }

    pub(crate) fn reregister(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => registry.reregister(stream, token, interest),
            Stream::Unix(stream) => registry.reregister(stream, token, interest),
            Stream::Tls(stream) => registry.reregister(&mut stream.socket, token, interest),
        }
    }

    /// Closes one or both directions. A socket that is gone already needs none of it.
    pub(crate) fn shutdown(&self, how: std::net::Shutdown) {
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(how),
            Stream::Unix(stream) => stream.shutdown(how),
            Stream::Tls(stream) => stream.socket.shutdown(how),
        };
    }

    /// The system has announced that the socket can be read, or that the peer sends no more. Only TLS has to remember it:
    /// every read of the others reads the socket.
    #[inline]
    pub(crate) fn note_readable(&mut self) {
        if let Stream::Tls(stream) = self {
            stream.note_readable();
        }
    }

    /// Whether bytes that were taken have not been given to the system yet. Only TLS keeps some.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => false,
            Stream::Tls(stream) => stream.has_unsent(),
        }
    }

    /// Gives the system bytes that were taken before; returns whether all of them are gone.
    pub(crate) fn send_unsent(&mut self) -> io::Result<bool> {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => Ok(true),
            Stream::Tls(stream) => stream.send(),
        }
    }

    /// What comes before an orderly close: TLS says that nothing more comes, and what has arrived is thrown away.
    pub(crate) fn finish(&mut self) {
        if let Stream::Tls(stream) = self {
            stream.say_goodbye();
        }
        self.drain();
    }

    /// Throws away what has arrived, within bounds.
    pub(crate) fn drain(&mut self) {
        let mut scratch = [0; DRAIN_BYTES];
        for _ in 0..DRAIN_READS {
            match rustix::io::read(self.fd(), &mut scratch) {
                Ok(DRAIN_BYTES) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }
}

/// Bytes that were read, and how far the request at their start is decoded.
#[derive(Debug, Default)]
pub(crate) struct Input {
    pub(crate) decoder: Decoder,
    pub(crate) bytes: Vec<u8>,
    /// Bytes missing for the request at the start, as reported by the decoder.
    pub(crate) need: usize,
}

impl Input {
    /// An empty one with room for a read.
    pub(crate) fn workspace() -> Box<Self> {
        Box::new(Self {
            bytes: Vec::with_capacity(READ_BYTES),
            ..Self::default()
        })
    }

    /// Whether a partial request of this size is worth a buffer of its own.
    pub(crate) fn is_large(&self) -> bool {
        self.bytes.len() + self.need.min(READ_BYTES) > OWN_BUFFER_BYTES
    }

    /// Makes room for a read. The buffer doubles, so that a request of very many arguments is
    /// moved a bounded number of times.
    pub(crate) fn reserve(&mut self) {
        if self.free() < OWN_BUFFER_BYTES {
            self.bytes.reserve(READ_BYTES);
        }
    }

    /// What the next read appends to: the large argument that is arriving, or the buffer. `None`
    /// when there is no memory for the large argument.
    pub(crate) fn target(&mut self) -> Option<&mut Vec<u8>> {
        if self.decoder.is_filling() {
            self.decoder.large_room()
        } else {
            Some(&mut self.bytes)
        }
    }

    /// What CLIENT LIST shows, and the memory of decoded arguments.
    pub(crate) fn usage(&self) -> InputUse {
        let large = self.decoder.large_bytes();
        let (missing, room) = match self.decoder.large_missing() {
            (0, _) => (self.need, self.free()),
            large => large,
        };
        InputUse {
            used: self.bytes.len() + large,
            free: self.free() + self.decoder.large_missing().1,
            announced: missing.saturating_sub(room),
            args: self.decoder.heap_bytes() - large,
        }
    }

    /// Forgets everything and keeps the room.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.decoder.reset();
        self.need = 0;
    }

    /// Bytes that fit without growing.
    pub(crate) fn free(&self) -> usize {
        self.bytes.capacity() - self.bytes.len()
    }
}

/// What a read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// This many bytes, at least one. `full` when they took all the room there was: more may wait.
    Bytes { count: usize, full: bool },
    /// Nothing has arrived.
    Nothing,
    /// The peer sends no more, or the connection broke.
    End,
}

/// One client.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) stream: Stream,
    pub(crate) key: SessionKey,
    /// Read, but not executed. None while the connection is idle or while its requests run.
    pub(crate) input: Option<Box<Input>>,
    /// One of its requests is running, further up the stack.
    pub(crate) running: bool,
    /// Its last request waits in the store: decode nothing before it is resumed.
    pub(crate) blocked: bool,
    /// Nothing more is read; the connection closes once its output is written.
    pub(crate) closing: bool,
    /// The peer sends no more. The system announces that once, but it is found only behind the last
    /// bytes, so reading goes on until then without further events.
    pub(crate) ended: bool,
    /// The send buffer of the socket is full.
    pub(crate) write_blocked: bool,
    /// The poll reports when the socket is writable.
    pub(crate) watches_writable: bool,
    /// On the front's list of connections to read without waiting for an event.
    pub(crate) listed: bool,
}

impl Conn {
    pub(crate) fn new(stream: Stream, key: SessionKey) -> Self {
        Self {
            stream,
            key,
            input: None,
            running: false,
            blocked: false,
            closing: false,
            ended: false,
            write_blocked: false,
            watches_writable: false,
            listed: false,
        }
    }

    /// One read, into the room that `input` has. A large argument is read to its end and no further.
    pub(crate) fn receive(&self, input: &mut Input) -> Received {
        loop {
            let Some(target) = input.target() else {
                tracing::warn!("there is no memory for a client's argument");
                return Received::End;
            };
            let room = target.capacity() - target.len();
            let read = rustix::io::read(self.stream.fd(), spare_capacity(target));
            return match read {
                Ok(0) => Received::End,
                Ok(count) => Received::Bytes {
                    count,
                    full: count == room,
                },
                Err(rustix::io::Errno::AGAIN) => Received::Nothing,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => {
                    tracing::debug!(%error, "reading from a client failed");
                    Received::End
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumi_resp::{Limits, Step};

    fn partial(have: usize, need: usize) -> Input {
        Input {
            bytes: vec![b'x'; have],
            need,
            ..Input::default()
        }
    }

    #[test]
    fn a_full_buffer_gets_room_even_when_nothing_says_how_much_is_missing() {
        let mut input = partial(64, 0);
        assert_eq!(input.free(), 0);
        input.reserve();
        assert!(input.free() >= READ_BYTES);
    }

    #[test]
    fn a_long_request_is_moved_a_bounded_number_of_times() {
        let mut input = partial(1000, 1);
        let mut moves = 0;
        while input.bytes.len() < 64 << 20 {
            let before = input.bytes.capacity();
            input.reserve();
            moves += usize::from(input.bytes.capacity() != before);
            input
                .bytes
                .resize(input.bytes.len() + OWN_BUFFER_BYTES, b'x');
        }
        assert!(moves < 20, "{moves} moves");
    }

    #[test]
    fn the_list_of_arguments_counts_as_memory() {
        let mut input = Input::default();
        input.bytes.extend_from_slice(b"*10001\r\n");
        input.bytes.extend(b"$1\r\na\r\n".repeat(10_000));
        let step = input.decoder.decode(&input.bytes, &Limits::default());
        assert!(matches!(step, Ok(Step::Incomplete { .. })), "{step:?}");
        let InputUse { used, args, .. } = input.usage();
        assert_eq!(used, input.bytes.len());
        assert!(args >= 10_000 * size_of::<usize>(), "{args} bytes");
        input.clear();
        assert!(input.usage().args < args / 2);
    }

    #[test]
    fn a_claimed_length_alone_takes_little_memory() {
        let mut input = partial(100, 500 << 20);
        input.reserve();
        assert!(input.bytes.capacity() <= 2 * READ_BYTES);
    }
}
