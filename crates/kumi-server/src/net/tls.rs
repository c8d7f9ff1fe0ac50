//! TLS on a connection of the loop.
//!
//! rustls does no I/O here: ciphertext is read from the socket into a scratch buffer and handed to it, and what it has
//! to send is written to the socket. Three things differ from a plain socket, and all are this module's to hide:
//!
//! - Requests may wait inside rustls, or ciphertext here, with nothing left in the socket. No event announces them, so
//!   [`TlsStream::receive`] says `full`, and the front reads again at its next turn.
//! - A call of `receive` that finds such requests does not read the socket, so an event does not lead to a read. The event
//!   is remembered ([`TlsStream::note_readable`]) until a read has emptied the socket.
//! - Replies that were taken may wait as ciphertext. [`TlsStream::has_unsent`] says so, and the front watches the socket
//!   until they are gone.

pub(crate) mod config;
pub(crate) mod failures;

use crate::net::conn::{Input, Received};
use mio::net::TcpStream;
use rustix::buffer::spare_capacity;
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, BufRead, IoSlice, Write};
use std::os::fd::AsFd;
use std::sync::Arc;

/// Ciphertext that is made before the socket has taken it, in bytes.
const UNSENT_LIMIT: usize = 64 * 1024;

/// A socket that speaks TLS.
#[derive(Debug)]
pub(crate) struct TlsStream {
    pub(crate) socket: TcpStream,
    session: ServerConnection,
    /// Ciphertext that was read and that rustls had no room for.
    unprocessed: Vec<u8>,
    /// The socket may hold more without announcing it: an event has come, or the last read filled its buffer. Only a read
    /// that finds less than it has room for, or nothing, clears it: the system announces each arrival once.
    socket_has_more: bool,
    /// The peer has closed its side.
    closed: bool,
    /// Why the handshake failed, to be logged by the front.
    pub(crate) failure: Option<rustls::Error>,
}

impl TlsStream {
    pub(crate) fn new(socket: TcpStream, config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        let mut session = ServerConnection::new(config)?;
        session.set_buffer_limit(Some(UNSENT_LIMIT));
        Ok(Self {
            socket,
            session,
            unprocessed: Vec::new(),
            socket_has_more: false,
            closed: false,
            failure: None,
        })
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// The system has announced that the socket can be read.
    #[inline]
    pub(crate) fn note_readable(&mut self) {
        self.socket_has_more = true;
    }

    /// One read of the socket, decrypted into the room that `input` has. `scratch` is an empty buffer with room.
    pub(crate) fn receive(&mut self, input: &mut Input, scratch: &mut Vec<u8>) -> Received {
        let mut count = 0;
        loop {
            let Some(target) = input.target() else {
                tracing::warn!("there is no memory for a client's argument");
                return Received::End;
            };
            let taken = self.take_plaintext(target);
            count += taken;
            let room_is_full = target.len() == target.capacity();
            if room_is_full {
                return Received::Bytes { count, full: true };
            }
            if !self.unprocessed.is_empty() {
                let ciphertext = std::mem::take(&mut self.unprocessed);
                let stuck = !self.process(&ciphertext)
                    || taken == 0 && self.unprocessed.len() == ciphertext.len();
                if stuck {
                    return self.ended(count);
                }
                continue;
            }
            // One read is enough for one turn; more is for the next one.
            if count > 0 {
                let full = self.socket_has_more || self.closed;
                return Received::Bytes { count, full };
            }
            if self.closed {
                return Received::End;
            }
            match self.read(scratch) {
                Ok(0) => return Received::End,
                Ok(_) => {
                    let read = std::mem::take(scratch);
                    let goes_on = self.process(&read);
                    *scratch = read;
                    if !goes_on {
                        return self.ended(count);
                    }
                }
                Err(rustix::io::Errno::AGAIN) => return Received::Nothing,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    tracing::debug!(%error, "reading from a client failed");
                    return Received::End;
                }
            }
        }
    }

    fn read(&mut self, scratch: &mut Vec<u8>) -> Result<usize, rustix::io::Errno> {
        scratch.clear();
        let read = rustix::io::read(self.socket.as_fd(), spare_capacity(scratch));
        self.socket_has_more = scratch.len() == scratch.capacity();
        read
    }

    /// Moves decrypted bytes to the room that `target` has.
    fn take_plaintext(&mut self, target: &mut Vec<u8>) -> usize {
        let before = target.len();
        let mut reader = self.session.reader();
        // An error means that there is nothing now: the socket tells whether more can come.
        while let Ok(chunk) = reader.fill_buf() {
            let count = chunk.len().min(target.capacity() - target.len());
            if count == 0 {
                break;
            }
            target.extend_from_slice(&chunk[..count]);
            reader.consume(count);
        }
        target.len() - before
    }

    /// Hands ciphertext to rustls, and sends what it answers (the handshake, alerts). False when the connection is over.
    fn process(&mut self, mut ciphertext: &[u8]) -> bool {
        while !ciphertext.is_empty() {
            let before = ciphertext.len();
            // An error means that decrypted bytes have to be taken first.
            let taken = self.session.read_tls(&mut ciphertext).unwrap_or(0);
            let was_handshaking = self.session.is_handshaking();
            match self.session.process_new_packets() {
                Ok(state) => self.closed |= state.peer_has_closed(),
                Err(error) => {
                    // A peer that does not speak TLS is not answered in it.
                    let is_foreign =
                        was_handshaking && matches!(error, rustls::Error::InvalidMessage(_));
                    if !is_foreign {
                        // The alert that tells the peer why.
                        let _ = self.send();
                    }
                    if was_handshaking {
                        self.failure = Some(error);
                    } else {
                        tracing::debug!(%error, "a client's TLS session failed");
                    }
                    return false;
                }
            }
            if self.closed {
                break;
            }
            if taken == 0 || ciphertext.len() == before {
                self.unprocessed = ciphertext.to_vec();
                break;
            }
        }
        if self.session.wants_write()
            && let Err(error) = self.send()
        {
            tracing::debug!(%error, "writing to a client failed");
            return false;
        }
        true
    }

    /// The end of a connection; what was decrypted before it still counts.
    fn ended(&mut self, count: usize) -> Received {
        self.closed = true;
        match count {
            0 => Received::End,
            count => Received::Bytes { count, full: true },
        }
    }

    /// Encrypts replies and sends them. Returns how many bytes were taken; [`TlsStream::has_unsent`] tells whether all of
    /// them have left.
    pub(crate) fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut taken = 0;
        let wanted: usize = slices.iter().map(|slice| slice.len()).sum();
        // Before the handshake is over there is no key to encrypt with.
        if self.session.is_handshaking() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if !self.send()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut rest: Vec<IoSlice<'_>> = Vec::new();
        while taken < wanted {
            let accepted = if taken == 0 {
                self.session.writer().write_vectored(slices)?
            } else {
                rest.clear();
                rest.extend(behind(slices, taken));
                self.session.writer().write_vectored(&rest)?
            };
            taken += accepted;
            if !self.send()? || accepted == 0 {
                break;
            }
        }
        Ok(taken)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    /// Whether ciphertext waits for the socket.
    pub(crate) fn has_unsent(&self) -> bool {
        self.session.wants_write()
    }

    /// Sends ciphertext that waits; returns whether all of it has left.
    pub(crate) fn send(&mut self) -> io::Result<bool> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Tells the peer that nothing more comes. The close of the socket follows, so a failure does not matter.
    pub(crate) fn say_goodbye(&mut self) {
        if !self.session.is_handshaking() {
            self.session.send_close_notify();
        }
        let _ = self.send();
        let _ = self.socket.flush();
    }
}

/// The slices without their first `taken` bytes.
fn behind<'a>(slices: &'a [IoSlice<'_>], mut taken: usize) -> impl Iterator<Item = IoSlice<'a>> {
    slices.iter().filter_map(move |slice| {
        let skipped = taken.min(slice.len());
        taken -= skipped;
        (skipped < slice.len()).then(|| IoSlice::new(&slice[skipped..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_cut_anywhere() {
        let slices = [b"ab".as_slice(), b"", b"cde"].map(IoSlice::new);
        for taken in 0..=5 {
            let rest: Vec<u8> = behind(&slices, taken)
                .flat_map(|slice| slice.to_vec())
                .collect();
            assert_eq!(rest, &b"abcde"[taken..]);
        }
    }
}
