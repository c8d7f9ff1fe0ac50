//! Admission of handshakes.
//!
//! A handshake costs the server a signature and some memory; a sender with a forged address can start one with a single
//! packet; and a client that starts one and sends nothing more holds its place until the timeout. So:
//!
//! - The first few handshakes of a source begin at once. Further ones, and all while half of the places are taken, begin
//!   after a retry: the client has to send its packet again with a token, which a sender with a forged address never
//!   sees. A retry costs the server one packet and no memory, so it is never withheld.
//! - A client that has answered a retry always gets a place. When none is free, the oldest handshake of the source that
//!   has the most is given up: one that makes progress is over after two round trips, so it is a stalled one that goes.
//!
//! So stalled handshakes never keep a client out, whatever their number, not even those from the client's own address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The part of all places that one source may take without a retry.
const SHARE_OF_A_SOURCE: usize = 8;

/// The handshakes of one endpoint.
#[derive(Debug)]
pub(super) struct Handshakes {
    /// Places, at least 1.
    limit: usize,
    under_way: Mutex<UnderWay>,
}

#[derive(Debug, Default)]
struct UnderWay {
    next_number: u64,
    /// The oldest first; at most `limit`.
    places: Vec<Place>,
}

#[derive(Debug)]
struct Place {
    number: u64,
    source: IpAddr,
    given_up: CancellationToken,
}

/// A handshake that has a place until this is dropped.
#[derive(Debug)]
pub(super) struct Handshake {
    all: Arc<Handshakes>,
    number: u64,
    given_up: CancellationToken,
}

impl Handshakes {
    pub(super) fn new(limit: usize) -> Arc<Handshakes> {
        Arc::new(Handshakes {
            limit: limit.max(1),
            under_way: Mutex::default(),
        })
    }

    /// Handshakes that are under way now.
    pub(super) fn len(&self) -> usize {
        self.lock().places.len()
    }

    /// A place for a client of this address; `None` if it has to answer a retry first. `has_answered` is whether it has.
    pub(super) fn begin(
        self: &Arc<Self>,
        address: IpAddr,
        has_answered: bool,
    ) -> Option<Handshake> {
        let source = source_of(address);
        let mut under_way = self.lock();
        let of_source = under_way.places.iter().filter(|it| it.source == source);
        let share = (self.limit / SHARE_OF_A_SOURCE).max(1);
        let is_crowded = under_way.places.len() >= self.limit.div_ceil(2);
        if !has_answered && (is_crowded || of_source.count() >= share) {
            return None;
        }
        while under_way.places.len() >= self.limit {
            under_way.give_up_one();
        }
        let number = under_way.next_number;
        under_way.next_number += 1;
        let given_up = CancellationToken::new();
        under_way.places.push(Place {
            number,
            source,
            given_up: given_up.clone(),
        });
        Some(Handshake {
            all: self.clone(),
            number,
            given_up,
        })
    }

    fn lock(&self) -> MutexGuard<'_, UnderWay> {
        // Nothing that runs under the lock panics half-way through a change.
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnderWay {
    /// Gives up the oldest handshake of the source that has the most.
    fn give_up_one(&mut self) {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for place in &self.places {
            *counts.entry(place.source).or_default() += 1;
        }
        let most = counts.values().copied().max().unwrap_or_default();
        let oldest = self
            .places
            .iter()
            .position(|place| counts.get(&place.source) == Some(&most));
        if let Some(oldest) = oldest {
            self.places.remove(oldest).given_up.cancel();
        }
    }
}

impl Handshake {
    /// Resolves when the place was given to another client.
    pub(super) async fn given_up(&self) {
        self.given_up.cancelled().await;
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        let mut under_way = self.all.lock();
        under_way.places.retain(|place| place.number != self.number);
    }
}

/// What counts as one source: an IPv4 address, or a network of 64 bits, of which one host has all addresses as a rule.
fn source_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_source_has_a_share_of_the_places_and_a_retry_for_the_rest() {
        let all = Handshakes::new(32);
        let begin = |address: &str| all.begin(ip(address), false);
        let mut begun: Vec<_> = (0..4).map(|_| begin("10.0.0.1").unwrap()).collect();
        assert!(begin("10.0.0.1").is_none());
        assert!(begin("::ffff:10.0.0.1").is_none(), "the same address");
        assert!(all.begin(ip("10.0.0.1"), true).is_some());
        // Another source has its own share, until half of all places are taken.
        for last in 2..5 {
            let address = format!("10.0.0.{last}");
            begun.extend((0..4).map(|_| begin(&address).unwrap()));
        }
        assert_eq!(all.len(), 16);
        assert!(begin("10.0.0.9").is_none());
        begun.pop();
        assert!(begin("10.0.0.9").is_some());
    }

    #[test]
    fn a_network_of_64_bits_is_one_source() {
        let all = Handshakes::new(8);
        let _one = all.begin(ip("fd00::1"), false).unwrap();
        assert!(all.begin(ip("fd00::2"), false).is_none());
        assert!(all.begin(ip("fd00:0:0:1::1"), false).is_some());
    }

    #[test]
    fn a_client_that_has_answered_takes_the_oldest_place_of_the_source_with_the_most() {
        let all = Handshakes::new(4);
        let place = |address: &str| all.begin(ip(address), true).unwrap();
        let few = place("10.0.0.1");
        let many = [place("10.0.0.2"), place("10.0.0.2"), place("10.0.0.2")];
        let newcomer = place("10.0.0.3");
        assert_eq!(all.len(), 4);
        assert!(many[0].given_up.is_cancelled());
        for kept in [&few, &many[1], &many[2], &newcomer] {
            assert!(!kept.given_up.is_cancelled());
        }
        // A place that was given up is not freed a second time.
        drop(many);
        assert_eq!(all.len(), 2);
        drop((few, newcomer));
        assert_eq!(all.len(), 0);
    }

    #[test]
    fn the_clients_of_one_crowded_source_are_served_too() {
        let all = Handshakes::new(1);
        let first = all.begin(ip("10.0.0.1"), false).unwrap();
        assert!(all.begin(ip("10.0.0.1"), false).is_none());
        let second = all.begin(ip("10.0.0.1"), true).unwrap();
        assert!(first.given_up.is_cancelled() && !second.given_up.is_cancelled());
    }
}
