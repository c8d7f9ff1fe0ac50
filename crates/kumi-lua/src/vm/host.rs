//! What the embedding program gives a script: its functions, its hook and its limits.

use crate::vm::Error;
use crate::vm::host_call::Call;

/// The program that runs scripts. It is passed to every run, so that its functions have access to its state.
pub trait Host {
    /// Runs the host function registered under `function`. Results are pushed with [`Call::push`].
    fn call(&mut self, function: u32, call: &mut Call<'_>) -> Result<(), Error>;

    /// Called after every [`Limits::hook_interval`] instructions, and as often from inside library functions that work
    /// long and from the compiler. An error ends the script; `pcall` does not catch it.
    fn interrupt(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Called when much memory was freed: an allocator that keeps it may be asked to give it back.
    fn memory_freed(&mut self) {}
}

/// A host without functions whose scripts are never interrupted.
impl Host for () {
    fn call(&mut self, _function: u32, call: &mut Call<'_>) -> Result<(), Error> {
        Err(call.error("no such host function"))
    }
}

/// Bounds of one state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes that the state may have allocated, with garbage, free slots and the buffers of library functions; more
    /// raises `not enough memory`.
    pub memory_bytes: usize,
    /// Instructions between calls of [`Host::interrupt`].
    pub hook_interval: i64,
    /// Bytes of the thread's stack a run may use, counted from where it starts. The parser and native calls fail with
    /// Lua's own errors before they pass it.
    pub stack_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            memory_bytes: usize::MAX / 2,
            hook_interval: 100_000,
            stack_bytes: 160 * 1024,
        }
    }
}
