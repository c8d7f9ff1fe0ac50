//! Key files: made, and turned into trust. What a key file has to be like is in [`ClusterKey::from_file`].

use super::failure::Failure;
use super::options::TrustOptions;
use crate::command_line::exit::chain;
use kumi_cluster::Security;
use kumi_unison::tls::check_private_file;
use kumi_unison::{ClusterKey, TlsError};
use std::path::{Path, PathBuf};

/// Makes a key file, never over an existing one.
pub(super) fn generate(path: &Path) -> Result<(), Failure> {
    ClusterKey::create_file(path).map_err(unusable)?;
    Ok(())
}

/// What the options and the environment say about trust.
pub(super) fn security(options: &TrustOptions) -> Result<Security, Failure> {
    if let (Some(cert), Some(key), Some(ca)) =
        (&options.tls_cert, &options.tls_key, &options.tls_ca)
    {
        check_private_file(key).map_err(unusable)?;
        return Security::mutual(cert, key, ca).map_err(unusable);
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
    let key = ClusterKey::from_file(&path).map_err(unusable)?;
    Security::key(&key).map_err(unusable)
}

/// A file that cannot be used, with the reason.
fn unusable(error: TlsError) -> Failure {
    Failure::Key(chain(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn a_key_that_was_made_can_be_read_and_is_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        generate(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let first = std::fs::read_to_string(&path).unwrap();
        assert_eq!(first.trim().len(), 64);
        ClusterKey::from_file(&path).unwrap();
        assert!(matches!(generate(&path), Err(Failure::Key(_))));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), first);
    }

    #[test]
    fn a_key_that_others_may_read_is_refused_with_the_way_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        generate(&path).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        // The private key of a certificate is no less of a secret.
        let shared = TrustOptions {
            key_file: Some(path.clone()),
            ..TrustOptions::default()
        };
        let mutual = TrustOptions {
            tls_cert: Some(path.clone()),
            tls_key: Some(path.clone()),
            tls_ca: Some(path),
            ..TrustOptions::default()
        };
        for options in [shared, mutual] {
            let text = security(&options).unwrap_err().to_string();
            assert!(
                text.contains("mode 640") && text.contains("chmod 600"),
                "{text}"
            );
        }
    }
}
