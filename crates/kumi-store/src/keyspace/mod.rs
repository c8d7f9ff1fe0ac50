//! The keyspace: the only door to the data.

mod deadlines;
mod entry;
mod segment;
mod table;
mod value;
