//! Setting, getting and taking back.

use super::*;
use crate::config::{
    Access, BindAddress, Directive, LogLevel, NotifyFlags, OutputLimit, Standing, TABLE,
};

fn check_error(name: &str, value: &str, expected: &str) {
    let mut config = Config::new();
    let before = config.clone();
    let error = set(&mut config, name, value).expect_err(name).to_string();
    assert_eq!(error, expected);
    assert_eq!(config.values, before.values, "an error changes nothing");
}

fn check_reason(name: &str, value: &str, expected: &str) {
    let whole = format!("CONFIG SET failed (possibly related to argument '{name}') - {expected}");
    check_error(name, value, &whole);
}

fn check_shown(name: &str, value: &str, expected: &str) {
    let mut config = Config::new();
    set(&mut config, name, value).unwrap_or_else(|error| panic!("{name} {value}: {error}"));
    assert_eq!(shown(&config, name), expected, "{name} {value}");
}

#[test]
fn every_row_reads_its_default_and_prints_it_back() {
    for (directive, value) in TABLE.iter().zip(&Config::new().values) {
        if directive.name == "replicaof" {
            // Shown as nothing and written as "no one", as in Redis.
            continue;
        }
        let text = directive.kind.text(value);
        let again = directive.parse(&directive.kind.split(&text), &directive.default_value());
        assert_eq!(again.as_ref(), Ok(value), "{}", directive.name);
    }
}

#[test]
fn names_and_aliases_are_unique_and_in_lower_case() {
    let mut names: Vec<&str> = TABLE.iter().flat_map(Directive::accepted_names).collect();
    assert!(names.iter().all(|name| *name == name.to_lowercase()));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// Redis 7.0 knows these with underscores alone; 7.2 reads both spellings.
#[test]
fn lists_of_processors_are_listed_with_underscores_and_found_with_hyphens_too() {
    let config = Config::new();
    let mut listed: Vec<_> = config
        .get([b"*cpulist*".as_slice()])
        .into_iter()
        .map(|(name, _)| String::from_utf8_lossy(&name).into_owned())
        .collect();
    listed.sort_unstable();
    assert_eq!(
        listed,
        [
            "aof_rewrite_cpulist",
            "bgsave_cpulist",
            "bio_cpulist",
            "server_cpulist"
        ]
    );
    let found = config.get([b"server-cpulist".as_slice()]);
    assert_eq!(found.len(), 1);
    let mut config = Config::new();
    let pair: (&[u8], &[u8]) = (b"bgsave-cpulist", b"1");
    let _changes = config.set_many(&[pair], Origin::Startup).unwrap();
    assert_eq!(shown(&config, "bgsave_cpulist"), "1");
}

#[test]
fn no_default_is_refused() {
    for directive in TABLE {
        if let Standing::Refused { when, .. } = directive.standing {
            assert!(!when(&directive.default_value()), "{}", directive.name);
        }
    }
}

#[test]
fn wrong_names_and_values_get_the_texts_of_redis() {
    check_error(
        "foo",
        "1",
        "Unknown option or number of arguments for CONFIG SET - 'foo'",
    );
    check_reason("port", "abc", "argument couldn't be parsed into an integer");
    check_reason("port", "05", "argument couldn't be parsed into an integer");
    check_reason(
        "port",
        "70000",
        "argument must be between 0 and 65535 inclusive",
    );
    check_reason(
        "latency-tracking",
        "maybe",
        "argument must be 'yes' or 'no'",
    );
    check_reason("databases", "3", "can't set immutable config");
    check_reason("dir", "/tmp", "can't set protected config");
    check_reason("maxmemory", "1.5gb", "argument must be a memory value");
    check_reason(
        "maxmemory-clients",
        "101%",
        "percentage argument must be less or equal to 100",
    );
    check_reason("save", "1", "Invalid save parameters");
    check_reason("save", "0 1", "Invalid save parameters");
    check_reason(
        "client-output-buffer-limit",
        "normal 0 0",
        "Wrong number of arguments in buffer limit configuration.",
    );
    check_reason(
        "client-output-buffer-limit",
        "foo 0 0 0",
        "Invalid client class specified in buffer limit configuration.",
    );
    check_reason(
        "client-output-buffer-limit",
        "normal 1 2 -1",
        "Error in hard, soft or soft_seconds setting in buffer limit configuration.",
    );
    check_reason(
        "oom-score-adj-values",
        "1 2 5000",
        "Invalid oom-score-adj-values, elements must be between -2000 and 2000.",
    );
    check_reason(
        "shutdown-on-sigterm",
        "save nosave",
        "shutdown options SAVE and NOSAVE can't be used simultaneously",
    );
    for template in [
        "{foo}",
        "{title",
        "",
        " ",
        "{title}",
        "{title} {server-mode}",
    ] {
        check_reason(
            "proc-title-template",
            template,
            "template format is invalid or contains unknown variables",
        );
    }
    check_reason(
        "bind",
        "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17",
        "Too many bind addresses specified.",
    );
}

#[test]
fn values_are_shown_in_the_form_of_redis() {
    check_shown("maxmemory", "12\0kb", "12");
    check_shown("maxmemory", "1gb", "1073741824");
    check_shown("maxmemory", "1K", "1000");
    check_shown("maxmemory", "", "0");
    check_shown(
        "maxmemory",
        "99999999999999999999999",
        "18446744073709551615",
    );
    check_shown("maxmemory-clients", "10%", "10%");
    check_shown("loglevel", "VERBOSE", "verbose");
    check_shown("hz", "0", "1");
    check_shown("hz", "1000", "500");
    check_shown("oom-score-adj", "relative", "yes");
    check_shown("shutdown-on-sigint", "now nosave", "nosave now");
    check_shown("shutdown-on-sigint", "default now", "now");
    check_shown("bind", "  127.0.0.1 -::1", "  127.0.0.1 -::1");
    check_shown("bind", "", "");
    check_shown("save", "", "");
    check_shown("notify-keyspace-events", "KEA", "AKE");
    check_shown(
        "latency-tracking-info-percentiles",
        "50.0 99.999 0 100 12.3456789",
        "50 99.999 0 100 12.345679",
    );
    check_shown("latency-tracking-info-percentiles", "", "");
    check_shown(
        "client-output-buffer-limit",
        "replica 1mb 1kb 5 pubsub 1 2 3",
        "normal 0 0 0 slave 1048576 1024 5 pubsub 1 2 3",
    );
    check_shown("proc-title-template", "{{x} {title}", "{{x} {title}");
    check_shown("proc-title-template", "{title}{{", "{title}{{");
    check_shown("proc-title-template", "{port}", "{port}");
}

#[test]
fn what_kumi_would_have_to_lie_about_is_refused_with_a_reason() {
    for (name, value, word) in [
        ("cluster-enabled", "yes", "Cluster"),
        ("tls-ciphers", "DEFAULT", "rustls"),
        ("tls-key-file-pass", "secret", "encrypted"),
        ("replicaof", "10.0.0.1 6379", "follow"),
        ("min-replicas-to-write", "1", "replicas"),
    ] {
        let pair: (&[u8], &[u8]) = (name.as_bytes(), value.as_bytes());
        let error = Config::new()
            .set_many(&[pair], Origin::Startup)
            .expect_err(name)
            .to_string();
        assert!(error.contains(word) && error.contains("kumi"), "{error}");
    }
}

#[test]
fn several_are_set_together_or_not_at_all() {
    let mut config = Config::new();
    let pairs: [(&[u8], &[u8]); 3] = [(b"maxmemory", b"7"), (b"timeout", b"5"), (b"PORT", b"abc")];
    let error = config.set_many(&pairs, CLIENT).expect_err("abc is no port");
    assert_eq!(
        error,
        ConfigError::failed("port", "argument couldn't be parsed into an integer"),
        "a wrong value is reported under the directive's own name"
    );
    assert_eq!(config.settings().maxmemory_bytes, 0);
    assert_eq!(config.settings().timeout_s, 0);

    let changes = config.set_many(&pairs[..2], CLIENT).expect("both are fine");
    assert_eq!(
        changes.names().collect::<Vec<_>>(),
        ["maxmemory", "timeout"]
    );
    assert!(changes.contains("timeout") && !changes.contains("port"));
    assert_eq!(config.settings().maxmemory_bytes, 7);
}

#[test]
fn wrong_names_come_before_wrong_values() {
    let mut config = Config::new();
    let error = config.set_many(&[(b"port", b"abc"), (b"foo", b"1")], CLIENT);
    assert_eq!(
        error.expect_err("foo"),
        ConfigError::Unknown("foo".to_owned())
    );
    let error = config.set_many(
        &[(b"port", b"1"), (b"DATABASES", b"1"), (b"foo", b"1")],
        CLIENT,
    );
    assert_eq!(
        error.expect_err("databases"),
        ConfigError::failed("DATABASES", "can't set immutable config")
    );
}

#[test]
fn a_name_twice_is_a_duplicate_but_its_alias_is_not() {
    let mut config = Config::new();
    let error = config.set_many(&[(b"port", b"1"), (b"PORT", b"2")], CLIENT);
    assert_eq!(
        error.expect_err("twice"),
        ConfigError::failed("PORT", "duplicate parameter")
    );
    let both = config.set_many(
        &[(b"slave-priority", b"5"), (b"replica-priority", b"6")],
        CLIENT,
    );
    let both = both.expect("an alias is another name");
    assert_eq!(shown(&config, "slave-priority"), "6");
    config.revert(both);
    assert_eq!(shown(&config, "replica-priority"), "100");
}

#[test]
fn reverting_brings_values_and_settings_back() {
    let mut config = Config::new();
    set(&mut config, "notify-keyspace-events", "KEA").expect("letters");
    let before = config.clone();
    let pairs: [(&[u8], &[u8]); 4] = [
        (b"notify-keyspace-events", b"gK"),
        (b"client-output-buffer-limit", b"normal 1 2 3"),
        (b"bind", b"*"),
        (b"hz", b"10"),
    ];
    let changes = config.set_many(&pairs, CLIENT).expect("all fine");
    assert!(!changes.contains("hz"), "hz was 10 already");
    assert_ne!(config.settings(), before.settings());
    config.revert(changes);
    assert_eq!(config.settings(), before.settings());
    assert_eq!(config.values, before.values);
}

#[test]
fn protected_directives_follow_enable_protected_configs() {
    for (setting, from_here, from_afar) in [
        ("no", false, false),
        ("local", true, false),
        ("yes", true, true),
    ] {
        let mut config = Config::new();
        load(&mut config, &format!("enable-protected-configs {setting}")).expect("a choice");
        let mut may = |local| {
            config
                .set_many(&[(b"dbfilename", b"x")], Origin::Client { local })
                .is_ok()
        };
        assert_eq!((may(true), may(false)), (from_here, from_afar), "{setting}");
    }
}

#[test]
fn get_echoes_names_and_finds_aliases_and_lists_each_once() {
    let config = Config::new();
    let names = |patterns: &[&str]| -> Vec<String> {
        let answer = config.get(patterns.iter().map(|pattern| pattern.as_bytes()));
        answer
            .iter()
            .map(|(name, _)| String::from_utf8_lossy(name).into_owned())
            .collect()
    };
    assert_eq!(names(&["PORT", "port"]), ["PORT"]);
    assert_eq!(names(&["HZ", "hz*"]), ["HZ"]);
    assert_eq!(
        names(&["*-PRIORITY"]),
        ["replica-priority", "slave-priority"]
    );
    assert_eq!(names(&["slaveof"]), ["slaveof"]);
    assert_eq!(names(&["nosuch", "no*such"]), Vec::<String>::new());
    assert_eq!(names(&["*load-delay"]), Vec::<String>::new());
    assert_eq!(names(&["key-load-delay"]), ["key-load-delay"]);
    let all = names(&["*", "maxmemory", "max*"]);
    let listed = TABLE
        .iter()
        .filter(|directive| !directive.hidden)
        .flat_map(Directive::names)
        .count();
    assert_eq!(all.len(), listed);
}

#[test]
fn settings_hold_the_defaults_in_their_types() {
    let config = Config::new();
    let settings = config.settings();
    assert_eq!(
        settings.bind,
        [
            BindAddress {
                host: b"127.0.0.1".to_vec(),
                optional: false
            },
            BindAddress {
                host: b"::1".to_vec(),
                optional: true
            }
        ]
    );
    assert_eq!(
        (settings.port, settings.databases, settings.maxclients),
        (6379, 16, 10000)
    );
    assert_eq!(settings.proto_max_bulk_len, 512 << 20);
    assert_eq!(settings.query_buffer_limit_bytes, 1 << 30);
    let pubsub = OutputLimit {
        hard_bytes: 32 << 20,
        soft_bytes: 8 << 20,
        soft_seconds: 60,
    };
    assert_eq!(settings.output_limits.pubsub, pubsub);
    assert_eq!(settings.slowlog_log_slower_than_us, 10_000);
    assert_eq!(settings.loglevel, LogLevel::Notice);
    assert_eq!(settings.enable_debug_command, Access::No);
    assert_eq!(settings.notify, NotifyFlags::NONE);
    assert_eq!(
        (
            settings.max_message_size,
            settings.max_keys,
            settings.max_value_size
        ),
        (0, 0, 0)
    );
    assert_eq!(
        (&settings.requirepass, &settings.unixsocket),
        (&None, &None)
    );
}

#[test]
fn every_live_directive_moves_a_setting() {
    for directive in TABLE
        .iter()
        .filter(|directive| matches!(directive.standing, Standing::Live(_)))
    {
        let default = Config::new();
        let other = [
            "yes",
            "900 1",
            "nosave now",
            "no",
            "local",
            "debug",
            "systemd",
            "7",
            "2mb",
            "KEA",
            "normal 1 2 3",
            "allchannels",
            "allkeys-lru",
            "1 2 3",
        ];
        let moved = other.iter().any(|value| {
            let mut config = Config::new();
            let pair: (&[u8], &[u8]) = (directive.name.as_bytes(), value.as_bytes());
            config.set_many(&[pair], Origin::Startup).is_ok()
                && config.settings() != default.settings()
        });
        assert!(moved, "{}", directive.name);
    }
}

#[test]
fn inert_directives_warn_once_and_only_when_they_ask_for_something() {
    let mut config = Config::new();
    load(
        &mut config,
        "daemonize yes\nrdbcompression yes\nmasterauth hush\nport 7000\nio-threads 1",
    )
    .expect("loads");
    set(&mut config, "activedefrag", "yes").expect("inert, but settable");
    let warnings: Vec<String> = config
        .warnings()
        .map(|warning| warning.to_string())
        .collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0]
            .starts_with("'daemonize yes' has no effect: kumi-server stays in the foreground")
    );
    assert!(
        warnings[1].starts_with("'masterauth' has no effect"),
        "a secret stays out of the log"
    );
}

#[test]
fn secrets_are_known_by_any_name() {
    assert!(Config::is_sensitive(b"RequirePass"));
    assert!(!Config::is_sensitive(b"port") && !Config::is_sensitive(b"nosuch"));
}

#[test]
fn a_message_limit_leaves_room_to_be_lifted() {
    check_reason(
        "max-message-size",
        "511",
        "argument must be 0 (no limit) or at least 512 bytes",
    );
    check_shown("max-message-size", "0", "0");
    check_shown("max-message-size", "512", "512");
    check_shown("max-message-size", "1gb", "1073741824");
}
