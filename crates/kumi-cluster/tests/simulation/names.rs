//! One live node per name, on networks that lose packets.

use kumi_cluster::core::{
    MembershipRuntime, MembershipRuntimeConfig, MembershipRuntimeOutcome, NodeName, NodeStatus,
    TimerInstant,
};
use kumi_cluster::sim::{Host, LinkProfile, Watch, World, WorldSpec, authority};

const NODES: usize = 5;
const SEEDS: u64 = 20;
const SECOND_US: u64 = 1_000_000;

/// Nothing is checked on the way.
struct Unwatched;

impl Watch for Unwatched {
    fn polled(
        &mut self,
        _at_us: u64,
        _place: usize,
        _now: TimerInstant,
        _runtime: &MembershipRuntime,
        _outcome: &MembershipRuntimeOutcome,
    ) {
    }

    fn stuck(&mut self, at_us: u64, place: usize) {
        panic!("n{place} asks for turns without end at {at_us}");
    }
}

fn name() -> NodeName {
    NodeName::new("web").unwrap()
}

/// Five members of which the third is called `web`, and a machine more that has the same name. All links lose 10%.
fn world(seed: u64) -> World<Unwatched> {
    let profile = LinkProfile {
        loss: 0.1,
        ..LinkProfile::LAN
    };
    let spec = WorldSpec {
        profile,
        ..WorldSpec::calm(NODES + 1, MembershipRuntimeConfig::local(), seed)
    };
    let mut world = World::new(spec, Unwatched);
    for host in [2, NODES] {
        world.set_name(host, name());
    }
    for host in 0..NODES {
        let seeds: Vec<_> = (host > 0).then(|| authority(0)).into_iter().collect();
        world.start(host, &seeds).unwrap();
    }
    run_for(&mut world, 10);
    assert_eq!(up(&world), NODES, "seed {seed}");
    world
}

fn run_for(world: &mut World<Unwatched>, seconds: u64) {
    let until = world.now_us() + seconds * SECOND_US;
    world.run_until(until);
}

fn status(host: &Host) -> Option<NodeStatus> {
    host.runtime().and_then(|runtime| runtime.status())
}

fn up(world: &World<Unwatched>) -> usize {
    let hosts = world.hosts().iter();
    hosts
        .filter(|host| status(host) == Some(NodeStatus::Up))
        .count()
}

#[test]
fn a_second_live_node_of_one_name_does_not_stay_a_member_and_takes_over_when_the_first_crashes() {
    for seed in 0..SEEDS {
        let mut world = world(seed);
        world.start(NODES, &[authority(0), authority(1)]).unwrap();
        // All three probes of a check, or their answers, may be lost; the second node then ends its life again.
        run_for(&mut world, 30);
        assert_eq!(
            status(&world.hosts()[2]),
            Some(NodeStatus::Up),
            "seed {seed}"
        );
        let second = &world.hosts()[NODES];
        assert_eq!(status(second), Some(NodeStatus::Joining), "seed {seed}");
        let refusal = second.runtime().unwrap().refusal();
        assert!(refusal.is_some(), "seed {seed}");

        world.crash(2);
        run_for(&mut world, 10);
        let second = &world.hosts()[NODES];
        assert_eq!(status(second), Some(NodeStatus::Up), "seed {seed}");
        assert_eq!(up(&world), NODES, "seed {seed}");
    }
}

#[test]
fn a_node_that_is_killed_and_started_again_elsewhere_is_up_within_three_seconds() {
    for seed in 0..SEEDS {
        let mut world = world(seed);
        world.crash(2);
        world.start(NODES, &[authority(0), authority(1)]).unwrap();
        // It does not wait until its former life is declared dead, which takes about 4 s.
        run_for(&mut world, 3);
        let again = &world.hosts()[NODES];
        assert_eq!(status(again), Some(NodeStatus::Up), "seed {seed}");
    }
}

#[test]
fn a_node_that_is_killed_and_started_again_at_its_address_is_up_within_two_seconds() {
    for seed in 0..SEEDS {
        let mut world = world(seed);
        world
            .restart(2, &[authority(0), authority(1)], false)
            .unwrap();
        run_for(&mut world, 2);
        assert_eq!(
            status(&world.hosts()[2]),
            Some(NodeStatus::Up),
            "seed {seed}"
        );
    }
}
