//! MUF: units call each other and keep state through readable Redis keys.
//!
//! [`core`] is the protocol as a state machine without I/O.

pub mod core;
