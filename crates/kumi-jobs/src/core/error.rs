//! Why the core refuses a call. Nothing has changed then.

use super::owner::Owner;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A payload, a step or a text is larger than its limit.
    TooLarge {
        what: &'static str,
        size: usize,
        limit: usize,
    },
    /// More of something than its limit.
    TooMany { what: &'static str, limit: usize },
    /// A name or a cursor is not valid.
    Invalid(String),
    /// The owner was declared gone.
    OwnerReleased(Owner),
}
