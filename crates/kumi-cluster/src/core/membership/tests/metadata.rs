//! What members say about themselves, and how it gets to the others.

use super::*;

/// What a node says in a push about this authority.
fn pushed(outcome: &MembershipRuntimeOutcome, of: usize) -> Vec<MemberRecord> {
    let pushes = outcome
        .gossip_outbound
        .iter()
        .filter(|outbound| outbound.kind == MessageKind::Push);
    let records = pushes.flat_map(|outbound| {
        let envelope = Envelope::decode(&outbound.bytes).expect("valid");
        match envelope.message {
            Message::Push { delta, .. } => delta.records,
            other => panic!("{other:?}"),
        }
    });
    records
        .filter(|record| record.authority == authority(of))
        .collect()
}

/// Polls one node until it pushes something about this authority, and sends nothing on.
fn next_push(net: &mut Net, node: usize, of: usize) -> Vec<MemberRecord> {
    for _ in 0..1000 {
        let at = net.nodes[node].next_deadline().expect("started");
        net.now = net.now.max(at);
        let outcome = net.nodes[node].poll(net.now);
        let records = pushed(&outcome, of);
        if !records.is_empty() {
            return records;
        }
    }
    panic!("nothing was pushed about n{of}");
}

fn learn(net: &mut Net, node: usize, record: &MemberRecord) {
    let now = net.nodes[node].advance(net.now);
    net.nodes[node].learn(record, now);
}

#[test]
fn the_metadata_of_a_new_life_is_in_its_own_rumours_and_in_those_of_others() {
    let mut net = Net::settled(3);
    let mut verdict = net.nodes[0]
        .table()
        .record(&authority(2))
        .expect("known")
        .clone();
    verdict.status = Dead;
    learn(&mut net, 2, &verdict);
    assert!(net.uid(2) > verdict.uid, "it is somebody new");
    let told = next_push(&mut net, 2, 2);
    assert!(
        told.iter().all(|record| record.metadata_stamp > 0),
        "{told:?}"
    );
    let reborn = told.last().expect("not empty").clone();
    learn(&mut net, 0, &reborn);
    let relayed = next_push(&mut net, 0, 2);
    assert!(
        relayed
            .iter()
            .all(|record| record.metadata == reborn.metadata),
        "{relayed:?}"
    );
}

#[test]
fn metadata_that_changes_or_comes_later_is_told_in_an_event() {
    let mut net = Net::settled(3);
    let metadata = MemberMetadata::build("2.0", &[], &[]).expect("short");
    net.nodes[1]
        .set_metadata(metadata.clone(), net.now)
        .expect("a member");
    net.run(seconds(2));
    for viewer in 0..3 {
        let told = net.count(viewer, |event| {
            matches!(event, ClusterEvent::TopologyUpdated { members, joined, .. }
                if members[1].metadata == metadata && joined.is_empty())
        });
        assert_eq!(told, 1, "n{viewer}");
    }
    let before = net.nodes[0].metrics().cancelled_windows;
    net.run(seconds(10));
    assert_eq!(net.nodes[0].metrics().cancelled_windows, before);
}

#[test]
fn the_last_stamp_of_metadata_is_the_end_of_a_life_and_not_of_the_node() {
    let mut net = Net::settled(3);
    let mut forged = net.nodes[2]
        .table()
        .record(&authority(2))
        .expect("known")
        .clone();
    forged.metadata_stamp = u64::MAX;
    forged.metadata = MemberMetadata::build("forged", &[], &[]).expect("short");
    let before = forged.uid;
    for viewer in 0..3 {
        learn(&mut net, viewer, &forged);
    }
    net.run(seconds(3));
    assert!(net.uid(2) > before);
    let metadata = MemberMetadata::build("2.0", &[], &[]).expect("short");
    net.nodes[2]
        .set_metadata(metadata.clone(), net.now)
        .expect("a member");
    net.run(seconds(3));
    net.assert_agreed(3);
    for viewer in 0..3 {
        let members = net.nodes[viewer].snapshot().members;
        assert_eq!(members[2].metadata, metadata, "n{viewer}");
    }
    assert!(
        net.nodes[2].incarnation() < 9,
        "one forged record is not answered for ever"
    );
}

#[test]
fn what_was_said_in_its_name_is_corrected_by_the_subject_in_any_incarnation() {
    let mut net = Net::settled(3);
    // It has spoken up against a suspicion before.
    let own = net.nodes[2]
        .table()
        .record(&authority(2))
        .expect("known")
        .clone();
    let mut suspect = own.clone();
    suspect.status = Suspect;
    learn(&mut net, 2, &suspect);
    net.run(seconds(2));
    assert!(net.nodes[2].incarnation() > own.incarnation);
    let mut forged = own;
    forged.metadata_stamp = 7;
    forged.metadata = MemberMetadata::build("forged", &[], &[]).expect("short");
    learn(&mut net, 0, &forged);
    learn(&mut net, 2, &forged);
    net.run(seconds(4));
    let members = net.nodes[0].snapshot().members;
    assert_eq!(members[2].metadata.version(), "1.0");
}
