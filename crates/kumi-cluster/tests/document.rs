//! The names of the design document, used the way it uses them: what a provider written from it would call.
//!
//! The table in `docs/design/cluster.md` says where arguments or results differ from it, and why.

#![expect(
    clippy::unwrap_used,
    reason = "a failed step of a test is a failed test"
)]

use std::collections::VecDeque;
use std::time::Duration;

use kumi_cluster::core::document::{ClusterCore, GossipEngine, MembershipRuntimePort, pump};
use kumi_cluster::core::{
    Authority, ClusterEvent, ClusterMetrics, ClusterTopology, Delivery, DetectorEffect, Envelope,
    EventStream, GossipOutbound, GossipTransport, GossipTransportError, IdentityTable, LocalNode,
    Member, MemberMetadata, MembershipDelta, MembershipError, MembershipEvent, MembershipRuntime,
    MembershipRuntimeConfig, MembershipRuntimeError, MembershipRuntimeOutcome,
    MembershipRuntimeState, MembershipSnapshot, MembershipTable, NodeStatus, NodeUid, PhiConfig,
    PhiFailureDetector, QuarantineEntry, QuarantineReason, QuarantineTable, ResolveError,
    TimerInstant,
};

const START: TimerInstant = TimerInstant::from_millis(1000);

fn authority(text: &str) -> Authority {
    text.parse().unwrap()
}

fn config() -> MembershipRuntimeConfig {
    MembershipRuntimeConfig {
        phi_threshold: 8.0,
        suspect_timeout: Duration::from_secs(2),
        dead_timeout: Duration::from_secs(20),
        quarantine_ttl: Duration::from_secs(30),
        gossip_enabled: true,
        gossip_interval: Duration::from_millis(100),
        topology_emit_interval: Duration::from_millis(200),
        ..MembershipRuntimeConfig::local()
    }
}

fn runtime(config: MembershipRuntimeConfig, name: &str) -> MembershipRuntime {
    let node = LocalNode {
        authority: authority(name),
        metadata: MemberMetadata::EMPTY,
        unix_ms: 1_700_000_000_000,
        uid: None,
    };
    MembershipRuntime::new(config, node, 1, START).unwrap()
}

/// A cluster whose members and heartbeats a provider reports, as in the document's first example.
fn provided() -> MembershipRuntime {
    let config = MembershipRuntimeConfig {
        gossip_enabled: false,
        ..config()
    };
    let mut runtime = runtime(config, "127.0.0.1:11000");
    runtime.start_member(&[], START).unwrap();
    runtime
}

#[test]
fn the_flow_of_the_documents_example() {
    let mut runtime = provided();
    assert_eq!(runtime.state(), MembershipRuntimeState::Member);
    let node = authority("127.0.0.1:12000");
    let joined: Result<MembershipRuntimeOutcome, MembershipError> =
        runtime.handle_join(NodeUid::from_raw(7), node.clone(), START);
    let arrived = |event: &ClusterEvent| {
        matches!(event, ClusterEvent::MemberStatusChanged {
            node_id, authority, from: None, to: NodeStatus::Up, observed_at,
        } if *node_id == NodeUid::from_raw(7) && *authority == node && *observed_at == START)
    };
    assert!(joined.unwrap().member_events.iter().any(arrived));

    let outcome = runtime.handle_heartbeat(&node, START).unwrap();
    for outbound in outcome.gossip_outbound {
        assert!(Envelope::decode(&outbound.bytes).is_ok(), "{}", outbound.to);
    }
    let snapshot: MembershipSnapshot = runtime.snapshot();
    assert_eq!(snapshot.members.len(), 2);
    let member: &Member = &snapshot.members[1];
    assert_eq!(
        (member.node_id(), &member.authority, member.status),
        (NodeUid::from_raw(7), &node, NodeStatus::Up)
    );
    let quarantine: Vec<QuarantineEntry> = runtime.quarantine_snapshot();
    assert!(quarantine.is_empty());
}

/// Polls at every deadline up to a moment; a provider reports these authorities in between.
fn run(
    runtime: &mut MembershipRuntime,
    core: &mut ClusterCore,
    alive: &[&Authority],
    from: TimerInstant,
    time: Duration,
) -> (TimerInstant, Vec<ClusterEvent>) {
    let (mut now, end) = (from, from + time);
    let mut told = Vec::new();
    while now < end {
        now = now + Duration::from_millis(50);
        let mut outcomes = Vec::new();
        if now.as_micros().is_multiple_of(200_000) {
            for authority in alive {
                outcomes.extend(runtime.handle_heartbeat(authority, now));
            }
        }
        outcomes.push(runtime.poll(now));
        for outcome in outcomes {
            let events = core.absorb(&outcome, runtime.quarantine_snapshot());
            core.events_mut().publish_all(events.clone());
            told.extend(events);
        }
    }
    (now, told)
}

#[test]
fn the_flow_from_a_failure_to_the_topology() {
    let (mut runtime, mut core) = (provided(), ClusterCore::new());
    let (one, two) = (authority("127.0.0.1:12000"), authority("127.0.0.1:12001"));
    let mut watcher = core.events().subscribe();
    for (uid, node) in [(7, &one), (8, &two)] {
        let outcome = runtime.handle_join(NodeUid::from_raw(uid), node.clone(), START);
        core.absorb(&outcome.unwrap(), runtime.quarantine_snapshot());
    }
    let second = Duration::from_secs(1);
    let (now, told) = run(&mut runtime, &mut core, &[&one, &two], START, second * 10);
    let topologies: Vec<&ClusterEvent> = told
        .iter()
        .filter(|event| matches!(event, ClusterEvent::TopologyUpdated { .. }))
        .collect();
    let [
        ClusterEvent::TopologyUpdated {
            topology,
            members,
            joined,
            left,
            dead,
            blocked,
            observed_at,
        },
    ] = *topologies
    else {
        panic!("{topologies:?}");
    };
    assert_eq!(
        (members.len(), joined.len(), left.len(), dead.len()),
        (3, 3, 0, 0)
    );
    assert!(blocked.is_empty() && *observed_at > START);
    let topology: &ClusterTopology = topology;
    assert_eq!((&topology.joined, &topology.left), (joined, left));
    assert_eq!(
        (&topology.dead, topology.hash),
        (dead, runtime.snapshot().hash)
    );

    // One of them falls silent: Suspect, then Dead, which the topology reports and which keeps that life out.
    let (now, told) = run(&mut runtime, &mut core, &[&one], now, second * 12);
    let steps: Vec<NodeStatus> = told
        .iter()
        .filter_map(|event| match event {
            ClusterEvent::MemberStatusChanged { authority, to, .. } if *authority == two => {
                Some(*to)
            }
            _ => None,
        })
        .collect();
    assert_eq!(steps, [NodeStatus::Suspect, NodeStatus::Dead]);
    assert!(told.iter().any(|event| matches!(event,
        ClusterEvent::MemberQuarantined { authority, reason: QuarantineReason::Unreachable, .. } if *authority == two)));
    let metrics: &ClusterMetrics = core.metrics();
    assert_eq!(
        (metrics.members, metrics.quarantined, metrics.deaths),
        (2, 1, 1)
    );
    let identities: &IdentityTable = core.identities();
    assert!(matches!(
        identities.resolve(&two),
        Err(ResolveError::Unknown(_) | ResolveError::Quarantined { .. })
    ));
    assert!(identities.resolve(&one).is_ok());

    // The same life may not come back. That is an error, and an event of the next outcome.
    let refused = runtime.handle_join(NodeUid::from_raw(8), two.clone(), now);
    assert!(matches!(refused, Err(MembershipError::Quarantined { .. })));
    let next = runtime.poll(now);
    assert!(matches!(
        &*next.quarantine_events,
        [ClusterEvent::MemberQuarantined { .. }]
    ));

    // Another life may, and a member may leave.
    let outcome = runtime.handle_join(NodeUid::from_raw(9), two.clone(), now);
    core.absorb(&outcome.unwrap(), runtime.quarantine_snapshot());
    let outcome = runtime.handle_leave(&one, now).unwrap();
    assert!(outcome.member_events.iter().any(|event| matches!(
        event,
        ClusterEvent::MemberStatusChanged {
            to: NodeStatus::Leaving,
            ..
        }
    )));
    core.absorb(&outcome, runtime.quarantine_snapshot());
    run(&mut runtime, &mut core, &[&two], now, second * 10);
    assert_eq!(core.members().len(), 2);
    let events: &EventStream = core.events();
    assert!(events.drain(&mut watcher).count() > 5);
}

#[test]
fn what_is_not_started_refuses_and_a_step_that_no_life_takes_is_recorded() {
    let mut runtime = runtime(config(), "a:1");
    let (node, now) = (authority("b:1"), START);
    assert_eq!(runtime.state(), MembershipRuntimeState::Stopped);
    let not_started = Err(MembershipError::NotStarted);
    let uid = NodeUid::from_raw(1);
    assert_eq!(runtime.handle_join(uid, node.clone(), now), not_started);
    assert_eq!(runtime.handle_leave(&node, now), not_started);
    assert_eq!(runtime.handle_heartbeat(&node, now), not_started);
    let delta = MembershipDelta::default();
    assert_eq!(runtime.handle_gossip_delta(&node, delta, now), not_started);
    assert_eq!(runtime.stop(), Err(MembershipRuntimeError::NotStarted));

    runtime.start_client(&[], now).unwrap();
    assert_eq!(runtime.state(), MembershipRuntimeState::Client);
    runtime.stop().unwrap();
    runtime.start_member(&[], now).unwrap();
    runtime
        .quarantine(&node, "no", Duration::from_secs(9), now)
        .unwrap();
    let _ = runtime.poll(now);
    runtime.release(&node, now).unwrap();
    let mut gone = runtime
        .handle_join(uid, node.clone(), now)
        .map(|outcome| outcome.membership_events);
    assert_eq!(gone, Ok(Vec::new()));
    let record = runtime.table().record(&node).unwrap().clone();
    let mut delta = MembershipDelta {
        records: vec![record],
        ..MembershipDelta::default()
    };
    delta.records[0].status = NodeStatus::Dead;
    runtime
        .handle_gossip_delta(&authority("c:1"), delta, now)
        .unwrap()
        .into_events()
        .for_each(drop);
    gone = runtime
        .handle_leave(&node, now)
        .map(|outcome| outcome.membership_events);
    let invalid = MembershipError::InvalidTransition {
        authority: node,
        from: NodeStatus::Dead,
        to: NodeStatus::Leaving,
    };
    assert_eq!(gone, Err(invalid.clone()));
    let noted: Vec<MembershipEvent> = runtime.poll(now).membership_events;
    assert!(noted.contains(&MembershipEvent::Refused { error: invalid }));
}

#[test]
fn a_delta_of_one_table_brings_another_up_to_date() {
    let (mut one, mut two) = (runtime(config(), "a:1"), runtime(config(), "b:1"));
    one.start_member(&[], START).unwrap();
    two.start_client(&[authority("a:1")], START).unwrap();
    let delta: MembershipDelta = one.table().delta_since(0);
    let outcome = two.handle_gossip_delta(&authority("a:1"), delta, START);
    assert!(
        outcome
            .unwrap()
            .member_events
            .iter()
            .any(|event| matches!(event, ClusterEvent::MemberStatusChanged { .. }))
    );
    assert_eq!(two.snapshot().hash, one.snapshot().hash);
}

/// Two nodes in one process, as a transport.
#[derive(Default)]
struct Wire {
    own: Option<Authority>,
    inbox: VecDeque<(Authority, Vec<u8>)>,
    outbox: VecDeque<(Authority, Vec<u8>)>,
    closed: bool,
}

impl GossipTransport for Wire {
    fn send(&mut self, outbound: GossipOutbound) -> Result<(), GossipTransportError> {
        if self.closed {
            return Err(GossipTransportError::Closed);
        }
        assert!(matches!(
            outbound.delivery,
            Delivery::Datagram | Delivery::Reliable
        ));
        let own = self.own.clone().unwrap();
        self.outbox.push_back((own, outbound.bytes.to_vec()));
        Ok(())
    }

    fn poll_deltas(&mut self) -> Vec<(Authority, Vec<u8>)> {
        self.inbox.drain(..).collect()
    }
}

/// Whatever a provider needs of the runtime is in the port.
fn observe(port: &mut impl MembershipRuntimePort, now: TimerInstant) -> (usize, usize) {
    let outcome = port.poll(now);
    (port.snapshot().members.len(), outcome.into_events().count())
}

#[test]
fn two_nodes_on_a_transport_find_each_other_through_the_port() {
    let mut nodes = [runtime(config(), "a:1"), runtime(config(), "b:1")];
    let mut wires = [Wire::default(), Wire::default()];
    for (node, wire) in nodes.iter_mut().zip(&mut wires) {
        wire.own = Some(node.identity().authority);
        MembershipRuntimePort::start_member(node, &[authority("a:1")], START).unwrap();
    }
    let mut now = START;
    for _ in 0..40 {
        now = now + Duration::from_millis(50);
        for index in 0..2 {
            let (outcome, pumped) = pump(&mut nodes[index], &mut wires[index], now);
            assert!(pumped.refused.is_empty() && pumped.unsent.is_empty());
            drop(outcome);
            let sent = std::mem::take(&mut wires[index].outbox);
            wires[1 - index].inbox.extend(sent);
        }
    }
    for node in &mut nodes {
        assert_eq!(observe(node, now).0, 2);
    }

    // What the transport does not take is reported, and the events of that turn are there all the same.
    wires[0].closed = true;
    nodes[0]
        .quarantine(&authority("c:1"), "disk", Duration::from_secs(9), now)
        .unwrap();
    let (mut events, mut unsent) = (0, 0);
    for _ in 0..20 {
        now = now + Duration::from_millis(50);
        let (outcome, pumped) = pump(&mut nodes[0], &mut wires[0], now);
        events += outcome.into_events().count();
        unsent += pumped.unsent.len();
    }
    assert!(events == 1 && unsent > 3, "{events} and {unsent}");
    MembershipRuntimePort::stop(&mut nodes[0]).unwrap();
}

#[test]
fn the_parts_on_their_own() {
    let (node, uid, now) = (authority("a:1"), NodeUid::from_raw(1), START);
    let mut table = QuarantineTable::new(9, Duration::from_secs(60));
    let reason = QuarantineReason::Unreachable;
    assert!(table.quarantine(&node, uid, reason, Duration::from_secs(5), now));
    let entries = table.snapshot(now);
    let entry: &QuarantineEntry = &entries[0];
    assert_eq!(
        (&entry.authority, &entry.reason),
        (&node, &QuarantineReason::Unreachable)
    );
    assert_eq!(entry.expires_at, now + Duration::from_secs(5));
    assert_eq!(table.poll_expired(now + Duration::from_secs(5)), entries);
    assert!(!table.clear(&node), "it has run out");

    let mut detector = PhiFailureDetector::new(PhiConfig::default());
    detector.watch(&node, now);
    let late = now + Duration::from_secs(60);
    assert_eq!(detector.poll(late), [DetectorEffect::Suspect(node.clone())]);
    let effect = detector.record_heartbeat(&node, late);
    assert_eq!(effect, Some(DetectorEffect::Reachable(node.clone())));

    assert_eq!(MembershipTable::new(9).version(), 0);
    assert!(GossipEngine::default().is_empty());

    let mut core = ClusterCore::new();
    let failed = ClusterEvent::TopologyApplyFailed {
        reason: kumi_cluster::core::ReasonText::escaped("lost"),
        observed_at: now,
    };
    assert!(core.apply_topology_for_external(&failed).is_err());
    assert_eq!(core.metrics().topologies_refused, 1);
}

#[cfg(feature = "driver")]
#[test]
fn the_runtime_is_shared_on_the_drivers_side() {
    let shared = kumi_cluster::driver::MembershipRuntimeShared::new(runtime(config(), "a:1"));
    let other = shared.clone();
    other
        .with(|runtime| runtime.start_member(&[], START))
        .unwrap();
    shared.turn(Vec::new(), START);
    assert_eq!(shared.members().members.len(), 1);
    assert_eq!(shared.state(), MembershipRuntimeState::Member);
}
