//! Texts of errors for clients.

use std::io;

/// What the system said, without the number that Rust adds.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((text, _)) => text.to_owned(),
        None => text,
    }
}
