//! Sockets, files, timers and configuration around `kumi-store`: a drop-in for `redis-server`.
//!
//! [`run`] serves on the calling thread until a [`Shutdown`] asks it to stop; [`Server`] does that on a thread of its own,
//! and [`embedded`] on a private socket besides; [`main_from_args`] is the whole program.
//! The data and the commands are the engine's: nothing here knows what a key is.
//!
//! Calls of the allocator and the handler of crashes are `unsafe`; `base/allocator.rs` and `base/crash.rs` have all of it and say why
//! it is sound.

mod base;
mod embedded;
mod files;
mod front;
#[doc(hidden)]
pub mod fuzzing;
mod handle;
mod net;
mod program;
mod server;
mod start;

pub use base::log::{LogControl, PROGRAM_OUTPUT};
pub use base::shutdown::Shutdown;
pub use embedded::{Builder, EmbedError, Embedded, embedded, embedded_at, embedded_with};
pub use files::aof::{Checked, Manifest, ManifestError, Part, check_aof, check_rdb};
pub use files::config_file::{LoadConfigError, load_file};
pub use front::{ServerConfig, ServerError};
pub use handle::{ControlError, ServerHandle};
pub use kumi_store::{Config, DataId, HostUser};
pub use net::listen::{Addresses, ListenError, Listeners};
pub use net::tls::config::{TlsIdentity, TlsIdentityError};
pub use program::startup::main_from_args;
pub use program::{Presence, Program, ProgramError, prepare_process};
pub use server::run;
pub use start::{Server, StartError};
