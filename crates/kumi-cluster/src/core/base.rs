//! What everything else of the core names: instants, identities, statuses, metadata, errors, and hashes and random numbers.

pub(crate) mod error;
pub(crate) mod hash;
pub(crate) mod identity;
pub(crate) mod metadata;
pub(crate) mod reason;
pub(crate) mod rng;
pub(crate) mod status;
pub(crate) mod time;
