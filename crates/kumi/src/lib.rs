//! kumi: what a team runs instead of a Redis, a broker, a job queue and a service registry.
//!
//! This library is the front door of the crates behind the `kumi` binary; today that is the store. It holds no code
//! of its own: what is re-exported here is the part of each crate that a program embedding kumi needs, and a program
//! that needs more depends on the crate itself.
//!
//! ```
//! use std::io::{Read, Write};
//!
//! let store = kumi::embedded()?;
//! let mut client = std::os::unix::net::UnixStream::connect(store.path())?;
//! client.write_all(b"SET greeting hello\r\nGET greeting\r\n")?;
//! let mut reply = [0; 16];
//! client.read_exact(&mut reply)?;
//! assert_eq!(&reply, b"+OK\r\n$5\r\nhello\r\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use kumi_server::{
    EmbedError, Embedded, ListenError, Listeners, ServerConfig, ServerError, Shutdown, embedded,
    embedded_with, run,
};
pub use kumi_store::Config;
