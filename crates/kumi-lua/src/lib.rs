//! Lua 5.1 in safe Rust, for untrusted scripts inside a Redis-compatible engine.
//!
//! [`Lua`] is one state. Scripts are compiled once with [`Lua::load`] and run many times with [`Lua::call`]. The program
//! that runs them implements [`Host`] and is passed to each run, so that its functions reach its data without shared
//! ownership. [`Lua::redis`] gives a state with the libraries and the protected globals that Redis gives its scripts.
//!
//! ```
//! use kumi_lua::{Limits, Lua, Value};
//!
//! let mut lua = Lua::redis(Limits::default());
//! let script = lua.load("@user_script", b"return 1 + 1").expect("it compiles");
//! let results = lua.call(&mut (), &script, &[]).expect("it runs");
//! assert!(matches!(results[..], [Value::Number(2.0)]));
//! ```
//!
//! Not here: files, sockets, `os`, `io`, `debug`, `package`, bytecode, finalizers and weak tables.
#![forbid(unsafe_code)]

mod base;
mod compile;
mod libs;
mod state;
mod vm;

pub use base::value::{FuncId, Str, TableId, ThreadId, UserId, Value};
pub use state::{CompileError, Lua, ScriptError};
pub use vm::Error;
pub use vm::host::{Host, Limits};
pub use vm::host_call::{Call, Function};
