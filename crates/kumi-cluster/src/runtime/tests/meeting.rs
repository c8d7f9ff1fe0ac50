//! Claims that a later life of a node exists, true and false ones.

use super::*;
use crate::runtime::meeting::MEETING_TIMEOUT;

fn later() -> NodeUid {
    NodeUid::new(UNIX_MS * 2, 0)
}

/// Three nodes that check identities, and the claim of a later life of the third.
fn claimed() -> Net {
    let mut net = Net::settled(3);
    for node in &mut net.nodes {
        node.require_meeting(true);
    }
    net.name(0, later(), 2);
    net
}

#[test]
fn a_claim_that_is_not_met_stops_no_node() {
    let mut net = claimed();
    net.run(MEETING_TIMEOUT + seconds(5));
    assert_eq!(net.nodes[2].status(), Some(Up));
    assert!(net.uid(2) > later());
    net.assert_agreed(3);
    let downs = |reason| net.count(2, |event| is_self_downed(event, reason));
    assert_eq!(downs(DownReason::Claimed), 1);
    assert_eq!(downs(DownReason::Superseded), 0);
}

#[test]
fn the_driver_is_asked_once_and_its_answer_decides() {
    for is_met in [true, false] {
        let mut net = claimed();
        let mut asked = Vec::new();
        // Several messages repeat the claim.
        for _ in 0..5 {
            net.run(Duration::from_millis(100));
            let now = net.now;
            let mut repeated = net.nodes[0]
                .table()
                .record(&authority(2))
                .expect("known")
                .clone();
            repeated.uid = later();
            let at = net.nodes[2].advance(now);
            net.nodes[2].learn(&repeated, at);
            asked.extend(net.nodes[2].poll(now).meet);
        }
        // The first request left in an outcome that the network took.
        assert!(asked.is_empty(), "{asked:?}");
        let now = net.now;
        let found = NodeIdentity {
            authority: authority(2),
            uid: later(),
        };
        match is_met {
            true => net.nodes[2].met(&found, now),
            false => net.nodes[2].not_met(now),
        }
        let expected = match is_met {
            true => MembershipRuntimeState::Stopped,
            false => MembershipRuntimeState::Member,
        };
        assert_eq!(net.nodes[2].state(), expected);
    }
}

#[test]
fn the_first_claim_asks_the_driver() {
    let mut net = Net::settled(1);
    net.nodes[0].require_meeting(true);
    let mut own = net.nodes[0]
        .table()
        .record(&authority(0))
        .expect("known")
        .clone();
    own.uid = later();
    let now = net.nodes[0].advance(net.now);
    net.nodes[0].learn(&own, now);
    assert_eq!(net.nodes[0].poll(net.now).meet, Some(later()));
}

#[test]
fn meeting_another_node_or_an_earlier_life_changes_nothing() {
    let mut net = claimed();
    net.run(Duration::from_millis(100));
    let now = net.now;
    for (of, uid) in [(1, later()), (2, NodeUid::from_raw(5))] {
        let authority = authority(of);
        net.nodes[2].met(&NodeIdentity { authority, uid }, now);
        assert_eq!(net.nodes[2].state(), MembershipRuntimeState::Member);
    }
}

#[test]
fn a_node_that_leaves_goes_on_leaving() {
    let mut net = Net::settled(3);
    net.nodes[2].require_meeting(true);
    net.nodes[2].leave(net.now).expect("a member");
    net.name(0, later(), 2);
    net.run(MEETING_TIMEOUT + seconds(5));
    assert_eq!(net.nodes[2].state(), MembershipRuntimeState::Stopped);
    assert_eq!(
        net.count(2, |event| matches!(event, ClusterEvent::SelfDowned { .. })),
        0
    );
}
