//! Sockets, files, timers and configuration around `kumi-store`: a drop-in for `redis-server`.
//!
//! [`run`] serves on the calling thread until a [`Shutdown`] asks it to stop; [`embedded`] does
//! that on a thread of its own and a private socket; [`main_from_args`] is the whole program.
//! The data and the commands are the engine's: nothing here knows what a key is.
//!
//! Calls of the allocator and the handler of crashes are `unsafe`; `allocator.rs` and `crash.rs` have all of it and say why
//! it is sound.

mod accept;
mod allocator;
mod aof;
mod clock;
mod config_file;
mod conn;
mod crash;
mod descriptors;
mod discard;
mod embedded;
mod facts;
mod front;
#[doc(hidden)]
pub mod fuzzing;
mod host;
mod listen;
mod log;
mod oom_score;
mod output;
mod program;
mod random;
mod rdb_file;
mod requests;
mod server;
mod shutdown;
mod signals;
mod snapshot;
mod startup;
mod supervise;
mod tls;

pub use aof::{Checked, Manifest, ManifestError, Part, check_aof, check_rdb};
pub use config_file::{LoadConfigError, load_file};
pub use embedded::{Builder, EmbedError, Embedded, embedded, embedded_at, embedded_with};
pub use kumi_store::Config;
pub use listen::{Addresses, ListenError, Listeners};
pub use log::LogControl;
pub use program::{Program, ProgramError, prepare_process};
pub use server::{ServerConfig, ServerError, run};
pub use shutdown::Shutdown;
pub use startup::main_from_args;
