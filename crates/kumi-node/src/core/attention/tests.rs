use super::*;
use crate::core::status::STATUS_FORMAT;

const NOW: u64 = 1_800_000_000_000;
const HOUR: u64 = 3_600_000;

/// A healthy node of a healthy cluster.
fn healthy() -> NodeStatus {
    NodeStatus {
        format: STATUS_FORMAT,
        node: NodeSelf {
            name: "a".into(),
            clock_unix_ms: NOW,
            clock_ahead_ms: Some(3),
            disk_free_bytes: Some(500_000_000_000),
            disk_bytes: Some(1_000_000_000_000),
            seeds: 3,
            seeds_reached: 3,
            two_keys_since_unix_ms: Some(NOW - HOUR),
            ..NodeSelf::default()
        },
        members: vec![MemberStatus {
            name: "c".into(),
            status: "up".into(),
            for_ms: 2_000,
            ..MemberStatus::default()
        }],
        store: Some(StoreStatus {
            address: "10.0.0.1:6379".into(),
            memory_bytes: 1_000_000_000,
            memory_limit_bytes: Some(4_000_000_000),
            aof: true,
            aof_ok: Some(true),
            save_ok: Some(true),
            ..StoreStatus::default()
        }),
        queues: vec![QueueStatus {
            name: "mail".into(),
            waiting: 312,
            oldest_ms: Some(60_000),
            dead: 40,
            dead_window_ms: 600_000,
            ..QueueStatus::default()
        }],
        programs: vec![ProgramStatus {
            node: "a".into(),
            name: "api".into(),
            state: "running".into(),
            crashes: 2,
            ..ProgramStatus::default()
        }],
        ..NodeStatus::default()
    }
}

/// One fact changed in a healthy status, and what is said about it.
#[track_caller]
fn check(
    change: impl FnOnce(&mut NodeStatus),
    severity: Severity,
    kind: AttentionKind,
    words: &str,
) {
    let mut status = healthy();
    change(&mut status);
    let attention = with_attention(status).attention;
    let found: Vec<_> = attention
        .iter()
        .map(|one| (one.severity, one.kind, &*one.words))
        .collect();
    assert_eq!(found, [(severity, kind, words)]);
}

fn store_of(status: &mut NodeStatus) -> &mut StoreStatus {
    status.store.as_mut().expect("a store")
}

#[test]
fn a_healthy_cluster_needs_no_attention() {
    assert_eq!(with_attention(healthy()).attention, []);
    assert_eq!(with_attention(NodeStatus::default()).attention, []);
}

#[test]
fn a_queue_that_nobody_serves() {
    use AttentionKind::QueueUnserved;
    let yellow = Severity::Yellow;
    check(
        |status| status.queues[0].unserved = 312,
        yellow,
        QueueUnserved,
        "queue mail: 312 tasks wait, no worker asks for them",
    );
    check(
        |status| {
            status.queues[0].unserved = 1;
            status.queues[0].unserved_types = vec!["resize".into()];
        },
        yellow,
        QueueUnserved,
        "queue mail: 1 task of type resize waits, no worker asks for it",
    );
    check(
        |status| {
            status.queues[0].unserved = 12;
            status.queues[0].unserved_types = ["a", "b", "c", "d"].map(Into::into).to_vec();
        },
        yellow,
        QueueUnserved,
        "queue mail: 12 tasks of types a, b and 2 more wait, no worker asks for them",
    );
    // Workers may be starting.
    let mut status = healthy();
    status.queues[0].unserved = 312;
    status.queues[0].oldest_ms = Some(9_999);
    assert_eq!(with_attention(status).attention, []);
}

#[test]
fn a_queue_whose_tasks_die_or_that_is_paused() {
    check(
        |status| status.queues[0].dead_lately = 12,
        Severity::Yellow,
        AttentionKind::QueueDead,
        "queue mail: 12 tasks used up all attempts in the last 10 m (40 dead in all)",
    );
    check(
        |status| {
            status.queues[0].paused = true;
            status.queues[0].unserved = 312;
        },
        Severity::Yellow,
        AttentionKind::QueuePaused,
        "queue mail: paused, 312 tasks wait",
    );
}

#[test]
fn members() {
    check(
        |status| status.members[0].status = "suspect".into(),
        Severity::Yellow,
        AttentionKind::MemberSuspected,
        "node c suspected for 2 s",
    );
    check(
        |status| status.members[0].status = "dead".into(),
        Severity::Red,
        AttentionKind::MemberDead,
        "node c died 2 s ago; its tasks are given to others",
    );
}

#[test]
fn the_store() {
    let red = Severity::Red;
    check(
        |status| store_of(status).save_ok = Some(false),
        red,
        AttentionKind::StoreSaveFailed,
        "store: last save failed; its log says why",
    );
    check(
        |status| store_of(status).aof_ok = Some(false),
        red,
        AttentionKind::StoreAofFailed,
        "store: the AOF cannot be written; writes are refused",
    );
    check(
        |status| store_of(status).away_since_unix_ms = Some(NOW - 130_000),
        red,
        AttentionKind::StoreAway,
        "store: 10.0.0.1:6379 is away for 2 m 10 s; workers wait, calls fail by their deadlines, nothing is lost",
    );
    check(
        |status| store_of(status).loading_percent = Some(43.21),
        Severity::Yellow,
        AttentionKind::StoreLoading,
        "store: loading its data, 43.2% done",
    );
    check(
        |status| store_of(status).memory_bytes = 3_700_000_000,
        Severity::Yellow,
        AttentionKind::StoreMemory,
        "store: 3.7 GB of 4.0 GB of memory in use; at the limit it refuses writes",
    );
    let mut evicting = healthy();
    store_of(&mut evicting).memory_bytes = 4_000_000_000;
    store_of(&mut evicting).evicts = true;
    assert_eq!(with_attention(evicting).attention, []);
}

#[test]
fn wrong_and_second_stores() {
    let problem = |problem: StoreProblem| {
        move |status: &mut NodeStatus| store_of(status).problems = vec![problem]
    };
    check(
        problem(StoreProblem::Other {
            pinned: "aa".into(),
            id: "bb".into(),
            node: "t".into(),
        }),
        Severity::Red,
        AttentionKind::StoreOther,
        "store: node t has another data set (bb) than this cluster uses (aa); it is not used: stop it, or decide with kumi store use bb",
    );
    check(
        problem(StoreProblem::TwoPrimaries {
            id: "aa".into(),
            nodes: vec!["s".into(), "t".into()],
        }),
        Severity::Red,
        AttentionKind::StoreTwoPrimaries,
        "store: 2 primaries of one data set (aa) are live, on s and t: stop all but one",
    );
    check(
        problem(StoreProblem::PinsDiffer {
            ours: "bb".into(),
            theirs: "aa".into(),
            node: "t".into(),
        }),
        Severity::Red,
        AttentionKind::StorePinsDiffer,
        "store: node t uses data set aa, others bb: decide with kumi store use ID",
    );
}

#[test]
fn clocks() {
    check(
        |status| status.node.clock_ahead_ms = Some(HOUR as i64),
        Severity::Red,
        AttentionKind::ClockOff,
        "clock of node a is 1 h ahead of the store's: set both by NTP",
    );
    check(
        |status| status.node.clock_ahead_ms = Some(-6_000),
        Severity::Yellow,
        AttentionKind::ClockOff,
        "clock of node a is 6 s behind the store's: set both by NTP",
    );
    let mut status = healthy();
    status.node.clock_ahead_ms = Some(i64::MIN);
    assert_eq!(with_attention(status).attention.len(), 1);
}

#[test]
fn disks_seeds_and_keys() {
    check(
        |status| status.node.disk_free_bytes = Some(50_000_000_000),
        Severity::Yellow,
        AttentionKind::DiskFull,
        "disk of node a: 50 GB of 1.0 TB free (5.0%); when it is full, the store refuses writes",
    );
    check(
        |status| status.node.disk_free_bytes = Some(0),
        Severity::Red,
        AttentionKind::DiskFull,
        "disk of node a: 0 B of 1.0 TB free (0.0%); when it is full, the store refuses writes",
    );
    check(
        |status| status.node.seeds_reached = 1,
        Severity::Yellow,
        AttentionKind::SeedsUnreachable,
        "node a: only 1 of its 3 seeds answers",
    );
    check(
        |status| status.node.seeds_reached = 0,
        Severity::Red,
        AttentionKind::SeedsUnreachable,
        "node a: none of its 3 seeds answers: check that one is running, its address and UDP port 7400",
    );
    check(
        |status| status.node.two_keys_since_unix_ms = Some(NOW - 8 * 24 * HOUR),
        Severity::Yellow,
        AttentionKind::TwoKeys,
        "key file of node a has had two keys for 8 d: remove the old one when all nodes use the new one",
    );
}

#[test]
fn a_node_that_is_kept_out_says_why() {
    let red = Severity::Red;
    let kept_out = |why: KeptOut| move |status: &mut NodeStatus| status.node.kept_out = Some(why);
    check(
        kept_out(KeptOut::NameTaken {
            address: "10.0.0.2:7400".into(),
        }),
        red,
        AttentionKind::NameTaken,
        "node a is not let in: a live node at 10.0.0.2:7400 has this name: choose another one with --name NAME, or stop that node",
    );
    check(
        kept_out(KeptOut::Quarantined {
            reason: "by an operator (disk)".into(),
        }),
        red,
        AttentionKind::NodeQuarantined,
        "node a is quarantined by an operator (disk): it takes no work until that ends or is lifted (kumi cluster quarantine --lift)",
    );
    check(
        kept_out(KeptOut::Ended),
        red,
        AttentionKind::MembershipEnded,
        "membership of node a has ended: a later start of it took its place, or its log says what failed; restart it",
    );
    check(
        |status| {
            status.node.seeds = 1;
            status.node.seeds_reached = 0;
            status.node.seed_error = Some("b:7400: its key is\nanother one".into());
        },
        red,
        AttentionKind::SeedsUnreachable,
        "node a: none of its 1 seed answers (b:7400: its key is\\nanother one): check that one is running, its address and UDP port 7400",
    );
}

#[test]
fn a_part_that_failed() {
    check(
        |status| status.node.failed_parts = vec!["certificate".into()],
        Severity::Red,
        AttentionKind::PartFailed,
        "node a: its part certificate ended by a mistake in kumi: restart the node, and report what its log says",
    );
}

#[test]
fn programs_that_keep_crashing() {
    check(
        |status| {
            let program = &mut status.programs[0];
            program.crashes = 4;
            program.last_end = Some("exit status 1".into());
            program.next_start_ms = Some(8_000);
        },
        Severity::Yellow,
        AttentionKind::ProgramCrashing,
        "program api on node a ended 4 times in a row (exit status 1); it starts again in 8 s",
    );
    check(
        |status| status.programs[0].crashes = 10,
        Severity::Red,
        AttentionKind::ProgramCrashing,
        "program api on node a ended 10 times in a row",
    );
}

#[test]
fn the_worst_comes_first_and_texts_of_others_are_escaped() {
    let mut status = healthy();
    status.queues[0].unserved = 312;
    status.members[0].status = "suspect".into();
    status.members[0].name = "c\x1b[2J\n".into();
    store_of(&mut status).loading_percent = Some(1.0);
    status.node.clock_ahead_ms = Some(-(HOUR as i64));
    let attention = with_attention(status).attention;
    let kinds: Vec<_> = attention.iter().map(|one| one.kind).collect();
    use AttentionKind::{ClockOff, MemberSuspected, QueueUnserved, StoreLoading};
    let expected = [ClockOff, StoreLoading, MemberSuspected, QueueUnserved];
    assert_eq!(kinds, expected);
    assert_eq!(attention[2].words, "node c\\u{1b}[2J\\n suspected for 2 s");
}

#[test]
fn kinds_have_stable_names() {
    let attention = Attention {
        severity: Severity::Red,
        kind: AttentionKind::StoreTwoPrimaries,
        subject: "aa".into(),
        words: "w".into(),
    };
    let json = serde_json::to_string(&attention).expect("JSON");
    let expected = r#"{"severity":"red","kind":"store_two_primaries","subject":"aa","words":"w"}"#;
    assert_eq!(json, expected);
}
