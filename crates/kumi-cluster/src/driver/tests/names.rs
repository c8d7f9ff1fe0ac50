//! Names of nodes: what other nodes, watchers of lives and operators see of them.

use super::{name as address, start, until};
use crate::core::{
    Authority, Departure, GoneCause, Member, MemberMetadata, MembershipError,
    MembershipRuntimeConfig, NameAndLife, NodeName,
};
use crate::driver::{
    AdminEvent, AdminEvents, ClusterNode, ClusterWatch, DriverError, LifeNotice, LifeWatch,
    MemoryNetwork, NodeOptions, Notice, Transport,
};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

fn options(number: u16, name: &str, seeds: &[u16]) -> NodeOptions {
    let seeds: Vec<Authority> = seeds.iter().map(|seed| address(*seed)).collect();
    NodeOptions::new(MembershipRuntimeConfig::local())
        .name(NodeName::new(name).expect("a name"))
        .advertise(address(number))
        .seeds(seeds)
}

async fn named(network: &MemoryNetwork, number: u16, name: &str, seeds: &[u16]) -> ClusterNode {
    let options = options(number, name, seeds);
    let started = ClusterNode::start(options, Transport::memory(network)).await;
    started.expect("nothing is in the way")
}

/// The next life that is over, as `name~life`, and how it ended.
async fn gone(lives: &mut LifeWatch) -> (Option<NameAndLife>, GoneCause) {
    loop {
        let notice = lives.next().await.expect("the node runs");
        if let LifeNotice::Departed(departure) = notice {
            let Departure::Gone { cause, .. } = departure else {
                panic!("{departure:?}");
            };
            return (departure.name_and_life(), cause);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_others_see_the_name_and_the_life_of_a_node() {
    let network = MemoryNetwork::new();
    let first = start(&network, 1, &[]).await;
    let mut watch = first.subscribe();
    let second = named(&network, 2, "web-1", &[1]).await;
    let members = until(&mut watch, &[1, 2]).await;
    assert_eq!(first.name().as_str(), "10.0.0.1-1");
    let life = second.identity().uid;
    assert_eq!(second.name_and_life().as_str(), format!("web-1~{life}"));
    let seen: Vec<Option<NameAndLife>> = members.iter().map(Member::name_and_life).collect();
    let both = [first.name_and_life(), second.name_and_life()];
    assert_eq!(seen, both.map(Some));

    // It keeps its name when it says something else about itself.
    let metadata = MemberMetadata::build("2", &["web"], &[]).expect("short");
    second.set_metadata(metadata).expect("a member");
    let member = loop {
        let members = until(&mut watch, &[1, 2]).await;
        if members[1].metadata.roles() == ["web"] {
            break members[1].clone();
        }
    };
    assert_eq!(member.name_and_life(), Some(second.name_and_life()));
}

#[tokio::test(start_paused = true)]
async fn a_life_that_is_over_is_reported_with_the_name_of_its_node() {
    let network = MemoryNetwork::new();
    let first = start(&network, 1, &[]).await;
    let mut watch = first.subscribe();
    let mut lives = first.lives();
    let crashed = named(&network, 2, "web-1", &[1]).await;
    until(&mut watch, &[1, 2]).await;
    let replaced = crashed.name_and_life();
    drop(crashed);
    let again = named(&network, 2, "web-1", &[1]).await;
    let reported = gone(&mut lives).await;
    assert_eq!(reported, (Some(replaced), GoneCause::Replaced));
    while until(&mut watch, &[1, 2]).await[1].uid != again.identity().uid {}
    let left = again.name_and_life();
    again.leave().await.expect("a member");
    let reported = gone(&mut lives).await;
    assert_eq!(reported, (Some(left), GoneCause::Left));
}

/// Waits for an event of this kind. All statuses of the life with this name until then are told by it.
async fn until_told(
    watch: &mut ClusterWatch,
    words: &mut AdminEvents,
    name: &str,
    is_wanted: impl Fn(&AdminEvent) -> bool,
) -> AdminEvent {
    loop {
        let Some(Notice::Event(event)) = watch.next().await else {
            panic!("the node runs");
        };
        let event = words.of(&event).swap_remove(0);
        if let AdminEvent::Status {
            uid, name_and_life, ..
        } = &event
            && name.ends_with(uid.as_str())
        {
            assert_eq!(name_and_life.as_deref(), Some(name), "{event:?}");
        }
        if is_wanted(&event) {
            return event;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn operators_are_told_the_name_of_a_member_from_its_first_event_to_its_last() {
    let network = MemoryNetwork::new();
    let first = start(&network, 1, &[]).await;
    let mut watch = first.subscribe();
    let mut words = AdminEvents::new(watch.first()).names_from(first.shared());
    let second = named(&network, 2, "web-1", &[1]).await;
    let identity = second.identity().to_string();
    let name = String::from(second.name_and_life());
    let becomes = |event: &AdminEvent, status: &str| {
        let AdminEvent::Status { uid, to, .. } = event else {
            return false;
        };
        name.ends_with(uid.as_str()) && to == status
    };
    let joined = |event: &AdminEvent| match event {
        AdminEvent::Topology { joined, .. } => joined.contains(&identity),
        _ => false,
    };
    let died = |event: &AdminEvent| match event {
        AdminEvent::Topology { dead, .. } => dead.contains(&identity),
        _ => false,
    };
    let names = |event: AdminEvent| match event {
        AdminEvent::Topology { names, .. } => names.get(&identity).cloned(),
        _ => None,
    };

    let is_joining = |event: &AdminEvent| becomes(event, "joining");
    until_told(&mut watch, &mut words, &name, is_joining).await;
    let topology = until_told(&mut watch, &mut words, &name, joined).await;
    assert_eq!(names(topology).as_ref(), Some(&name));

    drop(second);
    let topology = until_told(&mut watch, &mut words, &name, died).await;
    assert_eq!(names(topology).as_ref(), Some(&name));

    // A later life replaces the record that had the name.
    let _again = named(&network, 2, "web-1", &[1]).await;
    let is_removed = |event: &AdminEvent| becomes(event, "removed");
    until_told(&mut watch, &mut words, &name, is_removed).await;
}

#[tokio::test(start_paused = true)]
async fn a_late_watcher_is_told_the_name_of_a_life_that_a_later_one_replaced() {
    let network = MemoryNetwork::new();
    let first = start(&network, 1, &[]).await;
    let mut watch = first.subscribe();
    let second = named(&network, 2, "web-1", &[1]).await;
    until(&mut watch, &[1, 2]).await;
    // Its events are collected, and passed on only when the record is of the later life.
    let mut late = first.subscribe();
    let mut words = AdminEvents::new(late.first()).names_from(first.shared());
    let name = String::from(second.name_and_life());
    drop(second);
    until(&mut watch, &[1]).await;
    let again = named(&network, 2, "web-1", &[1]).await;
    while until(&mut watch, &[1, 2]).await[1].uid != again.identity().uid {}
    let is_removed = |event: &AdminEvent| match event {
        AdminEvent::Status { uid, to, .. } => name.ends_with(uid.as_str()) && to == "removed",
        _ => false,
    };
    until_told(&mut late, &mut words, &name, is_removed).await;
}

#[tokio::test(start_paused = true)]
async fn metadata_that_leaves_no_room_for_the_name_is_refused() {
    let network = MemoryNetwork::new();
    let text = "v".repeat(500);
    let metadata = MemberMetadata::build("1", &[], &[("k", &text)]).expect("it fits");
    let options = options(1, "web-1", &[]).metadata(metadata);
    let refused = ClusterNode::start(options.clone(), Transport::memory(&network)).await;
    let Err(DriverError::Membership(MembershipError::MetadataTooLarge { len: 514 })) = refused
    else {
        panic!("{refused:?}");
    };
    // Nothing of it is left running.
    let options = options.metadata(MemberMetadata::EMPTY);
    let started = ClusterNode::start(options, Transport::memory(&network)).await;
    assert!(started.is_ok());
}
