//! `kumi drain`, `undrain`, `stop` and `store use`: what an operator tells nodes to do.

use super::entry::{Entry, connect};
use super::failure::Failure;
use super::options::{EntryOptions, MemberOptions, StopOptions, UseOptions};
use crate::command_line::terminal::{self, shown};
use kumi_node::core::status::{ClusterStatus, StoreProblem};
use kumi_node::driver::client::NodeClient;
use kumi_node::driver::client::local::LocalNode;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a node may take to stop beside the time that its tasks have.
const STOP_WITHIN: Duration = Duration::from_secs(60);

/// How long the process of a node that has left may take to end, and how often it is looked whether it has.
const PROCESS_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub(super) async fn drain(options: &MemberOptions) -> Result<(), Failure> {
    let node = member(&options.entry, &options.node).await?;
    let drained = node.drain().await;
    node.close().await;
    let running = match drained? {
        0 => "none of its tasks runs".into(),
        1 => "1 task runs and is finished".into(),
        running => format!("{running} tasks run and are finished"),
    };
    let name = shown(&options.node);
    Ok(terminal::say(&format!(
        "{name} takes no more tasks; {running}"
    ))?)
}

pub(super) async fn undrain(options: &MemberOptions) -> Result<(), Failure> {
    let node = member(&options.entry, &options.node).await?;
    let done = node.undrain().await;
    node.close().await;
    done?;
    let name = shown(&options.node);
    Ok(terminal::say(&format!("{name} takes tasks again"))?)
}

async fn member(options: &EntryOptions, name: &str) -> Result<NodeClient, Failure> {
    let Entry { client, .. } = connect(options).await?;
    let node = client.member(name).await;
    client.close().await;
    Ok(node?)
}

pub(super) async fn stop(options: &StopOptions) -> Result<(), Failure> {
    let Entry { client, local } = connect(&options.entry).await?;
    let node = match &options.node {
        Some(name) => client.member(name).await,
        None => client.entry().await,
    };
    client.close().await;
    let node = node?;
    let name = node.status().await?.node.name;
    node.stop(options.grace).await?;
    let gone = tokio::time::timeout(options.grace + STOP_WITHIN, node.gone()).await;
    let name_shown = shown(&name);
    if gone.is_err() {
        let text = format!("{name_shown} was told to stop and still runs");
        return Err(Failure::Other(anyhow::anyhow!(text)));
    }
    // The store stops last, with the process. The next command may want its port.
    let here = local.filter(|local| local.name() == name);
    let has_ended = match here {
        Some(local) => ended(&local).await,
        None => true,
    };
    Ok(terminal::say(&match has_ended {
        true => format!("{name_shown} has stopped"),
        false => format!("{name_shown} has left the cluster; its process still runs"),
    })?)
}

/// Waits until the process of a node of this machine has ended. Says whether it has.
async fn ended(local: &LocalNode) -> bool {
    let ended = async {
        while local.has_process() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    tokio::time::timeout(PROCESS_WITHIN, ended).await.is_ok()
}

pub(super) async fn use_store(options: &UseOptions) -> Result<(), Failure> {
    let Entry { mut client, .. } = connect(&options.entry).await?;
    if !options.force {
        let known = stores(&client.status().await?);
        if !known.contains(options.id.as_str()) {
            let known: Vec<String> = known.iter().map(|id| shown(id)).collect();
            let known = match known.is_empty() {
                true => "no store is known".into(),
                false => format!("known: {}", known.join(", ")),
            };
            return Err(Failure::NoStore(format!(
                "no live store has the id {} ({known}); --force decides it all the same",
                options.id
            )));
        }
    }
    let decided = client.use_store(&options.id).await;
    client.close().await;
    let decided = decided?;
    let behind = match decided.behind.is_empty() {
        true => "all members do".into(),
        false => format!("{} will when they hear of it", decided.behind.join(" and ")),
    };
    let pinned = shown(&decided.pinned);
    Ok(terminal::say(&format!(
        "the cluster uses store {pinned}; {behind}"
    ))?)
}

/// The ids of the stores that a status names.
fn stores(status: &ClusterStatus) -> BTreeSet<String> {
    let store = status.store.iter();
    let problems = store.clone().flat_map(|store| &store.problems);
    let of_problems = problems.flat_map(|problem| match problem {
        StoreProblem::Other { pinned, id, .. } => vec![pinned.clone(), id.clone()],
        StoreProblem::TwoPrimaries { id, .. } => vec![id.clone()],
        StoreProblem::PinsDiffer { ours, theirs, .. } => vec![ours.clone(), theirs.clone()],
        _ => Vec::new(),
    });
    let used = store.map(|store| store.id.clone());
    used.chain(of_problems)
        .filter(|id| !id.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumi_node::core::status::StoreStatus;

    #[test]
    fn stores_are_known_by_their_use_and_by_what_is_wrong_with_them() {
        let mut status = ClusterStatus::default();
        assert!(stores(&status).is_empty());
        let problems = vec![
            StoreProblem::Other {
                pinned: "a".into(),
                id: "b".into(),
                node: "n".into(),
            },
            StoreProblem::PinsDiffer {
                ours: "a".into(),
                theirs: "c".into(),
                node: "n".into(),
            },
        ];
        status.store = Some(StoreStatus {
            id: "a".into(),
            problems,
            ..StoreStatus::default()
        });
        let known: Vec<String> = stores(&status).into_iter().collect();
        assert_eq!(known, ["a", "b", "c"]);
    }
}
