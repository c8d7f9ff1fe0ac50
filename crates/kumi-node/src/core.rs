//! Decisions of a node, without I/O: events and the time go in, what to do comes out.

pub mod attention;
pub mod place;
pub(crate) mod programs;
pub mod releaser;
pub mod status;
pub mod store_pin;
