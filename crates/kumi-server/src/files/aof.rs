//! The append-only file: every write is in it before its reply is sent.
//!
//! ```text
//! files.rs     file operations, behind a trait
//! place.rs     the directory and the names in it; the lock
//! manifest.rs  which files there are
//! mark.rs      comment lines that guard the files
//! window.rs    requests and comments in a part of a file
//! scan.rs      a file of requests: whole groups, what is cut off, what is damaged
//! tail.rs      bytes that are no whole group: loaded, cut off, or damage
//! search.rs    whole groups behind them
//! load.rs      base and increments, in their order
//! append.rs    groups of writes, appended with their marks
//! sync.rs      the thread that syncs
//! running.rs   the AOF that is written to: policies of fsync, disk trouble
//! rewrite.rs   new bases
//! switch.rs    the beginning of a rewrite
//! check.rs     `kumi check-aof` and `kumi check-rdb`
//! ```

mod append;
mod check;
mod files;
mod load;
mod manifest;
mod mark;
mod place;
mod rewrite;
mod running;
mod scan;
mod search;
#[cfg(test)]
mod simulation;
mod switch;
mod sync;
mod tail;
mod window;

pub use check::{Checked, check_aof, check_rdb, scan_bytes};
pub(crate) use files::{Disk, cut_off};
pub(crate) use load::{AofError, Apply, LoadedAof, load, total_bytes};
pub use manifest::{Manifest, ManifestError, Part};
pub(crate) use place::{Place, lock};
pub(crate) use rewrite::RewritePlan;
pub(crate) use running::{Aof, Start};
