//! The table against what a redis-server 7.0.15 was seen to answer, and the few places where kumi means to differ.

use super::*;
use crate::config::{Directive, Mutability, Standing, TABLE, find};

const OBSERVED: &str = include_str!("redis-7.0.15.tsv");

/// The values the reference was asked to take.
const PROBES: [&str; 3] = ["?!", "-99999999999", "18446744073709551615"];

/// Where a default differs from 7.0.15 on purpose.
const OTHER_DEFAULTS: [(&str, &str); 2] = [
    ("bind", "kumi listens on the loopback interface by default"),
    ("dir", "the host sets it at startup"),
];

/// Where an answer differs from 7.0.15 on purpose.
const OTHER_ANSWERS: [(&str, &str); 3] = [
    ("loglevel", "7.2 knows `nothing` as well"),
    ("maxmemory-samples", "7.2 bounds it at 64"),
    (
        "maxmemory-clients",
        "7.0 takes 2^64-1 for minus one, which it reads as one percent",
    ),
];

/// Directives of Redis 7.2 that 7.0 does not have, and kumi's own.
const NOT_IN_7_0: [&str; 9] = [
    "cluster-announce-human-nodename",
    "cluster-ping-interval",
    "locale-collate",
    "max-keys",
    "max-message-size",
    "max-value-size",
    "set-max-listpack-entries",
    "set-max-listpack-value",
    "snapshot-max-memory",
];

struct Observation {
    name: &'static str,
    change: &'static str,
    default: &'static str,
    answers: [&'static str; 3],
}

fn observations() -> Vec<Observation> {
    let lines = OBSERVED.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
            [name, change, default, a, b, c] => Observation {
                name,
                change,
                default,
                answers: [a, b, c],
            },
            [name, change, default, all] => Observation {
                name,
                change,
                default,
                answers: [all; 3],
            },
            _ => panic!("not an observation: {line}"),
        })
        .collect()
}

fn row(name: &str) -> &'static Directive {
    let (row, _) = find(name.as_bytes()).unwrap_or_else(|| panic!("{name} is unknown"));
    &TABLE[row]
}

fn listed(differences: &[(&str, &str)], name: &str) -> bool {
    differences.iter().any(|(differing, _)| *differing == name)
}

#[test]
fn every_name_of_the_reference_is_known_and_nothing_else_is() {
    let observed: Vec<&str> = observations()
        .iter()
        .map(|observation| observation.name)
        .collect();
    for name in &observed {
        row(name);
    }
    let mut added: Vec<&str> = TABLE
        .iter()
        .flat_map(Directive::names)
        .filter(|name| !observed.contains(name))
        .collect();
    added.sort_unstable();
    assert_eq!(added, NOT_IN_7_0);
}

#[test]
fn defaults_are_shown_as_the_reference_shows_them() {
    let config = Config::new();
    for Observation { name, default, .. } in observations() {
        if !listed(&OTHER_DEFAULTS, name) {
            assert_eq!(shown(&config, name), default, "{name}");
        }
    }
}

#[test]
fn config_set_may_change_what_the_reference_lets_it_change() {
    for Observation { name, change, .. } in observations() {
        let expected = match change {
            "set" => Mutability::Modifiable,
            "guarded" => Mutability::Protected,
            _ => Mutability::Immutable,
        };
        assert_eq!(row(name).mutability, expected, "{name}");
    }
}

#[test]
fn wrong_values_get_the_answers_of_the_reference() {
    for Observation { name, answers, .. } in observations() {
        for (probe, expected) in PROBES.iter().zip(answers) {
            if listed(&OTHER_ANSWERS, name) || expected == "-" {
                continue;
            }
            let pair: (&[u8], &[u8]) = (name.as_bytes(), probe.as_bytes());
            let answer = Config::new().set_many(&[pair], Origin::Startup);
            match answer {
                Ok(_) => assert_eq!("OK", expected, "{name} {probe}"),
                // What kumi refuses on its own account, Redis may take.
                Err(_) if expected == "OK" => {
                    assert!(
                        matches!(row(name).standing, Standing::Refused { .. }),
                        "{name} {probe}"
                    );
                }
                Err(ConfigError::Failed { reason, .. }) => {
                    assert_eq!(reason, expected, "{name} {probe}")
                }
                Err(error) => panic!("{name} {probe}: {error}"),
            }
        }
    }
}

#[test]
fn hidden_directives_are_those_the_reference_hides() {
    let hidden: Vec<&str> = TABLE
        .iter()
        .filter(|directive| directive.hidden)
        .map(|directive| directive.name)
        .collect();
    assert_eq!(
        hidden,
        [
            "watchdog-period",
            "use-exit-on-panic",
            "rdb-key-save-delay",
            "key-load-delay",
            "loading-process-events-interval-bytes",
            "cluster-ping-interval"
        ]
    );
}
