//! Nodes in memory, on a clock that jumps to the next deadline when everybody waits: seconds of theirs take
//! milliseconds.

mod certificates;
mod channels;
mod compact;
mod lives;
mod names;
mod network;

use super::{
    AdminEvent, AdminEvents, ClusterNode, ClusterWatch, DEPARTURE_BUFFER, LifeNotice, LifeWatch,
    MembershipRuntimeShared, MemoryNetwork, NodeOptions, Notice, Transport,
};
use crate::core::{
    Authority, ClusterEvent, Departure, Envelope, GoneCause, LocalNode, MAX_VERSION, MIN_VERSION,
    Member, MemberMetadata, MemberRecord, MembershipDelta, MembershipRuntime,
    MembershipRuntimeConfig, Message, NodeIdentity, NodeStatus, NodeUid, Seen, TimerInstant,
};
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use std::vec::Vec;

/// Of the nodes' time; far more than anything takes.
const TIMEOUT: Duration = Duration::from_secs(120);

fn name(number: u16) -> Authority {
    Authority::new(&std::format!("10.0.0.1:{number}")).expect("a name")
}

async fn start(network: &MemoryNetwork, number: u16, seeds: &[u16]) -> ClusterNode {
    let mut options = NodeOptions::new(MembershipRuntimeConfig::local());
    options.advertise = Some(name(number));
    options.seeds = seeds.iter().map(|seed| name(*seed)).collect();
    options.metadata = MemberMetadata::build("1", &["test"], &[]).expect("short");
    let started = ClusterNode::start(options, Transport::memory(network)).await;
    started.expect("nothing is in the way")
}

/// Waits for a topology of exactly these members, all of them Up.
async fn until(watch: &mut ClusterWatch, numbers: &[u16]) -> Arc<[Member]> {
    let expected: Vec<Authority> = numbers.iter().map(|number| name(*number)).collect();
    let waiting = async {
        loop {
            let notice = watch.next().await.expect("the node runs");
            let Notice::Event(ClusterEvent::TopologyUpdated { members, .. }) = notice else {
                continue;
            };
            let names: Vec<Authority> = members
                .iter()
                .map(|member| member.authority.clone())
                .collect();
            let all_up = members.iter().all(|member| member.status == NodeStatus::Up);
            if names == expected && all_up {
                return members;
            }
        }
    };
    let waited = tokio::time::timeout(TIMEOUT, waiting).await;
    waited.unwrap_or_else(|_| panic!("no topology of {numbers:?}"))
}

#[tokio::test(start_paused = true)]
async fn nodes_join_a_seed_and_agree() {
    let network = MemoryNetwork::new();
    let mut nodes = Vec::new();
    let mut watches = Vec::new();
    for number in 1..=5 {
        let node = start(&network, number, &[1]).await;
        watches.push(node.subscribe());
        nodes.push(node);
    }
    for watch in &mut watches {
        until(watch, &[1, 2, 3, 4, 5]).await;
    }
    let hashes: Vec<u64> = nodes.iter().map(|node| node.members().hash).collect();
    assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:?}");
    let seen = nodes[0].members();
    assert_eq!(seen.members[4].metadata.roles(), ["test"]);
    for node in &nodes {
        assert!((1..=super::MAX_LINKS).contains(&node.connections()));
    }
    for node in nodes {
        let metrics = node.metrics();
        assert!(metrics.received > 0 && metrics.refused == 0, "{metrics:?}");
        node.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_all_given_the_same_seeds_form_one_cluster() {
    let network = MemoryNetwork::new();
    let seeds = [1, 2, 3];
    let mut nodes = Vec::new();
    let mut watches = Vec::new();
    for number in seeds {
        let node = start(&network, number, &seeds).await;
        watches.push(node.subscribe());
        nodes.push(node);
    }
    for watch in &mut watches {
        until(watch, &seeds).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_is_noticed_and_a_leave_is_reported() {
    let network = MemoryNetwork::new();
    let first = start(&network, 1, &[]).await;
    let mut watch = first.subscribe();
    let second = start(&network, 2, &[1]).await;
    let third = start(&network, 3, &[1]).await;
    until(&mut watch, &[1, 2, 3]).await;

    third.shutdown().await;
    until(&mut watch, &[1, 2]).await;
    let again = start(&network, 3, &[1, 2]).await;
    until(&mut watch, &[1, 2, 3]).await;

    again.leave().await.expect("it is a member");
    until(&mut watch, &[1, 2]).await;
    second.leave().await.expect("it is a member");
    until(&mut watch, &[1]).await;
    first.shutdown().await;
    // What was published before the end is still there; then it says so.
    while watch.next().await.is_some() {}
}

#[tokio::test(start_paused = true)]
async fn a_partition_heals() {
    let network = MemoryNetwork::new();
    let mut nodes = Vec::new();
    for number in 1..=5 {
        nodes.push(start(&network, number, &[1]).await);
    }
    let mut watches: Vec<ClusterWatch> = nodes.iter().map(ClusterNode::subscribe).collect();
    for watch in &mut watches {
        until(watch, &[1, 2, 3, 4, 5]).await;
    }
    for (one, other) in [(1, 4), (1, 5), (2, 4), (2, 5), (3, 4), (3, 5)] {
        network.cut(&name(one), &name(other));
    }
    until(&mut watches[0], &[1, 2, 3]).await;
    until(&mut watches[3], &[4, 5]).await;
    network.heal();
    for watch in &mut watches {
        until(watch, &[1, 2, 3, 4, 5]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_keeps_a_member_out_for_a_while() {
    let network = MemoryNetwork::new();
    let first = start(&network, 1, &[]).await;
    let mut watch = first.subscribe();
    let _second = start(&network, 2, &[1]).await;
    until(&mut watch, &[1, 2]).await;
    first
        .quarantine(&name(2), "disk\nfails", Duration::from_secs(30))
        .expect("it is a member");
    until(&mut watch, &[1]).await;
    let quarantines = first.shared().with(|runtime| runtime.quarantine_snapshot());
    assert!(
        quarantines
            .iter()
            .any(|entry| std::string::ToString::to_string(&entry.reason).contains("disk\\nfails")),
        "{quarantines:?}"
    );
    first.release(&name(2)).expect("it is quarantined");
    until(&mut watch, &[1, 2]).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_says_something_else_about_itself_while_it_runs() {
    let network = MemoryNetwork::new();
    let first = start(&network, 1, &[]).await;
    let mut watch = first.subscribe();
    let second = start(&network, 2, &[1]).await;
    until(&mut watch, &[1, 2]).await;
    let changed = MemberMetadata::build("2", &["web"], &[("http", "10.0.0.1:80")]);
    let changed = changed.expect("short");
    let set = second.set_metadata(changed.clone());
    set.expect("it is a member");
    let changed = changed.with_name(second.name()).expect("short");
    let seen = async {
        while first.members().members[1].metadata != changed {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let seen = tokio::time::timeout(TIMEOUT, seen).await;
    seen.expect("the others see it");
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_the_cluster_and_is_no_member() {
    let network = MemoryNetwork::new();
    let first = start(&network, 1, &[]).await;
    let mut options = NodeOptions::new(MembershipRuntimeConfig::local());
    options.advertise = Some(name(9));
    options.seeds = Vec::from([name(1)]);
    options.observer = true;
    let observer = ClusterNode::start(options, Transport::memory(&network)).await;
    let observer = observer.expect("nothing is in the way");
    let mut watch = observer.subscribe();
    until(&mut watch, &[1]).await;
    let second = start(&network, 2, &[1]).await;
    until(&mut watch, &[1, 2]).await;
    assert_eq!(first.members().members.len(), 2);
    assert!(
        observer
            .quarantine(&name(2), "", Duration::from_secs(1))
            .is_err()
    );
    second.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_is_too_slow_gets_the_number_it_missed() {
    let network = MemoryNetwork::new();
    let node = start(&network, 1, &[]).await;
    let mut watch = node.subscribe();
    let stranger = name(2);
    let mut orders = 0;
    let missed = loop {
        for _ in 0..100 {
            let order = node.quarantine(&stranger, "again", Duration::from_secs(60));
            order.expect("anybody may be kept out");
            node.release(&stranger).expect("it is kept out");
            orders += 1;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if let Some(Notice::Missed(events)) = watch.next().await {
            break events;
        }
        assert!(orders < 10 * super::WATCH_BUFFER, "never too slow");
    };
    assert!(missed > 0);
    assert_eq!(node.metrics().watchers_lagged, 1);
}

/// A join storm of more nodes than a node keeps connections, and what is left of them when it is calm.
#[tokio::test(start_paused = true)]
async fn watches_are_streams() {
    let network = MemoryNetwork::new();
    let first = start(&network, 1, &[]).await;
    let (watch, lives) = (first.subscribe(), first.lives());
    let second = start(&network, 2, &[1]).await;
    let mut topologies = watch.filter_map(|notice| {
        let members = match notice {
            Notice::Event(ClusterEvent::TopologyUpdated { members, .. }) => Some(members.len()),
            _ => None,
        };
        core::future::ready(members)
    });
    while topologies.next().await.expect("the node runs") < 2 {}
    second.leave().await.expect("it is a member");
    while topologies.next().await.expect("the node runs") > 1 {}
    first.shutdown().await;
    // It ends with the node.
    while topologies.next().await.is_some() {}
    let departed = lives.filter(|notice| {
        let departed = matches!(notice, LifeNotice::Departed(_));
        core::future::ready(departed)
    });
    assert_eq!(departed.count().await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_large_cluster_is_no_full_mesh() {
    const NODES: u16 = 80;
    let network = MemoryNetwork::new();
    let mut nodes = Vec::new();
    for number in 1..=NODES {
        nodes.push(start(&network, number, &[1]).await);
    }
    let size = usize::from(NODES);
    let mut most = 0;
    let waiting = async {
        while nodes.iter().any(|node| node.members().members.len() < size) {
            tokio::time::sleep(Duration::from_millis(100)).await;
            most = most.max(
                nodes
                    .iter()
                    .map(ClusterNode::connections)
                    .max()
                    .unwrap_or(0),
            );
        }
    };
    let waited = tokio::time::timeout(TIMEOUT, waiting).await;
    waited.expect("everybody sees everybody");
    assert!(most <= super::MAX_LINKS, "{most}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let calm: usize = nodes.iter().map(ClusterNode::connections).sum();
    // Each link has two ends. Monitors and those they watch make 18 per node, comparisons come and go beside them.
    assert!(calm < size * (size - 1) / 2, "{calm} ends of links");
    let hash = nodes[0].members().hash;
    assert!(nodes.iter().all(|node| node.members().hash == hash));
    for node in nodes {
        let metrics = node.metrics();
        let dropped = metrics.outbound_dropped + metrics.inbound_dropped;
        assert!(dropped * 100 < metrics.datagrams_sent, "{metrics:?}");
        node.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_name_is_one_node_in_memory() {
    let network = MemoryNetwork::new();
    let first = start(&network, 1, &[]).await;
    let mut options = NodeOptions::new(MembershipRuntimeConfig::local());
    options.advertise = Some(name(1));
    let again = ClusterNode::start(options.clone(), Transport::memory(&network)).await;
    assert!(matches!(again, Err(super::DriverError::AuthorityTaken(_))));
    first.shutdown().await;
    let again = ClusterNode::start(options, Transport::memory(&network)).await;
    assert!(again.is_ok());
}

#[tokio::test(start_paused = true)]
async fn nodes_in_memory_get_addresses_of_their_own() {
    let network = MemoryNetwork::new();
    let options = NodeOptions::new(MembershipRuntimeConfig::local());
    let first = ClusterNode::start(options.clone(), Transport::memory(&network));
    let first = first.await.expect("a node");
    let second = ClusterNode::start(options, Transport::memory(&network));
    let second = second.await.expect("another");
    assert_ne!(first.authority(), second.authority());
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn each_life_that_ends_is_reported_once_to_all_that_outlive_it() {
    let network = MemoryNetwork::new();
    let first = start(&network, 1, &[]).await;
    let mut watch = first.subscribe();
    let mut lives = first.lives();
    let leaver = start(&network, 2, &[1]).await;
    let victim = start(&network, 3, &[1]).await;
    until(&mut watch, &[1, 2, 3]).await;
    let (left, died) = (leaver.identity(), victim.identity());
    // One who comes later begins with those who are there.
    let mut later = first.lives();
    let Some(LifeNotice::Active(active)) = later.next().await else {
        panic!("it begins with a snapshot");
    };
    assert_eq!(&active[..], [first.identity(), left.clone(), died.clone()]);
    leaver.leave().await.expect("it is a member");
    until(&mut watch, &[1, 3]).await;
    drop(victim);
    until(&mut watch, &[1]).await;
    let again = start(&network, 3, &[1]).await;
    until(&mut watch, &[1, 3]).await;
    let quarantined = again.identity();
    first
        .quarantine(&name(3), "test", Duration::from_secs(60))
        .expect("a member");
    until(&mut watch, &[1]).await;
    again.shutdown().await;
    let own = first.identity();
    first.shutdown().await;
    let mut told = Vec::new();
    while let Some(notice) = lives.next().await {
        if let LifeNotice::Departed(Departure::Gone {
            identity, cause, ..
        }) = notice
        {
            told.push((identity, cause));
        }
    }
    told.retain(|(identity, _)| *identity != own);
    let expected = [
        (left, GoneCause::Left),
        (died, GoneCause::Died),
        (quarantined, GoneCause::Quarantined),
    ];
    assert_eq!(told, expected);
}

/// Gossip about these lives of one node, each of which replaces the one before.
fn lives_of(node: &Authority, uids: core::ops::Range<usize>) -> (Authority, Vec<u8>) {
    let record = |uid: usize| {
        let identity = NodeIdentity {
            authority: node.clone(),
            uid: NodeUid::from_raw(uid as u64),
        };
        MemberRecord::new(identity, NodeStatus::Up, MemberMetadata::EMPTY)
    };
    let sender = NodeIdentity {
        authority: name(99),
        uid: NodeUid::from_raw(1),
    };
    let envelope = Envelope {
        cluster: "kumi".into(),
        versions: (MIN_VERSION, MAX_VERSION),
        sender,
        message: Message::Push {
            seen: Seen::default(),
            delta: MembershipDelta {
                records: uids.map(record).collect(),
                ..MembershipDelta::default()
            },
        },
    };
    (name(99), envelope.encode())
}

/// A core that is the only member of its cluster.
fn alone(now: TimerInstant) -> MembershipRuntimeShared {
    let local = LocalNode {
        authority: name(1),
        metadata: MemberMetadata::EMPTY,
        unix_ms: 1_700_000_000_000,
        uid: None,
    };
    let config = MembershipRuntimeConfig::local();
    let mut runtime = MembershipRuntime::new(config, local, 1, now).expect("valid");
    runtime.start_member(&[], now).expect("stopped before");
    let shared = MembershipRuntimeShared::new(runtime);
    shared.turn(Vec::new(), now);
    shared
}

#[tokio::test]
async fn a_life_that_is_forgotten_and_learned_again_in_one_turn_is_active() {
    let now = TimerInstant::from_millis(1);
    let shared = alone(now);
    let other = name(2);
    shared.turn(Vec::from([lives_of(&other, 1..2)]), now);
    let own = shared.identity();
    // It stood still for so long that it forgets the others, and the first message that it reads names the other node.
    let woken = now + MembershipRuntimeConfig::local().dead_timeout * 2;
    shared.turn(Vec::from([lives_of(&other, 1..2)]), woken);
    assert_eq!(shared.identity(), own);
    let members = shared.members().members;
    let identities: Vec<NodeIdentity> = members.iter().map(Member::identity).collect();
    assert_eq!(identities.len(), 2, "{identities:?}");
    let mut watch = LifeWatch::new(shared);
    let active = LifeNotice::Active(identities.into());
    assert_eq!(watch.next().await, Some(active));
}

/// So many lives of one node come and go while a watcher does not read. It gets the number of departures that it skipped,
/// then the lives that are active, and then the departures that follow.
async fn falls_behind(lives: usize) -> u64 {
    let now = TimerInstant::from_millis(1);
    let shared = alone(now);
    let own = shared.identity();
    let mut watch = LifeWatch::new(shared.clone());
    let first = LifeNotice::Active([own.clone()].into());
    assert_eq!(watch.next().await, Some(first));

    let other = name(2);
    let chunks = (1..=lives).step_by(1000);
    let chunks = chunks.map(|from| lives_of(&other, from..(from + 1000).min(lives + 1)));
    shared.turn(chunks.collect(), now);
    let Some(LifeNotice::Skipped(skipped)) = watch.next().await else {
        panic!("it has fallen behind");
    };
    let last = NodeIdentity {
        authority: other.clone(),
        uid: NodeUid::from_raw(lives as u64),
    };
    let active = LifeNotice::Active([own, last.clone()].into());
    assert_eq!(watch.next().await, Some(active));

    shared.turn(Vec::from([lives_of(&other, lives + 1..lives + 2)]), now);
    let departed = LifeNotice::Departed(Departure::Gone {
        identity: last,
        name: None,
        cause: GoneCause::Replaced,
        observed_at: now,
    });
    assert_eq!(watch.next().await, Some(departed));
    skipped
}

#[tokio::test]
async fn a_watcher_of_lives_that_falls_behind_begins_again_with_what_is_active() {
    // Of so many lives all but the last have departed.
    assert_eq!(falls_behind(DEPARTURE_BUFFER + 10).await, 9);
    // More than the core holds between two turns, so that it has to skip some itself.
    assert!(falls_behind(70_000).await > 60_000);
}

#[tokio::test(start_paused = true)]
async fn operators_are_told_what_members_say_about_themselves() {
    let network = MemoryNetwork::new();
    let first = start(&network, 1, &[]).await;
    let mut watch = first.subscribe();
    let second = start(&network, 2, &[1]).await;
    until(&mut watch, &[1, 2]).await;
    let mut watch = first.subscribe();
    let mut words = AdminEvents::new(watch.first());
    let metadata = MemberMetadata::build("2", &["web"], &[("http", "a:80")]);
    second
        .set_metadata(metadata.expect("short"))
        .expect("a member");
    let told = loop {
        let Some(Notice::Event(event)) = watch.next().await else {
            panic!("the node runs");
        };
        let mut events = words.of(&event);
        if events.len() > 1 {
            break events.remove(1);
        }
    };
    let AdminEvent::Metadata {
        authority, roles, ..
    } = told
    else {
        panic!("{told:?}");
    };
    assert_eq!(
        (authority.as_str(), &roles[..]),
        (name(2).as_str(), &["web".into()][..])
    );
    second.shutdown().await;
    first.shutdown().await;
}
