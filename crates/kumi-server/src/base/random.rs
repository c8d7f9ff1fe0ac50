//! Randomness from the operating system: seeds, ids and names that nobody can guess.

use kumi_store::Seeds;
use std::io;

/// Fills a buffer with bytes that cannot be guessed.
///
/// # Errors
/// The operating system has none. That does not happen on a system that has started.
pub(crate) fn fill(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(|error| match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::other(error.to_string()),
    })
}

/// A number that cannot be guessed, see [`fill`].
pub(crate) fn number() -> io::Result<u64> {
    let mut bytes = [0; 8];
    fill(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// The random values of an engine, see [`fill`].
pub(crate) fn seeds() -> io::Result<Seeds> {
    let mut bytes = [0; Seeds::BYTES];
    fill(&mut bytes)?;
    Ok(Seeds::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_draw_is_another_one() {
        assert_ne!(seeds().unwrap(), seeds().unwrap());
        assert_ne!(number().unwrap(), number().unwrap());
    }
}
