//! A cluster's status for people: what needs attention first, then each part as a table.
//!
//! Texts of others (names, addresses, messages) are escaped and cut, so that nothing in them moves a cursor.

use super::figures::{age, bytes, count, latency, percent, plural, rate};
use super::{ClusterStatus, MemberStatus, NodeSelf, Severity, StoreStatus};
use kumi_common::Shown;
use std::fmt::Write;

/// Characters of a cell that are shown.
const CELL_CHARS: usize = 63;

/// How a status is written.
#[derive(Clone, Copy, Debug)]
pub struct Rendering {
    /// Columns of the terminal. Words of attention are continued on the next line, rows of tables are cut. None: lines are as
    /// long as they need to be.
    pub width: Option<usize>,
}

/// The narrowest terminal that is written for.
const NARROWEST: usize = 40;

impl Rendering {
    fn columns(self) -> usize {
        self.width.map_or(usize::MAX, |width| width.max(NARROWEST))
    }
}

/// Where the words of attention begin.
const WORDS_COLUMN: usize = 10;

impl ClusterStatus {
    /// The members as text, in lines that end with a newline.
    #[must_use]
    pub fn members_to_text(&self, rendering: Rendering) -> String {
        let mut out = String::new();
        self.write_members(rendering.columns(), &mut out);
        // Without what comes before it, the title needs no distance.
        out.trim_start().to_owned()
    }

    /// The status as text, in lines that end with a newline.
    #[must_use]
    pub fn to_text(&self, rendering: Rendering) -> String {
        let width = rendering.columns();
        let mut out = String::new();
        self.write_attention(width, &mut out);
        self.write_members(width, &mut out);
        if let Some(store) = &self.store {
            write_store(store, self.at_unix_ms, &mut out);
        }
        self.write_work(width, &mut out);
        self.write_cron(width, &mut out);
        for note in &self.left_out {
            let _ = writeln!(
                out,
                "\n{} more {} are left out",
                note.entries,
                cell(&note.list)
            );
        }
        out
    }

    fn write_attention(&self, width: usize, out: &mut String) {
        if self.attention.is_empty() {
            out.push_str("nothing needs attention\n");
            return;
        }
        out.push_str("attention\n");
        for one in &self.attention {
            let severity = match one.severity {
                Severity::Red => "red",
                Severity::Yellow => "yellow",
            };
            let words = Shown {
                bytes: one.words.as_bytes(),
                limit_chars: 1_000,
            };
            let mut before = format!("  {severity:<8}");
            for line in wrapped(&words.to_string(), width - WORDS_COLUMN) {
                let _ = writeln!(out, "{before}{line}");
                before = " ".repeat(WORDS_COLUMN);
            }
        }
    }

    fn write_members(&self, width: usize, out: &mut String) {
        let mut by_status: Vec<(String, usize)> = Vec::new();
        for member in &self.members {
            match by_status
                .iter_mut()
                .find(|(status, _)| *status == member.status)
            {
                Some((_, number)) => *number += 1,
                None => by_status.push((member.status.clone(), 1)),
            }
        }
        let counts = by_status
            .iter()
            .map(|(status, number)| format!("{number} {}", cell(status)));
        let counts: Vec<String> = counts.collect();
        let _ = writeln!(out, "\nmembers  {}", counts.join(", "));
        let mut table = Table::new(["NAME", "STATUS", "ADDRESS", "ROLES", "VERSION", "UP"]);
        for member in &self.members {
            let node = self
                .nodes
                .iter()
                .find(|node| node.name == member.name && node.life == member.life);
            table.row([
                cell(&member.name),
                match self.silent.contains(&member.name) {
                    true => format!("{}, no answer", cell(&member.status)),
                    false => status_of(member, node),
                },
                cell(&member.address),
                cell(&member.roles.join(",")),
                cell(&member.version),
                node.map_or("?".into(), |node| {
                    age(node.clock_unix_ms.saturating_sub(node.started_unix_ms))
                }),
            ]);
        }
        table.write(width, out);
    }

    fn write_work(&self, width: usize, out: &mut String) {
        let mut units = Table::new(["NAME", "INSTANCES", "CALLS/S", "ERRORS/S", "P99"]);
        for unit in &self.units {
            units.row([
                cell(&unit.name),
                unit.instances.to_string(),
                rate(unit.calls_per_second),
                rate(unit.errors_per_second),
                unit.p99_ms.map_or("-".into(), latency),
            ]);
        }
        units.write_titled("units", width, out);
        let mut queues = Table::new([
            "NAME", "WAITING", "OLDEST", "LATER", "RUNNING", "DEAD", "DONE/S",
        ]);
        for queue in &self.queues {
            queues.row([
                match queue.paused {
                    true => format!("{} (paused)", cell(&queue.name)),
                    false => cell(&queue.name),
                },
                count(queue.waiting),
                queue.oldest_ms.map_or("-".into(), age),
                count(queue.later),
                count(queue.running),
                count(queue.dead),
                rate(queue.done_per_second),
            ]);
        }
        queues.write_titled("queues", width, out);
        let mut workers = Table::new(["NODE", "QUEUE", "RUNNING", "OF", "DONE/S", ""]);
        for worker in &self.workers {
            workers.row([
                cell(&worker.node),
                cell(&worker.queue),
                worker.running.to_string(),
                worker.concurrency.to_string(),
                rate(worker.done_per_second),
                if worker.draining { "draining" } else { "" }.into(),
            ]);
        }
        workers.write_titled("workers", width, out);
        let mut programs = Table::new(["NODE", "NAME", "STATE", "CRASHES", "LAST END"]);
        for program in &self.programs {
            programs.row([
                cell(&program.node),
                cell(&program.name),
                cell(&program.state),
                program.crashes.to_string(),
                program.last_end.as_deref().map_or("-".into(), cell),
            ]);
        }
        programs.write_titled("programs", width, out);
    }

    fn write_cron(&self, width: usize, out: &mut String) {
        let mut cron = Table::new(["QUEUE", "NAME", "WHEN", "ZONE", "LAST", "NEXT"]);
        for one in &self.cron {
            let last = |at: u64| format!("{} ago", age(self.at_unix_ms.saturating_sub(at)));
            let next = |at: u64| match at.checked_sub(self.at_unix_ms) {
                Some(wait) => format!("in {}", age(wait)),
                None => "due".into(),
            };
            cron.row([
                cell(&one.queue),
                cell(&one.name),
                cell(&one.expression),
                cell(&one.zone),
                one.last_unix_ms.map_or("-".into(), last),
                one.next_unix_ms.map_or("-".into(), next),
            ]);
        }
        cron.write_titled("cron", width, out);
    }
}

/// A text in lines of at most `width` characters, broken at spaces. A word that is longer has a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

/// What membership says, and what the node itself says if that is more.
fn status_of(member: &MemberStatus, node: Option<&NodeSelf>) -> String {
    let status = cell(&member.status);
    match node {
        Some(node) if member.status == "up" && node.state != "up" && !node.state.is_empty() => {
            cell(&node.state)
        }
        Some(node) if member.status == "up" && !node.ready => format!("{status}, not ready"),
        _ => status,
    }
}

fn write_store(store: &StoreStatus, now: u64, out: &mut String) {
    let mut line = format!("\nstore  {}", cell(&store.address));
    if !store.node.is_empty() {
        let _ = write!(line, " on {}", cell(&store.node));
    }
    if !store.id.is_empty() {
        let _ = write!(line, ", data set {}", cell(&store.id));
    }
    if let Some(since) = store.away_since_unix_ms {
        let _ = write!(line, ", away for {}", age(now.saturating_sub(since)));
    }
    let _ = writeln!(out, "{line}");
    if store.away_since_unix_ms.is_some() {
        return;
    }
    let limit = store
        .memory_limit_bytes
        .map_or(String::new(), |limit| format!(" of {}", bytes(limit)));
    let figures = [
        format!("{} keys", count(store.keys)),
        format!("{}{limit}", bytes(store.memory_bytes)),
        format!("{} ops/s", rate(store.ops_per_second)),
        match store.hit_rate {
            Some(hits) => format!("{} hits", percent(hits)),
            None => "no reads".into(),
        },
        plural(store.clients, "client"),
    ];
    let _ = writeln!(out, "  {}", figures.join(", "));
    let aof = match (store.aof, store.aof_ok) {
        (false, _) => "AOF off",
        (true, Some(false)) => "AOF failed",
        (true, _) => "AOF on",
    };
    let saved = match (store.save_ok, store.saved_unix_ms) {
        (Some(false), _) => "last save failed".into(),
        (_, Some(at)) => format!("saved {} ago", age(now.saturating_sub(at))),
        (_, None) => "never saved".into(),
    };
    let _ = writeln!(out, "  {aof}, {saved}");
}

/// A text of others, on one line and not too long.
fn cell(text: &str) -> String {
    let shown = Shown {
        bytes: text.as_bytes(),
        limit_chars: CELL_CHARS,
    };
    shown.to_string()
}

/// Rows of as many cells as there are headings, in columns as wide as their widest cell. Figures are to the right.
struct Table<const N: usize> {
    headings: [&'static str; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    fn new(headings: [&'static str; N]) -> Self {
        let rows = Vec::new();
        Self { headings, rows }
    }

    fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// With its title, unless there are no rows.
    fn write_titled(&self, title: &str, width: usize, out: &mut String) {
        if !self.rows.is_empty() {
            let _ = writeln!(out, "\n{title}");
            self.write(width, out);
        }
    }

    fn write(&self, width: usize, out: &mut String) {
        if self.rows.is_empty() {
            return;
        }
        let headings = self.headings.map(str::to_owned);
        let rows = || std::iter::once(&headings).chain(&self.rows);
        let mut widths = [0; N];
        for row in rows() {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = cell.chars().count().max(*widest);
            }
        }
        for row in rows() {
            let mut line = String::from(" ");
            for ((cell, widest), heading) in row.iter().zip(widths).zip(self.headings) {
                let padding = " ".repeat(widest - cell.chars().count());
                match is_figure(heading) {
                    true => line.extend([" ", &padding, cell, " "]),
                    false => line.extend([" ", cell, &padding, " "]),
                }
            }
            let line: String = line.trim_end().chars().take(width).collect();
            let _ = writeln!(out, "{line}");
        }
    }
}

fn is_figure(heading: &str) -> bool {
    let figures = [
        "INSTANCES",
        "P99",
        "WAITING",
        "LATER",
        "RUNNING",
        "OF",
        "DEAD",
        "CRASHES",
        "UP",
        "OLDEST",
    ];
    figures.contains(&heading) || heading.ends_with("/S")
}
