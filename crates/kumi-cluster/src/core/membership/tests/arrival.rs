//! Which node starts the cluster when the nodes name each other as seeds, and not themselves.

use super::*;

#[test]
fn nodes_that_name_each_other_find_together() {
    for count in [2, 3, 7] {
        let mut net = Net::new(MembershipRuntimeConfig::local());
        for index in 0..count {
            let others: Vec<usize> = (0..count).filter(|&other| other != index).collect();
            net.start(&others);
        }
        net.run(seconds(15));
        net.assert_agreed(count);
    }
}

#[test]
fn nodes_that_name_each_other_in_a_circle_find_together() {
    let mut net = Net::new(MembershipRuntimeConfig::local());
    for index in 0..5 {
        net.start(&[(index + 1) % 5]);
    }
    net.run(seconds(15));
    net.assert_agreed(5);
}

#[test]
fn a_node_that_no_joiner_asks_waits_for_its_seed() {
    let mut net = Net::new(MembershipRuntimeConfig::local());
    net.start(&[1]);
    net.run(seconds(60));
    assert_eq!(net.nodes[0].status(), Some(Joining));
    net.start(&[1]);
    net.run(seconds(15));
    net.assert_agreed(2);
}
