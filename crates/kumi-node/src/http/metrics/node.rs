//! Everything that is not the store: the node, members, gossip, queues, units, programs, and the HTTP server itself.

use super::exposition::{Exposition, Kind};
use crate::http::shared::HttpFacts;
use crate::http::snapshot::{MemberFacts, NodeSnapshot, Readiness};
use kumi_cluster::DriverMetrics;

/// A counter of gossip: its name between `kumi_cluster_` and `_total`, what it counts, and where it is.
type GossipRow = (&'static str, &'static str, fn(&DriverMetrics) -> u64);

const GOSSIP: &[GossipRow] = &[
    (
        "datagrams_sent",
        "Messages that left as datagrams.",
        |all| all.datagrams_sent,
    ),
    (
        "reliable_sent",
        "Messages that left on the reliable channel.",
        |all| all.reliable_sent,
    ),
    (
        "fallbacks",
        "Datagrams that were sent on the reliable channel instead.",
        |all| all.fallbacks,
    ),
    ("received", "Messages that arrived.", |all| all.received),
    (
        "refused",
        "Messages that arrived and were refused.",
        |all| all.refused,
    ),
    (
        "inbound_dropped",
        "Datagrams that arrived while the node was too busy.",
        |all| all.inbound_dropped,
    ),
    (
        "outbound_dropped",
        "Messages that found the queue to their peer full.",
        |all| all.outbound_dropped,
    ),
    (
        "stale_dropped",
        "Datagrams that waited too long for a connection.",
        |all| all.stale_dropped,
    ),
    (
        "unreachable_dropped",
        "Messages to peers that could not be reached a moment ago.",
        |all| all.unreachable_dropped,
    ),
    ("dials", "Connections that were begun.", |all| all.dials),
    (
        "dial_failures",
        "Connections that did not come about.",
        |all| all.dial_failures,
    ),
    (
        "accepted",
        "Connections that peers made to this node.",
        |all| all.accepted,
    ),
    (
        "impostors",
        "Peers that are not the node that they introduced themselves as.",
        |all| all.impostors,
    ),
    (
        "evicted",
        "Connections that were closed to make room for others.",
        |all| all.evicted,
    ),
    (
        "idle_closed",
        "Connections that were closed because they were not used.",
        |all| all.idle_closed,
    ),
    (
        "watchers_lagged",
        "Watchers that were too slow and missed events.",
        |all| all.watchers_lagged,
    ),
];

pub(super) fn write(out: &mut Exposition, snapshot: &NodeSnapshot, readiness: Readiness) {
    let info = [("name", &snapshot.name[..]), ("version", &snapshot.version)];
    let help = "Name and version of the node; the value is 1.";
    out.family(Kind::Gauge, "kumi_node_info", help, [(&info[..], 1)]);
    let is_ready = u8::from(readiness == Readiness::Ready);
    out.single(
        Kind::Gauge,
        "kumi_node_ready",
        "1 if the node can be used.",
        is_ready,
    );
    let roles: Vec<_> = snapshot
        .roles
        .iter()
        .map(|role| [("role", &role[..])])
        .collect();
    let roles = roles.iter().map(|labels| (&labels[..], 1));
    out.family(
        Kind::Gauge,
        "kumi_node_role",
        "1 for each role of the node.",
        roles,
    );
    let help = "Things that need attention.";
    by_label(
        out,
        Kind::Gauge,
        "kumi_node_attention",
        help,
        "severity",
        &snapshot.attention,
    );
    if let Some(members) = &snapshot.members {
        write_members(out, members);
    }
    write_queues(out, snapshot);
    write_units(out, snapshot);
    write_programs(out, snapshot);
}

fn write_members(out: &mut Exposition, members: &MemberFacts) {
    let help = "Members of the cluster as this node sees them.";
    by_label(
        out,
        Kind::Gauge,
        "kumi_cluster_members",
        help,
        "status",
        &members.by_status,
    );
    let suspicion = members.longest_suspicion_seconds.unwrap_or(0.0);
    let help = "For how long the longest suspicion of a member lasts; 0 without one.";
    out.single(
        Kind::Gauge,
        "kumi_cluster_suspicion_longest_seconds",
        help,
        suspicion,
    );
    if let Some(phi) = members.highest_phi {
        let help = "The highest phi of the members that this node watches.";
        out.single(Kind::Gauge, "kumi_cluster_phi_highest", help, phi);
    }
    for (name, help, value) in GOSSIP {
        let name = format!("kumi_cluster_{name}_total");
        out.single(Kind::Counter, &name, help, value(&members.gossip));
    }
}

fn write_queues(out: &mut Exposition, snapshot: &NodeSnapshot) {
    let mut queues: Vec<_> = snapshot.queues.iter().collect();
    queues.sort_by(|one, other| one.queue.cmp(&other.queue));
    for (kind, name, help, label) in [
        (
            Kind::Gauge,
            "kumi_jobs_tasks",
            "Tasks of a queue by state.",
            "state",
        ),
        (
            Kind::Counter,
            "kumi_jobs_events_total",
            "What happened to tasks of a queue.",
            "event",
        ),
    ] {
        let series = queues.iter().flat_map(|queue| {
            let counts = match kind {
                Kind::Counter => &queue.events,
                _ => &queue.tasks,
            };
            let labels = |of: &'_ str| [("queue", queue.queue.clone()), (label, of.to_owned())];
            counts.iter().map(move |(of, count)| (labels(of), *count))
        });
        labelled(out, kind, name, help, series.collect());
    }
    let oldest = queues.iter().filter_map(|queue| {
        Some((
            [("queue", queue.queue.clone())],
            queue.oldest_waiting_seconds?,
        ))
    });
    let help = "How long the oldest waiting task of a queue has waited.";
    labelled(
        out,
        Kind::Gauge,
        "kumi_jobs_oldest_waiting_seconds",
        help,
        oldest.collect(),
    );
    let workers = queues
        .iter()
        .map(|queue| ([("queue", queue.queue.clone())], queue.workers));
    let help = "Workers that ask for tasks of a queue.";
    labelled(
        out,
        Kind::Gauge,
        "kumi_jobs_workers",
        help,
        workers.collect(),
    );
    let paused = queues.iter();
    let paused = paused.map(|queue| ([("queue", queue.queue.clone())], u8::from(queue.is_paused)));
    labelled(
        out,
        Kind::Gauge,
        "kumi_jobs_paused",
        "1 if a queue is paused.",
        paused.collect(),
    );
}

fn write_units(out: &mut Exposition, snapshot: &NodeSnapshot) {
    let mut units: Vec<_> = snapshot.units.iter().collect();
    units.sort_by(|one, other| one.unit.cmp(&other.unit));
    let label = |unit: &str| [("unit", unit.to_owned())];
    let series = units.iter().map(|unit| (label(&unit.unit), unit.instances));
    let help = "Processes of a unit.";
    labelled(
        out,
        Kind::Gauge,
        "kumi_muf_instances",
        help,
        series.collect(),
    );
    let series = units.iter().map(|unit| (label(&unit.unit), unit.requests));
    let help = "Requests that a unit served.";
    labelled(
        out,
        Kind::Counter,
        "kumi_muf_requests_total",
        help,
        series.collect(),
    );
    let series = units.iter().map(|unit| (label(&unit.unit), unit.errors));
    let help = "Requests that a unit answered with an error.";
    labelled(
        out,
        Kind::Counter,
        "kumi_muf_errors_total",
        help,
        series.collect(),
    );
    let series = units.iter();
    let series = series.filter_map(|unit| Some((label(&unit.unit), unit.p99_seconds?)));
    let help = "Within this time 99 of 100 recent requests to a unit were answered.";
    labelled(
        out,
        Kind::Gauge,
        "kumi_muf_request_p99_seconds",
        help,
        series.collect(),
    );
}

fn write_programs(out: &mut Exposition, snapshot: &NodeSnapshot) {
    let mut programs: Vec<_> = snapshot.programs.iter().collect();
    programs.sort_by(|one, other| one.program.cmp(&other.program));
    let label = |name: &str| [("program", name.to_owned())];
    let series = programs
        .iter()
        .map(|one| (label(&one.program), one.running));
    let help = "Running processes of a program.";
    labelled(
        out,
        Kind::Gauge,
        "kumi_program_running",
        help,
        series.collect(),
    );
    let series = programs
        .iter()
        .map(|one| (label(&one.program), one.restarts));
    let help = "How often a program was started again.";
    labelled(
        out,
        Kind::Counter,
        "kumi_program_restarts_total",
        help,
        series.collect(),
    );
}

/// What the HTTP server counts about itself.
pub(super) fn write_http(out: &mut Exposition, http: &HttpFacts) {
    let help = "Requests to the node's HTTP server.";
    out.single(
        Kind::Counter,
        "kumi_http_requests_total",
        help,
        http.requests,
    );
    let help = "Open connections of the node's HTTP server.";
    out.single(Kind::Gauge, "kumi_http_connections", help, http.connections);
    let help = "Connections to the node's HTTP server beyond its limit.";
    out.single(
        Kind::Counter,
        "kumi_http_connections_refused_total",
        help,
        http.refused,
    );
    let help = "Idle connections to the node's HTTP server that were closed for new ones.";
    out.single(
        Kind::Counter,
        "kumi_http_connections_evicted_total",
        help,
        http.evicted,
    );
}

fn by_label(
    out: &mut Exposition,
    kind: Kind,
    name: &str,
    help: &str,
    label: &'static str,
    counts: &std::collections::BTreeMap<String, u64>,
) {
    let series = counts
        .iter()
        .map(|(of, count)| ([(label, of.clone())], *count));
    labelled(out, kind, name, help, series.collect());
}

/// A family whose labels are owned.
fn labelled<const N: usize, V: std::fmt::Display>(
    out: &mut Exposition,
    kind: Kind,
    name: &str,
    help: &str,
    series: Vec<([(&'static str, String); N], V)>,
) {
    let borrowed: Vec<_> = series
        .iter()
        .map(|(labels, value)| {
            let labels = labels.each_ref().map(|(label, text)| (*label, &text[..]));
            (labels, value)
        })
        .collect();
    let series = borrowed.iter().map(|(labels, value)| (&labels[..], value));
    out.family(kind, name, help, series);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::snapshot::{ProgramFacts, QueueFacts, UnitFacts};
    use std::collections::BTreeMap;

    fn counts(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
        pairs
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect()
    }

    /// A counter that the driver gets later needs a row here.
    #[test]
    fn every_counter_of_gossip_is_shown() {
        let all = serde_json::to_value(DriverMetrics::default()).unwrap();
        let mut fields: Vec<&str> = all
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let mut rows: Vec<&str> = GOSSIP.iter().map(|(name, ..)| *name).collect();
        fields.sort_unstable();
        rows.sort_unstable();
        assert_eq!(rows, fields);
        for (name, _, value) in GOSSIP {
            let one = serde_json::json!({ *name: 7 });
            let one: DriverMetrics = serde_json::from_value(one).unwrap();
            assert_eq!(value(&one), 7, "{name}");
        }
    }

    #[test]
    fn the_same_facts_give_the_same_text_in_any_order() {
        let queue = |name: &str| QueueFacts {
            queue: name.to_owned(),
            tasks: counts(&[("queued", 3), ("dead", 1)]),
            oldest_waiting_seconds: Some(1.25),
            workers: 2,
            is_paused: name == "b",
            events: counts(&[("enqueued", 9)]),
        };
        let unit = |name: &str| UnitFacts {
            unit: name.to_owned(),
            instances: 2,
            requests: 10,
            errors: 1,
            p99_seconds: (name == "web").then_some(0.25),
        };
        let program = |name: &str| ProgramFacts {
            program: name.to_owned(),
            running: 1,
            restarts: 4,
        };
        let mut snapshot = NodeSnapshot {
            name: "a".into(),
            version: "0.1.0".into(),
            roles: vec!["store".into()],
            attention: counts(&[("yellow", 1), ("red", 0)]),
            store: None,
            members: Some(MemberFacts {
                by_status: counts(&[("suspect", 1), ("alive", 4)]),
                longest_suspicion_seconds: Some(2.5),
                highest_phi: None,
                gossip: DriverMetrics::default(),
            }),
            queues: vec![queue("a"), queue("b")],
            units: vec![unit("math"), unit("web")],
            programs: vec![program("api"), program("resize")],
        };
        let text = |snapshot: &NodeSnapshot| {
            let mut out = Exposition::default();
            write(&mut out, snapshot, Readiness::Loading);
            out.into_text()
        };
        let first = text(&snapshot);
        snapshot.queues.reverse();
        snapshot.units.reverse();
        snapshot.programs.reverse();
        assert_eq!(text(&snapshot), first);
        for line in [
            "kumi_node_info{name=\"a\",version=\"0.1.0\"} 1",
            "kumi_node_ready 0",
            "kumi_node_role{role=\"store\"} 1",
            "kumi_node_attention{severity=\"yellow\"} 1",
            "kumi_cluster_members{status=\"alive\"} 4",
            "kumi_cluster_suspicion_longest_seconds 2.5",
            "kumi_cluster_datagrams_sent_total 0",
            "kumi_jobs_tasks{queue=\"a\",state=\"dead\"} 1",
            "kumi_jobs_events_total{queue=\"b\",event=\"enqueued\"} 9",
            "kumi_jobs_oldest_waiting_seconds{queue=\"a\"} 1.25",
            "kumi_jobs_workers{queue=\"a\"} 2",
            "kumi_jobs_paused{queue=\"b\"} 1",
            "kumi_muf_requests_total{unit=\"math\"} 10",
            "kumi_muf_request_p99_seconds{unit=\"web\"} 0.25",
            "kumi_program_restarts_total{program=\"api\"} 4",
        ] {
            assert!(first.lines().any(|one| one == line), "{line}\n{first}");
        }
        assert!(!first.contains("phi"), "{first}");
    }
}
