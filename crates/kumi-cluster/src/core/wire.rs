//! What travels between nodes: the envelope with its messages, and the contract of a transport.

pub(crate) mod codec;
pub(crate) mod transport;
