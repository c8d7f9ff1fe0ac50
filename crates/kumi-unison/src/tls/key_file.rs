//! Secrets in files: made once, and read unless others may read them too.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use super::TlsError;

/// Hexadecimal digits of a cluster's secret.
const DIGITS: usize = 64;

/// More than a key file ever holds; the rest of a wrong one is not read.
const READ_LIMIT: u64 = 4096;

/// The secret in a key file, and the second one if it has two.
pub(super) fn read(path: &Path) -> Result<(Vec<u8>, Option<Vec<u8>>), TlsError> {
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
    secrets(&text).ok_or_else(|| TlsError::KeyFileSyntax {
        path: path.to_owned(),
    })
}

/// Makes a key file that only its owner may read. Fails where a file is already.
pub(super) fn create(path: &Path, secret: &[u8]) -> Result<(), TlsError> {
    let mut text: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    text.push('\n');
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| {
        let written = file
            .write_all(text.as_bytes())
            .and_then(|()| file.sync_all());
        // Half a key would stand in the way of the next attempt.
        written.inspect_err(|_| drop(std::fs::remove_file(path)))
    });
    let path = path.to_owned();
    written.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => TlsError::KeyFileExists { path },
        _ => TlsError::KeyFileWrite { path, source },
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

/// One secret or two, each on a line of its own.
fn secrets(text: &str) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let mut lines = text.trim().lines().map(|line| secret(line.trim()));
    let first = lines.next()??;
    let second = match lines.next() {
        Some(second) => Some(second?),
        None => None,
    };
    lines.next().is_none().then_some((first, second))
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
        assert_eq!(read(&path).unwrap(), (vec![0x0f; 32], None));
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let text = read(&path).unwrap_err().to_string();
        assert!(
            text.contains("mode 644") && text.contains("chmod 600"),
            "{text}"
        );
    }

    #[test]
    fn a_key_file_has_one_key_or_two() {
        let (one, two) = ("0f".repeat(32), "A5".repeat(32));
        let both = Some((vec![0x0f; 32], Some(vec![0xa5; 32])));
        assert_eq!(secrets(&format!("{one}\n")), Some((vec![0x0f; 32], None)));
        assert_eq!(secrets(&format!("{one}\n{two}\n")), both);
        assert_eq!(secrets(&format!("{one}\r\n{two}")), both);
        for wrong in [
            format!("{one}{two}"),
            format!("{one}\n\n{two}"),
            format!("{one} {two}"),
            format!("{one}\n{two}\n{one}"),
            format!("{one}\n# old"),
        ] {
            assert_eq!(secrets(&wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_key_that_was_made_is_private_and_is_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        create(&path, &[0x0f; 32]).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let error = create(&path, &[0xa5; 32]).unwrap_err();
        assert!(matches!(error, TlsError::KeyFileExists { .. }), "{error}");
        assert_eq!(read(&path).unwrap(), (vec![0x0f; 32], None));
        let error = create(&directory.path().join("none/key"), &[0; 32]).unwrap_err();
        assert!(matches!(error, TlsError::KeyFileWrite { .. }), "{error}");
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
