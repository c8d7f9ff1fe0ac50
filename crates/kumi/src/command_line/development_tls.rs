//! The certificate of `kumi up --tls`: an authority of this node's own and a certificate that it signed, made at the
//! first start and kept for the next ones, so that clients can go on trusting the authority.
//!
//! For development: the authority's key lies beside the certificate, and nothing renews either.

use crate::command_line::exit::Failure;
use anyhow::Context;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The files of a node's TLS directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    /// The authority that clients trust.
    pub(crate) authority: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Files {
    fn within(directory: &Path) -> Self {
        Self {
            authority: directory.join("ca.pem"),
            certificate: directory.join("server.pem"),
            key: directory.join("server.key"),
        }
    }
}

/// The files of a directory; made if they are not there yet.
pub(crate) fn files(directory: &Path, names: &[String]) -> Result<Files, Failure> {
    let files = Files::within(directory);
    let all = [&files.authority, &files.certificate, &files.key];
    if !all.iter().all(|path| path.exists()) {
        make(directory, &files, names)
            .with_context(|| format!("cannot make a certificate in {}", directory.display()))
            .map_err(Failure::Other)?;
    }
    Ok(files)
}

fn make(directory: &Path, files: &Files, names: &[String]) -> anyhow::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let authority_key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
        .distinguished_name
        .push(DnType::CommonName, "kumi development authority");
    let authority = params.self_signed(&authority_key)?;
    let issuer = Issuer::new(params, authority_key);

    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names)?;
    params
        .distinguished_name
        .push(DnType::CommonName, "kumi development node");
    let certificate = params.signed_by(&key, &issuer)?;
    // The authority comes last: with it the directory is complete.
    write(&files.key, &key.serialize_pem())?;
    write(&files.certificate, &certificate.pem())?;
    write(&files.authority, &authority.pem())
}

/// Writes a file that only the user may read.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file.sync_all()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_are_made_once_and_are_private() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("a").join("tls");
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = files(&directory, &names).unwrap();
        let texts = |files: &Files| {
            [&files.authority, &files.certificate, &files.key]
                .map(|path| fs::read_to_string(path).unwrap())
        };
        let before = texts(&made);
        assert!(before[0].contains("BEGIN CERTIFICATE") && before[2].contains("PRIVATE KEY"));
        let mode = fs::metadata(&made.key).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(texts(&files(&directory, &names).unwrap()), before);
        fs::remove_file(&made.certificate).unwrap();
        assert_ne!(texts(&files(&directory, &names).unwrap()), before);
    }

    #[test]
    fn what_is_no_directory_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(files(file.path(), &["localhost".to_owned()]).is_err());
    }
}
