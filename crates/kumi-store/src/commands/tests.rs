//! Tests of many commands at once.

mod extremes;
mod limits;
mod redaction;
mod transcript;
