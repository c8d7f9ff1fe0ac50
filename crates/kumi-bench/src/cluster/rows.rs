//! The rows of the report: their names, what they are called for people, and the goals.
//!
//! A row that nothing was measured for is left out.

use crate::args::{ClusterArgs, ClusterPart};
use crate::cluster::{Plan, Seen};
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;

/// All rows of a run.
pub(crate) struct Rows {
    main: Vec<Filled>,
    trouble: Vec<Filled>,
    small: Vec<Filled>,
    small_nodes: usize,
    wire: Vec<Filled>,
    notes: Vec<String>,
}

struct Filled {
    name: &'static str,
    row: Row,
    cells: usize,
}

impl Rows {
    pub(crate) fn new(plan: &Plan) -> Rows {
        let (calm, loss, cycles) = (plan.calm_seconds, plan.loss_seconds, plan.flip_flop_cycles);
        let at_most = |limit| Some(Goal::AtMost(limit));
        let main = [
            (
                "join_storm",
                "join storm until all agree".to_owned(),
                "virtual_s",
                at_most(10.0),
            ),
            (
                "join_sizes",
                "cluster sizes told by one node at most".to_owned(),
                "sizes",
                at_most(12.0),
            ),
            ("join_cpu", "CPU of the join storm".to_owned(), "s", None),
            (
                "calm_bytes",
                "calm traffic per node".to_owned(),
                "B/s",
                at_most(3000.0),
            ),
            (
                "calm_packets",
                "calm packets per node".to_owned(),
                "1/s",
                None,
            ),
            (
                "calm_cpu",
                format!("CPU of {calm} calm virtual s"),
                "s",
                at_most(20.0),
            ),
            (
                "resident",
                "resident memory of all nodes".to_owned(),
                "MB",
                at_most(1000.0),
            ),
            (
                "crash_dead",
                "crash until dead everywhere, slowest".to_owned(),
                "virtual_s",
                at_most(15.0),
            ),
        ];
        let trouble = [
            (
                "loss10.false_deaths",
                format!("false deaths in {loss} virtual s, all links lose 10%"),
                "deaths",
                at_most(0.0),
            ),
            (
                "loss10.suspicions",
                "suspicions meanwhile".to_owned(),
                "events",
                None,
            ),
            (
                "loss80.false_deaths",
                format!("false deaths in {loss} virtual s, 1% behind 80% loss"),
                "deaths",
                at_most(0.0),
            ),
            (
                "loss80.suspicions",
                "suspicions meanwhile".to_owned(),
                "events",
                None,
            ),
            (
                "flip_flop.other_deaths",
                format!("deaths of others, 1% one-way by turns of 20 s, {cycles} cycles"),
                "deaths",
                at_most(0.0),
            ),
            (
                "flip_flop.rejoin",
                "unheard node up again after being heard, slowest".to_owned(),
                "virtual_s",
                at_most(10.0),
            ),
            (
                "flip_flop.unheard_died",
                "unheard nodes that had been given up".to_owned(),
                "times",
                None,
            ),
        ];
        let small = [
            (
                "small.join_storm",
                "join storm until all agree".to_owned(),
                "virtual_s",
                None,
            ),
            (
                "small.crash_dead",
                "crash until dead everywhere".to_owned(),
                "virtual_s",
                None,
            ),
            (
                "small.calm_bytes",
                "calm traffic per node".to_owned(),
                "B/s",
                None,
            ),
            (
                "small.calm_packets",
                "calm packets per node".to_owned(),
                "1/s",
                None,
            ),
            (
                "small.calm_cpu",
                format!("CPU of {calm} calm virtual s"),
                "s",
                None,
            ),
        ];
        let wire = [
            (
                "wire_bytes",
                "bytes sent per node, headers included".to_owned(),
                "B/s",
                at_most(3000.0),
            ),
            (
                "wire_datagrams",
                "datagrams sent per node".to_owned(),
                "1/s",
                None,
            ),
        ];
        let fill = |(name, label, unit, goal)| Filled {
            name,
            row: Row::new(format!("cluster.{name}"), label, unit).goal(goal),
            cells: 0,
        };
        Rows {
            main: main.map(fill).into(),
            trouble: trouble.map(fill).into(),
            small: small.map(fill).into(),
            small_nodes: 0,
            wire: wire.map(fill).into(),
            notes: Vec::new(),
        }
    }

    /// Fills a cell of the row with this name.
    pub(crate) fn add(&mut self, name: &str, server: &'static str, value: f64) {
        let rows = self.main.iter_mut().chain(&mut self.trouble);
        let mut rows = rows.chain(&mut self.small).chain(&mut self.wire);
        if let Some(filled) = rows.find(|filled| filled.name == name) {
            filled.row.add(server, Sample::single(value));
            filled.cells += 1;
        }
    }

    /// Joining, a calm while and crashes of the large cluster, as far as they were asked for.
    pub(crate) fn main(&mut self, server: &'static str, args: &ClusterArgs, seen: &Seen) {
        if args.wants(ClusterPart::Join) {
            self.joined("join_storm", server, seen);
            self.add("join_cpu", server, seen.join_cpu_seconds);
        }
        if args.wants(ClusterPart::Calm) {
            self.add("calm_bytes", server, seen.bytes_per_second);
            self.add("calm_packets", server, seen.packets_per_second);
            self.add("calm_cpu", server, seen.calm_cpu_seconds);
            self.add("resident", server, seen.resident_bytes / 1e6);
        }
        if args.wants(ClusterPart::Crash) {
            self.add("crash_dead", server, seen.crash_seconds);
        }
    }

    /// The same of fewer nodes.
    pub(crate) fn small(&mut self, server: &'static str, nodes: usize, seen: &Seen) {
        self.small_nodes = nodes;
        self.joined("small.join_storm", server, seen);
        self.add("small.crash_dead", server, seen.crash_seconds);
        self.add("small.calm_bytes", server, seen.bytes_per_second);
        self.add("small.calm_packets", server, seen.packets_per_second);
        self.add("small.calm_cpu", server, seen.calm_cpu_seconds);
    }

    fn joined(&mut self, name: &str, server: &'static str, seen: &Seen) {
        if seen.joined_seconds.is_finite() {
            self.add(name, server, seen.joined_seconds);
        } else {
            self.notes.push(format!(
                "nodes of {server} did not all know each other when it was given up to wait for that"
            ));
        }
    }

    pub(crate) fn into_sections(self, plan: &Plan, report: &mut Report) {
        self.notes.into_iter().for_each(|note| report.note(note));
        let sections = [
            (format!("{} nodes", plan.nodes), self.main),
            (format!("{} nodes in trouble", plan.nodes), self.trouble),
            (
                format!("{} nodes, beside chitchat", self.small_nodes),
                self.small,
            ),
            (
                format!(
                    "{} real nodes with the settings of lan(1000)",
                    super::wire::NODES
                ),
                self.wire,
            ),
        ];
        for (title, rows) in sections {
            let filled = rows.into_iter().filter(|filled| filled.cells > 0);
            let rows: Vec<Row> = filled.map(|filled| filled.row).collect();
            if !rows.is_empty() {
                report.section(title, rows);
            }
        }
    }
}
