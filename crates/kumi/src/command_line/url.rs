//! `kumi url`: the URL of the store for programs of the team.

use crate::command_line::exit::Failure;
use crate::command_line::key::{KeyPlace, trust};
use crate::command_line::print;
use anyhow::Context;
use clap::Args;
use kumi_node::driver::{app_url, app_url_at};
use std::fs;
use std::path::PathBuf;

pub(crate) const EXAMPLES: &str = "\
Examples:
  KUMI_URL=$(kumi url) ./my-program
  redis-cli -u \"$(kumi url)\" ping                 where it begins with redis://
  redis-cli -u \"$(kumi url)\" --cacert FILE ping   with rediss://, where FILE is its cacert
  kumi url --key-file kumi.key --store 10.0.0.1:6379 --ca-file kumi-ca.pem";

/// The command.
#[derive(Args, Clone, Debug)]
pub(crate) struct UrlOptions {
    #[command(flatten)]
    place: KeyPlace,
    /// The address of the store, instead of the one that a node of this machine uses
    #[arg(long, value_name = "HOST:PORT")]
    store: Option<String>,
    /// Write the authorities that clients have to trust to this file; needed for an address that is not on loopback
    #[arg(long, value_name = "FILE", requires = "store")]
    ca_file: Option<PathBuf>,
}

/// Prints the URL.
pub(crate) fn run(options: &UrlOptions) -> Result<(), Failure> {
    let (trust, node) = trust(&options.place)?;
    let url = match (&options.store, node) {
        (Some(address), _) => {
            if let Some(file) = &options.ca_file {
                let written = fs::write(file, trust.authorities_pem());
                let written = written.with_context(|| format!("writing {}", file.display()));
                written.map_err(Failure::other)?;
            }
            let file = options.ca_file.as_deref().map(std::path::absolute);
            let file = file.transpose().map_err(Failure::other)?;
            app_url_at(address, &trust, file.as_deref()).ok_or_else(|| {
                Failure::usage(format!(
                    "{address} is not on loopback, so clients have to verify its certificate: name a file for the authorities with --ca-file FILE"
                ))
            })?
        }
        (None, Some(node)) if node.record().uses_outside_store() => {
            return Err(Failure::usage(format!(
                "the store of node {} is outside of the cluster and has users of its own: use the URL that --store or kumi.kdl gave the node",
                node.name()
            )));
        }
        (None, Some(node)) => app_url(node.record(), node.state(), &trust).ok_or_else(|| {
            Failure::usage(format!(
                "node {} knows no store yet: 'kumi status' says why, or name the store with --store HOST:PORT",
                node.name()
            ))
        })?,
        (None, None) => {
            return Err(Failure::usage(
                "name the address of the store with --store HOST:PORT",
            ));
        }
    };
    print(format!("{url}\n").as_bytes())
}
