//! `--cacert`, `--cert` and `--key` of commands that connect to a Redis.

use clap::Args;
use std::path::{Path, PathBuf};

/// Certificates for a rediss:// server: those to trust, and the one to show. The names are those of redis-cli.
#[derive(Debug, Default, Args)]
pub(crate) struct TlsOptions {
    /// Trust a rediss:// server by these certificates (PEM) instead of the system's
    #[arg(long, value_name = "FILE", global = true)]
    cacert: Option<PathBuf>,
    /// Show a rediss:// server that asks this certificate (PEM)
    #[arg(long, value_name = "FILE", global = true, requires = "key")]
    cert: Option<PathBuf>,
    /// The private key (PEM) of --cert
    #[arg(long, value_name = "FILE", global = true, requires = "cert")]
    key: Option<PathBuf>,
}

/// What the files hold.
#[derive(Default)]
pub(crate) struct Certificates {
    /// The certificates to trust.
    pub(crate) roots: Option<Vec<u8>>,
    /// Our certificate and its key.
    pub(crate) identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl TlsOptions {
    /// Reads the files. An error is a message for the user.
    pub(crate) fn read(&self) -> Result<Certificates, String> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
        };
        let identity = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Some((read(cert)?, read(key)?)),
            _ => None,
        };
        Ok(Certificates {
            roots: self.cacert.as_deref().map(read).transpose()?,
            identity,
        })
    }
}
