//! Nodes on a simulated network: takes the next event, hands it to its node, and sends the messages of that node.
//!
//! Every message is sent as the bytes that the core encoded, and goes through the core's decoder. The world visits all of its
//! nodes only when a caller asks for a sweep. A run is a function of the seed and of the calls, in their order.

use std::collections::HashMap;
use std::sync::Arc;
use std::vec::Vec;

use super::host::{Host, HostClock, INBOX_LIMIT};
use super::network::{Carriage, LinkProfile, Network};
use super::queue::EventQueue;
use super::rng::SimRng;
use super::watch::Watch;
use crate::core::{
    Authority, Delivery, LocalNode, MemberMetadata, MembershipError, MembershipRuntime,
    MembershipRuntimeConfig, MembershipRuntimeError, NodeName,
};
use core::time::Duration;

/// How often a node may ask for another turn at once. A node that goes on asking would hang its driver.
const MAX_TURNS: usize = 64;

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct WorldSpec {
    /// How many machines there are at first; none of them runs yet.
    pub nodes: usize,
    /// The configuration of all nodes.
    pub config: MembershipRuntimeConfig,
    /// What all links do.
    pub profile: LinkProfile,
    /// Bytes of metadata per node.
    pub metadata_bytes: usize,
    /// Clocks run up to this much too fast or too slow.
    pub drift_ppm: u64,
    /// Timers fire up to this much too late.
    pub timer_slack_us: u64,
    /// Peers prove who they are: a node stops for a later life of its authority only after it has met that life.
    pub checks_identity: bool,
    /// Everything random comes from it.
    pub seed: u64,
}

impl WorldSpec {
    /// A calm network of one site.
    pub fn calm(nodes: usize, config: MembershipRuntimeConfig, seed: u64) -> Self {
        Self {
            nodes,
            config,
            profile: LinkProfile::LAN,
            metadata_bytes: 64,
            drift_ppm: 0,
            timer_slack_us: 0,
            checks_identity: false,
            seed,
        }
    }
}

#[derive(Debug)]
enum Event {
    Deliver {
        to: u32,
        from: Authority,
        bytes: Arc<[u8]>,
    },
    Wake {
        host: u32,
        generation: u32,
    },
}

/// Machines, their network and virtual time.
#[derive(Debug)]
pub struct World<W> {
    spec: WorldSpec,
    queue: EventQueue<Event>,
    network: Network,
    hosts: Vec<Host>,
    /// The hosts that are reached under an authority: one, or two by mistake.
    places: HashMap<Authority, Vec<u32>>,
    rng: SimRng,
    /// A hash of everything that happened, to compare two runs.
    trace: u64,
    delivered: u64,
    watch: W,
}

impl<W: Watch> World<W> {
    /// A world in which nothing runs yet.
    pub fn new(spec: WorldSpec, watch: W) -> Self {
        let mut rng = SimRng::new(spec.seed);
        let network = Network::new(0, spec.profile, rng.fork());
        let mut world = Self {
            queue: EventQueue::new(),
            network,
            hosts: Vec::with_capacity(spec.nodes),
            places: HashMap::new(),
            rng,
            trace: spec.seed,
            delivered: 0,
            watch,
            spec,
        };
        for subject in 0..world.spec.nodes {
            world.add_host(authority(subject), subject);
        }
        world
    }

    /// Another machine under the authority of the first one: its configuration was copied.
    pub fn add_twin(&mut self, host: usize) -> usize {
        let (authority, subject) = (self.hosts[host].authority.clone(), self.hosts[host].subject);
        self.add_host(authority, subject)
    }

    fn add_host(&mut self, authority: Authority, subject: usize) -> usize {
        let place = self.network.add_place();
        let drift = self.spec.drift_ppm;
        let clock = HostClock {
            offset_us: self.rng.between(0, 1_000_000_000) as i64,
            drift_ppm: self.rng.between(0, 2 * drift) as i64 - drift as i64,
            wall_error_ms: self.rng.between(0, 2000) as i64 - 1000,
        };
        self.places
            .entry(authority.clone())
            .or_default()
            .push(place as u32);
        self.hosts.push(Host::new(authority, subject, clock));
        place
    }

    /// Names the node of a machine, from its next start on.
    pub fn set_name(&mut self, host: usize, name: NodeName) {
        self.hosts[host].name = Some(name);
    }

    /// The present, in virtual microseconds.
    pub fn now_us(&self) -> u64 {
        self.queue.now_us()
    }

    /// All machines.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The network, to disturb it or to read its counters.
    pub fn network(&mut self) -> &mut Network {
        &mut self.network
    }

    /// The watch.
    pub fn watch(&mut self) -> &mut W {
        &mut self.watch
    }

    /// The machines and the watch, for a sweep.
    pub fn sweep(&mut self) -> (&[Host], &mut W) {
        (&self.hosts, &mut self.watch)
    }

    /// A hash of everything that happened.
    pub fn trace(&self) -> u64 {
        self.trace
    }

    /// How many messages arrived.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Lets the world go on until that time.
    pub fn run_until(&mut self, until_us: u64) {
        while let Some(event) = self.queue.pop_until(until_us) {
            match event {
                Event::Deliver { to, from, bytes } => self.deliver(to as usize, from, bytes),
                Event::Wake { host, generation } => self.wake(host as usize, generation),
            }
        }
    }

    /// Starts a process with a uid of its own.
    pub fn start(
        &mut self,
        host: usize,
        seeds: &[Authority],
    ) -> Result<(), MembershipRuntimeError> {
        self.boot(host, seeds, false, false)
    }

    /// Starts a process that comes back with the uid it had, or with a new one.
    pub fn restart(
        &mut self,
        host: usize,
        seeds: &[Authority],
        keep_uid: bool,
    ) -> Result<(), MembershipRuntimeError> {
        self.crash(host);
        self.boot(host, seeds, keep_uid, false)
    }

    /// Starts a process that only watches the cluster.
    pub fn start_client(
        &mut self,
        host: usize,
        seeds: &[Authority],
    ) -> Result<(), MembershipRuntimeError> {
        self.boot(host, seeds, false, true)
    }

    fn boot(
        &mut self,
        host: usize,
        seeds: &[Authority],
        keep_uid: bool,
        client: bool,
    ) -> Result<(), MembershipRuntimeError> {
        let at_us = self.now_us();
        let seed = self.rng.word();
        let machine = &mut self.hosts[host];
        let filler = std::vec![machine.subject as u8; self.spec.metadata_bytes];
        // The bench and the scenarios ask for at most what a record carries.
        let metadata = match &machine.name {
            Some(name) => MemberMetadata::EMPTY.with_name(name),
            None => MemberMetadata::from_bytes(&filler),
        };
        let local = LocalNode {
            authority: machine.authority.clone(),
            metadata: metadata.unwrap_or_default(),
            unix_ms: machine.clock.unix_ms(at_us),
            uid: machine.last_uid.filter(|_| keep_uid),
        };
        let now = machine.clock.now(at_us);
        let mut runtime = MembershipRuntime::new(self.spec.config.clone(), local, seed, now)?;
        runtime.require_meeting(self.spec.checks_identity);
        if client {
            runtime.start_client(seeds, now)?;
        } else {
            runtime.start_member(seeds, now)?;
        }
        machine.last_uid = Some(runtime.identity().uid);
        machine.paused = false;
        self.watch.started(at_us, host, machine.subject, &runtime);
        machine.runtime = Some(runtime);
        self.settle(host);
        Ok(())
    }

    /// Ends a process without a message.
    pub fn crash(&mut self, host: usize) {
        let machine = &mut self.hosts[host];
        if let Some(runtime) = machine.runtime.take() {
            self.watch.ended(self.queue.now_us(), host, &runtime);
        }
        machine.inbox.clear();
        machine.paused = false;
        machine.wake = None;
    }

    /// Takes the processor away from a process; what arrives waits.
    pub fn pause(&mut self, host: usize) {
        self.hosts[host].paused = true;
    }

    /// Gives it back. Whether the process first looks at its timers or at its socket is left to chance.
    pub fn resume(&mut self, host: usize) {
        self.hosts[host].paused = false;
        if self.rng.chance(0.5) {
            self.settle(host);
        }
        while let Some((from, bytes)) = self.hosts[host].inbox.pop_front() {
            self.deliver(host, from, bytes);
        }
        self.settle(host);
    }

    /// Moves a monotone clock; backwards too, which clocks promise not to do and some do.
    pub fn jump_clock(&mut self, host: usize, by_us: i64) {
        self.hosts[host].clock.offset_us += by_us;
        // The node's timers run on that clock, so they fire at once or later than they would have.
        self.hosts[host].wake = None;
        self.schedule(host);
    }

    /// Sets the wall clock wrong. Only the next start looks at it.
    pub fn set_wall_error(&mut self, host: usize, wall_error_ms: i64) {
        self.hosts[host].clock.wall_error_ms = wall_error_ms;
    }

    /// Makes a node leave.
    pub fn leave(&mut self, host: usize) -> Result<(), MembershipError> {
        self.order(host, |runtime, now| runtime.leave(now))
    }

    /// Lets an operator at this node quarantine an authority.
    pub fn quarantine(
        &mut self,
        host: usize,
        target: usize,
        ttl: Duration,
    ) -> Result<(), MembershipError> {
        let target = self.hosts[target].authority.clone();
        self.order(host, |runtime, now| {
            runtime.quarantine(&target, "by the \u{1b}[31m operator", ttl, now)
        })
    }

    /// Lets an operator at this node lift a quarantine.
    pub fn release(&mut self, host: usize, target: usize) -> Result<(), MembershipError> {
        let target = self.hosts[target].authority.clone();
        self.order(host, |runtime, now| runtime.release(&target, now))
    }

    fn order<T>(
        &mut self,
        host: usize,
        order: impl FnOnce(
            &mut MembershipRuntime,
            crate::core::TimerInstant,
        ) -> Result<T, MembershipError>,
    ) -> Result<T, MembershipError> {
        let now = self.hosts[host].now(self.now_us());
        // A process that gets no time takes no orders either.
        let paused = self.hosts[host].paused;
        let runtime = self.hosts[host].runtime.as_mut().filter(|_| !paused);
        let runtime = runtime.ok_or(MembershipError::NotStarted)?;
        let result = order(runtime, now);
        self.settle(host);
        result
    }

    /// Lets bytes arrive that no node of this world sent.
    pub fn inject(&mut self, to: usize, from: Authority, bytes: &[u8]) {
        let event = Event::Deliver {
            to: to as u32,
            from,
            bytes: bytes.into(),
        };
        self.queue.push(self.now_us(), event);
    }

    fn deliver(&mut self, to: usize, from: Authority, bytes: Arc<[u8]>) {
        let at_us = self.queue.now_us();
        let machine = &mut self.hosts[to];
        let Some(runtime) = machine.runtime.as_mut() else {
            return;
        };
        if machine.paused {
            if machine.inbox.len() < INBOX_LIMIT {
                machine.inbox.push_back((from, bytes));
            }
            return;
        }
        self.delivered += 1;
        let now = machine.clock.now(at_us);
        let result = runtime.handle_message(&from, &bytes, now);
        self.trace = mix(
            self.trace,
            at_us ^ (bytes.len() as u64) << 40 ^ (to as u64) << 52,
        );
        self.watch
            .delivered(at_us, to, runtime, result.as_ref().err());
        self.settle(to);
    }

    fn wake(&mut self, host: usize, generation: u32) {
        let machine = &mut self.hosts[host];
        if machine
            .wake
            .is_some_and(|(_, current)| current == generation)
        {
            machine.wake = None;
            self.settle(host);
        }
    }

    /// Gives a node turns until it has nothing left to do now, and makes sure that it is woken in time.
    fn settle(&mut self, host: usize) {
        let at_us = self.queue.now_us();
        for _ in 0..MAX_TURNS {
            let machine = &mut self.hosts[host];
            let now = machine.clock.now(at_us);
            let Some(runtime) = machine.runtime.as_mut() else {
                return;
            };
            if machine.paused {
                return;
            }
            if runtime
                .next_deadline()
                .is_none_or(|deadline| deadline > now)
            {
                return self.schedule(host);
            }
            let outcome = runtime.poll(now);
            self.watch.polled(at_us, host, now, runtime, &outcome);
            machine.last_uid = Some(runtime.identity().uid);
            let turn =
                outcome.member_events.len() as u64 ^ (outcome.gossip_outbound.len() as u64) << 20;
            self.trace = mix(self.trace, at_us ^ turn << 24);
            if outcome.meet.is_some() {
                self.meet(host);
            }
            for outbound in outcome.gossip_outbound {
                let carriage = match outbound.delivery {
                    Delivery::Datagram => Carriage::Datagram,
                    _ => Carriage::Reliable,
                };
                self.send(host, &outbound.to, outbound.bytes, carriage);
            }
        }
        self.watch.stuck(at_us, host);
        self.schedule(host);
    }

    /// A node connects to its own authority. What it finds is a second process there, if one runs, or itself.
    fn meet(&mut self, host: usize) {
        let now = self.hosts[host].now(self.queue.now_us());
        let places = &self.places[&self.hosts[host].authority];
        let others = places.iter().filter(|&&place| place as usize != host);
        let running = others.filter_map(|&place| {
            let other = &self.hosts[place as usize];
            other.runtime.as_ref().filter(|_| !other.paused)
        });
        let found = running.map(MembershipRuntime::identity).max();
        let Some(runtime) = self.hosts[host].runtime.as_mut() else {
            return;
        };
        match found.filter(|found| found.uid > runtime.identity().uid) {
            Some(found) => runtime.met(&found, now),
            None => runtime.not_met(now),
        }
    }

    fn send(&mut self, from: usize, to: &Authority, bytes: Arc<[u8]>, carriage: Carriage) {
        let Some(places) = self.places.get(to) else {
            return;
        };
        let place = match places.as_slice() {
            [only] => *only,
            several => {
                // Whichever of the two answers, as a network would have it; but not itself.
                let others: Vec<u32> = several
                    .iter()
                    .copied()
                    .filter(|&place| place as usize != from)
                    .collect();
                match self.rng.pick(&others) {
                    Some(place) => place,
                    None => return,
                }
            }
        };
        let arrivals = self.network.send(
            from,
            place as usize,
            bytes.len(),
            carriage,
            self.queue.now_us(),
        );
        let sender = &self.hosts[from].authority;
        for at_us in [arrivals.second_us, arrivals.first_us]
            .into_iter()
            .flatten()
        {
            let event = Event::Deliver {
                to: place,
                from: sender.clone(),
                bytes: bytes.clone(),
            };
            self.queue.push(at_us, event);
        }
    }

    fn schedule(&mut self, host: usize) {
        let slack_us = self.spec.timer_slack_us;
        let machine = &mut self.hosts[host];
        if machine.paused {
            return;
        }
        let deadline = machine
            .runtime
            .as_ref()
            .and_then(MembershipRuntime::next_deadline);
        let Some(deadline) = deadline else {
            machine.wake = None;
            return;
        };
        let at_us = machine.clock.virtual_us(deadline).max(self.queue.now_us());
        // A wake-up that comes earlier than needed does no harm: the node is asked again then.
        if machine
            .wake
            .is_some_and(|(scheduled, _)| scheduled <= at_us + slack_us)
        {
            return;
        }
        let at_us = at_us + self.rng.below(slack_us + 1);
        machine.wakes = machine.wakes.wrapping_add(1);
        machine.wake = Some((at_us, machine.wakes));
        self.queue.push(
            at_us,
            Event::Wake {
                host: host as u32,
                generation: machine.wakes,
            },
        );
    }
}

/// The authority with this number.
pub fn authority(subject: usize) -> Authority {
    let name = std::format!("n{subject}:7000");
    Authority::new(&name).expect("letters, digits and a colon")
}

/// The number of an authority that [`authority`] made.
pub fn subject_of(authority: &Authority) -> Option<usize> {
    let digits = authority
        .as_str()
        .strip_prefix('n')?
        .strip_suffix(":7000")?;
    digits.parse().ok()
}

fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(7) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
