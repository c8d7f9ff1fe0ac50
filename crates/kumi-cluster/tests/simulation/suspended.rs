//! Processes that get no time for a while: all at once, as on a host that is paused, and one alone.

use kumi_cluster::core::{
    Authority, ClusterEvent, MembershipRuntime, MembershipRuntimeConfig, MembershipRuntimeOutcome,
    NodeStatus, NodeUid, TimerInstant,
};
use kumi_cluster::sim::{Watch, World, WorldSpec, authority};
use std::time::Duration;

const SECOND_US: u64 = 1_000_000;
const NODES: usize = 5;
const SEEDS: u64 = 40;

/// The lives that were reported as Dead, and the nodes that took another life.
#[derive(Default)]
struct Ends {
    dead: Vec<NodeUid>,
    downed: usize,
}

impl Watch for Ends {
    fn polled(
        &mut self,
        _: u64,
        _: usize,
        _: TimerInstant,
        _: &MembershipRuntime,
        outcome: &MembershipRuntimeOutcome,
    ) {
        for event in &outcome.member_events {
            match event {
                ClusterEvent::MemberStatusChanged { node_id, to, .. }
                    if *to == NodeStatus::Dead =>
                {
                    self.dead.push(*node_id);
                }
                ClusterEvent::SelfDowned { .. } => self.downed += 1,
                _ => {}
            }
        }
    }

    fn stuck(&mut self, at_us: u64, place: usize) {
        panic!("n{place} asked for turns without end at {at_us}");
    }
}

fn settled(config: MembershipRuntimeConfig, seed: u64) -> World<Ends> {
    let mut world = World::new(WorldSpec::calm(NODES, config, seed), Ends::default());
    for node in 0..NODES {
        let seeds: &[Authority] = if node == 0 { &[] } else { &[authority(0)] };
        world.start(node, seeds).unwrap();
    }
    world.run_until(20 * SECOND_US);
    assert!(agree(&world), "the cluster comes together");
    world
}

fn agree(world: &World<Ends>) -> bool {
    let running: Vec<_> = world
        .hosts()
        .iter()
        .filter_map(|host| host.runtime())
        .collect();
    running.iter().all(|runtime| {
        runtime.status() == Some(NodeStatus::Up)
            && runtime.snapshot().members.len() == NODES
            && runtime.topology_hash() == running[0].topology_hash()
    })
}

fn lives(world: &World<Ends>) -> Vec<NodeUid> {
    let running = world.hosts().iter().filter_map(|host| host.runtime());
    running.map(|runtime| runtime.identity().uid).collect()
}

/// Runs on for as long as it takes until all agree, at most this long.
#[track_caller]
fn until_agreed(world: &mut World<Ends>, within: Duration, context: &str) {
    let end_us = world.now_us() + within.as_micros() as u64;
    // What is wrong shows only after a while: the first look would find the view from before.
    world.run_until(world.now_us() + 10 * SECOND_US);
    while !agree(world) {
        assert!(world.now_us() < end_us, "{context}: no agreement");
        world.run_until(world.now_us() + SECOND_US / 2);
    }
}

/// Stops all nodes within half a second, and lets them go on within another, each in another order.
fn suspend_all(world: &mut World<Ends>, seed: u64, time: Duration) {
    let order = |step: usize| (0..NODES).map(move |turn| (turn * step + seed as usize) % NODES);
    let gap_us = SECOND_US / 2 / NODES as u64;
    for node in order(2) {
        world.pause(node);
        world.run_until(world.now_us() + gap_us);
    }
    world.run_until(world.now_us() + time.as_micros() as u64);
    for node in order(3) {
        world.resume(node);
        world.run_until(world.now_us() + gap_us);
    }
}

#[test]
fn nodes_that_were_all_suspended_go_on_with_their_lives() {
    let presets = [
        MembershipRuntimeConfig::local(),
        MembershipRuntimeConfig::lan(NODES),
        MembershipRuntimeConfig::wan(NODES),
    ];
    for config in presets {
        for seed in 0..SEEDS {
            // The last one is longer than any tombstone is kept.
            for seconds in [12, 45, 600] {
                let context = format!("{config:?}, seed {seed}, {seconds} s");
                let mut world = settled(config.clone(), seed);
                let before = lives(&world);
                suspend_all(&mut world, seed, Duration::from_secs(seconds));
                until_agreed(&mut world, config.dead_timeout * 2, &context);
                assert_eq!(lives(&world), before, "{context}");
                let ends = world.watch();
                assert!(ends.dead.is_empty() && ends.downed == 0, "{context}");
            }
        }
    }
}

#[test]
fn a_node_that_was_declared_dead_while_it_was_suspended_takes_another_life_and_ends_none() {
    let config = MembershipRuntimeConfig::lan(NODES);
    for seed in 0..SEEDS {
        for seconds in [20, 100, 600] {
            let context = format!("seed {seed}, {seconds} s");
            let mut world = settled(config.clone(), seed);
            let before = lives(&world);
            let node = seed as usize % NODES;
            world.pause(node);
            world.run_until(world.now_us() + seconds * SECOND_US);
            world.resume(node);
            until_agreed(&mut world, config.dead_timeout * 2, &context);
            let after = lives(&world);
            for other in 0..NODES {
                assert_eq!(after[other] == before[other], other != node, "{context}");
            }
            assert!(after[node] > before[node], "{context}");
            let dead = &world.watch().dead;
            assert!(
                dead.iter().all(|uid| *uid == before[node]),
                "{context}: {dead:?}"
            );
        }
    }
}
