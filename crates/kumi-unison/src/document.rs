//! Names of the original design document that a program of today does not need: streams without the rules of a channel, the
//! entry of a channel in a connection's list, and the handler of messages that name no channel.
//!
//! `docs/design/unison.md` lists where names and arguments differ from the document.

pub use crate::driver::channel::context::ChannelHandle;
pub use crate::driver::channel::{StreamHandle, SystemStream, UnisonStream};
pub use crate::driver::registry::LegacyHandler;
pub use crate::local::{StreamReceiver, StreamSender};
