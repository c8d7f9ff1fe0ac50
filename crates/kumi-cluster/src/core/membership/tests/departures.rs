//! How the lives that are over ended, as each node reports it.

use super::*;
use crate::core::membership::parts::outbox::MAX_EVENTS;
use crate::core::protocol::event::Departure;

/// The lives that this node reported as over for this reason; no reason means that it forgot them.
fn reported(net: &Net, viewer: usize, wanted: Option<GoneCause>) -> Vec<NodeIdentity> {
    let departures = net.departures[viewer].iter();
    let wanted = departures.filter(|departure| match departure {
        Departure::Gone { cause, .. } => wanted == Some(*cause),
        Departure::Forgotten { .. } => wanted.is_none(),
    });
    wanted
        .map(|departure| departure.identity().clone())
        .collect()
}

#[test]
fn a_life_whose_node_is_restarted_was_replaced() {
    let mut net = Net::settled(3);
    let before = net.nodes[2].identity();
    net.restart(2, local_node(2, net.unix_ms()), 0);
    net.run(seconds(5));
    net.assert_agreed(3);
    for viewer in 0..2 {
        assert_eq!(net.departures[viewer].len(), 1, "n{viewer}");
        let replaced = reported(&net, viewer, Some(GoneCause::Replaced));
        assert_eq!(replaced, std::slice::from_ref(&before), "n{viewer}");
    }
}

#[test]
fn a_node_that_outlives_a_claim_replaces_itself() {
    let mut net = Net::settled(3);
    for node in &mut net.nodes {
        node.require_meeting(true);
    }
    let before = net.nodes[2].identity();
    let claimed = NodeUid::from_raw(before.uid.raw() + 1);
    net.name(0, claimed, 2);
    net.run(seconds(20));
    net.assert_agreed(3);
    let replaced = reported(&net, 2, Some(GoneCause::Replaced));
    assert_eq!(replaced, [before]);
}

#[test]
fn an_isolated_node_forgets_all_lives_and_its_own() {
    let mut net = Net::settled(4);
    let lives: Vec<NodeIdentity> = net.nodes.iter().map(MembershipRuntime::identity).collect();
    net.part(&[3], &[0, 1, 2]);
    net.run(net.config.dead_timeout);
    let mut forgotten = reported(&net, 3, None);
    forgotten.sort();
    assert_eq!(forgotten, lives);
    assert_eq!(net.departures[3].len(), 4, "and reports nothing else");
    for viewer in 0..3 {
        let died = reported(&net, viewer, Some(GoneCause::Died));
        assert_eq!(died, lives[3..], "n{viewer}");
    }
}

#[test]
fn an_observer_forgets_the_members_that_the_peer_it_asks_does_not_see() {
    let mut net = Net::settled(3);
    let client = net.add();
    let now = net.now;
    let started = net.nodes[client].start_client(&[authority(0)], now);
    started.expect("stopped");
    net.run(seconds(10));
    let own = net.nodes[0].table().record(&authority(0)).expect("known");
    let delta = MembershipDelta {
        to_version: 1,
        records: vec![own.clone()],
        ..MembershipDelta::default()
    };
    let seen = Seen {
        version: 1,
        digest: 0,
    };
    let envelope = Envelope {
        cluster: "kumi".into(),
        versions: (1, 1),
        sender: own.identity(),
        message: Message::PullReply {
            seen,
            wanted: 0,
            delta,
        },
    };
    let taken = net.nodes[client].handle_message(&authority(0), &envelope.encode(), net.now);
    assert_eq!(taken, Ok(()));
    net.poll(client);
    let others = [net.nodes[1].identity(), net.nodes[2].identity()];
    let mut forgotten = reported(&net, client, None);
    forgotten.sort();
    assert_eq!(forgotten, others);
}

#[test]
fn departures_beyond_the_limit_are_counted() {
    let mut net = Net::settled(1);
    let identity = net.nodes[0].identity();
    let now = net.nodes[0].advance(net.now);
    for _ in 0..MAX_EVENTS + 5 {
        net.nodes[0].departed(identity.clone(), Some(GoneCause::Left), now);
    }
    let outcome = net.nodes[0].poll(net.now);
    assert_eq!(outcome.departures.len(), MAX_EVENTS);
    assert_eq!(outcome.departures_skipped, 5);
    assert_eq!(net.nodes[0].poll(net.now).departures_skipped, 0);
}
