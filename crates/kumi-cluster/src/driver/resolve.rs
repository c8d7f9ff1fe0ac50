//! From names to addresses, anew each time: a name may lead elsewhere tomorrow.

use crate::Authority;
use kumi_unison::NetworkError;
use std::net::SocketAddr;
use std::string::ToString;
use std::time::Duration;
use std::vec::Vec;
use tokio::task::JoinSet;

/// How many addresses of one name are tried in a row.
const MAX_ADDRESSES: usize = 4;

/// How long asking for a name may take while a node starts.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// The addresses of `host:port`, in an order that differs from call to call: a name for many seeds spreads the load.
pub(super) async fn addresses(authority: &Authority) -> Result<Vec<SocketAddr>, NetworkError> {
    if let Ok(address) = authority.as_str().parse() {
        return Ok(Vec::from([address]));
    }
    let found = tokio::net::lookup_host(authority.as_str()).await;
    let found = found.map_err(|error| NetworkError::Connect(error.to_string()))?;
    let mut addresses: Vec<SocketAddr> = found.collect();
    fastrand::shuffle(&mut addresses);
    addresses.truncate(MAX_ADDRESSES);
    Ok(addresses)
}

/// The seeds as the core needs them: each once, and this node under its own name, whatever name or address it was
/// given by. The first node of a cluster is often told the name that all are told, at a time when it leads to nobody
/// else. What cannot be resolved now is kept: it is tried again later.
pub(super) async fn known_seeds(
    seeds: &[Authority],
    own: &Authority,
    bound: Option<SocketAddr>,
) -> Vec<Authority> {
    let mut own_addresses = match tokio::time::timeout(START_TIMEOUT, addresses(own)).await {
        Ok(Ok(addresses)) => addresses,
        _ => Vec::new(),
    };
    own_addresses.extend(bound);
    let mut known = Vec::new();
    for (seed, found) in seeds.iter().zip(all_addresses(seeds).await) {
        let is_own =
            !found.is_empty() && found.iter().all(|address| own_addresses.contains(address));
        let seed = if is_own { own } else { seed };
        if !known.contains(seed) {
            known.push(seed.clone());
        }
    }
    known
}

/// The addresses of each, asked for at the same time: one name server that does not answer costs its time once.
async fn all_addresses(authorities: &[Authority]) -> Vec<Vec<SocketAddr>> {
    let mut asked = JoinSet::new();
    for (place, authority) in authorities.iter().cloned().enumerate() {
        asked.spawn(async move {
            let found = tokio::time::timeout(START_TIMEOUT, addresses(&authority)).await;
            (place, found)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_seed_that_is_this_node_under_another_name_gets_its_own() {
        let name = |text: &str| Authority::new(text).expect("a name");
        let own = name("127.0.0.1:7000");
        let bound = Some(SocketAddr::from(([0, 0, 0, 0], 7000)));
        let seeds = [
            "127.0.0.1:7000",
            "0.0.0.0:7000",
            "127.0.0.1:7001",
            "127.0.0.1:7001",
        ];
        let known = known_seeds(&seeds.map(name), &own, bound).await;
        assert_eq!(known, [own, name("127.0.0.1:7001")]);
    }

    #[tokio::test]
    async fn a_name_that_cannot_be_resolved_is_kept_for_later() {
        let seed = Authority::new("no-such-host.invalid:7000").expect("a name");
        let own = Authority::new("127.0.0.1:7000").expect("a name");
        let known = known_seeds(core::slice::from_ref(&seed), &own, None).await;
        assert_eq!(known, [seed]);
    }
}
