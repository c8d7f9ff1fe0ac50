//! Many die at once: those who are left find them all out, and do not lose each other meanwhile.

use super::*;

fn self_downed(event: &ClusterEvent) -> bool {
    matches!(event, ClusterEvent::SelfDowned { .. })
}

#[test]
fn a_few_survivors_give_up_all_the_others() {
    for (count, survivors) in [(12, 2), (12, 3), (20, 3), (30, 5)] {
        let mut net = Net::settled(count);
        let uids: Vec<NodeUid> = (0..survivors).map(|index| net.uid(index)).collect();
        net.down.extend(survivors..count);
        net.run(seconds(30));
        net.assert_agreed(survivors);
        for (index, &uid) in uids.iter().enumerate() {
            assert_eq!(net.uid(index), uid, "n{index} of {count}");
            assert_eq!(net.count(index, self_downed), 0);
        }
    }
}

#[test]
fn joiners_that_die_at_once_do_not_come_between_those_who_live() {
    let mut net = Net::settled(5);
    let uids: Vec<NodeUid> = (0..5).map(|index| net.uid(index)).collect();
    for _ in 0..6 {
        let ghosts: Vec<usize> = (0..10).map(|index| net.start(&[index % 5])).collect();
        net.run(Duration::from_millis(700));
        net.down.extend(ghosts);
    }
    let start = net.now;
    while net.nodes[..5]
        .iter()
        .any(|node| node.snapshot().members.len() > 5)
    {
        net.run(seconds(1));
        assert!(net.now.saturating_since(start) < seconds(25));
    }
    net.assert_agreed(5);
    for (index, &uid) in uids.iter().enumerate() {
        assert_eq!(net.uid(index), uid, "n{index}");
        assert_eq!(net.count(index, self_downed), 0, "n{index}");
    }
}

#[test]
fn a_node_that_receives_no_refutations_counts_all_monitors() {
    let mut net = Net::settled(12);
    // It receives from four of the eleven others, and of the rest through them at best.
    for from in 4..11 {
        net.cut.insert((from, 11));
    }
    net.run(seconds(30));
    for viewer in 0..12 {
        for of in 0..11 {
            let status = net.status(viewer, of);
            assert!(
                matches!(status, Some(Up | Suspect)),
                "{viewer} sees {of} as {status:?}"
            );
        }
    }
}
