//! Sockets: where a server listens, one connection's buffers, and TLS between the two. Which of them is served is the front's
//! business.

pub(crate) mod conn;
pub(crate) mod listen;
pub(crate) mod tls;
