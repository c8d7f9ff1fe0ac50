//! What needs no socket: the grammar of URLs, commands and replies as data and as bytes, the map of slots, what errors
//! mean.

pub(crate) mod encode;
mod error;
pub(crate) mod slots;
pub mod strings;
mod time;
mod trouble;
pub(crate) mod url;
pub(crate) mod wire;

pub use error::{Cause, Error};
pub use slots::{Address, SlotMap};
pub use time::Time;
pub use trouble::Trouble;
pub(crate) use url::address_at;
pub use url::{ServerUrl, without_password};
