//! The life of a node itself: a second live node of its name, and a new life without a new process.

use super::network::{TIMEOUT, event, key, members, start as start_quic, until as holds};
use super::{name as address, start, until};
use crate::core::{
    ClusterEvent, DownReason, MembershipError, MembershipRuntimeConfig, NodeName, NodeStatus,
};
use crate::driver::{
    ClusterNode, ClusterWatch, MemoryNetwork, NodeOptions, OwnLife, OwnLifeWatch, Security,
    Transport,
};
use std::time::Duration;
use std::vec::Vec;

fn web() -> NodeName {
    NodeName::new("web").expect("a name")
}

async fn named_web(security: &Security, seed: &ClusterNode) -> ClusterNode {
    let seed = seed.authority().clone();
    start_quic(security, |options| {
        options.name = Some(web());
        options.seeds = Vec::from([seed]);
    })
    .await
}

/// A node that other nodes know as `web`, and one of them.
async fn with_web(security: &Security) -> (ClusterNode, ClusterWatch, ClusterNode) {
    let first = start_quic(security, |_| {}).await;
    let mut watch = first.subscribe();
    let node = named_web(security, &first).await;
    node.until_up().await.expect("nobody has the name");
    members(&mut watch, 2).await;
    (first, watch, node)
}

#[tokio::test]
async fn a_second_live_node_of_one_name_is_refused_by_name_until_the_first_is_gone() {
    let security = key();
    let (first, mut watch, holder) = with_web(&security).await;
    let second = named_web(&security, &first).await;
    let refused = tokio::time::timeout(TIMEOUT, second.until_up()).await;
    let expected = MembershipError::NameTaken {
        name: web(),
        holder: holder.identity(),
    };
    assert_eq!(refused.expect("in time"), Err(expected.clone()));
    let text = std::format!(
        "the name web is taken by the node at {}, which is alive",
        holder.authority()
    );
    assert_eq!(std::format!("{expected}"), text);
    assert_eq!(second.status(), Some(NodeStatus::Joining));
    assert_eq!(first.members().members.len(), 2);

    holder.leave().await.expect("a member");
    holds(|| second.status() == Some(NodeStatus::Up)).await;
    second.until_up().await.expect("the name is free");
    members(&mut watch, 2).await;
    second.shutdown().await;
    first.shutdown().await;
}

#[tokio::test]
async fn a_node_that_is_killed_and_started_again_at_another_port_is_let_in() {
    let security = key();
    let (first, mut watch, crashed) = with_web(&security).await;
    let former = crashed.identity();
    crashed.shutdown().await;
    let again = named_web(&security, &first).await;
    assert_ne!(again.authority(), &former.authority);
    let up = tokio::time::timeout(TIMEOUT, again.until_up()).await;
    assert_eq!(up.expect("in time"), Ok(()));
    // Its former life is declared dead as any other.
    event(&mut watch, |event| match event {
        ClusterEvent::MemberStatusChanged { node_id, to, .. } => {
            (*node_id == former.uid && to.is_terminal()).then_some(())
        }
        _ => None,
    })
    .await;
    again.shutdown().await;
    first.shutdown().await;
}

async fn next(life: &mut OwnLifeWatch) -> OwnLife {
    let changed = tokio::time::timeout(TIMEOUT, life.changed()).await;
    changed.expect("in time").expect("the node runs")
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_declared_dead_takes_a_new_life_and_its_program_learns_both() {
    let network = MemoryNetwork::new();
    let first = start(&network, 1, &[]).await;
    let mut watch = first.subscribe();
    let second = start(&network, 2, &[1]).await;
    let third = start(&network, 3, &[1]).await;
    let mut life = third.own_life();
    assert_eq!(life.current(), OwnLife::Joining);
    until(&mut watch, &[1, 2, 3]).await;
    let old = third.name_and_life();
    assert_eq!(next(&mut life).await, OwnLife::Up(old.clone()));

    for other in [1, 2] {
        network.cut(&address(other), &address(3));
    }
    until(&mut watch, &[1, 2]).await;
    network.heal();
    until(&mut watch, &[1, 2, 3]).await;
    let new = third.name_and_life();
    assert_ne!(old, new);
    let mut seen = life.current();
    while seen != OwnLife::Up(new.clone()) {
        assert_ne!(seen, OwnLife::Ended);
        seen = next(&mut life).await;
    }

    third.leave().await.expect("a member");
    assert_eq!(next(&mut life).await, OwnLife::Ended);
    assert_eq!(life.changed().await, None);
    second.shutdown().await;
    first.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_loses_its_name_ends_its_life_and_says_why() {
    let network = MemoryNetwork::new();
    let named = async |number: u16, seed: u16| {
        let options = NodeOptions::new(MembershipRuntimeConfig::local())
            .name(web())
            .advertise(address(number))
            .seeds([address(seed)]);
        let started = ClusterNode::start(options, Transport::memory(&network)).await;
        started.expect("nothing is in the way")
    };
    let first = start(&network, 1, &[]).await;
    let second = start(&network, 2, &[1]).await;
    let mut watch = first.subscribe();
    until(&mut watch, &[1, 2]).await;
    // Neither can be probed by the side of the other.
    for (one, other) in [(1, 4), (2, 3), (3, 4)] {
        network.cut(&address(one), &address(other));
    }
    let earlier = named(3, 1).await;
    earlier.until_up().await.expect("the name is free");
    tokio::time::sleep(Duration::from_millis(5)).await;
    let later = named(4, 2).await;
    later
        .until_up()
        .await
        .expect("the other one cannot be reached");
    let mut events = later.subscribe();
    let mut life = later.own_life();
    let ended = later.name_and_life();
    assert_eq!(life.current(), OwnLife::Up(ended));
    network.heal();
    let reason = event(&mut events, |event| match event {
        ClusterEvent::SelfDowned { reason, .. } => Some(*reason),
        _ => None,
    });
    assert_eq!(reason.await, DownReason::NameTaken);
    holds(|| later.shared().with(|runtime| runtime.refusal()).is_some()).await;
    assert_eq!(life.current(), OwnLife::Joining);
    assert_eq!(earlier.status(), Some(NodeStatus::Up));
    for node in [first, second, earlier, later] {
        node.shutdown().await;
    }
}
