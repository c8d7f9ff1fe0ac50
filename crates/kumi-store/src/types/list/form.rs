//! The form of a list that is kept as the bytes of one packed node: its encoding and the limit of its nodes in three bits.
//!
//! ```text
//!  0        listpack
//!  1 to 5   quicklist, `list-max-listpack-size` -1 to -5 when it was created
//!  6, 7     quicklist, the same 0 or 1
//! ```
//!
//! A quicklist with another number of elements to a node has no form and is kept in a box. Few are affected: it has one
//! node only between the whole limit and half of it.

use super::{DEFAULT_FILL, ListEncoding};

/// The form of an encoding and a limit, if there is one.
pub(super) fn of(encoding: ListEncoding, fill: i32) -> Option<u8> {
    match (encoding, fill) {
        (ListEncoding::Listpack, _) => Some(0),
        (ListEncoding::Quicklist, -1) => Some(1),
        (ListEncoding::Quicklist, -2) => Some(2),
        (ListEncoding::Quicklist, -3) => Some(3),
        (ListEncoding::Quicklist, -4) => Some(4),
        // Lower ones are the same limit.
        (ListEncoding::Quicklist, ..=-5) => Some(5),
        (ListEncoding::Quicklist, 0) => Some(6),
        (ListEncoding::Quicklist, 1) => Some(7),
        (ListEncoding::Quicklist, 2..) => None,
    }
}

/// The encoding and the limit of a form.
#[inline]
pub(super) fn read(form: u8) -> (ListEncoding, i32) {
    match form {
        0 => (ListEncoding::Listpack, DEFAULT_FILL),
        1..=5 => (ListEncoding::Quicklist, -i32::from(form)),
        6 => (ListEncoding::Quicklist, 0),
        _ => (ListEncoding::Quicklist, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_as_what_it_was_made_of() {
        for form in 0..8 {
            let (encoding, fill) = read(form);
            assert_eq!(of(encoding, fill), Some(form));
        }
        assert_eq!(of(ListEncoding::Quicklist, -9), Some(5));
        for fill in [2, 128, i32::MAX] {
            assert_eq!(of(ListEncoding::Quicklist, fill), None);
            assert_eq!(of(ListEncoding::Listpack, fill), Some(0));
        }
    }
}
