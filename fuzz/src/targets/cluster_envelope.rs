//! Any bytes as messages to a node: each is read or refused, what is read is written the same, and the node takes all of
//! it without breaking a promise: no panic, nothing past a limit, no illegal step of any member.
//!
//! The input is a sequence of (length as two bytes, time to pass as one byte, message).

use kumi_cluster::core::{
    Authority, ClusterEvent, Envelope, LocalNode, MemberMetadata, MembershipRuntime,
    MembershipRuntimeConfig, TimerInstant,
};
use std::time::Duration;

/// Runs one input.
pub fn run(input: &[u8]) {
    let peer = Authority::new("peer:1").expect("valid");
    let mut now = TimerInstant::from_millis(1);
    let mut node = node(now);
    let mut rest = input;
    while let Some((head, after)) = rest.split_first_chunk::<3>() {
        let len = usize::from(u16::from_le_bytes([head[0], head[1]])).min(after.len());
        let (message, after) = after.split_at(len);
        rest = after;
        now = now + Duration::from_millis(u64::from(head[2]) * 40);
        if let Ok(envelope) = Envelope::decode(message) {
            assert_eq!(
                envelope.encode(),
                message,
                "what was read is written differently"
            );
        }
        // Refusals are the expected answer to most of it.
        let _ = node.handle_message(&peer, message, now);
        check(&mut node, now);
    }
    // Everything that the messages set in motion runs out.
    for _ in 0..50 {
        let Some(at) = node.next_deadline() else {
            break;
        };
        now = now.max(at);
        check(&mut node, now);
    }
}

fn node(now: TimerInstant) -> MembershipRuntime {
    let mut config = MembershipRuntimeConfig::local();
    config.max_members = 16;
    config.max_address_book = 4;
    let node = LocalNode {
        authority: Authority::new("own:1").expect("valid"),
        metadata: MemberMetadata::EMPTY,
        unix_ms: 1_700_000_000_000,
        uid: None,
    };
    let mut runtime = MembershipRuntime::new(config, node, 7, now).expect("valid");
    runtime.start_member(&[], now).expect("stopped before");
    runtime
}

fn check(node: &mut MembershipRuntime, now: TimerInstant) {
    let outcome = node.poll(now);
    for outbound in &outcome.gossip_outbound {
        assert!(
            Envelope::decode(&outbound.bytes).is_ok(),
            "a node sends what nobody can read"
        );
    }
    for event in outcome.into_events() {
        if let ClusterEvent::MemberStatusChanged {
            from: Some(from),
            to,
            ..
        } = event
        {
            assert!(from.may_become(to), "{from} to {to}");
        }
    }
    let footprint = node.footprint();
    assert!(
        footprint.records <= 16 && footprint.addresses <= 4,
        "{footprint:?}"
    );
    assert!(
        footprint.timeouts <= 16 && footprint.watches <= 16,
        "{footprint:?}"
    );
    assert!(footprint.rumors <= 16 + 16, "{footprint:?}");
}
