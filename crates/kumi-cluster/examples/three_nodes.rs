//! Three nodes in one process: they find each other over QUIC, one crashes, one leaves.
//!
//! Run it with `cargo run -p kumi-cluster --features driver --example three_nodes`. It ends by itself, within about
//! ten seconds, and fails if the members do not become what they should.

use kumi_cluster::{
    Authority, ClusterEvent, ClusterNode, ClusterWatch, MemberMetadata, MembershipRuntimeConfig,
    NodeOptions, Notice, Security, Transport,
};
use kumi_unison::ClusterKey;
use std::error::Error;
use std::time::Duration;

/// Long before this, everything has happened.
const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // Every holder of the secret is a member. `kumi cluster keygen` puts one into a file.
    let key = ClusterKey::from_secret(&ClusterKey::random_secret()?)?;
    let security = Security::key(&key)?;

    let first = start("first", &[], &security).await?;
    // Events tell what changes, `members` what is true now. Dropping the watch ends it.
    let mut watch = first.subscribe();
    let seeds = [first.authority().clone()];
    let second = start("second", &seeds, &security).await?;
    let third = start("third", &seeds, &security).await?;

    until_members(&mut watch, 3).await?;
    for member in first.members().members.iter() {
        println!(
            "  {} is {} ({})",
            member.authority,
            member.status,
            member.metadata.roles().join(" ")
        );
    }

    println!("the third crashes");
    let crashed = third.authority().clone();
    third.shutdown().await;
    let dead = until_members(&mut watch, 2).await?;
    assert!(
        dead.contains(&crashed),
        "a node that crashed is declared dead"
    );

    println!("the second leaves");
    second.leave().await?;
    let dead = until_members(&mut watch, 1).await?;
    assert!(dead.is_empty(), "a node that leaves is not declared dead");

    assert_eq!(first.members().members.len(), 1);
    first.shutdown().await;
    Ok(())
}

/// A node on a free port of the loopback address. The preset is for processes of one machine: quick to notice.
async fn start(
    role: &str,
    seeds: &[Authority],
    security: &Security,
) -> Result<ClusterNode, Box<dyn Error>> {
    let options = NodeOptions::new(MembershipRuntimeConfig::local())
        .seeds(seeds.iter().cloned())
        .metadata(MemberMetadata::build("1.0.0", &[role], &[])?);
    let node = ClusterNode::start(options, Transport::quic(security.clone())).await?;
    println!("the {role} node is {}", node.authority());
    Ok(node)
}

/// Waits for a topology of this many members; returns the lives that were declared dead meanwhile.
async fn until_members(
    watch: &mut ClusterWatch,
    count: usize,
) -> Result<Vec<Authority>, Box<dyn Error>> {
    let mut given_up = Vec::new();
    loop {
        let notice = tokio::time::timeout(TIMEOUT, watch.next()).await?;
        let Some(notice) = notice else {
            return Err("the node stopped".into());
        };
        let Notice::Event(ClusterEvent::TopologyUpdated { members, dead, .. }) = notice else {
            continue;
        };
        given_up.extend(dead.iter().map(|identity| identity.authority.clone()));
        let authorities: Vec<&str> = members
            .iter()
            .map(|member| member.authority.as_str())
            .collect();
        println!("  members: {}", authorities.join(" "));
        if members.len() == count {
            return Ok(given_up);
        }
    }
}
