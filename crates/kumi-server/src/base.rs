//! The process and the system: clocks, memory, descriptors, random numbers, the text log, the handle that stops a server. It
//! knows nothing of sockets, files of data and the engine's commands.

pub(crate) mod allocator;
pub(crate) mod clock;
pub(crate) mod crash;
pub(crate) mod descriptors;
pub(crate) mod discard;
pub(crate) mod errors;
pub(crate) mod log;
pub(crate) mod oom_score;
pub(crate) mod process;
pub(crate) mod random;
pub(crate) mod shutdown;
