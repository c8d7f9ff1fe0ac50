//! Key files: made, read, and turned into trust.
//!
//! A key file is a secret. One that others may read is refused, as ssh does with its keys: whoever copies it is a
//! member.

use super::failure::Failure;
use super::options::TrustOptions;
use kumi_cluster::{DriverError, Security};
use kumi_unison::ClusterKey;
use rustix::process::geteuid;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Hexadecimal digits of a key.
const DIGITS: usize = 64;

/// More than a key file ever holds; the rest of a wrong one is not read.
const READ_LIMIT: u64 = 4096;

/// Makes a key file, never over an existing one.
pub(super) fn generate(path: &Path) -> Result<(), Failure> {
    let secret = ClusterKey::random_secret().map_err(DriverError::from)?;
    let mut text: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    text.push('\n');
    let opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    let written = opened.and_then(|mut file| {
        let written = file
            .write_all(text.as_bytes())
            .and_then(|()| file.sync_all());
        // Half a key would stand in the way of the next attempt.
        written.inspect_err(|_| drop(std::fs::remove_file(path)))
    });
    written.map_err(|error| {
        let file = path.display();
        Failure::Key(match error.kind() {
            ErrorKind::AlreadyExists => {
                format!("{file} exists already; a key is never overwritten")
            }
            _ => format!("cannot write {file}: {error}"),
        })
    })
}

/// What the options and the environment say about trust.
pub(super) fn security(options: &TrustOptions) -> Result<Security, Failure> {
    if let (Some(cert), Some(key), Some(ca)) =
        (&options.tls_cert, &options.tls_key, &options.tls_ca)
    {
        // One that cannot be looked at cannot be read either, and that is told in better words below.
        if let Ok(metadata) = std::fs::metadata(key) {
            check_private(key, &metadata)?;
        }
        return Security::mutual(cert, key, ca)
            .map_err(|error| Failure::Start(DriverError::Tls(error)));
    }
    let named = options.key_file.clone();
    let path = named.or_else(|| {
        let set = std::env::var_os("KUMI_CLUSTER_KEY_FILE").map(PathBuf::from);
        set.filter(|path| !path.as_os_str().is_empty())
    });
    let Some(path) = path else {
        return Err(Failure::usage(
            "give the cluster's --key-file, or set KUMI_CLUSTER_KEY_FILE; 'kumi cluster keygen FILE' makes one",
        ));
    };
    let secret = read(&path)?;
    let key = ClusterKey::from_secret(&secret).map_err(DriverError::from)?;
    Ok(Security::key(&key).map_err(DriverError::from)?)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let file = path.display();
    let cannot = |error: std::io::Error| Failure::Key(format!("cannot read {file}: {error}"));
    let opened = File::open(path).map_err(cannot)?;
    let metadata = opened.metadata().map_err(cannot)?;
    if !metadata.is_file() {
        return Err(Failure::Key(format!("{file} is not a file")));
    }
    check_private(path, &metadata)?;
    let mut text = String::new();
    let read = opened.take(READ_LIMIT).read_to_string(&mut text);
    read.map_err(cannot)?;
    secret(text.trim()).ok_or_else(|| {
        Failure::Key(format!(
            "{file} is not a key file: expected {DIGITS} hexadecimal digits"
        ))
    })
}

/// Refuses a secret that others may read. Root may give one to a group, which is how services are handed theirs.
fn check_private(path: &Path, metadata: &Metadata) -> Result<(), Failure> {
    let given = metadata.uid() == 0 && !geteuid().is_root();
    let forbidden = if given { 0o037 } else { 0o077 };
    let mode = metadata.mode() & 0o777;
    if mode & forbidden == 0 {
        return Ok(());
    }
    let file = path.display();
    Err(Failure::Key(format!(
        "{file} may be read by others (mode {mode:o}); make it yours alone: chmod 600 {file}"
    )))
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
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_that_was_made_can_be_read_and_is_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        generate(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let first = read(&path).unwrap();
        assert_eq!(first.len(), 32);
        assert!(matches!(generate(&path), Err(Failure::Key(_))));
        assert_eq!(read(&path).unwrap(), first);
    }

    #[test]
    fn a_key_that_others_may_read_is_refused_with_the_way_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        generate(&path).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let text = read(&path).unwrap_err().to_string();
        assert!(
            text.contains("mode 640") && text.contains("chmod 600"),
            "{text}"
        );
        // The private key of a certificate is no less of a secret.
        let options = TrustOptions {
            tls_cert: Some(path.clone()),
            tls_key: Some(path.clone()),
            tls_ca: Some(path),
            ..TrustOptions::default()
        };
        let text = security(&options).unwrap_err().to_string();
        assert!(text.contains("mode 640"), "{text}");
    }

    #[test]
    fn a_directory_is_no_key_and_nobody_is_told_to_change_its_mode() {
        let directory = tempfile::tempdir().unwrap();
        let text = read(directory.path()).unwrap_err().to_string();
        assert!(text.ends_with("is not a file"), "{text}");
    }

    #[test]
    fn what_is_no_key_is_named_without_being_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        for wrong in ["", "deadbeef", &"é".repeat(32), &"x".repeat(64)] {
            std::fs::write(&path, wrong).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            let text = read(&path).unwrap_err().to_string();
            assert!(text.ends_with("expected 64 hexadecimal digits"), "{text}");
        }
    }
}
