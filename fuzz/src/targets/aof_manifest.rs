//! Any text as a manifest: it is read or refused, and what was read is the same when it is written and read again.

use kumi_server::Manifest;

/// Runs one input.
pub fn run(text: &[u8]) {
    if let Ok(manifest) = Manifest::parse(text) {
        let again = Manifest::parse(manifest.text().as_bytes());
        assert_eq!(again.as_ref(), Ok(&manifest));
    }
}
