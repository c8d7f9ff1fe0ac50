mod encodings;

use crate::testing::Lab;

#[test]
fn object_shows_how_a_value_is_kept() {
    Lab::new().check(&[
        ("SET a 9999", "+OK\r\n"),
        ("OBJECT REFCOUNT a", ":2147483647\r\n"),
        ("SET a 10000", "+OK\r\n"),
        ("OBJECT REFCOUNT a", ":1\r\n"),
        ("SET a -1", "+OK\r\n"),
        ("OBJECT REFCOUNT a", ":1\r\n"),
        ("SET a 0", "+OK\r\n"),
        ("INCR a", ":1\r\n"),
        ("OBJECT REFCOUNT a", ":2147483647\r\n"),
        ("SET a v", "+OK\r\n"),
        ("OBJECT REFCOUNT a", ":1\r\n"),
        ("OBJECT IDLETIME a", ":0\r\n"),
        ("OBJECT FREQ a", "-ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.\r\n"),
        ("OBJECT ENCODING none", "$-1\r\n"),
        ("OBJECT REFCOUNT none", "$-1\r\n"),
        ("OBJECT IDLETIME none", "$-1\r\n"),
        ("OBJECT FREQ none", "$-1\r\n"),
        ("OBJECT NOPE a", "-ERR unknown subcommand 'NOPE'. Try OBJECT HELP.\r\n"),
        ("OBJECT ENCODING", "-ERR wrong number of arguments for 'object|encoding' command\r\n"),
        ("OBJECT HELP a", "-ERR wrong number of arguments for 'object|help' command\r\n"),
        ("OBJECT", "-ERR wrong number of arguments for 'object' command\r\n"),
    ]);
}

#[test]
fn integers_are_not_shared_where_keys_are_evicted_by_their_accesses() {
    let mut lab = Lab::new();
    lab.check(&[("SET a 1", "+OK\r\n")]);
    for (limit, policy, count) in [
        ("0", "allkeys-lru", 2_147_483_647),
        ("1gb", "allkeys-random", 2_147_483_647),
        ("1gb", "volatile-ttl", 2_147_483_647),
        ("1gb", "allkeys-lru", 1),
        ("1gb", "volatile-lru", 1),
        ("1gb", "allkeys-lfu", 1),
    ] {
        let set = format!("CONFIG SET maxmemory {limit} maxmemory-policy {policy}");
        let expected = format!(":{count}\r\n");
        lab.check(&[
            (set.as_str(), "+OK\r\n"),
            ("OBJECT REFCOUNT a", expected.as_str()),
        ]);
    }
}

#[test]
fn idle_time_counts_from_the_last_use() {
    let mut lab = Lab::new();
    lab.run("SET a v");
    lab.advance_ms(5_400);
    lab.check(&[
        ("OBJECT IDLETIME a", ":5\r\n"),
        ("TTL a", ":-1\r\n"),
        ("EXISTS a", ":1\r\n"),
        ("TYPE a", "+string\r\n"),
        ("OBJECT IDLETIME a", ":5\r\n"),
        ("GET a", "$1\r\nv\r\n"),
        ("OBJECT IDLETIME a", ":0\r\n"),
    ]);
}

#[test]
fn looking_at_an_object_counts_as_a_read_but_never_as_a_miss_event() {
    let mut lab = Lab::new();
    lab.run("SET a v");
    lab.check_events(&[("OBJECT ENCODING a", &[]), ("OBJECT FREQ none", &[])]);
    let stats = lab.store.keyspace.stats;
    assert_eq!((stats.hits, stats.misses), (1, 1));
}

#[test]
fn help_names_every_subcommand() {
    let help = Lab::new().run("OBJECT HELP");
    for name in ["ENCODING", "FREQ", "HELP", "IDLETIME", "REFCOUNT"] {
        assert!(help.contains(&format!("+{name}")), "{name} is missing");
    }
}
