//! `foca` on the simulated network, with its own preset for a network of one site.
//!
//! Its identities carry an address and a counter, and no metadata: every packet would be longer with it.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::num::NonZeroU32;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use foca::{
    Config, Foca, Identity, NoCustomBroadcast, Notification, PostcardCodec, Runtime, Timer,
};
use kumi_cluster::sim::{Carriage, EventQueue, LinkProfile, Network, SimRng};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde::{Deserialize, Serialize};

use crate::{Figures, cpu_seconds, procfs};

const SECOND_US: u64 = 1_000_000;
/// All nodes start within this time.
const STORM_US: u64 = 1_000_000;
/// How often the nodes are looked at while something is waited for.
const LOOK_US: u64 = 100_000;

/// How long its join storm may take.
const JOIN_SECONDS: u64 = 120;
/// How long everybody may take to hear of a crash.
const CRASH_SECONDS: u64 = 60;
/// How many nodes are announced to.
const SEEDS: usize = 3;

/// A join storm, a calm while, and crashes one after another.
pub(crate) fn measure(
    nodes: usize,
    seed: u64,
    calm_seconds: u64,
    crashes: usize,
) -> Result<Figures> {
    let mut cluster = FocaCluster::storm(nodes, seed)?;
    let mut figures = Figures {
        joined_seconds: cluster
            .joined_after_us
            .map_or(f64::NAN, |us| us as f64 / 1e6),
        join_cpu_seconds: cluster.join_cpu_seconds,
        ..Figures::default()
    };
    if calm_seconds > 0 {
        cluster.calm(calm_seconds, &mut figures)?;
    }
    figures.crash_seconds = cluster.crashes(crashes);
    Ok(figures)
}

/// How often a running node was told to be down while all links lose packets.
pub(crate) fn false_downs(nodes: usize, seed: u64, loss: f64, seconds: u64) -> Result<u64> {
    let mut cluster = FocaCluster::storm(nodes, seed)?;
    let before = cluster.false_downs;
    cluster.network.set_profile(LinkProfile {
        loss,
        ..LinkProfile::LAN
    });
    cluster.run_for(seconds * SECOND_US);
    Ok(cluster.false_downs - before)
}

/// An address, and how often its owner has come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Name {
    address: SocketAddrV4,
    life: u16,
}

impl Name {
    fn new(place: usize) -> Name {
        let [.., high, low] = (place as u32).to_be_bytes();
        Name {
            address: SocketAddrV4::new(Ipv4Addr::new(10, 0, high, low), 7000),
            life: 0,
        }
    }

    fn place(self) -> usize {
        let [_, _, high, low] = self.address.ip().octets();
        usize::from(u16::from_be_bytes([high, low]))
    }
}

impl Identity for Name {
    type Addr = SocketAddrV4;

    fn renew(&self) -> Option<Self> {
        Some(Name {
            life: self.life.wrapping_add(1),
            ..*self
        })
    }

    fn addr(&self) -> SocketAddrV4 {
        self.address
    }

    fn win_addr_conflict(&self, adversary: &Self) -> bool {
        self.life > adversary.life
    }
}

type Node = Foca<Name, PostcardCodec, SmallRng, NoCustomBroadcast>;

/// What a node wants after a call.
#[derive(Default)]
struct Wishes {
    sends: Vec<(Name, Vec<u8>)>,
    timers: Vec<(Duration, Timer<Name>)>,
    downs: Vec<Name>,
}

impl Runtime<Name> for Wishes {
    fn notify(&mut self, notification: Notification<'_, Name>) {
        if let Notification::MemberDown(name) = notification {
            self.downs.push(*name);
        }
    }

    fn send_to(&mut self, to: Name, data: &[u8]) {
        self.sends.push((to, data.to_vec()));
    }

    fn submit_after(&mut self, event: Timer<Name>, after: Duration) {
        self.timers.push((after, event));
    }
}

enum Event {
    Data { to: usize, bytes: Vec<u8> },
    Timer { place: usize, timer: Timer<Name> },
}

/// A cluster of foca nodes.
struct FocaCluster {
    queue: EventQueue<Event>,
    network: Network,
    nodes: Vec<Option<Node>>,
    /// By subject: who was told that it is down.
    downs: Vec<BTreeSet<usize>>,
    false_downs: u64,
    /// When everybody knew everybody, if that came about.
    joined_after_us: Option<u64>,
    join_cpu_seconds: f64,
}

impl FocaCluster {
    /// Starts all nodes within a second; they announce themselves to one of the first ones.
    fn storm(count: usize, seed: u64) -> Result<FocaCluster> {
        let cpu = cpu_seconds()?;
        let size = NonZeroU32::new(count as u32).context("no nodes")?;
        ensure!(
            count <= usize::from(u16::MAX),
            "addresses are two bytes long"
        );
        let mut rng = SimRng::new(seed);
        let network = Network::new(count, LinkProfile::LAN, rng.fork());
        let mut cluster = FocaCluster {
            queue: EventQueue::new(),
            network,
            nodes: Vec::new(),
            downs: vec![BTreeSet::new(); count],
            false_downs: 0,
            joined_after_us: None,
            join_cpu_seconds: 0.0,
        };
        for place in 0..count {
            cluster.run_until(STORM_US * place as u64 / count as u64);
            let random = SmallRng::seed_from_u64(rng.word());
            let node = Foca::new(
                Name::new(place),
                Config::new_lan(size),
                random,
                PostcardCodec,
            );
            cluster.nodes.push(Some(node));
            if place > 0 {
                let seed = Name::new(place % SEEDS.min(place));
                cluster.call(place, |node, wishes| node.announce(seed, wishes));
            }
        }
        while cluster.queue.now_us() < JOIN_SECONDS * SECOND_US {
            cluster.run_for(LOOK_US);
            if cluster.agrees() {
                cluster.joined_after_us = Some(cluster.queue.now_us());
                break;
            }
        }
        cluster.join_cpu_seconds = cpu_seconds()? - cpu;
        Ok(cluster)
    }

    fn agrees(&self) -> bool {
        let running = self.nodes.iter().flatten().count();
        let mut nodes = self.nodes.iter().flatten();
        nodes.all(|node| node.num_members() + 1 == running)
    }

    fn run_for(&mut self, for_us: u64) {
        self.run_until(self.queue.now_us() + for_us);
    }

    fn run_until(&mut self, until_us: u64) {
        while let Some(event) = self.queue.pop_until(until_us) {
            match event {
                Event::Data { to, bytes } => {
                    self.call(to, |node, wishes| node.handle_data(&bytes, wishes));
                }
                Event::Timer { place, timer } => {
                    self.call(place, |node, wishes| node.handle_timer(timer, wishes));
                }
            }
        }
    }

    /// Calls a node, if it runs, and does what it wants.
    ///
    /// A call may be refused, as when the sender has not noticed its own death. That is no failure of the run: what
    /// comes of it shows in the figures.
    fn call(
        &mut self,
        place: usize,
        call: impl FnOnce(&mut Node, &mut Wishes) -> Result<(), foca::Error>,
    ) {
        let Some(Some(node)) = self.nodes.get_mut(place) else {
            return;
        };
        let mut wishes = Wishes::default();
        let _ = call(node, &mut wishes);
        let now_us = self.queue.now_us();
        for (to, bytes) in wishes.sends {
            let (to, carriage) = (to.place(), Carriage::Datagram);
            let arrivals = self.network.send(place, to, bytes.len(), carriage, now_us);
            if let Some(at_us) = arrivals.first_us {
                self.queue.push(at_us, Event::Data { to, bytes });
            }
        }
        for (after, timer) in wishes.timers {
            let at_us = now_us + after.as_micros() as u64;
            self.queue.push(at_us, Event::Timer { place, timer });
        }
        for name in wishes.downs {
            let subject = name.place();
            self.downs[subject].insert(place);
            let running = self.nodes[subject].as_ref();
            let false_down = running.is_some_and(|node| *node.identity() == name);
            self.false_downs += u64::from(false_down);
        }
    }

    /// A while in which nothing happens.
    fn calm(&mut self, seconds: u64, figures: &mut Figures) -> Result<()> {
        self.run_for(20 * SECOND_US);
        let (before, cpu) = (self.network.totals(), cpu_seconds()?);
        self.run_for(seconds * SECOND_US);
        let (after, cpu_after) = (self.network.totals(), cpu_seconds()?);
        let per_node = |value: u64| value as f64 / seconds as f64 / self.nodes.len() as f64;
        figures.bytes_per_second = per_node(after.bytes - before.bytes);
        figures.packets_per_second = per_node(after.packets - before.packets);
        figures.calm_cpu_seconds = cpu_after - cpu;
        figures.resident_bytes = procfs::resident_bytes(std::process::id())?;
        Ok(())
    }

    /// Crashes nodes one after another; the longest time until everybody was told that one is down, or the limit.
    fn crashes(&mut self, count: usize) -> f64 {
        let mut slowest_us = 0;
        for round in 0..count {
            let victim = SEEDS + (round * 97) % (self.nodes.len() - SEEDS);
            self.nodes[victim] = None;
            self.downs[victim].clear();
            let others = self.nodes.iter().flatten().count();
            let crashed_us = self.queue.now_us();
            let until_us = crashed_us + CRASH_SECONDS * SECOND_US;
            while self.downs[victim].len() < others && self.queue.now_us() < until_us {
                self.run_for(LOOK_US);
            }
            slowest_us = slowest_us.max(self.queue.now_us() - crashed_us);
        }
        slowest_us as f64 / 1e6
    }
}
