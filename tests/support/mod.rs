//! What every end-to-end test needs: a server process with a socket of its own, and a client that sees raw bytes.
//!
//! Nothing here knows a command's meaning, and nothing here links the engine: the tests talk to built binaries.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

pub(crate) mod client;
pub(crate) mod frame;
pub(crate) mod server;
