//! The interface between a channel and its stream: chunks in, chunks out.
//!
//! Chunks instead of `AsyncRead` and `AsyncWrite`, because QUIC hands out and takes reference-counted chunks: nothing
//! is copied between the transport's buffers and the frame reader, and a burst of frames is one write.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use crate::error::{NetworkError, TransportError};

/// The code a stream is reset with when the peer broke the protocol, or in place of an orderly end.
pub const RESET_CODE: u32 = 1;

/// The code a stream is reset with when the channel on it ends and is not opened again, by its policy or for what the peer sent: one
/// that would otherwise be reopened is not.
pub const CLOSED_CODE: u32 = 2;

/// How long a peer may take to make room for the reason why its stream ends.
pub(crate) const CLOSE_REASON_TIMEOUT: Duration = Duration::from_secs(1);

/// What a stream that ends with an error is reset with.
pub(crate) fn reset_code(error: &NetworkError) -> u32 {
    match error {
        NetworkError::ClosedByPeer(_) => CLOSED_CODE,
        error if error.is_for_good() => CLOSED_CODE,
        _ => RESET_CODE,
    }
}

/// The datagrams of a connection, for channels whose events may be lost.
pub trait DatagramLink: Send + Sync + 'static {
    /// Sends one datagram, or drops it: this never waits.
    ///
    /// # Errors
    /// When it is larger than a datagram may be now, or the connection is gone.
    fn send(&self, packet: Bytes) -> Result<(), NetworkError>;
}

/// The receiving half of a stream.
pub trait TransportRecv: Send + 'static {
    /// Appends what arrived, at least one chunk, to `into`. `Ok(false)` is the stream's end. Dropping the future loses
    /// nothing.
    fn read(
        &mut self,
        into: &mut Vec<Bytes>,
    ) -> impl Future<Output = Result<bool, TransportError>> + Send;

    /// Tells the peer that no more will be read.
    fn stop(&mut self, code: u32);
}

/// The sending half of a stream.
pub trait TransportSend: Send + 'static {
    /// Writes all chunks in order. When the future is dropped before its end, the stream is reset next.
    fn write(
        &mut self,
        chunks: &mut [Bytes],
    ) -> impl Future<Output = Result<(), TransportError>> + Send;

    /// Ends the stream in order: what was written arrives.
    fn finish(&mut self);

    /// Ends the stream at once.
    fn reset(&mut self, code: u32);

    /// Resolves when the peer has everything after [`finish`](Self::finish), or is gone.
    fn finished(&mut self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Resolves when the peer stopped reading this half, or is gone. Default: never; then a handler whose caller has finished
    /// its own half is not cancelled when the caller gives up.
    fn stopped(&self) -> impl Future<Output = ()> + Send + 'static {
        std::future::pending()
    }

    /// The datagrams of the connection this stream belongs to, if it has any.
    fn datagrams(&self) -> Option<Arc<dyn DatagramLink>> {
        None
    }
}

/// A [`TransportRecv`] of any type.
pub(crate) trait DynRecv: Send {
    fn read<'a>(
        &'a mut self,
        into: &'a mut Vec<Bytes>,
    ) -> BoxFuture<'a, Result<bool, TransportError>>;
    fn stop(&mut self, code: u32);
}

impl<R: TransportRecv> DynRecv for R {
    fn read<'a>(
        &'a mut self,
        into: &'a mut Vec<Bytes>,
    ) -> BoxFuture<'a, Result<bool, TransportError>> {
        Box::pin(TransportRecv::read(self, into))
    }

    fn stop(&mut self, code: u32) {
        TransportRecv::stop(self, code);
    }
}

/// A [`TransportSend`] of any type.
pub(crate) trait DynSend: Send {
    fn write<'a>(
        &'a mut self,
        chunks: &'a mut [Bytes],
    ) -> BoxFuture<'a, Result<(), TransportError>>;
    fn finish(&mut self);
    fn reset(&mut self, code: u32);
    fn finished(&mut self) -> BoxFuture<'_, ()>;
}

impl<S: TransportSend> DynSend for S {
    fn write<'a>(
        &'a mut self,
        chunks: &'a mut [Bytes],
    ) -> BoxFuture<'a, Result<(), TransportError>> {
        Box::pin(TransportSend::write(self, chunks))
    }

    fn finish(&mut self) {
        TransportSend::finish(self);
    }

    fn reset(&mut self, code: u32) {
        TransportSend::reset(self, code);
    }

    fn finished(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(TransportSend::finished(self))
    }
}
