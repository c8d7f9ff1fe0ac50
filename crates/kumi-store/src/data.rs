//! The data: keys with their values, deadlines and watchers; their form in files; the record of writes.
//!
//! Imports `base`, `types` and `config`. It knows no commands and no sessions but their ids.

pub(crate) mod keyspace;
pub(crate) mod propagation;
pub(crate) mod rdb;
