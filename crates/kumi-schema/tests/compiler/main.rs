//! The schema compiler through its public interface: one module per subject. They are one program, which is built sooner than
//! nine.

mod apart;
mod cost;
mod errors;
mod golden;
mod incomplete;
mod properties;
mod reading;
mod typescript;
mod unions;
