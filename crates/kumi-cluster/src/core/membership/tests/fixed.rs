//! Clusters whose members are named by the caller, and which exchange nothing but heartbeats.

use super::*;

fn fixed(count: usize) -> Net {
    let mut config = MembershipRuntimeConfig::local();
    config.gossip_enabled = false;
    let mut net = Net::new(config);
    for _ in 0..count {
        net.start(&[]);
    }
    for viewer in 0..count {
        name_all(&mut net, viewer, count);
    }
    net
}

fn name_all(net: &mut Net, viewer: usize, count: usize) {
    for of in (0..count).filter(|&of| of != viewer) {
        net.name(viewer, NodeUid::UNKNOWN, of);
    }
}

#[test]
fn a_blip_of_the_network_is_survived() {
    for count in [2, 3, 4] {
        let mut net = fixed(count);
        net.run(seconds(3));
        net.assert_agreed(count);
        let (one, two): (Vec<usize>, Vec<usize>) = (0..count).partition(|index| index * 2 < count);
        net.part(&one, &two);
        net.run(seconds(12));
        net.cut.clear();
        net.run(seconds(5));
        net.assert_agreed(count);
    }
}

#[test]
fn a_member_that_is_started_long_after_the_others_is_taken_in() {
    let mut net = fixed(3);
    net.down.insert(2);
    net.run(seconds(300));
    assert!(net.status(0, 2).is_none_or(|status| status.is_terminal()));
    name_all(&mut net, 0, 3);
    let node = local_node(2, net.unix_ms());
    net.restart(2, node, 2);
    name_all(&mut net, 2, 3);
    net.run(seconds(5));
    net.assert_agreed(3);
}

#[test]
fn a_member_that_receives_nothing_convicts_no_member() {
    let mut net = fixed(4);
    net.run(seconds(3));
    for from in 0..3 {
        net.cut.insert((from, 3));
    }
    net.run(seconds(15));
    for of in 0..3 {
        assert_eq!(net.status(3, of), Some(Suspect), "n{of}");
    }
    net.cut.clear();
    net.run(seconds(3));
    net.assert_agreed(4);
}

#[test]
fn a_quarantined_member_is_back_when_its_time_is_over_or_the_order_is_lifted() {
    for lifted in [false, true] {
        let mut net = fixed(3);
        net.run(seconds(3));
        let ttl = seconds(if lifted { 1000 } else { 10 });
        for node in 0..2 {
            net.nodes[node]
                .quarantine(&authority(2), "disk", ttl, net.now)
                .expect("a member");
        }
        net.run(seconds(5));
        assert_eq!(net.nodes[0].snapshot().members.len(), 2);
        assert_eq!(net.nodes[2].status(), Some(Joining));
        if lifted {
            for node in 0..2 {
                net.nodes[node]
                    .release(&authority(2), net.now)
                    .expect("a member");
            }
        }
        net.run(seconds(15));
        net.assert_agreed(3);
    }
}

#[test]
fn a_removed_member_is_not_taken_in_again_by_its_heartbeats() {
    let mut net = fixed(3);
    net.run(seconds(3));
    let outcome = net.nodes[0].handle_leave(&authority(2), net.now);
    net.publish(0, outcome.expect("known"));
    net.run(seconds(60));
    assert!(net.status(0, 2).is_none_or(|status| status.is_terminal()));
    name_all(&mut net, 0, 3);
    net.run(seconds(5));
    assert_eq!(net.status(0, 2), Some(Up), "named again");
}
