//! Random commands against a model that is nothing but a map: values, deadlines, and a clock that both share.
//!
//! The model knows no table, no index and no entry, so it cannot be wrong in the same way. After each run the books are
//! compared too: the deadline index holds what the model holds, and no byte is accounted for once all keys are gone.

use crate::testing::Lab;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
struct Model {
    now_ms: u64,
    keys: BTreeMap<String, (String, Option<u64>)>,
}

fn bulk(value: &str) -> String {
    format!("${}\r\n{value}\r\n", value.len())
}

fn bulk_or_null(value: Option<&String>) -> String {
    value.map_or("$-1\r\n".into(), |value| bulk(value))
}

fn integer(value: impl std::fmt::Display) -> String {
    format!(":{value}\r\n")
}

impl Model {
    fn run(&mut self, line: &str) -> String {
        let now_ms = self.now_ms;
        self.keys
            .retain(|_, (_, deadline)| deadline.is_none_or(|deadline| deadline > now_ms));
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["SET", key, value, options @ ..] => self.set(key, value, options),
            ["GET", key] => bulk_or_null(self.value(key)),
            ["GETDEL", key] => {
                let answer = bulk_or_null(self.value(key));
                self.keys.remove(*key);
                answer
            }
            ["GETSET", key, value] => self.set(key, value, &["GET"]),
            ["GETEX", key, options @ ..] => {
                let answer = bulk_or_null(self.value(key));
                if let Some((_, deadline)) = self.keys.get_mut(*key) {
                    match options {
                        ["PX", ms] => *deadline = Some(now_ms + number(ms)),
                        _ => *deadline = None,
                    }
                }
                answer
            }
            ["MSETNX", first, value, second, other] => {
                let free = !self.keys.contains_key(*first) && !self.keys.contains_key(*second);
                if free {
                    self.set(first, value, &[]);
                    self.set(second, other, &[]);
                }
                integer(u8::from(free))
            }
            ["APPEND", key, tail] => {
                let (value, _) = self.keys.entry(key.to_string()).or_default();
                value.push_str(tail);
                integer(value.len())
            }
            ["SETRANGE", key, offset, patch] => {
                let (value, _) = self.keys.entry(key.to_string()).or_default();
                let (start, end) = (
                    number(offset) as usize,
                    number(offset) as usize + patch.len(),
                );
                while value.len() < end {
                    value.push('\0');
                }
                value.replace_range(start..end, patch);
                integer(value.len())
            }
            ["STRLEN", key] => integer(self.value(key).map_or(0, String::len)),
            ["INCRBY", key, by] => {
                let old = self.value(key).map_or(Some(0), |value| canonical(value));
                let Some(sum) = old.map(|old| old + by.parse::<i64>().expect("a number")) else {
                    return "-ERR value is not an integer or out of range\r\n".into();
                };
                self.keys.entry(key.to_string()).or_default().0 = sum.to_string();
                integer(sum)
            }
            ["DEL", first, second] => {
                let removed = [first, second].map(|key| self.keys.remove(*key));
                integer(removed.iter().flatten().count())
            }
            ["PEXPIRE", key, ms, options @ ..] => self.expire(key, ms, options),
            ["PERSIST", key] => {
                let deadline = self
                    .keys
                    .get_mut(*key)
                    .and_then(|(_, deadline)| deadline.take());
                integer(u8::from(deadline.is_some()))
            }
            ["PTTL", key] => match self.keys.get(*key) {
                None => integer(-2),
                Some((_, None)) => integer(-1),
                Some((_, Some(deadline))) => integer(deadline - now_ms),
            },
            ["RENAME", old, new] => match self.keys.remove(*old) {
                None => "-ERR no such key\r\n".into(),
                Some(held) => {
                    self.keys.insert(new.to_string(), held);
                    "+OK\r\n".into()
                }
            },
            ["COPY", source, target] => {
                let fits = self.keys.contains_key(*source) && !self.keys.contains_key(*target);
                if fits {
                    let held = self.keys[*source].clone();
                    self.keys.insert(target.to_string(), held);
                }
                integer(u8::from(fits))
            }
            ["EXISTS", key] => integer(u8::from(self.keys.contains_key(*key))),
            ["FLUSHDB"] => {
                self.keys.clear();
                "+OK\r\n".into()
            }
            _ => panic!("the model does not know {line:?}"),
        }
    }

    fn value(&self, key: &str) -> Option<&String> {
        self.keys.get(key).map(|(value, _)| value)
    }

    fn set(&mut self, key: &str, value: &str, options: &[&str]) -> String {
        let old = self.keys.get(key).cloned();
        let with = |option| options.contains(&option);
        let wanted = !(with("NX") && old.is_some() || with("XX") && old.is_none());
        if wanted {
            let deadline = match options {
                [.., "PX", ms] => Some(self.now_ms + number(ms)),
                _ if with("KEEPTTL") => old.as_ref().and_then(|(_, deadline)| *deadline),
                _ => None,
            };
            self.keys.insert(key.into(), (value.into(), deadline));
        }
        match wanted {
            _ if with("GET") => bulk_or_null(old.map(|(value, _)| value).as_ref()),
            true => "+OK\r\n".into(),
            false => "$-1\r\n".into(),
        }
    }

    fn expire(&mut self, key: &str, ms: &str, options: &[&str]) -> String {
        let moment = self.now_ms as i64 + ms.parse::<i64>().expect("a number");
        let Some((_, deadline)) = self.keys.get_mut(key) else {
            return integer(0);
        };
        let old = deadline.map_or(i64::MAX, |deadline| deadline as i64);
        let wanted = match options {
            ["NX"] => deadline.is_none(),
            ["XX"] => deadline.is_some(),
            ["GT"] => moment > old,
            ["LT"] => moment < old,
            _ => true,
        };
        if wanted {
            *deadline = Some(moment.max(0) as u64);
            if moment <= self.now_ms as i64 {
                self.keys.remove(key);
            }
        }
        integer(u8::from(wanted))
    }
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// A number as INCRBY accepts it.
fn canonical(text: &str) -> Option<i64> {
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

#[derive(Clone, Debug)]
enum Step {
    Run(String),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let key = || "k[0-4]";
    let value = || {
        prop_oneof![
            "-?[0-9]{1,3}",
            "[a-z]{0,1}[a-z0-9]{1,30}",
            "[xy]{1200,1300}"
        ]
    };
    let ms = || 1..60u64;
    let condition = prop_oneof![
        Just(""),
        Just(" NX"),
        Just(" XX"),
        Just(" GET"),
        Just(" KEEPTTL"),
        Just(" XX GET KEEPTTL"),
        Just(" NX GET"),
    ];
    let line = prop_oneof![
        4 => (key(), value(), condition).prop_map(|(k, v, c)| format!("SET {k} {v}{c}")),
        4 => (key(), value(), ms()).prop_map(|(k, v, ms)| format!("SET {k} {v} PX {ms}")),
        2 => (key(), value(), ms()).prop_map(|(k, v, ms)| format!("SET {k} {v} XX GET PX {ms}")),
        3 => key().prop_map(|k| format!("GET {k}")),
        1 => key().prop_map(|k| format!("GETDEL {k}")),
        1 => (key(), value()).prop_map(|(k, v)| format!("GETSET {k} {v}")),
        1 => (key(), ms()).prop_map(|(k, ms)| format!("GETEX {k} PX {ms}")),
        1 => key().prop_map(|k| format!("GETEX {k} PERSIST")),
        1 => (key(), value(), key(), value())
            .prop_map(|(k, v, l, w)| format!("MSETNX {k} {v} {l} {w}")),
        3 => (key(), value()).prop_map(|(k, v)| format!("APPEND {k} {v}")),
        3 => (key(), 0..40u64, value()).prop_map(|(k, at, v)| format!("SETRANGE {k} {at} {v}")),
        1 => key().prop_map(|k| format!("STRLEN {k}")),
        4 => (key(), -500..500i64).prop_map(|(k, by)| format!("INCRBY {k} {by}")),
        1 => (key(), key()).prop_map(|(k, l)| format!("DEL {k} {l}")),
        6 => (key(), -5..60i64, prop_oneof![Just(""), Just(" NX"), Just(" XX"), Just(" GT"), Just(" LT")])
            .prop_map(|(k, ms, c)| format!("PEXPIRE {k} {ms}{c}")),
        1 => key().prop_map(|k| format!("PERSIST {k}")),
        3 => key().prop_map(|k| format!("PTTL {k}")),
        2 => (key(), key()).prop_map(|(k, l)| format!("RENAME {k} {l}")),
        2 => ("k[0-2]", "k[3-4]").prop_map(|(k, l)| format!("COPY {k} {l}")),
        1 => key().prop_map(|k| format!("EXISTS {k}")),
    ];
    prop_oneof![
        60 => line.prop_map(Step::Run),
        10 => (0..20u64).prop_map(Step::Pass),
        1 => Just(Step::Run("FLUSHDB".into())),
    ]
}

proptest! {
    #[test]
    fn random_commands_do_what_a_map_with_deadlines_does(
        steps in prop::collection::vec(step(), 1..120),
        active in any::<bool>(),
    ) {
        let mut lab = Lab::new();
        lab.store.keyspace.expiry.active = active;
        let mut model = Model { now_ms: lab.host.now.unix_ms(), ..Model::default() };
        for step in &steps {
            match step {
                Step::Run(line) => {
                    let expected = model.run(line);
                    prop_assert_eq!(lab.run(line), expected, "after {}", line);
                }
                Step::Pass(ms) => {
                    lab.advance_ms(*ms);
                    model.now_ms += ms;
                }
            }
        }
        check_books(&mut lab, &mut model);
    }
}

fn check_books(lab: &mut Lab, model: &mut Model) {
    for number in 0..5 {
        for line in [format!("GET k{number}"), format!("PTTL k{number}")] {
            assert_eq!(lab.run(&line), model.run(&line), "after {line}");
        }
    }
    assert_eq!(lab.store.keyspace.len(0), model.keys.len());
    let with_deadline = model
        .keys
        .values()
        .filter(|(_, deadline)| deadline.is_some());
    let summary = lab.store.keyspace.summary(0, model.now_ms);
    assert_eq!(summary.with_deadline, with_deadline.count());
    lab.run("DEL k0 k1 k2 k3 k4");
    let (table, deadlines) = lab.store.keyspace.overhead_bytes(0);
    assert_eq!(lab.store.keyspace.memory_bytes(), table + deadlines);
    assert_eq!(deadlines, 0);
}
