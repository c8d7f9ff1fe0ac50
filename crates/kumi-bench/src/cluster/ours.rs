//! Clusters of ours on the simulated network.
//!
//! Virtual times depend on nothing but the seed; only CPU time and memory depend on the machine.

use anyhow::{Context, Result, ensure};
use kumi_cluster::sim::{LinkProfile, World, WorldSpec, authority};
use kumi_cluster::{MembershipRuntimeConfig, NodeStatus};

use crate::cluster::probe::Probe;
use crate::cluster::{SECOND_US, Seen, cpu_seconds};
use crate::procfs;
use crate::progress::Task;

/// How many nodes are named as seeds. The first of them starts alone.
const SEEDS: usize = 3;
/// All nodes start within this time.
const STORM_US: u64 = 1_000_000;
/// How long a node is heard or not before that changes.
const TURN_US: u64 = 20_000_000;
/// How often a cluster is looked at while something is waited for.
const LOOK_US: u64 = 100_000;

/// A cluster that has come together.
pub(crate) struct Cluster {
    world: World<Probe>,
    nodes: usize,
    /// From the first start until all agreed on all.
    joined_us: u64,
    /// The most sizes of the cluster that one node told meanwhile.
    pub(crate) sizes: usize,
    join_cpu_seconds: f64,
}

impl Cluster {
    /// Starts all nodes within a second, and waits until they agree.
    pub(crate) fn storm(nodes: usize, seed: u64) -> Result<Cluster> {
        let cpu = cpu_seconds()?;
        let spec = WorldSpec::calm(nodes, MembershipRuntimeConfig::lan(nodes), seed);
        let mut world = World::new(spec, Probe::new(nodes));
        let seeds: Vec<_> = (0..SEEDS.min(nodes)).map(authority).collect();
        world.start(0, &[])?;
        for node in 1..nodes {
            world.run_until(STORM_US * node as u64 / nodes as u64);
            world.start(node, &seeds)?;
        }
        let mut cluster = Cluster {
            world,
            nodes,
            joined_us: 0,
            sizes: 0,
            join_cpu_seconds: 0.0,
        };
        let limit_us = 120 * SECOND_US;
        cluster
            .wait(limit_us, Cluster::agrees)
            .context("the join storm never settled")?;
        cluster.joined_us = cluster.world.now_us();
        // The last event of the storm comes when its window closes.
        cluster.run(5 * SECOND_US);
        cluster.sizes = cluster.world.watch().most_sizes();
        cluster.join_cpu_seconds = cpu_seconds()? - cpu;
        Ok(cluster)
    }

    fn run(&mut self, for_us: u64) {
        self.world.run_until(self.world.now_us() + for_us);
    }

    /// Looks again and again until it is so.
    fn wait(&mut self, limit_us: u64, mut is_so: impl FnMut(&mut Cluster) -> bool) -> Result<u64> {
        let begin_us = self.world.now_us();
        while !is_so(self) {
            let waited_us = self.world.now_us() - begin_us;
            ensure!(
                waited_us < limit_us,
                "not within {} virtual seconds",
                limit_us / SECOND_US
            );
            self.run(LOOK_US);
        }
        Ok(self.world.now_us() - begin_us)
    }

    /// Whether all nodes hold all nodes to be up.
    fn agrees(&mut self) -> bool {
        let mut hash = None;
        let agree = self.world.hosts().iter().all(|host| {
            host.runtime().is_some_and(|runtime| {
                let own = runtime.topology_hash();
                runtime.status() == Some(NodeStatus::Up) && *hash.get_or_insert(own) == own
            })
        });
        let first = self.world.hosts().first().and_then(|host| host.runtime());
        agree && first.is_some_and(|runtime| runtime.snapshot().members.len() == self.nodes)
    }

    /// What its joining came to.
    pub(crate) fn seen(&self) -> Seen {
        Seen {
            joined_seconds: self.joined_us as f64 / 1e6,
            join_cpu_seconds: self.join_cpu_seconds,
            ..Seen::default()
        }
    }

    /// A while in which nothing happens: what is sent, and what it costs.
    pub(crate) fn calm(&mut self, seconds: u64, seen: &mut Seen) -> Result<()> {
        self.run(20 * SECOND_US);
        let (before, cpu) = (self.world.network().totals(), cpu_seconds()?);
        self.run(seconds * SECOND_US);
        let (after, cpu_after) = (self.world.network().totals(), cpu_seconds()?);
        let per_node = |value: u64| value as f64 / seconds as f64 / self.nodes as f64;
        seen.bytes_per_second = per_node(after.bytes - before.bytes);
        seen.packets_per_second = per_node(after.packets - before.packets);
        seen.calm_cpu_seconds = cpu_after - cpu;
        seen.resident_bytes = procfs::resident_bytes(std::process::id())? as f64;
        Ok(())
    }

    /// Crashes nodes one after another; the longest time until all others held one to be dead.
    pub(crate) fn crashes(&mut self, count: usize) -> Result<f64> {
        let mut slowest_us = 0;
        let mut gone = vec![false; self.nodes];
        for round in 0..count {
            let victim = SEEDS + (round * 97) % (self.nodes - SEEDS);
            gone[victim] = true;
            self.world.crash(victim);
            let crashed_us = self.world.now_us();
            let others: Vec<usize> = (0..self.nodes).filter(|&node| !gone[node]).collect();
            self.wait(60 * SECOND_US, |cluster| {
                cluster.world.watch().all_hold_dead(&others, victim)
            })
            .with_context(|| format!("n{victim} was not held to be dead by all"))?;
            let died_us = self.world.watch().died_us(victim);
            slowest_us = slowest_us.max(died_us.saturating_sub(crashed_us));
        }
        Ok(slowest_us as f64 / 1e6)
    }

    /// Loss on all links for a while.
    pub(crate) fn random_loss(&mut self, loss: f64, seconds: u64, task: &mut Task) -> Counts {
        self.world.network().set_profile(LinkProfile {
            loss,
            ..LinkProfile::LAN
        });
        let counts = self.count(seconds, task);
        self.world.network().set_profile(LinkProfile::LAN);
        counts
    }

    /// Some nodes behind bad links for a while.
    pub(crate) fn bad_places(&mut self, loss: f64, seconds: u64, task: &mut Task) -> Counts {
        for node in self.every_hundredth() {
            self.world.network().set_place_loss(node, loss, loss);
        }
        let counts = self.count(seconds, task);
        self.world.network().heal();
        counts
    }

    fn count(&mut self, seconds: u64, task: &mut Task) -> Counts {
        let probe = self.world.watch();
        let (deaths, suspicions) = (probe.false_deaths, probe.suspicions);
        for second in 0..seconds {
            task.detail(&format!(
                "kumi: {second} of {seconds} virtual s with losses"
            ));
            self.run(SECOND_US);
        }
        let probe = self.world.watch();
        Counts {
            deaths: probe.false_deaths - deaths,
            suspicions: probe.suspicions - suspicions,
        }
    }

    /// One node in a hundred, the seeds left out.
    fn every_hundredth(&self) -> Vec<usize> {
        (0..self.nodes.div_ceil(100))
            .map(|index| (SEEDS + index * 83) % self.nodes)
            .collect()
    }

    /// One node in a hundred cannot send for 20 s, is well for 20 s, cannot receive for 20 s, and is well again; then the
    /// same without being well in between.
    ///
    /// Deaths of others, and how long each took to be held to be up by all others once it was heard again.
    pub(crate) fn flip_flop(&mut self, cycles: usize, task: &mut Task) -> FlipFlop {
        let nodes = self.every_hundredth();
        for &node in &nodes {
            self.world.watch().excused[node] = true;
        }
        let others: Vec<usize> = (0..self.nodes)
            .filter(|node| !nodes.contains(node))
            .collect();
        let deaths = self.world.watch().false_deaths;
        let mut seen = FlipFlop::default();
        for cycle in 0..cycles {
            task.detail(&format!("kumi: cycle {cycle} of {cycles}, one-way"));
            self.one_way(&nodes, 0.0, 1.0);
            let probe = self.world.watch();
            let died = nodes
                .iter()
                .filter(|&&node| probe.all_hold_dead(&others, node));
            seen.unheard_died += died.count();
            self.world.network().heal();
            self.rejoin(&nodes, &others, &mut seen.rejoin_seconds);
            self.one_way(&nodes, 1.0, 0.0);
            self.world.network().heal();
            self.run(TURN_US);
        }
        for _ in 0..cycles {
            task.detail("kumi: one-way, the other way");
            self.one_way(&nodes, 0.0, 1.0);
            self.one_way(&nodes, 1.0, 0.0);
        }
        self.world.network().heal();
        self.run(TURN_US);
        seen.other_deaths = self.world.watch().false_deaths - deaths;
        seen
    }

    /// Waits for one turn, and notes when each of the nodes was up for all others.
    fn rejoin(&mut self, nodes: &[usize], others: &[usize], seconds: &mut Vec<f64>) {
        let heard_us = self.world.now_us();
        let mut waiting = nodes.to_vec();
        while !waiting.is_empty() && self.world.now_us() < heard_us + TURN_US {
            self.run(LOOK_US);
            let after = (self.world.now_us() - heard_us) as f64 / 1e6;
            let probe = self.world.watch();
            waiting.retain(|&node| {
                let back = probe.all_hold_up(others, node);
                if back {
                    seconds.push(after);
                }
                !back
            });
        }
        // A node that is not back by now counts as having taken the whole time.
        let turn = TURN_US as f64 / 1e6;
        seconds.extend(waiting.iter().map(|_| turn));
        self.world.run_until(heard_us + TURN_US);
    }

    fn one_way(&mut self, nodes: &[usize], loss_in: f64, loss_out: f64) {
        for &node in nodes {
            self.world.network().set_place_loss(node, loss_in, loss_out);
        }
        self.run(TURN_US);
    }
}

/// What happened in a while with losses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// Of nodes that were running.
    pub(crate) deaths: u64,
    pub(crate) suspicions: u64,
}

/// What became of nodes that were heard and not heard in turns.
#[derive(Debug, Default)]
pub(crate) struct FlipFlop {
    pub(crate) other_deaths: u64,
    pub(crate) rejoin_seconds: Vec<f64>,
    /// How many of the unheard were given up by all, so that there was something to come back from.
    pub(crate) unheard_died: usize,
}
