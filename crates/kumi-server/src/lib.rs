//! Sockets, files, timers and configuration around `kumi-store`: a drop-in for `redis-server`.

mod accept;
mod clock;
mod conn;
mod discard;
mod front;
mod host;
mod listen;
mod server;
mod shutdown;
mod startup;

pub use listen::{ListenError, Listeners};
pub use server::{ServerConfig, ServerError, run};
pub use shutdown::Shutdown;
pub use startup::main_from_args;
