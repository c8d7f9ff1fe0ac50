//! What clients see of the memory limits.

use super::*;
use crate::testing::Lab;

const OOM: &str = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";

/// A store with 200 keys of a policy, in which a few more fit.
fn full(policy: &str) -> Lab {
    let mut lab = Lab::new();
    for key in 0..200 {
        lab.run(&format!("SET key:{key} {}", "x".repeat(500)));
    }
    lab.configure("maxmemory-policy", policy);
    let limit = lab.store.used_memory() + 20_000;
    lab.configure("maxmemory", &limit.to_string());
    lab
}

fn field(lab: &mut Lab, section: &str, name: &str) -> u64 {
    let info = lab.run(&format!("INFO {section}"));
    let line = info.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|rest| rest.strip_prefix(':'));
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or_else(|| panic!("{name} in {info}"))
}

/// Sets keys until one would not fit; returns the answers.
fn overfill(lab: &mut Lab) -> Vec<String> {
    let value = "y".repeat(500);
    (0..100)
        .map(|key| lab.run(&format!("SET more:{key} {value}")))
        .collect()
}

#[test]
fn without_a_policy_writes_are_refused_and_nothing_goes() {
    let mut lab = full("noeviction");
    let answers = overfill(&mut lab);
    assert_eq!(answers.first().map(String::as_str), Some("+OK\r\n"));
    assert_eq!(answers.last().map(String::as_str), Some(OOM));
    lab.check(&[("DEL key:0 key:1 key:2 key:3", ":4\r\n")]);
    assert_eq!(lab.run("SET a 1"), "+OK\r\n");
    assert_eq!(field(&mut lab, "stats", "evicted_keys"), 0);
}

#[test]
fn keys_that_clients_track_count() {
    let mut lab = full("noeviction");
    lab.run("HELLO 3");
    lab.run("CLIENT TRACKING ON");
    for key in 0..2000 {
        lab.run(&format!("GET missing:{key}"));
    }
    assert_eq!(lab.run("SET key 1"), OOM);
}

#[test]
fn with_a_policy_writes_succeed_and_memory_stays_below_the_limit() {
    for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random"] {
        let mut lab = full(policy);
        let limit = lab.store.config.settings().maxmemory_bytes as usize;
        for answer in overfill(&mut lab) {
            assert_eq!(answer, "+OK\r\n", "{policy}");
        }
        lab.run("PING");
        let data = lab.store.keyspace.memory_bytes();
        assert!(data <= limit, "{policy}: {data} of {limit}");
        let evicted = lab.store.keyspace.stats.evicted;
        assert!((20..=200).contains(&evicted), "{policy}: {evicted}");
        assert_eq!(lab.store.keyspace.total_keys() as u64, 300 - evicted);
        assert_eq!(
            field(&mut lab, "stats", "current_eviction_exceeded_time"),
            0
        );
        assert!(field(&mut lab, "stats", "evicted_keys") >= evicted);
        lab.run("CONFIG RESETSTAT");
        assert_eq!(lab.store.keyspace.stats.evicted, 0);
    }
}

#[test]
fn volatile_policies_refuse_writes_when_no_key_expires_any_more() {
    for policy in [
        "volatile-lru",
        "volatile-lfu",
        "volatile-random",
        "volatile-ttl",
    ] {
        let mut lab = full(policy);
        for key in 0..20 {
            lab.run(&format!("EXPIRE key:{key} 1000"));
        }
        let answers = overfill(&mut lab);
        let stored = answers
            .iter()
            .take_while(|answer| *answer == "+OK\r\n")
            .count();
        assert!((20..80).contains(&stored), "{policy}: {stored}");
        assert_eq!(answers.last().map(String::as_str), Some(OOM), "{policy}");
        assert_eq!(field(&mut lab, "stats", "evicted_keys"), 20, "{policy}");
    }
}

#[test]
fn an_eviction_is_an_event_and_a_deletion_before_the_command() {
    for (lazy, verb) in [("no", "$3\r\nDEL"), ("yes", "$6\r\nUNLINK")] {
        let mut lab = full("allkeys-random");
        lab.configure("lazyfree-lazy-eviction", lazy);
        lab.configure("notify-keyspace-events", "Ee");
        let listener = lab.connect();
        lab.run_as(listener, "SUBSCRIBE __keyevent@0__:evicted");
        lab.store.listen_to_writes(true);
        overfill(&mut lab);
        let events = lab.received(listener);
        let evicted = lab.store.keyspace.stats.evicted as usize;
        assert!(evicted > 0);
        assert_eq!(events.matches("message").count(), evicted);
        let writes = lab.store.take_writes();
        let writes = String::from_utf8_lossy(&writes);
        assert_eq!(writes.matches(verb).count(), evicted);
        assert!(
            !writes.contains("MULTI"),
            "an eviction is no part of the command"
        );
        let (first_deletion, last_set) = (writes.find(verb), writes.rfind("$3\r\nSET"));
        assert!(first_deletion < last_set);
    }
}

#[test]
fn a_slice_is_bounded_and_the_clock_goes_on_with_it() {
    let mut lab = full("allkeys-random");
    lab.configure("maxmemory-eviction-tenacity", "0");
    // Every reading of the clock costs a microsecond.
    lab.host.tick_ns = 1000;
    let half = lab.store.used_memory() / 2;
    lab.configure("maxmemory", &half.to_string());
    lab.check(&[("SET a 1", "+OK\r\n")]);
    assert_eq!(lab.store.keyspace.stats.evicted, KEYS_PER_READING as u64);
    assert!(lab.store.used_memory() > half);
    assert_eq!(lab.store.next_deadline(), lab.store.now.unix_ms());
    lab.advance_ms(5);
    assert_eq!(
        lab.store.keyspace.stats.evicted,
        2 * KEYS_PER_READING as u64
    );
    let exceeded = field(&mut lab, "stats", "current_eviction_exceeded_time");
    assert!(exceeded >= 5, "{exceeded}");
    for _ in 0..20 {
        lab.advance_ms(1);
    }
    assert!(lab.store.used_memory() <= half);
    assert!(lab.store.next_deadline() > lab.store.now.unix_ms());
    assert_eq!(
        field(&mut lab, "stats", "current_eviction_exceeded_time"),
        0
    );
    assert!(field(&mut lab, "stats", "total_eviction_exceeded_time") >= 5);
}

#[test]
fn a_lower_limit_acts_without_a_command() {
    let mut lab = full("allkeys-lru");
    let half = lab.store.used_memory() / 2;
    lab.check(&[(&format!("CONFIG SET maxmemory {half}"), "+OK\r\n")]);
    for _ in 0..20 {
        lab.advance_ms(1);
    }
    assert!(lab.store.used_memory() <= half);
}

#[test]
fn nothing_is_evicted_during_a_pause() {
    for mode in ["WRITE", "ALL"] {
        let mut lab = full("allkeys-lru");
        lab.run(&format!("CLIENT PAUSE 1000 {mode}"));
        let half = lab.store.used_memory() / 2;
        lab.configure("maxmemory", &half.to_string());
        let other = lab.connect();
        if mode == "WRITE" {
            assert_eq!(lab.run_as(other, "GET none"), "$-1\r\n");
        }
        lab.advance_ms(500);
        assert_eq!(lab.store.keyspace.stats.evicted, 0, "{mode}");
        lab.advance_ms(600);
        assert_eq!(lab.run_as(other, "GET none"), "$-1\r\n");
        assert_ne!(lab.store.keyspace.stats.evicted, 0, "{mode}");
    }
}

#[test]
fn an_evicted_key_breaks_its_watch() {
    let mut lab = full("allkeys-lru");
    let other = lab.connect();
    for key in 0..200 {
        lab.run_as(other, &format!("WATCH key:{key}"));
    }
    lab.run_as(other, "MULTI");
    lab.run_as(other, "GET key:1");
    let half = lab.store.used_memory() / 2;
    lab.configure("maxmemory", &half.to_string());
    assert_eq!(lab.run_as(other, "EXEC"), "*-1\r\n");
}

#[test]
fn exec_is_refused_if_it_holds_a_command_that_uses_memory() {
    let mut lab = full("noeviction");
    let (reader, writer) = (lab.connect(), lab.connect());
    for client in [reader, writer] {
        lab.run_as(client, "MULTI");
        lab.run_as(client, "GET key:1");
    }
    lab.run_as(writer, "SET a 1");
    lab.configure("maxmemory", "1");
    assert!(lab.run_as(reader, "EXEC").starts_with("*1\r\n$500"));
    assert_eq!(
        lab.run_as(writer, "EXEC"),
        format!("-EXECABORT Transaction discarded because of: {}", &OOM[1..])
    );
}

#[test]
fn object_shows_what_the_policy_tracks() {
    let mut lab = Lab::new();
    lab.check(&[
        ("CONFIG SET maxmemory-policy allkeys-lfu", "+OK\r\n"),
        ("SET a 1", "+OK\r\n"),
        ("OBJECT FREQ a", ":5\r\n"),
        ("OBJECT FREQ none", "$-1\r\n"),
        ("OBJECT IDLETIME none", "$-1\r\n"),
        ("OBJECT IDLETIME a", "-ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.\r\n"),
    ]);
    lab.advance_ms(120_000);
    lab.check(&[("OBJECT FREQ a", ":3\r\n")]);
    lab.run("CLIENT NO-TOUCH on");
    lab.run("GET a");
    lab.check(&[("OBJECT FREQ a", ":3\r\n")]);
    lab.run("CLIENT NO-TOUCH off");
    for _ in 0..3 {
        lab.run("GET a");
    }
    lab.check(&[("OBJECT FREQ a", ":6\r\n"), ("COPY a b", ":1\r\n")]);
    lab.check(&[("OBJECT FREQ b", ":5\r\n")]);
    let client = lab.client;
    let dumped = lab.send_raw(client, &[b"DUMP", b"a"]);
    let at = dumped
        .iter()
        .position(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1);
    let payload = dumped[at..dumped.len() - 2].to_vec();
    let restored = lab.send(client, &[b"RESTORE", b"c", b"0", &payload, b"FREQ", b"77"]);
    assert_eq!(restored, "+OK\r\n");
    lab.check(&[("OBJECT FREQ c", ":77\r\n")]);
    lab.run("CONFIG SET maxmemory-policy allkeys-lru");
    let restored = lab.send(client, &[b"RESTORE", b"d", b"0", &payload, b"FREQ", b"77"]);
    assert_eq!(restored, "+OK\r\n");
    lab.check(&[("OBJECT IDLETIME d", ":0\r\n")]);
}

#[test]
fn the_largest_clients_go_first_and_exempt_ones_stay() {
    let mut lab = Lab::new();
    let clients: Vec<_> = (0..6).map(|_| lab.connect()).collect();
    let value = vec![b'x'; 100_000];
    lab.run_as(clients[0], "CLIENT NO-EVICT on");
    for (count, &client) in clients.iter().enumerate() {
        lab.run_as(client, "MULTI");
        for _ in 0..=count.max(4 * usize::from(count == 0)) {
            lab.send(client, &[b"SET", b"a", &value]);
        }
    }
    lab.configure("maxmemory-clients", "1gb");
    lab.run("PING");
    lab.advance_ms(1);
    assert_eq!(field(&mut lab, "stats", "evicted_clients"), 0);
    // All six hold 2.5 MB; without the two largest that may go, less than 1.5 MB.
    lab.configure("maxmemory-clients", "1500kb");
    lab.run("PING");
    assert_eq!(lab.store.next_deadline(), lab.store.now.unix_ms());
    lab.advance_ms(1);
    assert_eq!(field(&mut lab, "stats", "evicted_clients"), 2);
    for (index, &client) in clients.iter().enumerate() {
        let there = lab.store.clients.sessions.get(client).is_some();
        assert_eq!(there, index < 4, "client {index}");
    }
    let closed = lab.effects().into_iter();
    let closed = closed.filter(|effect| matches!(effect, Effect::Close(_)));
    assert_eq!(closed.count(), 2);
}

#[test]
fn limits_follow_the_configuration() {
    assert_eq!(slice_ns(0), Some(0));
    assert_eq!(slice_ns(10), Some(500_000));
    assert_eq!(slice_ns(11), Some(575_000));
    assert!(slice_ns(99).is_some_and(|ns| ns > 60_000_000_000));
    assert_eq!(slice_ns(100), None);
    assert_eq!(client_limit(0, 1 << 30), usize::MAX);
    assert_eq!(client_limit(-5, 0), usize::MAX);
    assert_eq!(client_limit(-5, 100 << 20), 5 << 20);
    assert_eq!(client_limit(1 << 20, 0), 1 << 20);
    assert_eq!(client_limit(1, 0), 128 * 1024);
}

/// A client gets long values that are overwritten then, and reads none of them.
fn leave_overwritten_values(lab: &mut Lab, client: SessionKey) {
    for _ in 0..100 {
        let value = vec![b'x'; 500_000];
        lab.send(lab.client, &[b"SET", b"k", &value]);
        lab.leave_unread(client, "GET k");
    }
}

#[test]
fn values_that_only_wait_for_a_client_are_used_memory() {
    let mut lab = Lab::new();
    let slow = lab.connect();
    let before = field(&mut lab, "memory", "used_memory");
    leave_overwritten_values(&mut lab, slow);
    let known = (lab.store.used_memory() as u64).saturating_sub(before);
    assert!(known > 35_000_000, "{known} without a count");
    let used = field(&mut lab, "memory", "used_memory") - before;
    assert!((49_000_000..52_000_000).contains(&used), "{used}");
    lab.store.disconnect(slow);
    lab.outputs.remove(slow);
    let used = field(&mut lab, "memory", "used_memory") - before;
    assert!(used < 1_000_000, "{used}");
}

#[test]
fn a_client_with_shared_values_waiting_is_evicted() {
    let mut lab = Lab::new();
    lab.configure("maxmemory-clients", "5mb");
    let slow = lab.connect();
    leave_overwritten_values(&mut lab, slow);
    lab.advance_ms(1);
    assert_eq!(lab.store.telemetry.stats.evicted_clients, 1);
    assert!(lab.store.clients.sessions.get(slow).is_none());
    lab.check(&[("PING", "+PONG\r\n")]);
}
