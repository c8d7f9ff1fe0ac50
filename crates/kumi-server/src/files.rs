//! The files of a server: its configuration, the RDB file and the AOF. When they are loaded and written is the front's business.

pub(crate) mod aof;
pub(crate) mod config_file;
pub(crate) mod data_id;
pub(crate) mod rdb_file;
pub(crate) mod snapshot;
