use super::*;
use crate::core::attention::with_attention;
use proptest::prelude::*;
use std::collections::BTreeSet;

const NOW: u64 = 1_800_000_000_000;

fn node(name: &str) -> NodeStatus {
    NodeStatus {
        format: STATUS_FORMAT,
        node: NodeSelf {
            name: name.into(),
            life: "62f3f95a00000155".into(),
            version: "0.1.0".into(),
            roles: vec!["member".into()],
            state: "up".into(),
            ready: true,
            started_unix_ms: NOW - 3 * 86_400_000,
            clock_unix_ms: NOW,
            ..NodeSelf::default()
        },
        ..NodeStatus::default()
    }
}

fn member(name: &str, status: &str) -> MemberStatus {
    MemberStatus {
        name: name.into(),
        life: "62f3f95a00000155".into(),
        address: format!("10.0.0.{}:7400", name.len()),
        status: status.into(),
        for_ms: 2_000,
        roles: vec!["store".into(), "member".into(), "worker".into()],
        version: "0.1.0".into(),
    }
}

fn unit(name: &str, calls: f64, p99: Option<f64>) -> UnitStatus {
    UnitStatus {
        name: name.into(),
        instances: 1,
        calls_per_second: calls,
        errors_per_second: 0.5,
        p99_ms: p99,
    }
}

fn queue(name: &str, waiting: u64) -> QueueStatus {
    QueueStatus {
        name: name.into(),
        waiting,
        oldest_ms: Some(125_000),
        running: 4,
        dead: 1_234,
        done_per_second: 12.5,
        unserved: waiting,
        ..QueueStatus::default()
    }
}

fn store(node: &str) -> StoreStatus {
    StoreStatus {
        id: "8c3d".into(),
        node: node.into(),
        address: "10.0.0.1:6379".into(),
        keys: 12_345,
        memory_bytes: 1_500_000_000,
        memory_limit_bytes: Some(4_000_000_000),
        ops_per_second: 1_240.0,
        hit_rate: Some(0.975),
        clients: 17,
        aof: true,
        aof_ok: Some(true),
        saved_unix_ms: Some(NOW - 180_000),
        save_ok: Some(true),
        ..StoreStatus::default()
    }
}

/// Three nodes that replied, and one that did not.
fn cluster() -> ClusterStatus {
    let mut replies = Vec::new();
    for name in ["bb", "a", "ccc"] {
        let mut reply = node(name);
        reply.members = [
            ("a", "up"),
            ("bb", "up"),
            ("ccc", "suspect"),
            ("dddd", "up"),
        ]
        .map(|(name, status)| member(name, status))
        .to_vec();
        reply.store = Some(store("a"));
        reply.units = vec![unit("thumb.make", 100.0, Some(3.25))];
        reply.queues = vec![queue("mail", 312), queue("resize", 0)];
        reply.cron = vec![CronStatus {
            queue: "mail".into(),
            name: "digest".into(),
            expression: "0 9 * * MON-FRI".into(),
            zone: "Asia/Tokyo".into(),
            last_unix_ms: Some(NOW - 7_200_000),
            next_unix_ms: Some(NOW + 3_600_000),
        }];
        reply.workers = vec![WorkerStatus {
            node: name.into(),
            queue: "resize".into(),
            running: 3,
            concurrency: 4,
            done_per_second: 1.5,
            draining: name == "bb",
        }];
        replies.push(reply);
    }
    replies[0].node.state = "draining".into();
    replies[2].programs = vec![ProgramStatus {
        node: "ccc".into(),
        name: "api".into(),
        state: "waiting".into(),
        crashes: 4,
        last_end: Some("exit status 1".into()),
        next_start_ms: Some(8_000),
    }];
    let replies = replies.into_iter().map(with_attention).collect();
    ClusterStatus::merge(replies, vec!["dddd".into(), "a".into()], NOW)
}

#[test]
fn the_text_begins_with_attention() {
    let expected = "\
attention
  yellow  node ccc suspected for 2 s
  yellow  node dddd did not answer: what it alone knows is missing here
  yellow  queue mail: 312 tasks wait, no worker asks for them
  yellow  program api on node ccc ended 4 times in a row (exit status 1); it starts again in 8 s

members  3 up, 1 suspect
  NAME  STATUS         ADDRESS        ROLES                VERSION   UP
  a     up             10.0.0.1:7400  store,member,worker  0.1.0    3 d
  bb    draining       10.0.0.2:7400  store,member,worker  0.1.0    3 d
  ccc   suspect        10.0.0.3:7400  store,member,worker  0.1.0    3 d
  dddd  up, no answer  10.0.0.4:7400  store,member,worker  0.1.0      ?

store  10.0.0.1:6379 on a, data set 8c3d
  12 k keys, 1.5 GB of 4.0 GB, 1.2 k ops/s, 97.5% hits, 17 clients
  AOF on, saved 3 m ago

units
  NAME        INSTANCES  CALLS/S  ERRORS/S     P99
  thumb.make          3      300       1.5  3.2 ms

queues
  NAME    WAITING   OLDEST  LATER  RUNNING   DEAD  DONE/S
  mail        312  2 m 5 s      0        4  1.2 k      12
  resize        0  2 m 5 s      0        4  1.2 k      12

workers
  NODE  QUEUE   RUNNING  OF  DONE/S
  a     resize        3   4     1.5
  bb    resize        3   4     1.5  draining
  ccc   resize        3   4     1.5

programs
  NODE  NAME  STATE    CRASHES  LAST END
  ccc   api   waiting        4  exit status 1

cron
  QUEUE  NAME    WHEN             ZONE        LAST     NEXT
  mail   digest  0 9 * * MON-FRI  Asia/Tokyo  2 h ago  in 1 h
";
    let text = cluster().to_text(Rendering { width: None });
    assert_eq!(text, expected, "\n{text}");
    let members = cluster().members_to_text(Rendering { width: None });
    let among = format!("\n\n{members}\nstore  ");
    assert!(text.contains(&among), "\n{members}");
}

#[test]
fn on_a_narrow_terminal_words_continue_and_rows_are_cut() {
    let text = cluster().to_text(Rendering { width: Some(50) });
    let expected = "\
attention
  yellow  node ccc suspected for 2 s
  yellow  node dddd did not answer: what it alone
          knows is missing here
  yellow  queue mail: 312 tasks wait, no worker
          asks for them
";
    assert!(text.starts_with(expected), "\n{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 66),
        "\n{text}"
    );
    assert!(
        text.contains("  a     up             10.0.0.1:7400  store,member\n"),
        "\n{text}"
    );
}

#[test]
fn an_empty_cluster_and_a_store_that_is_away_have_their_text() {
    let mut status = ClusterStatus::merge(vec![node("a")], Vec::new(), NOW);
    let text = status.to_text(Rendering { width: None });
    assert_eq!(text, "nothing needs attention\n\nmembers  \n");
    let mut away = store("a");
    away.away_since_unix_ms = Some(NOW - 5_000);
    status.store = Some(away);
    let text = status.to_text(Rendering { width: None });
    assert!(
        text.ends_with("\nstore  10.0.0.1:6379 on a, data set 8c3d, away for 5 s\n"),
        "{text}"
    );
}

#[test]
fn each_figure_counts_once() {
    let merged = cluster();
    assert_eq!(merged.queues.len(), 2);
    assert_eq!(merged.queues[0].waiting, 312);
    assert_eq!(merged.cron.len(), 1);
    let [unit] = &merged.units[..] else {
        panic!("{:?}", merged.units);
    };
    assert_eq!(
        (
            unit.instances,
            unit.calls_per_second,
            unit.errors_per_second
        ),
        (3, 300.0, 1.5)
    );
    assert_eq!(merged.workers.len(), 3);
    assert_eq!(merged.silent, ["dddd"]);
    let names: Vec<_> = merged.nodes.iter().map(|node| &*node.name).collect();
    assert_eq!(names, ["a", "bb", "ccc"]);
}

#[test]
fn a_node_that_replied_twice_counts_in_its_later_life() {
    let (mut old, mut new) = (node("a"), node("a"));
    (old.node.life, new.node.life) = ("0000000000000001".into(), "0000000000000002".into());
    old.units = vec![unit("u", 5.0, None)];
    new.units = vec![unit("u", 7.0, None)];
    let merged = ClusterStatus::merge(vec![new, old], Vec::new(), NOW);
    assert_eq!(merged.nodes.len(), 1);
    assert_eq!(merged.nodes[0].life, "0000000000000002");
    assert_eq!(merged.units[0].calls_per_second, 7.0);
}

#[test]
fn the_store_is_away_only_if_nobody_reaches_it() {
    let (mut one, mut other) = (node("a"), node("b"));
    one.store = Some(store("s"));
    one.store.as_mut().expect("a store").away_since_unix_ms = Some(NOW);
    one.store.as_mut().expect("a store").problems = vec![StoreProblem::TwoPrimaries {
        id: "8c3d".into(),
        nodes: vec!["s".into(), "t".into()],
    }];
    let merged = ClusterStatus::merge(vec![one.clone()], Vec::new(), NOW);
    assert!(
        merged
            .store
            .is_some_and(|store| store.away_since_unix_ms.is_some())
    );
    other.store = Some(store("s"));
    let mut one = with_attention(one);
    one.node.clock_unix_ms = NOW + 5_000;
    let merged = ClusterStatus::merge(vec![one, other], Vec::new(), NOW);
    // What one node sees is told of that node.
    let words: Vec<&str> = merged.attention.iter().map(|one| &*one.words).collect();
    assert_eq!(
        words[0],
        "node a does not reach the store, for 5 s: its workers wait, its calls fail by their deadlines"
    );
    let merged = merged.store.expect("a store");
    assert_eq!(merged.away_since_unix_ms, None);
    assert_eq!(merged.problems.len(), 1);
}

#[test]
fn entries_that_every_node_left_out_count_once() {
    let reply = |name: &str, notes: [(&str, u64); 2]| {
        let mut reply = node(name);
        reply.left_out = notes
            .map(|(list, entries)| LeftOut {
                list: list.into(),
                entries,
            })
            .to_vec();
        reply
    };
    let replies = vec![
        reply("a", [("queues", 7), ("workers", 2)]),
        reply("b", [("queues", 9), ("workers", 3)]),
    ];
    let merged = ClusterStatus::merge(replies, Vec::new(), NOW);
    let notes = merged
        .left_out
        .iter()
        .map(|note| (&*note.list, note.entries));
    let notes: Vec<_> = notes.collect();
    assert_eq!(notes, [("queues", 9), ("workers", 5)]);
}

#[test]
fn json_is_read_back_and_a_later_format_refused_by_its_number() {
    let mut status = node("a");
    status.store = Some(store("a"));
    status.queues = vec![queue("mail", 3)];
    let status = with_attention(status);
    let json = serde_json::to_vec(&status).expect("JSON");
    assert_eq!(NodeStatus::from_json(&json).expect("a status"), status);
    let text = String::from_utf8(json).expect("text");
    let newer = text.replacen("\"format\":1", "\"format\":2", 1);
    let error = NodeStatus::from_json(newer.as_bytes()).expect_err("a later format");
    assert_eq!(
        error.to_string(),
        "format 2 of a status is later than this version of kumi knows (up to 1)"
    );
    let none = NodeStatus::from_json(b"{}").expect_err("no format");
    assert!(matches!(none, StatusError::Format(0)), "{none}");
    // A field of another build of the same format is skipped.
    let more = text.replacen("\"format\":1", "\"format\":1,\"later\":{}", 1);
    assert!(NodeStatus::from_json(more.as_bytes()).is_ok());
    let large = vec![b' '; MAX_STATUS_BYTES + 1];
    assert!(matches!(
        NodeStatus::from_json(&large),
        Err(StatusError::TooLarge(_))
    ));
}

#[test]
fn long_lists_are_cut_and_say_so() {
    let mut status = node("a");
    status.queues = (0..MAX_ENTRIES + 7)
        .map(|n| queue(&format!("q{n:05}"), 0))
        .collect();
    let status = status.bounded();
    assert_eq!(status.queues.len(), MAX_ENTRIES);
    let note = LeftOut {
        list: "queues".into(),
        entries: 7,
    };
    assert_eq!(status.left_out, [note]);
    // Three nodes with other queues each.
    let mut replies = vec![status];
    for name in ["b", "c"] {
        let mut reply = node(name);
        reply.queues = (0..10).map(|n| queue(&format!("{name}{n}"), 0)).collect();
        replies.push(reply);
    }
    let merged = ClusterStatus::merge(replies, Vec::new(), NOW);
    assert_eq!(merged.queues.len(), MAX_ENTRIES);
    assert_eq!(merged.left_out[0].entries, 27);
    let text = merged.to_text(Rendering { width: None });
    assert!(text.ends_with("\n27 more queues are left out\n"));
}

/// The names of all fields in a document.
fn fields(value: &serde_json::Value, names: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(object) => {
            names.extend(object.keys().cloned());
            object.values().for_each(|value| fields(value, names));
        }
        serde_json::Value::Array(list) => list.iter().for_each(|value| fields(value, names)),
        _ => {}
    }
}

#[test]
fn the_page_about_the_document_names_every_field_and_kind() {
    let page = include_str!("../../../../../docs/status.md");
    let mut status = cluster();
    status.left_out = vec![LeftOut::default()];
    let value = serde_json::to_value(&status).expect("JSON");
    let mut names = BTreeSet::new();
    fields(&value, &mut names);
    assert!(names.len() > 60, "{names:?}");
    use AttentionKind as Kind;
    let kinds = [
        Kind::StoreAway,
        Kind::StoreOther,
        Kind::StoreTwoPrimaries,
        Kind::StorePinsDiffer,
        Kind::StoreSaveFailed,
        Kind::StoreAofFailed,
        Kind::StoreLoading,
        Kind::StoreMemory,
        Kind::DiskFull,
        Kind::SeedsUnreachable,
        Kind::MemberDead,
        Kind::MemberSuspected,
        Kind::NodeSilent,
        Kind::ClockOff,
        Kind::QueueUnserved,
        Kind::QueueDead,
        Kind::QueuePaused,
        Kind::ProgramCrashing,
        Kind::PartFailed,
        Kind::MembershipEnded,
        Kind::NameTaken,
        Kind::NodeQuarantined,
        Kind::TwoKeys,
    ];
    for kind in kinds {
        let name = serde_json::to_value(kind).expect("JSON");
        names.insert(name.as_str().expect("a name").to_owned());
    }
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "{name} is missing");
    }
}

proptest! {
    /// Whatever nodes send, reading, merging and writing it does not panic, and no control character reaches a terminal.
    #[test]
    fn nothing_that_nodes_send_breaks_the_output(
        names in proptest::collection::vec("\\PC{0,8}|[\\x00-\\x1f]{0,4}", 0..6),
        figures in proptest::collection::vec(any::<u64>(), 6),
        rates in proptest::collection::vec(any::<f64>(), 4),
        ahead in any::<i64>(),
        width in proptest::option::of(0..200_usize),
    ) {
        let mut replies = Vec::new();
        for name in &names {
            let mut reply = node(name);
            reply.node.clock_ahead_ms = Some(ahead);
            reply.node.clock_unix_ms = figures[0];
            reply.node.two_keys_since_unix_ms = Some(figures[1]);
            (reply.node.seeds, reply.node.seeds_reached) = (figures[2] as u32, figures[3] as u32);
            (reply.node.disk_bytes, reply.node.disk_free_bytes) = (Some(figures[4]), Some(figures[5]));
            reply.members = names.iter().map(|name| member(name, name)).collect();
            reply.units = vec![unit(name, rates[0], Some(rates[1]))];
            let mut found = queue(name, figures[0]);
            (found.dead, found.dead_lately, found.done_per_second) = (figures[1], figures[2], rates[2]);
            reply.queues = vec![found];
            let mut found = store(name);
            (found.memory_bytes, found.memory_limit_bytes) = (figures[3], Some(figures[4]));
            (found.hit_rate, found.loading_percent) = (Some(rates[3]), Some(rates[0]));
            found.saved_unix_ms = Some(figures[5]);
            reply.store = Some(found);
            reply.cron = vec![CronStatus {
                name: name.clone(),
                last_unix_ms: Some(figures[0]),
                next_unix_ms: Some(figures[1]),
                ..CronStatus::default()
            }];
            replies.push(with_attention(reply));
        }
        let merged = ClusterStatus::merge(replies, names.clone(), figures[0]);
        let text = merged.to_text(Rendering { width });
        let is_control = |letter: char| letter.is_control() && letter != '\n';
        prop_assert!(!text.contains(is_control), "{:?}", text);
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = NodeStatus::from_json(&bytes);
    }
}
