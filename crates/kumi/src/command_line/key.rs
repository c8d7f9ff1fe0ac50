//! `kumi key`: makes the key of a cluster, and shows what is derived from it.

use crate::command_line::exit::Failure;
use crate::command_line::print;
use crate::command_line::state::local_node;
use anyhow::Context;
use clap::{Args, Subcommand};
use kumi_node::driver::client::local::LocalNode;
use kumi_node::trust::Trust;
use kumi_unison::ClusterKey;
use std::path::PathBuf;

/// The command.
#[derive(Args, Clone, Debug)]
pub(crate) struct KeyOptions {
    #[command(subcommand)]
    task: KeyTask,
}

#[derive(Clone, Debug, Subcommand)]
enum KeyTask {
    /// Make a key file, readable by its owner alone
    ///
    /// 32 random bytes as hexadecimal digits. Every node of the cluster needs a copy. An existing file is never overwritten.
    New {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Print the operator's key, by which a person asks nodes to drain, stop or use another store
    ///
    /// It is derived from the cluster's key, and does not give that away.
    Operator(KeyPlace),
    /// Print the token for /metrics on addresses that are not on loopback
    Metrics(KeyPlace),
    /// Print the id of the cluster, which is no secret
    Id(KeyPlace),
}

/// Where the key is.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct KeyPlace {
    /// The file with the cluster's key [default: that of the node of this machine]
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// The state directory of a node [default: that of the node of this machine]
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
}

/// Does what was asked.
pub(crate) fn run(options: &KeyOptions) -> Result<(), Failure> {
    let text = match &options.task {
        KeyTask::New { file } => {
            ClusterKey::create_file(file).map_err(Failure::other)?;
            return Ok(());
        }
        KeyTask::Operator(place) => trust(place)?.0.operator_key().expose().to_owned(),
        KeyTask::Metrics(place) => trust(place)?.0.metrics_token().expose().to_owned(),
        KeyTask::Id(place) => trust(place)?.0.cluster_id().to_string(),
    };
    print(format!("{text}\n").as_bytes())
}

/// What the key gives, and the node whose it is. A key file that is named needs no node.
pub(crate) fn trust(place: &KeyPlace) -> Result<(Trust, Option<LocalNode>), Failure> {
    let node = match (&place.key_file, &place.state_dir) {
        (Some(_), None) => local_node(None).ok(),
        (_, directory) => Some(local_node(directory.as_deref())?),
    };
    let file = match (&place.key_file, &node) {
        (Some(file), _) => file.clone(),
        (None, Some(node)) => node.key_file(),
        (None, None) => PathBuf::from("cluster.key"),
    };
    let key = ClusterKey::from_file(&file);
    let key = key.with_context(|| format!("the key file {}", file.display()));
    let key = key.map_err(|error| {
        Failure::other(error.context("name the file with the cluster's key with --key-file FILE"))
    })?;
    let trust = Trust::from_key(&key).map_err(Failure::other)?;
    Ok((trust, node))
}
