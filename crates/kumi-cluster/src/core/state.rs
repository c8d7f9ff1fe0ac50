//! What a node knows about others: records and how they merge, the table of them, the ring of monitors, quarantines, and
//! addresses of members that are gone. Nothing here has a clock, sends or decides.

pub(crate) mod book;
pub(crate) mod quarantine;
pub(crate) mod record;
pub(crate) mod ring;
pub(crate) mod snapshot;
pub(crate) mod table;
