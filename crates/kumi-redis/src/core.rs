//! What needs no socket: the grammar of URLs, commands and replies as data and as bytes, the map of slots, what errors
//! mean.

mod command;
pub(crate) mod encode;
mod error;
pub(crate) mod slots;
mod trouble;
pub(crate) mod url;
pub(crate) mod wire;

pub use command::{Command, Lost, PRESENT_LIMIT, Replies, Reply, Time};
pub use error::{Cause, Error};
pub use slots::{Address, SlotMap};
pub use trouble::Trouble;
pub use url::{ServerUrl, address_at, shown_address, without_password};
