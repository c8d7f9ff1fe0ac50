//! For the fuzz targets: what reads files, on bytes in memory.

pub use crate::files::aof::scan_bytes;
