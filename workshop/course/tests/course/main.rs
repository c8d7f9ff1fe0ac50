//! The course as a whole, through its commands, its stages and its guide.

mod commands;
mod common;
mod faults;
mod guide;
mod real_servers;
mod replay;
mod stages;
mod table;
mod targets;
