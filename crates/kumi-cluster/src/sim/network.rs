//! The network between simulated nodes: when a packet arrives, if at all.
//!
//! It knows places, which are indexes, and no protocols, so several protocols can be compared on it. It holds no packets: for
//! each it returns the times at which copies of it arrive.

use std::collections::BTreeMap;
use std::vec::Vec;

use super::rng::SimRng;

/// What headers cost per packet: Ethernet aside, IPv6, UDP and a short QUIC or comparable header.
pub const PACKET_OVERHEAD_BYTES: u64 = 60;
/// The payload of one packet; a reliable message takes as many packets as it needs.
pub const PACKET_PAYLOAD_BYTES: u64 = 1200;
/// How often a reliable message is tried before the connection counts as cut.
const RELIABLE_TRIES: u32 = 12;
/// The wait before the first repetition; each further one doubles it, up to the limit.
const RETRY_US: u64 = 100_000;
const RETRY_LIMIT_US: u64 = 1_600_000;

/// What every link does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkProfile {
    /// The shortest way through, in microseconds.
    pub latency_us: u64,
    /// Up to this much more, drawn anew for each packet: packets overtake each other within it.
    pub jitter_us: u64,
    /// How often a packet is lost.
    pub loss: f64,
    /// How often a packet arrives twice.
    pub duplicate: f64,
    /// How often a packet is held back by up to `hold_us`.
    pub reorder: f64,
    /// How long such a packet is held back at most.
    pub hold_us: u64,
}

impl LinkProfile {
    /// One site, nothing lost: a quarter of a millisecond and some jitter.
    pub const LAN: Self = Self {
        latency_us: 250,
        jitter_us: 500,
        loss: 0.0,
        duplicate: 0.0,
        reorder: 0.0,
        hold_us: 0,
    };
}

/// How a message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carriage {
    /// May be lost, doubled and overtaken.
    Datagram,
    /// Repeated until it arrives; lost only where no answer comes back at all.
    Reliable,
}

/// When the copies of a message arrive; none when it is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// The first copy.
    pub first_us: Option<u64>,
    /// The second one.
    pub second_us: Option<u64>,
}

/// The state of all links.
#[derive(Clone, Debug)]
pub struct Network {
    rng: SimRng,
    profile: LinkProfile,
    places: Vec<Place>,
    /// Loss of single directed links, beside everything else.
    links: BTreeMap<(u32, u32), f64>,
    partitioned: bool,
    totals: Traffic,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    loss_in: f64,
    loss_out: f64,
    /// Places of different groups do not reach each other.
    group: u32,
    sent: Traffic,
}

/// What was sent, counted as it would be on a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets, repetitions left out.
    pub packets: u64,
    /// Payload and [`PACKET_OVERHEAD_BYTES`] for each packet.
    pub bytes: u64,
    /// Packets that never arrived.
    pub lost: u64,
}

impl Network {
    /// A network of so many places, all of whose links have this profile.
    pub fn new(places: usize, profile: LinkProfile, rng: SimRng) -> Self {
        Self {
            rng,
            profile,
            places: std::vec![Place::default(); places],
            links: BTreeMap::new(),
            partitioned: false,
            totals: Traffic::default(),
        }
    }

    /// Adds a place; returns its number.
    pub fn add_place(&mut self) -> usize {
        self.places.push(Place::default());
        self.places.len() - 1
    }

    /// What every link does from now on.
    pub fn set_profile(&mut self, profile: LinkProfile) {
        self.profile = profile;
    }

    /// What every link does.
    pub fn profile(&self) -> LinkProfile {
        self.profile
    }

    /// Loss of everything that reaches a place, and of everything that leaves it. 1 cuts that
    /// direction.
    pub fn set_place_loss(&mut self, place: usize, loss_in: f64, loss_out: f64) {
        self.places[place].loss_in = loss_in;
        self.places[place].loss_out = loss_out;
    }

    /// Loss of one direction of one link; 0 repairs it.
    pub fn set_link_loss(&mut self, from: usize, to: usize, loss: f64) {
        if loss > 0.0 {
            self.links.insert(key(from, to), loss);
        } else {
            self.links.remove(&key(from, to));
        }
    }

    /// Puts a place into a group; places of different groups do not reach each other.
    pub fn set_group(&mut self, place: usize, group: u32) {
        self.places[place].group = group;
        self.partitioned |= group != 0;
    }

    /// Ends every partition, every cut link and every loss of a place. The profile stays.
    pub fn heal(&mut self) {
        for place in &mut self.places {
            (place.loss_in, place.loss_out, place.group) = (0.0, 0.0, 0);
        }
        self.links.clear();
        self.partitioned = false;
    }

    /// What a place has sent.
    pub fn sent_by(&self, place: usize) -> Traffic {
        self.places[place].sent
    }

    /// What all places have sent.
    pub fn totals(&self) -> Traffic {
        self.totals
    }

    /// Counts a message; returns when it arrives.
    pub fn send(
        &mut self,
        from: usize,
        to: usize,
        len: usize,
        carriage: Carriage,
        now_us: u64,
    ) -> Arrivals {
        let packets = (len as u64).div_ceil(PACKET_PAYLOAD_BYTES).max(1);
        let bytes = len as u64 + packets * PACKET_OVERHEAD_BYTES;
        for traffic in [&mut self.places[from].sent, &mut self.totals] {
            traffic.packets += packets;
            traffic.bytes += bytes;
        }
        let arrivals = match carriage {
            Carriage::Datagram => self.datagram(from, to, now_us),
            Carriage::Reliable => self.reliable(from, to, now_us),
        };
        if arrivals.first_us.is_none() {
            self.places[from].sent.lost += packets;
            self.totals.lost += packets;
        }
        arrivals
    }

    fn datagram(&mut self, from: usize, to: usize, now_us: u64) -> Arrivals {
        let loss = self.loss(from, to);
        if self.rng.chance(loss) {
            return Arrivals::default();
        }
        let first_us = Some(now_us + self.way_us());
        let twice = self.rng.chance(self.profile.duplicate);
        let second_us = twice.then(|| now_us + self.way_us() + self.way_us());
        Arrivals {
            first_us,
            second_us,
        }
    }

    /// Each try needs the way there and, for the sender to know, the way back.
    fn reliable(&mut self, from: usize, to: usize, now_us: u64) -> Arrivals {
        let (there, back) = (self.loss(from, to), self.loss(to, from));
        if there >= 1.0 || back >= 1.0 {
            return Arrivals::default();
        }
        let mut at_us = now_us;
        let mut wait_us = RETRY_US;
        for _ in 0..RELIABLE_TRIES {
            if !self.rng.chance(there) {
                return Arrivals {
                    first_us: Some(at_us + self.way_us()),
                    second_us: None,
                };
            }
            at_us += wait_us;
            wait_us = (wait_us * 2).min(RETRY_LIMIT_US);
        }
        Arrivals::default()
    }

    /// The chance that nothing gets through.
    fn loss(&self, from: usize, to: usize) -> f64 {
        let (sender, receiver) = (&self.places[from], &self.places[to]);
        if self.partitioned && sender.group != receiver.group {
            return 1.0;
        }
        let link = match self.links.is_empty() {
            true => 0.0,
            false => self.links.get(&key(from, to)).copied().unwrap_or(0.0),
        };
        let through = (1.0 - self.profile.loss)
            * (1.0 - sender.loss_out)
            * (1.0 - receiver.loss_in)
            * (1.0 - link);
        1.0 - through
    }

    fn way_us(&mut self) -> u64 {
        let profile = self.profile;
        let mut way_us = profile.latency_us + self.rng.below(profile.jitter_us + 1);
        if self.rng.chance(profile.reorder) {
            way_us += self.rng.below(profile.hold_us + 1);
        }
        way_us
    }
}

fn key(from: usize, to: usize) -> (u32, u32) {
    // There are never more places than fit into memory many times over.
    (from as u32, to as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(profile: LinkProfile) -> Network {
        Network::new(3, profile, SimRng::new(5))
    }

    fn arrived(network: &mut Network, from: usize, to: usize, carriage: Carriage) -> usize {
        let sends = (0..1000).map(|_| network.send(from, to, 100, carriage, 0));
        sends.filter(|arrivals| arrivals.first_us.is_some()).count()
    }

    #[test]
    fn loss_is_per_direction_and_hits_datagrams_only() {
        let mut network = network(LinkProfile::LAN);
        network.set_link_loss(0, 1, 0.5);
        let there = arrived(&mut network, 0, 1, Carriage::Datagram);
        assert!((400..600).contains(&there), "{there} of 1000");
        assert_eq!(arrived(&mut network, 1, 0, Carriage::Datagram), 1000);
        assert!(arrived(&mut network, 0, 1, Carriage::Reliable) > 990);
    }

    #[test]
    fn a_mute_place_reaches_no_other_and_no_other_has_a_connection_to_it() {
        let mut network = network(LinkProfile::LAN);
        network.set_place_loss(2, 0.0, 1.0);
        assert_eq!(arrived(&mut network, 2, 0, Carriage::Datagram), 0);
        assert_eq!(arrived(&mut network, 0, 2, Carriage::Datagram), 1000);
        assert_eq!(arrived(&mut network, 0, 2, Carriage::Reliable), 0);
        network.heal();
        assert_eq!(arrived(&mut network, 2, 0, Carriage::Datagram), 1000);
    }

    #[test]
    fn groups_do_not_reach_each_other() {
        let mut network = network(LinkProfile::LAN);
        network.set_group(1, 1);
        assert_eq!(arrived(&mut network, 0, 1, Carriage::Reliable), 0);
        assert_eq!(arrived(&mut network, 0, 2, Carriage::Datagram), 1000);
    }

    #[test]
    fn duplicates_and_overtaking_happen() {
        let profile = LinkProfile {
            duplicate: 0.3,
            reorder: 0.3,
            hold_us: 9000,
            ..LinkProfile::LAN
        };
        let mut network = network(profile);
        let arrivals: Vec<Arrivals> = (0..1000)
            .map(|at| network.send(0, 1, 9, Carriage::Datagram, at * 10))
            .collect();
        assert!(arrivals.iter().any(|one| one.second_us.is_some()));
        assert!(
            arrivals
                .windows(2)
                .any(|pair| pair[0].first_us > pair[1].first_us)
        );
    }

    #[test]
    fn a_long_message_is_counted_as_several_packets() {
        let mut network = network(LinkProfile::LAN);
        network.send(0, 1, 2500, Carriage::Reliable, 0);
        network.send(1, 0, 0, Carriage::Datagram, 0);
        assert_eq!(
            network.sent_by(0),
            Traffic {
                packets: 3,
                bytes: 2500 + 180,
                lost: 0
            }
        );
        assert_eq!(network.totals().bytes, 2500 + 180 + 60);
    }
}
