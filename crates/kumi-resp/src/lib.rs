//! The RESP2 and RESP3 wire: bytes in, requests out; replies in, bytes out.
//!
//! This crate opens no socket, keeps no input and knows no command. A [`Decoder`] finds the arguments
//! of the next request in a buffer that its caller owns; the functions of [`encode`] append one reply
//! element each to a byte vector; [`decode_reply`] decodes replies for tools and tests.
//!
//! ```
//! use kumi_resp::{Decoder, Limits, Step, encode};
//!
//! let mut decoder = Decoder::new();
//! let mut out = Vec::new();
//! let input = b"*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n";
//! if let Step::Request { args, .. } = decoder.decode(input, &Limits::default())? {
//!     encode::bulk(&mut out, &args[1]);
//! }
//! assert_eq!(out, b"$2\r\nhi\r\n");
//! # Ok::<(), kumi_resp::ProtocolError>(())
//! ```

mod args;
mod batch;
mod decode;
pub mod encode;
mod error;
mod frame;
mod inline;
mod large;
mod number;
mod shared;

pub use args::{Args, ArgsBuilder, ArgsIter, OwnedArgs};
pub use batch::Batch;
pub use decode::{Decoder, Limits, Step};
pub use error::ProtocolError;
pub use frame::{Frame, ReplyLimits, decode_reply, decode_strings};
pub use large::LARGE_ARG_BYTES;
pub use shared::SharedBytes;

/// The protocol version of a connection; HELLO changes it.
///
/// ```
/// use kumi_resp::Protocol;
///
/// assert_eq!(Protocol::default(), Protocol::Resp2);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// The version every connection starts with.
    #[default]
    Resp2,
    /// The version with maps, sets, doubles, booleans and pushes.
    Resp3,
}
