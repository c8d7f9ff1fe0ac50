//! What those see who only watch.

use super::*;

fn observing(members: usize) -> (Net, usize) {
    let mut net = Net::settled(members);
    let client = net.add();
    net.nodes[client]
        .start_client(&[authority(0)], net.now)
        .expect("stopped");
    net.run(seconds(10));
    assert_eq!(net.nodes[client].snapshot().members.len(), members);
    (net, client)
}

#[test]
fn an_observer_that_was_shown_an_island_sees_the_cluster_again() {
    let (mut net, client) = observing(4);
    let record = net.nodes[0]
        .table()
        .record(&authority(0))
        .expect("known")
        .clone();
    let seen = Seen {
        version: 1,
        digest: 0,
    };
    let delta = MembershipDelta {
        to_version: 1,
        records: vec![record.clone()],
        ..MembershipDelta::default()
    };
    let envelope = Envelope {
        cluster: "kumi".into(),
        versions: (1, 1),
        sender: record.identity(),
        message: Message::PullReply {
            seen,
            wanted: 0,
            delta,
        },
    };
    net.nodes[client]
        .handle_message(&authority(0), &envelope.encode(), net.now)
        .expect("valid");
    assert_eq!(net.nodes[client].snapshot().members.len(), 1);
    net.run(seconds(10));
    assert_eq!(
        net.nodes[client].snapshot().hash,
        net.nodes[0].snapshot().hash
    );
    let died = net.count(
        client,
        |event| matches!(event, ClusterEvent::MemberStatusChanged { to, .. } if to.is_terminal()),
    );
    assert_eq!(died, 0, "to be out of sight is not the end of a life");
}

#[test]
fn an_observer_learns_of_a_departure_whose_tombstone_is_gone_too() {
    let (mut net, client) = observing(4);
    net.down.extend([3, client]);
    net.run(seconds(60));
    assert_eq!(net.status(0, 3), None, "collected");
    net.down.remove(&client);
    net.run(seconds(15));
    assert_eq!(
        net.nodes[client].snapshot().hash,
        net.nodes[0].snapshot().hash
    );
}

#[test]
fn an_observer_queues_nothing_to_tell() {
    let (mut net, client) = observing(3);
    net.nodes[0]
        .quarantine(&authority(2), "", seconds(5), net.now)
        .expect("a member");
    net.run(seconds(20));
    assert_eq!(net.nodes[client].footprint().rumors, 0);
    assert_eq!(
        net.nodes[client].snapshot().hash,
        net.nodes[0].snapshot().hash
    );
}
