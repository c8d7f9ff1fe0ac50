//! Which node is asked first, and with which key: the node of this machine by its record, or the one at an address.

use super::failure::Failure;
use super::options::EntryOptions;
use crate::command_line::exit::chain;
use crate::command_line::terminal;
use kumi_node::driver::client::local::LocalNode;
use kumi_node::driver::client::{Access, ClusterClient};
use kumi_node::driver::state_dir::StateError;
use kumi_unison::ClusterKey;
use kumi_unison::tls::check_private_file;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What is said where nothing runs.
const NOTHING_RUNS: &str = "no node runs on this machine: start one with 'kumi up', \
                            or ask one elsewhere with --at HOST --key-file FILE";

/// More than a file with the operator's key holds.
const KEY_LIMIT: u64 = 4_096;

/// A cluster, by the node that is asked first.
pub(super) struct Entry {
    pub(super) client: ClusterClient,
    /// The node, if it is found by its record on this machine.
    pub(super) local: Option<LocalNode>,
}

/// Connects to the node that the options name, or to the one that runs here.
pub(super) async fn connect(options: &EntryOptions) -> Result<Entry, Failure> {
    let (address, local) = match &options.at {
        Some(address) => (address.clone(), None),
        None => {
            let local = local(options)?;
            let address = local.address().ok_or_else(|| {
                let name = terminal::shown(local.name());
                Failure::NothingRuns(format!("node {name} is still starting: ask it again"))
            })?;
            (address, Some(local))
        }
    };
    let access = access(options, local.as_ref())?;
    let client = ClusterClient::connect(&address, access).await?;
    Ok(Entry { client, local })
}

/// The node that runs on this machine.
fn local(options: &EntryOptions) -> Result<LocalNode, Failure> {
    if let Some(directory) = &options.state_dir {
        let node = LocalNode::at(directory).map_err(unusable)?;
        return node.filter(LocalNode::is_running).ok_or_else(|| {
            Failure::NothingRuns(format!("no node runs in {}", directory.display()))
        });
    }
    let running = LocalNode::running().map_err(unusable)?;
    let named = |node: &&LocalNode| match &options.local {
        Some(name) => node.name() == name || node.instance() == *name,
        None => true,
    };
    let mut chosen = running.iter().filter(named);
    match (chosen.next(), chosen.next(), &options.local) {
        (Some(only), None, _) => Ok(only.clone()),
        (Some(_), Some(_), _) => Err(Failure::Usage(format!(
            "{} nodes run on this machine: name one with --node NAME, of {}",
            running.len(),
            list(&running)
        ))),
        (None, _, Some(name)) if !running.is_empty() => Err(Failure::NothingRuns(format!(
            "no node called {} runs on this machine: there is {}",
            terminal::shown(name),
            list(&running)
        ))),
        (None, ..) => Err(Failure::NothingRuns(NOTHING_RUNS.into())),
    }
}

/// Nodes by name and instance.
fn list(nodes: &[LocalNode]) -> String {
    let shown = nodes.iter().map(|node| {
        let (name, instance) = (terminal::shown(node.name()), node.instance());
        format!("{name} (instance {})", terminal::shown(&instance))
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn access(options: &EntryOptions, local: Option<&LocalNode>) -> Result<Access, Failure> {
    if let Some(file) = &options.operator_key_file {
        return of_operator(file);
    }
    let from_environment = || {
        let set = std::env::var_os("KUMI_CLUSTER_KEY_FILE").map(PathBuf::from);
        set.filter(|path| !path.as_os_str().is_empty())
    };
    let named = options.key_file.clone();
    let file = match local {
        Some(node) => Some(named.unwrap_or_else(|| node.key_file())),
        None => named.or_else(from_environment),
    };
    let Some(file) = file else {
        return Err(Failure::Usage(
            "give the cluster's --key-file, which is a copy of that of its nodes, or an --operator-key-file"
                .into(),
        ));
    };
    if options.key_file.is_none() && local.is_some() && !file.exists() {
        return Err(Failure::Key(format!(
            "{} does not exist: name the cluster's key with --key-file FILE",
            file.display()
        )));
    }
    of_key(&file)
}

fn of_key(file: &Path) -> Result<Access, Failure> {
    let key = ClusterKey::from_file(file).map_err(|error| Failure::Key(chain(&error)))?;
    Access::key(&key).map_err(|error| Failure::Key(chain(&error)))
}

fn of_operator(file: &Path) -> Result<Access, Failure> {
    check_private_file(file).map_err(|error| Failure::Key(chain(&error)))?;
    let mut key = String::new();
    let read = File::open(file).and_then(|file| file.take(KEY_LIMIT).read_to_string(&mut key));
    read.map_err(|error| Failure::Key(format!("cannot read {}: {error}", file.display())))?;
    Access::operator(&key).map_err(|_| {
        let text = "holds no operator's key, which is one line of 43 characters";
        Failure::Key(format!("{} {text}", file.display()))
    })
}

fn unusable(error: StateError) -> Failure {
    Failure::Other(error.into())
}
