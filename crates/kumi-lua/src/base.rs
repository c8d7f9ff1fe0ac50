//! Values, numbers and their texts, tables, prototypes of functions: what needs neither a heap nor a machine.

pub(crate) mod chunk_name;
pub(crate) mod number;
pub(crate) mod printf;
pub(crate) mod proto;
pub(crate) mod random;
pub(crate) mod table;
pub(crate) mod value;
