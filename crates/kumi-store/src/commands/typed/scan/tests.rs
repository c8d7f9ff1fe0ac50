//! What SCAN, KEYS and RANDOMKEY answer, and the guarantee of SCAN while the table changes under it.

use super::list_keys;
use crate::engine::output::Outputs;
use crate::engine::reply::Reply;
use crate::testing::Lab;
use kumi_resp::Protocol;
use std::collections::BTreeSet;

#[test]
fn scan_reads_its_options() {
    Lab::new().check(&[
        ("SET a 1", "+OK\r\n"),
        ("SCAN 0", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n"),
        (
            "SCAN 0 MATCH a* COUNT 100",
            "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n",
        ),
        ("SCAN 0 MATCH b*", "*2\r\n$1\r\n0\r\n*0\r\n"),
        (
            "SCAN 0 MATCH * TYPE string",
            "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n",
        ),
        ("SCAN 0 TYPE STRING", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n"),
        ("SCAN 0 TYPE list", "*2\r\n$1\r\n0\r\n*0\r\n"),
        ("SCAN 0 TYPE nonsense", "*2\r\n$1\r\n0\r\n*0\r\n"),
        ("SCAN 0 count 1000", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n"),
        ("SCAN +0", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n"),
        ("SCAN x", "-ERR invalid cursor\r\n"),
        ("SCAN 1x", "-ERR invalid cursor\r\n"),
        ("SCAN 99999999999999999999", "-ERR invalid cursor\r\n"),
        ("SCAN 0 COUNT", "-ERR syntax error\r\n"),
        ("SCAN 0 COUNT 0", "-ERR syntax error\r\n"),
        ("SCAN 0 COUNT -1", "-ERR syntax error\r\n"),
        (
            "SCAN 0 COUNT x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "SCAN 0 COUNT 99999999999999999999",
            "-ERR value is not an integer or out of range\r\n",
        ),
        ("SCAN 0 MATCH", "-ERR syntax error\r\n"),
        ("SCAN 0 NOPE a", "-ERR syntax error\r\n"),
        (
            "SCAN",
            "-ERR wrong number of arguments for 'scan' command\r\n",
        ),
    ]);
}

#[test]
fn keys_lists_what_matches() {
    Lab::new().check(&[
        ("KEYS *", "*0\r\n"),
        ("SET hello 1", "+OK\r\n"),
        ("KEYS *", "*1\r\n$5\r\nhello\r\n"),
        ("KEYS h?llo", "*1\r\n$5\r\nhello\r\n"),
        ("KEYS h[ae]llo", "*1\r\n$5\r\nhello\r\n"),
        ("KEYS h[^e]llo", "*0\r\n"),
        ("KEYS hell", "*0\r\n"),
        ("KEYS HELLO", "*0\r\n"),
        (
            "KEYS",
            "-ERR wrong number of arguments for 'keys' command\r\n",
        ),
        ("RANDOMKEY", "$5\r\nhello\r\n"),
        (
            "RANDOMKEY a",
            "-ERR wrong number of arguments for 'randomkey' command\r\n",
        ),
        ("DEL hello", ":1\r\n"),
        ("RANDOMKEY", "$-1\r\n"),
    ]);
}

/// Sends SCAN and takes the answer apart: the next cursor and the keys.
fn scan(lab: &mut Lab, line: &str) -> (String, Vec<String>) {
    let reply = lab.run(line);
    let lines: Vec<&str> = reply.split_terminator("\r\n").collect();
    let keys = lines[4..].iter().skip(1).step_by(2);
    (lines[2].into(), keys.map(ToString::to_string).collect())
}

/// Keys that stay from the first call to the last, while `change` does what it likes to others.
fn check_guarantee(stay: usize, mut change: impl FnMut(&mut Lab, usize)) {
    let mut lab = Lab::new();
    for number in 0..stay {
        lab.run(&format!("SET stay:{number} v"));
    }
    change(&mut lab, 0);
    let mut seen = BTreeSet::new();
    let (mut cursor, mut calls) = ("0".to_string(), 0);
    loop {
        calls += 1;
        let (next, keys) = scan(&mut lab, &format!("SCAN {cursor} COUNT 10"));
        seen.extend(keys.into_iter().filter(|key| key.starts_with("stay:")));
        if next == "0" {
            break;
        }
        cursor = next;
        change(&mut lab, calls);
    }
    assert_eq!(seen.len(), stay, "after {calls} calls");
}

#[test]
fn scan_meets_every_key_while_the_table_grows() {
    // A table that grew faster than it is scanned would never be done, so this stops at some time.
    check_guarantee(1000, |lab, call| {
        if call <= 100 {
            for number in 0..200 {
                lab.run(&format!("SET more:{call}:{number} v"));
            }
        }
    });
}

#[test]
fn scan_meets_every_key_while_the_table_shrinks() {
    check_guarantee(300, |lab, call| {
        if call == 0 {
            for number in 0..30_000 {
                lab.run(&format!("SET less:{number} v"));
            }
        }
        for number in call * 50..(call + 1) * 50 {
            lab.run(&format!("DEL less:{number}"));
        }
    });
}

#[test]
fn scan_meets_every_key_through_growth_and_shrinkage() {
    for seed in 0..8 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut others = Vec::new();
        check_guarantee(500, |lab, _| {
            let growing = rng.bool();
            for _ in 0..rng.usize(..200) {
                if growing {
                    let key = format!("other:{}", rng.u64(..));
                    lab.run(&format!("SET {key} v"));
                    others.push(key);
                } else if let Some(key) = others.pop() {
                    lab.run(&format!("DEL {key}"));
                }
            }
        });
    }
}

#[test]
fn scan_of_ten_gives_about_ten() {
    const KEYS: usize = 20_000;
    let mut lab = Lab::new();
    for number in 0..KEYS {
        lab.run(&format!("SET k{number} v"));
    }
    let (mut cursor, mut sizes) = ("0".to_string(), Vec::new());
    loop {
        let (next, keys) = scan(&mut lab, &format!("SCAN {cursor}"));
        sizes.push(keys.len());
        if next == "0" {
            break;
        }
        cursor = next;
    }
    let total: usize = sizes.iter().sum();
    assert_eq!(total, KEYS, "a table at rest shows every key once");
    let largest = sizes.iter().copied().max().unwrap_or(0);
    assert!(largest <= 40, "one call gave {largest} keys");
    let average = total / sizes.len();
    assert!((10..=20).contains(&average), "{average} keys on average");
}

#[test]
fn scan_shows_all_keys_of_a_small_database_in_one_call() {
    let mut lab = Lab::new();
    lab.run("MSET a 1 b 2 c 3");
    let (next, mut keys) = scan(&mut lab, "SCAN 0");
    keys.sort();
    assert_eq!((next.as_str(), keys.join(" ").as_str()), ("0", "a b c"));
}

#[test]
fn any_number_is_a_cursor() {
    let mut lab = Lab::new();
    for number in 0..5000 {
        lab.run(&format!("SET k{number} v"));
    }
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..1000 {
        let line = format!("SCAN {} COUNT 100", rng.u64(..));
        let (_, keys) = scan(&mut lab, &line);
        assert!(keys.len() <= 150, "{line}");
    }
}

#[test]
fn randomkey_reaches_every_key() {
    let mut lab = Lab::new();
    for number in 0..50 {
        lab.run(&format!("SET k{number} v"));
    }
    let drawn: BTreeSet<String> = (0..2000).map(|_| lab.run("RANDOMKEY")).collect();
    assert_eq!(drawn.len(), 50);
}

#[test]
fn keys_are_iterated_per_database() {
    let mut lab = Lab::new();
    lab.run("SET a 1");
    lab.check(&[
        ("SELECT 1", "+OK\r\n"),
        ("KEYS *", "*0\r\n"),
        ("SCAN 0", "*2\r\n$1\r\n0\r\n*0\r\n"),
        ("RANDOMKEY", "$-1\r\n"),
    ]);
}

#[test]
fn an_expired_key_is_removed_by_a_scan_for_another_type() {
    let mut lab = Lab::new();
    lab.store.keyspace.expiry.active = false;
    lab.check(&[("SET a 1 PX 1", "+OK\r\n"), ("SET b 1 PX 1", "+OK\r\n")]);
    lab.advance_ms(2);
    lab.check(&[
        ("SCAN 0 MATCH a TYPE hash", "*2\r\n$1\r\n0\r\n*0\r\n"),
        ("DBSIZE", ":1\r\n"),
        ("SCAN 0 TYPE hash", "*2\r\n$1\r\n0\r\n*0\r\n"),
        ("DBSIZE", ":0\r\n"),
    ]);
}

/// Others wait while it runs, for a client that is closed afterwards.
#[test]
fn keys_ends_when_its_client_is_over_the_output_limit() {
    const LIMIT: usize = 100_000;
    let mut lab = Lab::new();
    for key in 0..20_000 {
        lab.run(&format!("SET key:{key:06} v"));
    }
    let now_ms = lab.host.now.unix_ms();
    let keys = lab.store.keyspace.keys(0, now_ms, true);
    let mut outputs = Outputs::new();
    let slot = outputs.begin(lab.client, LIMIT);
    let mut reply = Reply::new(&mut outputs, slot, Protocol::Resp2);
    let mut looked_at = 0;
    list_keys(&keys, &mut reply, |_| {
        looked_at += 1;
        true
    });
    // A key takes 17 bytes, and its chunk has more room than the limit leaves.
    assert!(
        (LIMIT / 17..2 * LIMIT / 17).contains(&looked_at),
        "{looked_at}"
    );
}
