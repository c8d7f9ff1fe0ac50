//! A member that announces later lives of other nodes, by gossip only.

use kumi_cluster::core::{
    Accusations, Authority, ClusterEvent, DownReason, Envelope, MAX_VERSION, MIN_VERSION,
    MemberMetadata, MemberRecord, MembershipDelta, MembershipRuntime, MembershipRuntimeConfig,
    MembershipRuntimeOutcome, MembershipRuntimeState, Message, NodeIdentity, NodeStatus, NodeUid,
    Seen, TimerInstant,
};
use kumi_cluster::sim::{Watch, World, WorldSpec, authority};

const SECOND_US: u64 = 1_000_000;
const NODES: usize = 6;
/// The node whose later life is announced, and the member that announces it.
const VICTIM: usize = 3;
const FORGER: usize = 5;

/// Counts the nodes that stopped because a later life took over, and those that outlived a claim.
#[derive(Default)]
struct Downs {
    superseded: usize,
    claimed: usize,
}

impl Watch for Downs {
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
                ClusterEvent::SelfDowned { reason, .. } if *reason == DownReason::Superseded => {
                    self.superseded += 1;
                }
                ClusterEvent::SelfDowned { reason, .. } if *reason == DownReason::Claimed => {
                    self.claimed += 1;
                }
                _ => {}
            }
        }
    }

    fn stuck(&mut self, at_us: u64, place: usize) {
        panic!("n{place} asked for turns without end at {at_us}");
    }
}

fn settled(seed: u64, checks_identity: bool) -> World<Downs> {
    let spec = WorldSpec {
        checks_identity,
        ..WorldSpec::calm(NODES, MembershipRuntimeConfig::local(), seed)
    };
    let mut world = World::new(spec, Downs::default());
    for node in 0..NODES {
        let seeds: &[Authority] = if node == 0 { &[] } else { &[authority(0)] };
        world.start(node, seeds).unwrap();
    }
    world.run_until(10 * SECOND_US);
    assert!(agree(&world), "the cluster comes together");
    world
}

/// Whether all processes that run are Up and see the same members, one for each authority.
fn agree(world: &World<Downs>) -> bool {
    let running = world.hosts().iter().filter_map(|host| host.runtime());
    let running: Vec<_> = running
        .filter(|runtime| runtime.state() == MembershipRuntimeState::Member)
        .collect();
    running.iter().all(|runtime| {
        runtime.status() == Some(NodeStatus::Up)
            && runtime.snapshot().members.len() == NODES
            && runtime.topology_hash() == running[0].topology_hash()
    })
}

/// Gossip of the forger: the victim has a later life.
fn forged(world: &World<Downs>, uid: NodeUid) -> Vec<u8> {
    let forger = world.hosts()[FORGER].runtime().unwrap();
    let record = MemberRecord {
        accusations: Accusations::NONE,
        metadata_stamp: 0,
        ..MemberRecord::new(
            NodeIdentity {
                authority: authority(VICTIM),
                uid,
            },
            NodeStatus::Up,
            MemberMetadata::EMPTY,
        )
    };
    let envelope = Envelope {
        cluster: forger.config().cluster_name.clone(),
        versions: (MIN_VERSION, MAX_VERSION),
        sender: forger.identity(),
        message: Message::Push {
            seen: Seen::default(),
            delta: MembershipDelta {
                records: vec![record],
                ..MembershipDelta::default()
            },
        },
    };
    envelope.encode()
}

#[test]
fn a_later_life_that_is_only_announced_stops_no_node() {
    for seed in 0..20 {
        let mut world = settled(seed, true);
        let before = world.hosts()[VICTIM].runtime().unwrap().identity().uid;
        for round in 1..=3 {
            let current = world.hosts()[VICTIM].runtime().unwrap().identity().uid;
            let uid = NodeUid::from_raw(current.raw() + (1 << 40));
            let bytes = forged(&world, uid);
            for to in 0..NODES {
                world.inject(to, authority(FORGER), &bytes);
            }
            world.run_until(world.now_us() + 30 * SECOND_US);
            assert!(agree(&world), "seed {seed}, round {round}");
        }
        let after = world.hosts()[VICTIM].runtime().unwrap().identity().uid;
        assert!(after > before);
        assert_eq!(world.watch().superseded, 0, "seed {seed}");
        assert!(world.watch().claimed >= 3, "seed {seed}");
    }
}

#[test]
fn a_life_with_the_largest_possible_uid_keeps_no_node_out() {
    for seed in 0..20 {
        let mut world = settled(seed, true);
        let bytes = forged(&world, NodeUid::from_raw(u64::MAX));
        for to in 0..NODES {
            world.inject(to, authority(FORGER), &bytes);
        }
        world.run_until(world.now_us() + 30 * SECOND_US);
        assert!(agree(&world), "seed {seed}");
        assert_eq!(world.watch().claimed, 0, "seed {seed}");
        world.restart(VICTIM, &[authority(0)], false).unwrap();
        world.run_until(world.now_us() + 30 * SECOND_US);
        assert!(agree(&world), "seed {seed}, restarted");
        assert_eq!(world.watch().superseded, 0, "seed {seed}");
    }
}

#[test]
fn a_later_life_that_exists_takes_over() {
    for seed in 0..20 {
        let mut world = settled(seed, true);
        let twin = world.add_twin(VICTIM);
        world.start(twin, &[authority(0)]).unwrap();
        world.run_until(world.now_us() + 60 * SECOND_US);
        let runs = |place: usize| {
            let runtime = world.hosts()[place].runtime().unwrap();
            runtime.state() == MembershipRuntimeState::Member
        };
        assert!(!runs(VICTIM) && runs(twin), "seed {seed}");
        assert_eq!(world.watch().superseded, 1, "seed {seed}");
    }
}

#[test]
fn without_checks_of_identity_an_announcement_is_enough() {
    let mut world = settled(1, false);
    let current = world.hosts()[VICTIM].runtime().unwrap().identity().uid;
    let bytes = forged(&world, NodeUid::from_raw(current.raw() + 1));
    world.inject(VICTIM, authority(FORGER), &bytes);
    world.run_until(world.now_us() + SECOND_US);
    assert_eq!(world.watch().superseded, 1);
}
