//! INFO's shape, and that every figure it shows can move.

use crate::base::clock::TurnTimes;
use crate::engine::session::InputUse;
use crate::testing::Lab;
use std::collections::BTreeMap;

/// Fields of one section of Redis 7.2, as its documentation and `redis-server` list them.
const FIELDS: &str = include_str!("fields.txt");

fn fields(lab: &mut Lab, sections: &str) -> BTreeMap<String, String> {
    let answer = lab.run(&format!("INFO {sections}"));
    let (_, text) = answer.split_once("\r\n").expect("a length first");
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[track_caller]
fn check(lab: &mut Lab, expected: &[(&str, &str)]) {
    let found = fields(lab, "everything");
    for (name, value) in expected {
        assert_eq!(found.get(*name).map(String::as_str), Some(*value), "{name}");
    }
}

#[test]
fn sections_are_chosen_by_name() {
    let mut lab = Lab::new();
    let titles = |answer: String| {
        let lines = answer.lines().filter_map(|line| line.strip_prefix("# "));
        lines.collect::<Vec<_>>().join(" ")
    };
    let default = "Server Clients Memory Persistence Stats Replication CPU Modules Errorstats Cluster Keyspace";
    let all = "Server Clients Memory Persistence Stats Replication CPU Modules Commandstats Errorstats Latencystats Cluster Keyspace";
    for (line, expected) in [
        ("INFO", default),
        ("INFO default", default),
        ("INFO ALL", all),
        ("INFO everything nope", all),
        ("INFO keyspace Default", default),
        ("INFO Keyspace cluster CLUSTER", "Cluster Keyspace"),
        (
            "INFO latencystats default",
            all.replace("Commandstats ", "").as_str(),
        ),
        ("INFO nope", ""),
    ] {
        assert_eq!(titles(lab.run(line)), expected, "{line}");
    }
}

#[test]
fn sections_are_parted_by_an_empty_line() {
    let mut lab = Lab::new();
    lab.check(&[
        ("INFO nope", "$0\r\n\r\n"),
        (
            "INFO cluster modules",
            "$43\r\n# Modules\r\n\r\n# Cluster\r\ncluster_enabled:0\r\n\r\n",
        ),
    ]);
    lab.run("HELLO 3");
    lab.check(&[(
        "INFO cluster",
        "=34\r\ntxt:# Cluster\r\ncluster_enabled:0\r\n\r\n",
    )]);
}

#[test]
fn every_field_stands_where_redis_has_it() {
    let mut lab = Lab::new();
    lab.host.facts.listeners = vec!["name=tcp,bind=127.0.0.1,port=6379".into()];
    let answer = lab.run("INFO");
    let found: Vec<&str> = answer
        .lines()
        .skip(1)
        .filter(|line| !line.is_empty() && *line != "errorstat_ERR")
        .map(|line| line.split_once(':').map_or(line, |(name, _)| name))
        .collect();
    let expected: Vec<&str> = FIELDS.lines().collect();
    assert_eq!(found, expected);
}

#[test]
fn facts_of_the_host_are_passed_on() {
    let mut lab = Lab::new();
    let facts = &mut lab.host.facts;
    facts.rss_bytes = 3 << 20;
    facts.system_memory_bytes = 8 << 30;
    facts.cpu_system_us = 1_500_000;
    facts.cpu_user_us = 25;
    facts.cpu_main_system_us = 2_000_001;
    facts.cpu_main_user_us = 3;
    facts.process_id = 42;
    facts.executable = "/bin/kumi-server".into();
    facts.config_file = "/etc/kumi.conf".into();
    facts.os = "Linux 6 x86_64".into();
    facts.allocator = "mimalloc".into();
    facts.multiplexing = "epoll".into();
    facts.listeners = vec!["name=tcp,bind=*,port=7000".into(), "name=unix".into()];
    facts.tcp_port = 7000;
    facts.rejected_connections = 9;
    facts.discards_pending = 4;
    for _ in 0..100 {
        lab.store.note_turn(TurnTimes {
            busy_ns: 50_000,
            ..TurnTimes::default()
        });
    }
    check(
        &mut lab,
        &[
            ("used_memory_rss", "3145728"),
            ("used_memory_rss_human", "3.00M"),
            ("allocator_resident", "3145728"),
            ("total_system_memory_human", "8.00G"),
            ("used_cpu_sys", "1.500000"),
            ("used_cpu_user", "0.000025"),
            ("used_cpu_sys_main_thread", "2.000001"),
            ("used_cpu_user_main_thread", "0.000003"),
            ("process_id", "42"),
            ("executable", "/bin/kumi-server"),
            ("config_file", "/etc/kumi.conf"),
            ("os", "Linux 6 x86_64"),
            ("mem_allocator", "mimalloc"),
            ("multiplexing_api", "epoll"),
            ("listener0", "name=tcp,bind=*,port=7000"),
            ("listener1", "name=unix"),
            ("tcp_port", "7000"),
            ("rejected_connections", "9"),
            ("lazyfree_pending_objects", "4"),
            ("eventloop_cycles", "100"),
            ("eventloop_duration_sum", "5000"),
        ],
    );
    lab.run("CONFIG RESETSTAT");
    lab.store.note_turn(TurnTimes::default());
    check(
        &mut lab,
        &[
            ("rejected_connections", "0"),
            ("eventloop_cycles", "1"),
            ("eventloop_duration_sum", "0"),
        ],
    );
}

#[test]
fn the_debug_section_tells_where_turns_spend_their_time_and_is_shown_by_its_name_alone() {
    let mut lab = Lab::new();
    let debug = |lab: &mut Lab| lab.run("INFO debug");
    let section = |aof, cron, longest, commands| {
        format!(
            "# Debug\r\neventloop_duration_aof_sum:{aof}\r\neventloop_duration_cron_sum:{cron}\r\neventloop_duration_max:{longest}\r\neventloop_cmd_per_cycle_max:{commands}\r\n"
        )
    };
    let turn = |busy_ns, aof_ns, cron_ns| TurnTimes {
        busy_ns,
        aof_ns,
        cron_ns,
    };
    for _ in 0..3 {
        lab.run("PING");
    }
    lab.store.note_turn(turn(90_000, 1_500, 0));
    lab.run("PING");
    lab.store.note_turn(turn(40_000, 1_500, 7_900));
    assert!(debug(&mut lab).contains(&section(3, 7, 90, 3)));
    for shown in ["INFO", "INFO all", "INFO everything", "INFO default"] {
        let info = lab.run(shown);
        assert!(!info.contains("eventloop_duration_max"), "{shown}");
    }
    lab.run("CONFIG RESETSTAT");
    assert!(debug(&mut lab).contains(&section(0, 0, 0, 0)));
    lab.store.note_turn(turn(5_000, 0, 0));
    assert!(debug(&mut lab).contains(&section(0, 0, 5, 2)));
}

#[test]
fn time_moves_the_clocks_and_the_rates() {
    let mut lab = Lab::new();
    check(
        &mut lab,
        &[
            ("uptime_in_seconds", "0"),
            ("server_time_usec", "1700000000000000"),
            ("lru_clock", "5501184"),
            ("hz", "10"),
        ],
    );
    // The first sample only marks where counting begins.
    lab.advance_ms(100);
    for _ in 0..16 {
        for _ in 0..7 {
            lab.run("PING");
        }
        let client = lab.client;
        lab.store.note_input(client, 2_048, InputUse::default());
        for _ in 0..5 {
            lab.store.note_turn(TurnTimes {
                busy_ns: 40_000,
                ..TurnTimes::default()
            });
        }
        lab.advance_ms(100);
    }
    check(
        &mut lab,
        &[
            ("instantaneous_ops_per_sec", "70"),
            ("instantaneous_input_kbps", "20.00"),
            ("instantaneous_output_kbps", "0.48"),
            ("instantaneous_eventloop_cycles_per_sec", "50"),
            ("instantaneous_eventloop_duration_usec", "40"),
        ],
    );
    lab.run("CONFIG SET hz 20");
    lab.advance_ms(2 * 86_400_000);
    check(
        &mut lab,
        &[
            ("uptime_in_seconds", "172801"),
            ("uptime_in_days", "2"),
            ("hz", "20"),
            ("configured_hz", "20"),
            ("instantaneous_ops_per_sec", "65"),
        ],
    );
}

#[test]
fn clients_are_counted_as_they_come_wait_and_pile_up() {
    let mut lab = Lab::new();
    let (waiting, paused) = (lab.connect(), lab.connect());
    lab.run_as(waiting, "WAIT 1 1000");
    lab.store.note_input(
        paused,
        300,
        InputUse {
            used: 300,
            free: 20,
            ..InputUse::default()
        },
    );
    lab.run("CONFIG SET maxclients 77");
    check(
        &mut lab,
        &[
            ("connected_clients", "3"),
            ("blocked_clients", "1"),
            ("clients_in_timeout_table", "1"),
            ("maxclients", "77"),
            ("client_recent_max_input_buffer", "300"),
            ("total_connections_received", "3"),
            ("total_net_input_bytes", "300"),
            ("total_reads_processed", "1"),
        ],
    );
    let before = fields(&mut lab, "memory")["mem_clients_normal"].clone();
    lab.leave_unread(paused, "SLOWLOG HELP");
    let found = fields(&mut lab, "everything");
    assert_ne!(found["mem_clients_normal"], before);
    // The largest output is noted when sessions are swept.
    lab.advance_ms(1_000);
    let found = fields(&mut lab, "everything");
    assert_ne!(found["client_recent_max_output_buffer"], "0");
    lab.advance_ms(8_000);
    check(
        &mut lab,
        &[
            ("blocked_clients", "0"),
            ("client_recent_max_input_buffer", "0"),
        ],
    );
    lab.store.disconnect(paused);
    check(
        &mut lab,
        &[
            ("connected_clients", "2"),
            ("total_connections_received", "3"),
        ],
    );
}

#[test]
fn data_moves_memory_keyspace_and_persistence() {
    let mut lab = Lab::new();
    let number = |lab: &mut Lab, name: &str| -> u64 {
        fields(lab, "everything")[name].parse().expect("a number")
    };
    let before = number(&mut lab, "used_memory");
    assert_eq!(before, number(&mut lab, "used_memory_peak"));
    for key in 0..1_000 {
        lab.run(&format!("SET key:{key} some-value-that-is-not-so-short"));
    }
    let full = number(&mut lab, "used_memory");
    assert!(full > before + 40_000, "{before} {full}");
    assert!(number(&mut lab, "used_memory_dataset") > 40_000);
    assert!(number(&mut lab, "used_memory_overhead") > 8_000);
    check(
        &mut lab,
        &[
            ("db0", "keys=1000,expires=0,avg_ttl=0"),
            ("rdb_changes_since_last_save", "1000"),
            ("maxmemory", "0"),
            ("maxmemory_human", "0B"),
        ],
    );
    let info = fields(&mut lab, "memory");
    assert_ne!(info["used_memory_dataset_perc"], "0.00%");
    lab.store.keyspace.flush(0, 0);
    assert!(number(&mut lab, "used_memory") < full);
    assert!(number(&mut lab, "used_memory_peak") >= full);
    let info = fields(&mut lab, "everything");
    assert_ne!(info["used_memory_peak_perc"], "100.00%");
    assert_eq!(info["lazyfreed_objects"], "0", "FLUSHALL ASYNC counts");
    assert!(!info.contains_key("db0"));
    lab.run("CONFIG SET maxmemory 1gb");
    check(
        &mut lab,
        &[
            ("maxmemory_human", "1.00G"),
            ("maxmemory_policy", "noeviction"),
        ],
    );
}

#[test]
fn fragmentation_leaves_out_what_the_program_took_at_its_start() {
    let mut lab = Lab::new();
    lab.host.facts.aof.buffered_bytes = 7;
    check(&mut lab, &[("mem_aof_buffer", "7")]);
    lab.host.facts.rss_bytes = 6 << 20;
    lab.host.facts.startup_rss_bytes = 6 << 20;
    let used: u64 = fields(&mut lab, "memory")["used_memory"].parse().unwrap();
    check(
        &mut lab,
        &[
            ("mem_fragmentation_ratio", "1.00"),
            ("allocator_resident", &used.to_string()),
            ("used_memory_rss", "6291456"),
        ],
    );
    lab.host.facts.rss_bytes += 3 * used;
    let ratio: f64 = fields(&mut lab, "memory")["mem_fragmentation_ratio"]
        .parse()
        .unwrap();
    assert!((3.0..=4.1).contains(&ratio), "{ratio}");
}

#[test]
fn what_is_freed_lazily_is_counted() {
    let mut lab = Lab::new();
    let freed = |lab: &mut Lab| fields(lab, "memory")["lazyfreed_objects"].clone();
    lab.run("MSET a 1 b 2 c 3");
    lab.run("FLUSHALL");
    lab.run(&format!("SET large {}", "x".repeat(100_000)));
    lab.run("UNLINK large");
    assert_eq!(freed(&mut lab), "0");
    lab.run("MSET a 1 b 2 c 3");
    lab.run("FLUSHDB ASYNC");
    assert_eq!(freed(&mut lab), "3");
    let members: Vec<String> = (0..1000).map(|i| format!("member-{i}")).collect();
    for (command, counted) in [("DEL", "3"), ("UNLINK", "4")] {
        lab.run(&format!("SADD set {}", members.join(" ")));
        lab.run("SADD small a b c");
        lab.run(&format!("{command} set small"));
        assert_eq!(freed(&mut lab), counted, "{command}");
    }
    lab.configure("lazyfree-lazy-user-del", "yes");
    lab.run(&format!("SADD set {}", members.join(" ")));
    lab.run("DEL set");
    assert_eq!(freed(&mut lab), "5");
    // What groups wait for counts with the nodes of a stream.
    for (count, counted) in [(50, "5"), (70, "6")] {
        for id in 1..=70 {
            lab.run(&format!("XADD stream 1-{id} field value"));
        }
        lab.run("XGROUP CREATE stream group 0");
        lab.run(&format!(
            "XREADGROUP GROUP group consumer COUNT {count} STREAMS stream >"
        ));
        lab.run("UNLINK stream");
        assert_eq!(freed(&mut lab), counted, "{count}");
    }
}

#[test]
fn watched_and_subscribed_names_count_as_memory_until_they_are_given_up() {
    let mut lab = Lab::new();
    let used = |lab: &mut Lab| -> u64 {
        fields(lab, "memory")["used_memory"]
            .parse()
            .expect("a number")
    };
    let name = "n".repeat(10_000);
    let before = used(&mut lab);
    for (take, give_up) in [
        ("WATCH", "UNWATCH"),
        ("SUBSCRIBE", "UNSUBSCRIBE"),
        ("PSUBSCRIBE", "PUNSUBSCRIBE"),
        ("SSUBSCRIBE", "SUNSUBSCRIBE"),
    ] {
        lab.run("HELLO 3");
        lab.run(&format!("{take} {name}"));
        lab.run(&format!("{take} {name}"));
        let with = used(&mut lab);
        assert!(with > before + 20_000, "{take}: {before} {with}");
        lab.run(give_up);
        let after = used(&mut lab);
        assert!(after < before + 15_000, "{give_up}: {before} {after}");
    }
}

#[test]
fn expiry_is_counted() {
    use crate::data::keyspace::{Expiry, NewValue};
    let mut lab = Lab::new();
    let now_ms = lab.host.now.unix_ms();
    let mut put = |db: usize, key: &str, ttl_ms: u64| {
        let mut keys = lab.store.keyspace.keys(db, now_ms, true);
        keys.put(
            key.as_bytes(),
            NewValue::Int(1),
            Expiry::At(now_ms + ttl_ms),
        )
        .expect("there is no limit");
    };
    put(3, "a", 1_000);
    put(3, "b", 3_000);
    put(3, "c", 5_000);
    check(
        &mut lab,
        &[
            ("db3", "keys=3,expires=3,avg_ttl=3000"),
            ("expired_keys", "0"),
            ("expired_stale_perc", "0.00"),
        ],
    );
    lab.advance_ms(1_000);
    check(
        &mut lab,
        &[
            ("expired_keys", "1"),
            ("db3", "keys=2,expires=2,avg_ttl=3000"),
        ],
    );
    lab.store.keyspace.expiry.active = false;
    lab.advance_ms(2_000);
    check(
        &mut lab,
        &[("expired_keys", "1"), ("expired_stale_perc", "50.00")],
    );
    lab.store.telemetry.stats.active_expiry_us = 2_000;
    lab.store.keyspace.stats.expiry_slices_cut = 3;
    check(
        &mut lab,
        &[
            ("expire_cycle_cpu_milliseconds", "2"),
            ("expired_time_cap_reached_count", "3"),
        ],
    );
}

#[test]
fn traffic_moves_the_statistics() {
    let mut lab = Lab::new();
    lab.allow_debug();
    let other = lab.connect();
    lab.run_as(other, "SUBSCRIBE a b");
    lab.run_as(other, "PSUBSCRIBE p*");
    lab.run_as(other, "SSUBSCRIBE s");
    lab.run("SET a 1");
    lab.run("GET a");
    lab.run("GET b");
    lab.run("GET");
    lab.run("AUTH default wrong");
    lab.configure("requirepass", "secret");
    lab.run("AUTH wrong");
    lab.configure("requirepass", "");
    lab.run("DEBUG SLEEP 0.000003");
    lab.store.telemetry.stats.query_limit_disconnections = 2;
    lab.store.telemetry.stats.output_limit_disconnections = 1;
    check(
        &mut lab,
        &[
            ("pubsub_channels", "2"),
            ("pubsub_patterns", "1"),
            ("pubsubshard_channels", "1"),
            ("keyspace_hits", "1"),
            ("keyspace_misses", "1"),
            ("total_error_replies", "2"),
            ("acl_access_denied_auth", "1"),
            ("total_commands_processed", "9"),
            ("eventloop_duration_cmd_sum", "3"),
            ("client_query_buffer_limit_disconnections", "2"),
            ("client_output_buffer_limit_disconnections", "1"),
            ("errorstat_ERR", "count=1"),
            ("errorstat_WRONGPASS", "count=1"),
            (
                "cmdstat_get",
                "calls=2,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0",
            ),
            (
                "cmdstat_auth",
                "calls=2,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=1",
            ),
            (
                "cmdstat_debug",
                "calls=1,usec=3,usec_per_call=3.00,rejected_calls=0,failed_calls=0",
            ),
            (
                "latency_percentiles_usec_debug",
                "p50=3.007,p99=3.007,p99.9=3.007",
            ),
        ],
    );
    let found = fields(&mut lab, "stats");
    assert_ne!(found["total_net_output_bytes"], "0");
    assert_ne!(found["total_writes_processed"], "0");
    lab.run("CONFIG SET latency-tracking-info-percentiles 100");
    check(
        &mut lab,
        &[("latency_percentiles_usec_debug", "p100=3.007")],
    );
}

#[test]
fn versions_name_both_servers() {
    let mut lab = Lab::new();
    check(
        &mut lab,
        &[
            ("redis_version", "7.2.5"),
            ("kumi_version", env!("CARGO_PKG_VERSION")),
            ("redis_mode", "standalone"),
            ("role", "master"),
            ("repl_backlog_size", "1048576"),
        ],
    );
    let found = fields(&mut lab, "server replication");
    assert_eq!(found["run_id"].len(), 40);
    assert_eq!(found["master_replid"].len(), 40);
    assert_ne!(found["run_id"], found["master_replid"]);
}

#[test]
fn an_error_code_cannot_end_its_line() {
    let mut lab = Lab::new();
    lab.store.telemetry.stats.count_error(b"A:B\xff");
    assert!(
        lab.run("INFO errorstats")
            .contains("errorstat_A_B_:count=1\r\n")
    );
}
