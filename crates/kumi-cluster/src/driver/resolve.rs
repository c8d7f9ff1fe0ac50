//! From names to addresses, anew each time: a name may lead elsewhere tomorrow.
//!
//! One name may lead to all nodes of a cluster, this one included. Such nodes start at the same time and have to agree
//! on who goes first without having spoken: the one with the lowest address does, and the others try that one first.

use crate::core::Authority;
use kumi_unison::NetworkError;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::string::ToString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::vec::Vec;
use tokio::task::JoinSet;

/// How many addresses of one name are tried in a row.
const MAX_ADDRESSES: usize = 4;

/// How long asking for a name may take while a node starts.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// Asks the system, except for names whose addresses were given.
#[derive(Clone, Debug, Default)]
pub(super) struct Resolver(Arc<Mutex<BTreeMap<Authority, Vec<SocketAddr>>>>);

impl Resolver {
    /// From now on this name leads here, in every clone of this resolver.
    #[cfg(test)]
    pub(super) fn teach(&self, name: &Authority, addresses: &[SocketAddr]) {
        self.given().insert(name.clone(), addresses.to_vec());
    }

    fn given(&self) -> MutexGuard<'_, BTreeMap<Authority, Vec<SocketAddr>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All addresses of `host:port`, each once, the lowest first.
    pub(super) async fn addresses(
        &self,
        authority: &Authority,
    ) -> Result<Vec<SocketAddr>, NetworkError> {
        if let Ok(address) = authority.as_str().parse() {
            return Ok(Vec::from([address]));
        }
        let given = self.given().get(authority).cloned();
        let mut addresses: Vec<SocketAddr> = match given {
            Some(given) => given,
            None => {
                let found = tokio::net::lookup_host(authority.as_str()).await;
                let found = found.map_err(|error| NetworkError::Connect(error.to_string()))?;
                found.collect()
            }
        };
        addresses.sort_unstable();
        addresses.dedup();
        Ok(addresses)
    }

    /// The addresses of each, asked for at the same time: one name server that does not answer costs its time once.
    async fn all_addresses(&self, authorities: &[Authority]) -> Vec<Vec<SocketAddr>> {
        let mut asked = JoinSet::new();
        for (place, authority) in authorities.iter().cloned().enumerate() {
            let resolver = self.clone();
            asked.spawn(async move {
                let found = resolver.addresses(&authority);
                (place, tokio::time::timeout(START_TIMEOUT, found).await)
            });
        }
        let mut all: Vec<Vec<SocketAddr>> = authorities.iter().map(|_| Vec::new()).collect();
        while let Some(answered) = asked.join_next().await {
            if let Ok((place, Ok(Ok(found)))) = answered {
                all[place] = found;
            }
        }
        all
    }
}

/// A name for this machine has an address of each family, and a node that listens on one of them shows that the others are
/// on that one too: a dial to the other gets no answer and times out after seconds.
pub(super) fn drop_other_loopback(found: &mut Vec<SocketAddr>, bound: SocketAddr) {
    let is_same = |address: &SocketAddr| address.is_ipv4() == bound.is_ipv4();
    if bound.ip().is_loopback() && found.iter().any(is_same) {
        found.retain(|address| is_same(address) || !address.ip().is_loopback());
    }
}

/// The addresses that mean this node: where it listens, and where its name leads.
pub(super) async fn own_addresses(
    resolver: &Resolver,
    own: &Authority,
    bound: Option<SocketAddr>,
) -> Vec<SocketAddr> {
    let mut own = resolver.all_addresses(core::slice::from_ref(own)).await;
    let mut addresses = own.pop().unwrap_or_default();
    addresses.extend(bound);
    addresses
}

/// The seeds as the core needs them: each once, and this node under its own name, whatever name or address it was
/// given by. A name that leads to this node and to others becomes two seeds, and their order tells the core whether
/// this node is the one that others wait for. What cannot be resolved now is kept: it is tried again later.
pub(super) async fn known_seeds(
    resolver: &Resolver,
    seeds: &[Authority],
    own: &Authority,
    own_addresses: &[SocketAddr],
) -> Vec<Authority> {
    let mut known: Vec<Authority> = Vec::new();
    for (seed, found) in seeds.iter().zip(resolver.all_addresses(seeds).await) {
        let mine = found.iter().find(|address| own_addresses.contains(address));
        let others = found.iter().any(|address| !own_addresses.contains(address));
        let names = match mine {
            None => [Some(seed), None],
            Some(_) if !others => [Some(own), None],
            Some(mine) => {
                // Nodes that listen on IPv6 are not the first after addresses of IPv4 on which none does.
                let mut rivals = found.iter().filter(|it| it.is_ipv4() == mine.is_ipv4());
                match rivals.next() == Some(mine) {
                    true => [Some(own), Some(seed)],
                    false => [Some(seed), Some(own)],
                }
            }
        };
        for name in names.into_iter().flatten() {
            if !known.contains(name) {
                known.push(name.clone());
            }
        }
    }
    known
}

/// The addresses of a name in the order in which they are tried, without this node's own and those of the members that
/// it knows: a name is asked to find other nodes, and a cluster that fell into parts comes together by this.
///
/// The order is random, so that a name for many seeds spreads the load, and an address that does not answer is not
/// always in the way. Only nodes that the name leads to as well begin with the lowest, at their first attempt: that
/// is the one that goes first when all are new.
pub(super) fn in_order(
    mut addresses: Vec<SocketAddr>,
    own: &[SocketAddr],
    known: &[SocketAddr],
    is_first_attempt: bool,
    random: &mut fastrand::Rng,
) -> Vec<SocketAddr> {
    let found = addresses.len();
    addresses.retain(|address| !own.contains(address));
    let leads_here = addresses.len() < found;
    addresses.retain(|address| !known.contains(address));
    if !(leads_here && is_first_attempt) {
        random.shuffle(&mut addresses);
    }
    addresses.truncate(MAX_ADDRESSES);
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_on_one_loopback_address_does_not_dial_the_other() {
        let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let check = |bound: &str, expected: &[&str]| {
            let mut found = Vec::from(["127.0.0.1:7", "[::1]:7"].map(address));
            drop_other_loopback(&mut found, address(bound));
            let expected: Vec<SocketAddr> = expected.iter().copied().map(address).collect();
            assert_eq!(found, expected, "{bound}");
        };
        check("127.0.0.1:1", &["127.0.0.1:7"]);
        check("[::1]:1", &["[::1]:7"]);
        check("10.0.0.1:1", &["127.0.0.1:7", "[::1]:7"]);
        let mut other = Vec::from([address("[::1]:7")]);
        drop_other_loopback(&mut other, address("127.0.0.1:1"));
        assert_eq!(other.len(), 1, "there is nothing else to try");
    }

    fn name(text: &str) -> Authority {
        Authority::new(text).expect("a name")
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    async fn known(resolver: &Resolver, seeds: &[&str], own: &str) -> Vec<Authority> {
        let seeds: Vec<Authority> = seeds.iter().map(|seed| name(seed)).collect();
        let own_addresses = own_addresses(resolver, &name(own), None).await;
        known_seeds(resolver, &seeds, &name(own), &own_addresses).await
    }

    #[tokio::test]
    async fn a_seed_that_is_this_node_under_another_name_gets_its_own() {
        let own = name("127.0.0.1:7000");
        let bound = Some(address("0.0.0.0:7000"));
        let seeds = [
            "127.0.0.1:7000",
            "0.0.0.0:7000",
            "127.0.0.1:7001",
            "127.0.0.1:7001",
        ];
        let resolver = Resolver::default();
        let addresses = own_addresses(&resolver, &own, bound).await;
        let known = known_seeds(&resolver, &seeds.map(name), &own, &addresses).await;
        assert_eq!(known, [own, name("127.0.0.1:7001")]);
    }

    #[tokio::test]
    async fn a_name_that_cannot_be_resolved_is_kept_for_later() {
        let seed = "no-such-host.invalid:7000";
        let known = known(&Resolver::default(), &[seed], "127.0.0.1:7000").await;
        assert_eq!(known, [name(seed)]);
    }

    #[tokio::test]
    async fn of_nodes_behind_one_name_the_lowest_address_goes_first() {
        let all = ["10.0.0.10:1", "10.0.0.9:1", "[fd00::2]:1", "[fd00::1]:1"];
        let seeds = name("seeds.test:1");
        let resolver = Resolver::default();
        resolver.teach(&seeds, &all.map(address));
        for first in ["10.0.0.9:1", "[fd00::1]:1"] {
            let known = known(&resolver, &["seeds.test:1"], first).await;
            assert_eq!(known, [name(first), seeds.clone()]);
        }
        for later in ["10.0.0.10:1", "[fd00::2]:1"] {
            let known = known(&resolver, &["seeds.test:1", later], later).await;
            assert_eq!(known, [seeds.clone(), name(later)]);
        }
        let stranger = known(&resolver, &["seeds.test:1"], "10.0.0.1:1").await;
        assert_eq!(stranger, [seeds]);
    }

    #[test]
    fn nodes_behind_one_name_begin_with_its_lowest_address_and_never_with_their_own() {
        let all: Vec<SocketAddr> = (1..=9)
            .map(|last| SocketAddr::from(([10, 0, 0, last], 1)))
            .collect();
        let own = [all[0]];
        let random = &mut fastrand::Rng::with_seed(7);
        assert_eq!(
            in_order(all.clone(), &own, &[], true, random),
            all[1..=MAX_ADDRESSES]
        );
        assert_eq!(
            in_order(all.clone(), &own, &all[1..8], false, random),
            all[8..]
        );
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1_000 {
            let order = in_order(all.clone(), &own, &[], false, random);
            assert_eq!(order.len(), MAX_ADDRESSES);
            seen.extend(order);
        }
        assert!(seen.iter().eq(&all[1..]), "{seen:?}");
        assert!(in_order(own.to_vec(), &own, &[], true, random).is_empty());
    }
}
