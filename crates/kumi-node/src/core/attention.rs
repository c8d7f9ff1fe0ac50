//! From the facts in a node's status to what needs attention, in words.
//!
//! A rule looks at one part of the document and says what is wrong and what to do. The limits stand here, each with its
//! name. Rules about the cluster have the same subject on every node, so that merged replies tell them once.

#[cfg(test)]
mod tests;

use crate::core::status::figures::{age, bytes, percent, plural};
use crate::core::status::{
    Attention, AttentionKind, KeptOut, MemberStatus, NodeSelf, NodeStatus, ProgramStatus,
    QueueStatus, Severity, StoreProblem, StoreStatus, order,
};
use kumi_common::Shown;
use std::fmt::Display;

/// Characters of a name or text of others that are shown.
const SHOWN_CHARS: usize = 80;

/// Characters of an error that are shown.
const ERROR_CHARS: usize = 200;

/// Clock offset above which status reports a node; leases and schedules are measured in seconds.
const CLOCK_OFF_MS: u64 = 5_000;

/// A clock that is off by more than this is red: certificates and schedules are wrong.
const CLOCK_FAR_OFF_MS: u64 = 60_000;

/// Free parts of a disk below which it is yellow and red.
const DISK_LOW: f64 = 0.10;
const DISK_FULL: f64 = 0.02;

/// Share of `maxmemory` above which status reports the memory of the store.
const MEMORY_HIGH: f64 = 0.90;

/// Programs that ended this often in a row are told, and are red from the second figure on.
const CRASHES: u32 = 3;
const MANY_CRASHES: u32 = 10;

/// Two keys in a key file are for the time of a change, not for longer.
const TWO_KEYS_FOR_MS: u64 = 7 * 24 * 3_600_000;

/// Waiting tasks that no worker asks for are told once the oldest has waited for this long: workers may be starting.
const UNSERVED_FOR_MS: u64 = 10_000;

/// Puts what needs attention into a node's status, the worst first. The facts are those of the document; `now` is
/// [`NodeSelf::clock_unix_ms`].
#[must_use]
pub fn with_attention(mut status: NodeStatus) -> NodeStatus {
    let mut attention = Vec::new();
    node(&status.node, &mut attention);
    let now = status.node.clock_unix_ms;
    if let Some(known) = &status.store {
        store(known, now, &mut attention);
    }
    status
        .members
        .iter()
        .for_each(|found| member(found, &mut attention));
    status
        .queues
        .iter()
        .for_each(|found| queue(found, &mut attention));
    status
        .programs
        .iter()
        .for_each(|found| program(found, &mut attention));
    order(&mut attention);
    status.attention = attention;
    status
}

fn say(
    attention: &mut Vec<Attention>,
    severity: Severity,
    kind: AttentionKind,
    subject: impl Display,
    words: String,
) {
    attention.push(Attention {
        severity,
        kind,
        subject: subject.to_string(),
        words,
    });
}

fn shown(text: &str) -> Shown<'_> {
    Shown {
        bytes: text.as_bytes(),
        limit_chars: SHOWN_CHARS,
    }
}

fn node(node: &NodeSelf, attention: &mut Vec<Attention>) {
    let name = shown(&node.name);
    if let Some(ahead) = node.clock_ahead_ms {
        let off = ahead.unsigned_abs();
        let severity = match off {
            _ if off > CLOCK_FAR_OFF_MS => Some(Severity::Red),
            _ if off > CLOCK_OFF_MS => Some(Severity::Yellow),
            _ => None,
        };
        let side = if ahead < 0 { "behind" } else { "ahead of" };
        if let Some(severity) = severity {
            let words = format!(
                "clock of node {name} is {} {side} the store's: set both by NTP",
                age(off)
            );
            say(
                attention,
                severity,
                AttentionKind::ClockOff,
                &node.name,
                words,
            );
        }
    }
    if let (Some(free), Some(size @ 1..)) = (node.disk_free_bytes, node.disk_bytes) {
        let share = free as f64 / size as f64;
        let severity = match share {
            _ if share < DISK_FULL => Some(Severity::Red),
            _ if share < DISK_LOW => Some(Severity::Yellow),
            _ => None,
        };
        if let Some(severity) = severity {
            let words = format!(
                "disk of node {name}: {} of {} free ({}); when it is full, the store refuses writes",
                bytes(free),
                bytes(size),
                percent(share)
            );
            say(
                attention,
                severity,
                AttentionKind::DiskFull,
                &node.name,
                words,
            );
        }
    }
    joining(node, attention);
    for part in &node.failed_parts {
        let words = format!(
            "node {name}: its part {} ended by a mistake in kumi: restart the node, and report what its log says",
            shown(part)
        );
        let subject = format!("{}/{part}", node.name);
        say(
            attention,
            Severity::Red,
            AttentionKind::PartFailed,
            subject,
            words,
        );
    }
    if node.seeds > 0
        && node.seeds_reached.saturating_mul(2) <= node.seeds
        && node.seeds_reached < node.seeds
    {
        let (severity, words) = match node.seeds_reached {
            0 => (
                Severity::Red,
                format!(
                    "node {name}: none of its {} answers{}: check that one is running, its address and UDP port 7400",
                    plural(u64::from(node.seeds), "seed"),
                    seed_error(node)
                ),
            ),
            reached => (
                Severity::Yellow,
                format!(
                    "node {name}: only {reached} of its {} answers{}",
                    plural(u64::from(node.seeds), "seed"),
                    seed_error(node)
                ),
            ),
        };
        say(
            attention,
            severity,
            AttentionKind::SeedsUnreachable,
            &node.name,
            words,
        );
    }
    if let Some(since) = node.two_keys_since_unix_ms {
        let held = node.clock_unix_ms.saturating_sub(since);
        if held > TWO_KEYS_FOR_MS {
            let words = format!(
                "key file of node {name} has had two keys for {}: remove the old one when all nodes use the new one",
                age(held)
            );
            say(
                attention,
                Severity::Yellow,
                AttentionKind::TwoKeys,
                &node.name,
                words,
            );
        }
    }
}

/// Why a node is not a member.
fn joining(node: &NodeSelf, attention: &mut Vec<Attention>) {
    let name = shown(&node.name);
    let (kind, words) = match &node.kept_out {
        None => return,
        Some(KeptOut::NameTaken { address }) => (
            AttentionKind::NameTaken,
            format!(
                "node {name} is not let in: a live node at {} has this name: choose another one with --name NAME, or stop that node",
                shown(address)
            ),
        ),
        Some(KeptOut::Quarantined { reason }) => (
            AttentionKind::NodeQuarantined,
            format!(
                "node {name} is quarantined {}: it takes no work until that ends or is lifted (kumi cluster quarantine --lift)",
                shown(reason)
            ),
        ),
        Some(KeptOut::Ended) => (
            AttentionKind::MembershipEnded,
            format!(
                "membership of node {name} has ended: a later start of it took its place, or its log says what failed; restart it"
            ),
        ),
    };
    say(attention, Severity::Red, kind, &node.name, words);
}

/// The error of a seed in brackets, if one is known.
fn seed_error(node: &NodeSelf) -> String {
    let error = node.seed_error.as_deref();
    error.map_or_else(String::new, |error| {
        let error = Shown {
            bytes: error.as_bytes(),
            limit_chars: ERROR_CHARS,
        };
        format!(" ({error})")
    })
}

fn store(store: &StoreStatus, now: u64, attention: &mut Vec<Attention>) {
    use AttentionKind as Kind;
    let mut red = |kind, subject: &str, words| say(attention, Severity::Red, kind, subject, words);
    if let Some(since) = store.away_since_unix_ms {
        let away = age(now.saturating_sub(since));
        let address = shown(&store.address);
        let words = format!(
            "store: {address} is away for {away}; workers wait, calls fail by their deadlines, nothing is lost"
        );
        red(Kind::StoreAway, "", words);
    }
    for problem in &store.problems {
        match problem {
            StoreProblem::Other { pinned, id, node } => red(
                Kind::StoreOther,
                id,
                format!(
                    "store: node {} has another data set ({}) than this cluster uses ({}); it is not used: stop it, or decide with kumi store use {}",
                    shown(node),
                    shown(id),
                    shown(pinned),
                    shown(id)
                ),
            ),
            StoreProblem::TwoPrimaries { id, nodes } => {
                let nodes: Vec<String> = nodes.iter().map(|node| shown(node).to_string()).collect();
                let words = format!(
                    "store: {} primaries of one data set ({}) are live, on {}: stop all but one",
                    nodes.len(),
                    shown(id),
                    nodes.join(" and ")
                );
                red(Kind::StoreTwoPrimaries, id, words);
            }
            StoreProblem::PinsDiffer { ours, theirs, node } => {
                let mut ids = [ours, theirs];
                ids.sort();
                let words = format!(
                    "store: node {} uses data set {}, others {}: decide with kumi store use ID",
                    shown(node),
                    shown(theirs),
                    shown(ours)
                );
                red(
                    Kind::StorePinsDiffer,
                    &format!("{} {}", ids[0], ids[1]),
                    words,
                );
            }
        }
    }
    if store.save_ok == Some(false) {
        red(
            Kind::StoreSaveFailed,
            "",
            "store: last save failed; its log says why".into(),
        );
    }
    if store.aof && store.aof_ok == Some(false) {
        red(
            Kind::StoreAofFailed,
            "",
            "store: the AOF cannot be written; writes are refused".into(),
        );
    }
    if let Some(loaded) = store.loading_percent {
        let words = format!("store: loading its data, {} done", percent(loaded / 100.0));
        say(attention, Severity::Yellow, Kind::StoreLoading, "", words);
    }
    if let Some(limit @ 1..) = store.memory_limit_bytes {
        let share = store.memory_bytes as f64 / limit as f64;
        if share > MEMORY_HIGH && !store.evicts {
            let words = format!(
                "store: {} of {} of memory in use; at the limit it refuses writes",
                bytes(store.memory_bytes),
                bytes(limit)
            );
            say(attention, Severity::Yellow, Kind::StoreMemory, "", words);
        }
    }
}

fn member(member: &MemberStatus, attention: &mut Vec<Attention>) {
    let (name, held) = (shown(&member.name), age(member.for_ms));
    let (severity, kind, words) = match &*member.status {
        "suspect" => (
            Severity::Yellow,
            AttentionKind::MemberSuspected,
            format!("node {name} suspected for {held}"),
        ),
        "dead" => (
            Severity::Red,
            AttentionKind::MemberDead,
            format!("node {name} died {held} ago; its tasks are given to others"),
        ),
        _ => return,
    };
    say(attention, severity, kind, &member.name, words);
}

fn queue(queue: &QueueStatus, attention: &mut Vec<Attention>) {
    use AttentionKind as Kind;
    let name = shown(&queue.name);
    let mut yellow = |kind, words| say(attention, Severity::Yellow, kind, &queue.name, words);
    if queue.paused {
        let words = format!(
            "queue {name}: paused, {} wait",
            plural(queue.waiting, "task")
        );
        yellow(Kind::QueuePaused, words);
    }
    let is_long = queue
        .oldest_ms
        .is_some_and(|oldest| oldest >= UNSERVED_FOR_MS);
    if queue.unserved > 0 && is_long && !queue.paused {
        let tasks = plural(queue.unserved, "task");
        let (waits, them) = match queue.unserved {
            1 => ("waits", "it"),
            _ => ("wait", "them"),
        };
        let of_types = match queue.unserved < queue.waiting {
            true => format!(" of {}", types(&queue.unserved_types)),
            false => String::new(),
        };
        let words = format!("queue {name}: {tasks}{of_types} {waits}, no worker asks for {them}");
        yellow(Kind::QueueUnserved, words);
    }
    if queue.dead_lately > 0 {
        let words = format!(
            "queue {name}: {} used up all attempts in the last {} ({} dead in all)",
            plural(queue.dead_lately, "task"),
            age(queue.dead_window_ms),
            queue.dead
        );
        yellow(Kind::QueueDead, words);
    }
}

/// `type resize`, or `types mail and resize`, or `types a, b and 3 more`.
fn types(types: &[String]) -> String {
    match types {
        [] => "some types".into(),
        [one] => format!("type {}", shown(one)),
        [one, two] => format!("types {} and {}", shown(one), shown(two)),
        [one, two, more @ ..] => {
            format!(
                "types {}, {} and {} more",
                shown(one),
                shown(two),
                more.len()
            )
        }
    }
}

fn program(program: &ProgramStatus, attention: &mut Vec<Attention>) {
    let severity = match program.crashes {
        ..CRASHES => return,
        CRASHES..MANY_CRASHES => Severity::Yellow,
        _ => Severity::Red,
    };
    let (name, node) = (shown(&program.name), shown(&program.node));
    let last = program.last_end.as_deref();
    let last = last.map_or_else(String::new, |end| format!(" ({})", shown(end)));
    let next = match program.next_start_ms {
        Some(ms) => format!("; it starts again in {}", age(ms)),
        None => String::new(),
    };
    let words = format!(
        "program {name} on node {node} ended {} times in a row{last}{next}",
        program.crashes
    );
    let subject = format!("{}/{}", program.node, program.name);
    say(
        attention,
        severity,
        AttentionKind::ProgramCrashing,
        subject,
        words,
    );
}
