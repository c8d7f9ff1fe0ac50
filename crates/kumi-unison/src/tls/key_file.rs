//! Secrets in files: read, unless others may read them too.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use super::TlsError;

/// Hexadecimal digits of a cluster's secret.
const DIGITS: usize = 64;

/// More than a key file ever holds; the rest of a wrong one is not read.
const READ_LIMIT: u64 = 4096;

/// The secret in a key file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |source: io::Error| TlsError::KeyFile {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        let text = "it is not a file";
        return Err(unreadable(io::Error::new(
            io::ErrorKind::InvalidInput,
            text,
        )));
    }
    check_private(path, &metadata)?;
    let mut text = String::new();
    let read = file.take(READ_LIMIT).read_to_string(&mut text);
    read.map_err(unreadable)?;
    secret(text.trim()).ok_or_else(|| TlsError::KeyFileSyntax {
        path: path.to_owned(),
    })
}

/// Refuses a file with a secret, such as a private key, that others may read; see [`ClusterKey::from_file`].
///
/// # Errors
/// [`TlsError::KeyFilePermissions`], or [`TlsError::KeyFile`] when it cannot be looked at.
///
/// [`ClusterKey::from_file`]: super::ClusterKey::from_file
pub fn check_private_file(path: impl AsRef<Path>) -> Result<(), TlsError> {
    let path = path.as_ref();
    let metadata = std::fs::metadata(path).map_err(|source| TlsError::KeyFile {
        path: path.to_owned(),
        source,
    })?;
    check_private(path, &metadata)
}

#[cfg(unix)]
fn check_private(path: &Path, metadata: &Metadata) -> Result<(), TlsError> {
    use std::os::unix::fs::MetadataExt;
    let is_given = metadata.uid() == 0 && !rustix::process::geteuid().is_root();
    let forbidden = if is_given { 0o037 } else { 0o077 };
    let mode = metadata.mode() & 0o777;
    match mode & forbidden {
        0 => Ok(()),
        _ => Err(TlsError::KeyFilePermissions {
            path: path.to_owned(),
            mode,
        }),
    }
}

/// Where files have no modes, nothing is known about who may read them.
#[cfg(not(unix))]
fn check_private(_: &Path, _: &Metadata) -> Result<(), TlsError> {
    Ok(())
}

fn secret(text: &str) -> Option<Vec<u8>> {
    if text.len() != DIGITS || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let digits = (0..DIGITS).step_by(2);
    digits
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_file_is_read_unless_others_may_read_it_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        fs::write(&path, "0f".repeat(32) + "\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read(&path).unwrap(), [0x0f; 32]);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let text = read(&path).unwrap_err().to_string();
        assert!(
            text.contains("mode 644") && text.contains("chmod 600"),
            "{text}"
        );
    }

    #[test]
    fn what_is_no_key_is_named_without_being_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        for wrong in ["", "deadbeef", &"é".repeat(32), &"x".repeat(64)] {
            fs::write(&path, wrong).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            let text = read(&path).unwrap_err().to_string();
            assert!(text.ends_with("expected 64 hexadecimal digits"), "{text}");
        }
        assert!(read(directory.path()).is_err(), "a directory is no key");
        assert!(read(&directory.path().join("none")).is_err());
    }
}
