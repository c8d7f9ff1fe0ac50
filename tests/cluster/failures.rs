//! Five nodes on loopback, and what happens to processes: kill -9, a long pause, restarts one after the other.

use super::nodes::{Cluster, Plan, tell, turn};
use rustix::process::Signal;
use std::time::{Duration, Instant};

fn five() -> Cluster {
    let mut cluster = Cluster::new();
    let mut plan = Plan::loopback(&[]);
    for _ in 0..5 {
        let place = cluster.add(plan.clone());
        plan.seeds = vec![cluster.nodes[0].authority.clone()];
        assert_eq!(
            cluster.nodes[place].authority,
            cluster.nodes[place].listening
        );
    }
    tell("five nodes joined", cluster.agree(&[0, 1, 2, 3, 4]));
    cluster
}

#[test]
fn killed_paused_and_restarted_nodes_are_noticed_and_come_back() {
    let _turn = turn();
    let mut cluster = five();

    let victim = cluster.nodes[4].authority.clone();
    cluster.nodes[4].kill();
    let detected = cluster.until("the killed node is dead", |views| {
        views[..4].iter().all(|view| view.has_seen(&victim, "dead"))
    });
    tell("kill -9 detected by all", detected);
    tell("and out of every topology", cluster.agree(&[0, 1, 2, 3]));
    cluster.restart(4);
    assert_eq!(cluster.nodes[4].authority, victim);
    tell(
        "restarted on its address and back",
        cluster.agree(&[0, 1, 2, 3, 4]),
    );

    let paused = cluster.nodes[3].authority.clone();
    let others = cluster.others(3);
    cluster.nodes[3].signal(Signal::STOP);
    let detected = cluster.until("the stopped node is dead", |views| {
        others
            .iter()
            .all(|other| views[*other].has_seen(&paused, "dead"))
    });
    tell("SIGSTOP detected by all", detected);
    cluster.agree(&others);
    cluster.nodes[3].signal(Signal::CONT);
    tell("SIGCONT and back", cluster.agree(&[0, 1, 2, 3, 4]));

    for place in 0..5 {
        let leaving = cluster.nodes[place].authority.clone();
        let others = cluster.others(place);
        let known: Vec<usize> = cluster
            .views
            .iter()
            .map(|view| view.statuses.len())
            .collect();
        let asked = Instant::now();
        cluster.nodes[place].signal(Signal::TERM);
        assert_eq!(
            cluster.nodes[place].ended(),
            Some(0),
            "a node that leaves ends well"
        );
        cluster.agree(&others);
        let left = asked.elapsed();
        // A rumour may miss a node, which then learns of the end only; but no node takes a leave for a death.
        let told = |other: &usize| &cluster.views[*other].statuses[known[*other]..];
        let says = |other: &usize, status: &str| {
            let mut told = told(other).iter();
            told.any(|(who, what)| *who == leaving && what == status)
        };
        assert!(others.iter().any(|other| says(other, "leaving")));
        for other in &others {
            assert!(
                says(other, "removed") && !says(other, "dead"),
                "node {other}: {:?}",
                told(other)
            );
        }
        cluster.restart(place);
        let back = cluster.agree(&[0, 1, 2, 3, 4]);
        tell(&format!("rolling restart of node {place}: left"), left);
        tell(&format!("rolling restart of node {place}: back"), back);
    }
    cluster.all_tell_the_same_hash();
}

#[test]
fn nodes_that_are_all_stopped_for_a_while_go_on_with_their_lives() {
    /// Longer than half of the preset's `dead_timeout`, and than an idle connection lives.
    const STOPPED: Duration = Duration::from_secs(12);
    let _turn = turn();
    let mut cluster = five();
    let before = cluster.asked_lives(0);
    for node in &cluster.nodes {
        node.signal(Signal::STOP);
    }
    // Nothing can be waited for: nobody speaks meanwhile.
    std::thread::sleep(STOPPED);
    for node in &cluster.nodes {
        node.signal(Signal::CONT);
    }
    // That they notice a death shows that they have heard each other since, and that any other verdict would be out.
    let victim = cluster.nodes[4].authority.clone();
    cluster.nodes[4].kill();
    let detected = cluster.until("the killed node is dead", |views| {
        views[..4].iter().all(|view| view.has_seen(&victim, "dead"))
    });
    tell(
        "stopped for 12 s; kill -9 afterwards detected by all",
        detected,
    );
    cluster.agree(&[0, 1, 2, 3]);
    for place in 0..4 {
        let lives = cluster.asked_lives(place);
        let view = &cluster.views[place];
        assert!(view.told("self_downed").is_none(), "{view:?}");
        for other in &cluster.nodes[..4] {
            let (now, then) = (lives.get(&other.authority), before.get(&other.authority));
            assert_eq!(now, then, "as node {place} sees {}", other.authority);
            assert!(!view.has_seen(&other.authority, "dead"), "{view:?}");
        }
    }
}
