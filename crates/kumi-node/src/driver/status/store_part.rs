//! The store's part of the status: its INFO, and what is wrong with the stores of the cluster.

use crate::core::status::{StoreProblem, StoreStatus};
use crate::core::store_pin::StoreFault;
use crate::driver::store_link::{Choice, Reach};
use std::collections::BTreeMap;

/// The store as this node sees it; none if the node knows none and nothing is wrong.
pub(super) fn store(choice: &Choice, reach: &Reach, info: Option<&str>) -> Option<StoreStatus> {
    let route = choice.route.as_deref();
    if route.is_none() && choice.pinned.is_none() && choice.faults.is_empty() {
        return None;
    }
    let pinned = choice.pinned.as_ref();
    let id = route.and_then(|route| route.id.as_ref()).or(pinned);
    let mut status = StoreStatus {
        id: id.map_or_else(String::new, ToString::to_string),
        node: route.map_or_else(String::new, |route| route.node.clone()),
        address: route.map_or_else(String::new, |route| route.address.clone()),
        away_since_unix_ms: (!reach.is_up && !reach.is_loading).then_some(reach.since_unix_ms),
        problems: choice.faults.iter().map(problem).collect(),
        loading_percent: reach.is_loading.then_some(0.0),
        ..StoreStatus::default()
    };
    if let Some(info) = info {
        read(&mut status, &fields(info));
    }
    Some(status)
}

fn problem(fault: &StoreFault) -> StoreProblem {
    match fault {
        StoreFault::Other { pinned, found } => StoreProblem::Other {
            pinned: pinned.to_string(),
            id: found.id.to_string(),
            node: found.node.name().to_owned(),
        },
        StoreFault::TwoPrimaries { id, nodes } => StoreProblem::TwoPrimaries {
            id: id.to_string(),
            nodes: nodes.iter().map(|node| node.name().to_owned()).collect(),
        },
        StoreFault::PinsDiffer { ours, theirs } => StoreProblem::PinsDiffer {
            ours: ours.to_string(),
            theirs: theirs.id.to_string(),
            node: theirs.by.name().to_owned(),
        },
    }
}

/// The fields of INFO.
fn fields(info: &str) -> BTreeMap<&str, &str> {
    let lines = info.lines().map(str::trim_end);
    lines.filter_map(|line| line.split_once(':')).collect()
}

fn read(status: &mut StoreStatus, fields: &BTreeMap<&str, &str>) {
    let number = |name: &str| fields.get(name)?.parse::<u64>().ok();
    let is_ok = |name: &str| fields.get(name).map(|value| *value == "ok");
    if status.id.is_empty() {
        status.id = fields
            .get("kumi_data_id")
            .map_or_else(String::new, |id| (*id).to_owned());
    }
    if number("loading") == Some(1) {
        let loaded = fields.get("loading_loaded_perc");
        status.loading_percent = loaded
            .and_then(|percent| percent.parse().ok())
            .or(Some(0.0));
    }
    let databases = fields.iter().filter(|(name, _)| is_database(name));
    status.keys = databases
        .filter_map(|(_, value)| {
            let keys = value
                .split(',')
                .find_map(|part| part.strip_prefix("keys="))?;
            keys.parse::<u64>().ok()
        })
        .sum();
    status.memory_bytes = number("used_memory").unwrap_or(0);
    status.memory_limit_bytes = number("maxmemory").filter(|limit| *limit > 0);
    let policy = fields.get("maxmemory_policy");
    status.evicts = policy.is_some_and(|policy| *policy != "noeviction");
    let ops = fields.get("instantaneous_ops_per_sec");
    status.ops_per_second = ops.and_then(|ops| ops.parse().ok()).unwrap_or(0.0);
    let hits = number("keyspace_hits").unwrap_or(0);
    let reads = hits.saturating_add(number("keyspace_misses").unwrap_or(0));
    status.hit_rate = (reads > 0).then(|| hits as f64 / reads as f64);
    status.clients = number("connected_clients").unwrap_or(0);
    status.aof = number("aof_enabled") == Some(1);
    status.aof_ok = is_ok("aof_last_write_status");
    let saved = number("rdb_last_save_time").filter(|seconds| *seconds > 0);
    status.saved_unix_ms = saved.map(|seconds| seconds.saturating_mul(1_000));
    status.save_ok = is_ok("rdb_last_bgsave_status");
}

fn is_database(name: &str) -> bool {
    let number = name.strip_prefix("db");
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::route::StoreRoute;
    use std::sync::Arc;

    const INFO: &str = "# Server\r\nkumi_data_id:0a\r\n# Memory\r\nused_memory:90\r\nmaxmemory:100\r\n\
        maxmemory_policy:noeviction\r\nkeyspace_hits:3\r\nkeyspace_misses:1\r\nconnected_clients:7\r\n\
        aof_enabled:1\r\naof_last_write_status:err\r\nrdb_last_bgsave_status:ok\r\nrdb_last_save_time:5\r\n\
        instantaneous_ops_per_sec:12\r\ndb0:keys=2,expires=0\r\ndb9:keys=3,expires=1\r\ndbsize:9\r\n";

    #[test]
    fn info_becomes_the_figures_of_the_status() {
        let route = Some(Arc::new(StoreRoute::outside("redis://ann:secret@h:1")));
        let choice = Choice {
            route: route.clone(),
            ..Choice::default()
        };
        let reach = Reach {
            route,
            is_up: true,
            ..Reach::default()
        };
        let status = store(&choice, &reach, Some(INFO)).expect("a store");
        assert_eq!(
            (status.keys, status.memory_bytes, status.clients),
            (5, 90, 7)
        );
        assert_eq!(status.memory_limit_bytes, Some(100));
        assert_eq!((status.evicts, status.hit_rate), (false, Some(0.75)));
        assert_eq!((status.aof, status.aof_ok), (true, Some(false)));
        assert_eq!(
            (status.saved_unix_ms, status.save_ok),
            (Some(5_000), Some(true))
        );
        assert_eq!((&*status.id, status.away_since_unix_ms), ("0a", None));
        assert!(!status.address.contains("secret"), "{}", status.address);
        assert_eq!(store(&Choice::default(), &reach, None), None);
    }
}
