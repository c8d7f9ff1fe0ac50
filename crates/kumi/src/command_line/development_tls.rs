//! The certificate of `kumi up --tls`: an authority of this node's own and a certificate that it signed, made at the
//! first start and kept for the next ones, so that clients can go on trusting the authority. A start with addresses that
//! the certificate does not name signs another one.
//!
//! For development: the authority's key is kept beside the certificate, and nothing renews either.

use crate::command_line::exit::Failure;
use anyhow::Context;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The files of a node's TLS directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    /// The authority that clients trust.
    pub(crate) authority: PathBuf,
    authority_key: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// The names in the certificate, one per line.
    names: PathBuf,
}

impl Files {
    fn within(directory: &Path) -> Self {
        Self {
            authority: directory.join("ca.pem"),
            authority_key: directory.join("ca.key"),
            certificate: directory.join("server.pem"),
            key: directory.join("server.key"),
            names: directory.join("server.names"),
        }
    }

    fn are_complete(&self) -> bool {
        let needed = [&self.authority, &self.certificate, &self.key];
        needed.iter().all(|path| path.exists())
    }

    /// The names in the certificate; none for files that somebody else has put there.
    fn signed_names(&self) -> Option<Vec<String>> {
        let names = fs::read_to_string(&self.names).ok()?;
        Some(names.lines().map(str::to_owned).collect())
    }
}

/// The files of a directory; made if they are not there yet, or if the certificate does not have all these names.
pub(crate) fn files(directory: &Path, names: &[String]) -> Result<Files, Failure> {
    let files = Files::within(directory);
    let signed = files.signed_names();
    let lacks = |signed: &Vec<String>| !names.iter().all(|name| signed.contains(name));
    if !files.are_complete() || signed.as_ref().is_some_and(lacks) {
        let mut all = signed.unwrap_or_default();
        all.extend_from_slice(names);
        all.sort();
        all.dedup();
        make(directory, &files, &all)
            .with_context(|| format!("cannot make a certificate in {}", directory.display()))
            .map_err(Failure::Other)?;
    }
    Ok(files)
}

/// Makes a certificate, and an authority that signs it unless there is one. A start that is killed meanwhile leaves a
/// directory without a certificate or without an authority, which the next start completes.
fn make(directory: &Path, files: &Files, names: &[String]) -> anyhow::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    if files.authority.exists() && files.authority_key.exists() {
        let key = KeyPair::from_pem(&fs::read_to_string(&files.authority_key)?)
            .with_context(|| format!("cannot read {}", files.authority_key.display()))?;
        return sign(files, &Issuer::new(authority_params()?, key), names);
    }
    let key = KeyPair::generate()?;
    let params = authority_params()?;
    let authority = params.self_signed(&key)?;
    // An authority that another key made would look complete beside the new key.
    remove(&files.authority)?;
    write(&files.authority_key, &key.serialize_pem())?;
    sign(files, &Issuer::new(params, key), names)?;
    write(&files.authority, &authority.pem())
}

fn authority_params() -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
        .distinguished_name
        .push(DnType::CommonName, "kumi development authority");
    Ok(params)
}

/// Makes the node's certificate and its key.
fn sign(files: &Files, issuer: &Issuer<'_, KeyPair>, names: &[String]) -> anyhow::Result<()> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names)?;
    params
        .distinguished_name
        .push(DnType::CommonName, "kumi development node");
    let certificate = params.signed_by(&key, issuer)?;
    remove(&files.certificate)?;
    write(&files.key, &key.serialize_pem())?;
    write(&files.certificate, &certificate.pem())?;
    write(&files.names, &names.join("\n"))
}

/// Removes a file if it is there.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
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
    fn a_new_name_is_signed_by_the_same_authority() {
        let parent = tempfile::tempdir().unwrap();
        let name = |name: &str| vec![name.to_owned()];
        let made = files(parent.path(), &name("localhost")).unwrap();
        let texts =
            || [&made.authority, &made.certificate].map(|path| fs::read_to_string(path).unwrap());
        let [authority, certificate] = texts();
        files(parent.path(), &name("192.0.2.7")).unwrap();
        let [same, other] = texts();
        assert_eq!(same, authority);
        assert_ne!(other, certificate);
        assert_eq!(verify(&made, "192.0.2.7"), "ok");
        assert_eq!(verify(&made, "localhost"), "ok", "the old name stays");
        assert_ne!(verify(&made, "192.0.2.8"), "ok");
    }

    #[test]
    fn a_start_that_ends_early_leaves_no_authority_of_another_key() {
        let parent = tempfile::tempdir().unwrap();
        let names = ["localhost".to_owned()];
        // An earlier version kept no key of the authority.
        let made = files(parent.path(), &names).unwrap();
        for path in [
            &made.authority_key,
            &made.certificate,
            &made.key,
            &made.names,
        ] {
            fs::remove_file(path).unwrap();
        }
        // The certificate's key cannot be written.
        fs::create_dir(&made.key).unwrap();
        assert!(files(parent.path(), &names).is_err());
        assert!(made.authority_key.exists() && !made.authority.exists());
        fs::remove_dir(&made.key).unwrap();
        let made = files(parent.path(), &names).unwrap();
        assert_eq!(verify(&made, "localhost"), "ok");
    }

    #[test]
    fn files_of_somebody_else_stay() {
        let parent = tempfile::tempdir().unwrap();
        for name in ["ca.pem", "server.pem", "server.key"] {
            fs::write(parent.path().join(name), "theirs").unwrap();
        }
        let theirs = files(parent.path(), &["localhost".to_owned()]).unwrap();
        assert_eq!(fs::read_to_string(&theirs.certificate).unwrap(), "theirs");
    }

    /// What a client that trusts the authority says of the certificate under a name.
    fn verify(files: &Files, name: &str) -> String {
        use rustls::client::danger::ServerCertVerifier as _;
        use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _};
        let mut roots = rustls::RootCertStore::empty();
        let authority = CertificateDer::from_pem_file(&files.authority).unwrap();
        roots.add(authority).unwrap();
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            rustls::client::WebPkiServerVerifier::builder_with_provider(roots.into(), provider);
        let certificate = CertificateDer::from_pem_file(&files.certificate).unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let verified = verifier.build().unwrap().verify_server_cert(
            &certificate,
            &[],
            &name,
            &[],
            UnixTime::now(),
        );
        verified.map_or_else(|error| error.to_string(), |_| "ok".to_owned())
    }

    #[test]
    fn what_is_no_directory_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(files(file.path(), &["localhost".to_owned()]).is_err());
    }
}
