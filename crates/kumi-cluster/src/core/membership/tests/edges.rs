//! Edge cases: no peers, too many rumours, too many addresses, messages after the end.

use super::*;
use crate::core::protocol::rumor_queue::RumorQueue;
use crate::core::wire::transport::{Delivery, MAX_DATAGRAM_BYTES};
use alloc::collections::BTreeMap;

#[test]
fn a_node_without_peers_sends_nothing_and_has_no_deadline_for_it() {
    let mut net = Net::settled(1);
    net.nodes[0]
        .quarantine(&authority(7), "", seconds(100), net.now)
        .expect("a member");
    net.run(seconds(1));
    assert_eq!(net.nodes[0].footprint().rumors, 0);
    assert_eq!(net.nodes[0].dissemination.push_at(), None);
    let waiting = net.start(&[9]);
    net.run(seconds(5));
    assert_eq!(net.nodes[waiting].status(), Some(Joining));
    assert_eq!(net.nodes[waiting].dissemination.push_at(), None);
}

#[test]
fn a_record_that_fits_no_datagram_is_told_on_the_reliable_way() {
    let named = |index: usize| {
        let name = alloc::format!("{}{index:02}:1", "n".repeat(200));
        Authority::new(&name).expect("valid")
    };
    let now = TimerInstant::from_millis(1);
    let node = LocalNode {
        authority: named(0),
        ..local_node(0, UNIX_MS)
    };
    let mut node =
        MembershipRuntime::new(MembershipRuntimeConfig::local(), node, 1, now).expect("valid");
    node.start_member(&[], now).expect("stopped");
    for index in 1..20 {
        let identity = NodeIdentity {
            authority: named(index),
            uid: NodeUid::from_raw(1),
        };
        let metadata = MemberMetadata::from_bytes(&[7; 512]).expect("at most 512");
        let mut record = MemberRecord::new(identity, Suspect, metadata);
        for accuser in 1..=24 {
            record
                .accusations
                .add(crate::core::state::record::Accusation {
                    accuser: NodeUid::from_raw(accuser * 1000),
                    round: u16::MAX,
                });
        }
        let now = node.advance(now);
        node.learn(&record, now);
    }
    let mut at = now;
    let mut told = BTreeMap::new();
    while !node.dissemination.is_empty() {
        at = at.max(node.next_deadline().expect("started"));
        for outbound in node.poll(at).gossip_outbound {
            let datagram = outbound.bytes.len() <= MAX_DATAGRAM_BYTES;
            if outbound.delivery == Delivery::Datagram {
                assert!(datagram, "{} bytes", outbound.bytes.len());
            }
            if outbound.kind == MessageKind::Push {
                let envelope = Envelope::decode(&outbound.bytes).expect("valid");
                let Message::Push { delta, .. } = envelope.message else {
                    panic!("{envelope:?}");
                };
                for record in delta.records {
                    let long = told.entry(record.authority).or_insert((0, false));
                    *long = (long.0 + 1, long.1 || !datagram);
                }
            }
        }
    }
    assert_eq!(told.len(), 20, "{told:?}");
    assert_eq!(told.values().filter(|(_, long)| *long).count(), 19);
    let limit = RumorQueue::retransmissions(20) as usize;
    assert!(told.values().all(|&(times, _)| times >= limit), "{told:?}");
}

#[test]
fn every_other_former_address_that_is_tried_is_a_seeds() {
    let mut net = Net::new(MembershipRuntimeConfig::local());
    net.start(&[9]);
    let node = &mut net.nodes[0];
    for index in 100..1100 {
        node.addresses.remember(authority(index), None);
    }
    let drawn: Vec<Authority> = (0..1000).filter_map(|_| node.lost_address()).collect();
    let seeds = drawn.iter().filter(|drawn| **drawn == authority(9)).count();
    assert!((400..600).contains(&seeds), "{seeds} of {}", drawn.len());
}

#[test]
fn nothing_that_a_former_life_had_to_say_is_said_by_the_next() {
    let mut net = Net::settled(3);
    let old = net.uid(2);
    // Something that it would answer. Then it stands still twice, and what it reads in between is nothing.
    let probe = Envelope {
        cluster: "kumi".into(),
        versions: (1, 1),
        sender: net.nodes[0].identity(),
        message: Message::Probe { nonce: 5 },
    };
    net.nodes[2]
        .handle_message(&authority(0), &probe.encode(), net.now)
        .expect("valid");
    let nap = net.config.dead_timeout * 4 / 5;
    let refused = net.nodes[2].handle_message(&authority(0), b"", net.now + nap);
    assert!(refused.is_err());
    assert_eq!(net.uid(2), old);
    let outcome = net.nodes[2].poll(net.now + nap * 2);
    assert!(net.uid(2) > old);
    for outbound in &outcome.gossip_outbound {
        let envelope = Envelope::decode(&outbound.bytes).expect("valid");
        assert!(envelope.sender.uid > old, "{envelope:?}");
    }
}

#[test]
fn a_node_that_was_suspended_declares_nobody_dead_before_it_has_heard_a_member() {
    let mut net = Net::settled(4);
    let lives: Vec<NodeUid> = (0..4).map(|index| net.uid(index)).collect();
    // One node alone goes on after a suspension, and the others stay silent for longer than a verdict takes.
    let woken = net.now + net.config.dead_timeout / 2;
    let mut dead = 0;
    let node = &mut net.nodes[0];
    for step in 0..90 {
        let outcome = node.poll(woken + net.config.heartbeat_interval / 2 * step);
        dead += outcome.member_events.iter().filter(|event| {
            matches!(event, ClusterEvent::MemberStatusChanged { to, .. } if *to == Dead || *to == Suspect)
        }).count();
    }
    assert_eq!(dead, 0);
    assert_eq!(node.metrics().suspensions, 1);
    assert_eq!(net.uid(0), lives[0]);
}

#[test]
fn the_longest_times_that_are_allowed_overflow_nothing() {
    use crate::core::protocol::config::MAX_TIME;
    use crate::core::protocol::phi::MAX_THRESHOLD;
    let mut config = MembershipRuntimeConfig::local();
    for time in [
        &mut config.suspect_timeout,
        &mut config.dead_timeout,
        &mut config.join_timeout,
        &mut config.quarantine_ttl,
        &mut config.gossip_interval,
        &mut config.push_pull_interval,
        &mut config.topology_emit_interval,
        &mut config.heartbeat_interval,
        &mut config.acceptable_pause,
        &mut config.min_deviation,
        &mut config.probe_timeout,
        &mut config.join_retry,
        &mut config.leave_grace,
    ] {
        *time = MAX_TIME;
    }
    config.phi_threshold = MAX_THRESHOLD;
    let authority = |name| Authority::new(name).expect("valid");
    let node = LocalNode {
        authority: authority("a:1"),
        metadata: MemberMetadata::EMPTY,
        unix_ms: u64::MAX,
        uid: None,
    };
    let now = TimerInstant::from_micros(u64::MAX / 2);
    let mut runtime = MembershipRuntime::new(config, node, 1, now).expect("allowed");
    runtime
        .start_member(&[authority("b:1")], now)
        .expect("stopped");
    let other = NodeIdentity {
        authority: authority("b:1"),
        uid: NodeUid::from_raw(1),
    };
    let mut at = now;
    let joined = runtime.handle_join(other.uid, other.authority.clone(), at);
    let _ = joined.expect("welcome");
    runtime
        .quarantine(&other.authority, "", Duration::MAX, at)
        .expect("a member");
    for _ in 0..100 {
        let _ = runtime.poll(at);
        at = at.max(runtime.next_deadline().expect("started"));
    }
    runtime.leave(at).expect("a member");
    while let Some(next) = runtime.next_deadline() {
        let _ = runtime.poll(next);
    }
}
