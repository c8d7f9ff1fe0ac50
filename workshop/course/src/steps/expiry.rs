//! Step 4: EXPIRE and TTL, checked when a key is used. Step 5: unused keys are deleted too.

use std::time::{Duration, Instant};

use super::Test;
use crate::bytes::command;
use crate::wire::{Client, Ending, Expected, Failure};

/// How long a key of one second may take to leave. The servers under test are seldom late by more than a moment.
const SOON: Duration = Duration::from_secs(8);

/// Expects a TTL of `seconds`, or a little less if the computer was busy.
pub(super) fn ttl_about(client: &mut Client, key: &[u8], seconds: i64) -> Result<(), Failure> {
    let reply = client.call_line(&[b"TTL", key], b":")?;
    let left: Option<i64> = String::from_utf8_lossy(&reply[1..]).parse().ok();
    match left {
        Some(left) if (seconds - 8..=seconds).contains(&left) => Ok(()),
        _ => {
            let expected = Expected::Bytes(format!(":{seconds}\r\n").into_bytes());
            Err(client.failure(expected, [&reply[..], b"\r\n"].concat(), Ending::Different))
        }
    }
}

pub(super) const PASSIVE: &[Test] = &[
    Test {
        step: 4,
        name: "ttl_without",
        topic: "commands",
        course_only: false,
        title: ("TTL is -2 without a key and -1 without a deadline", "TTL はキーがなければ -2、有効期限がなければ -1"),
        nudge: (
            "First store.exists(key), then store.expiry(key).",
            "先に store.exists(key)、次に store.expiry(key) を調べます。",
        ),
        run: |context| {
            let (key, mut client) = (context.key("a"), context.client()?);
            client.call(&[b"TTL", &key], b":-2\r\n")?;
            client.call(&[b"SET", &key, b"v"], b"+OK\r\n")?;
            client.call(&[b"TTL", &key], b":-1\r\n")
        },
    },
    Test {
        step: 4,
        name: "expire",
        topic: "commands",
        course_only: false,
        title: ("EXPIRE answers 1, or 0 without a key", "EXPIRE は 1 を返す（キーがなければ 0）"),
        nudge: (
            "store.set_expiry returns whether the key is there; i64::from(bool) makes 1 or 0 of it.",
            "store.set_expiry はキーの有無を返します。i64::from(bool) で 1 か 0 になります。",
        ),
        run: |context| {
            let (key, mut client) = (context.key("a"), context.client()?);
            client.call(&[b"EXPIRE", &key, b"100"], b":0\r\n")?;
            client.call(&[b"SET", &key, b"v"], b"+OK\r\n")?;
            client.call(&[b"EXPIRE", &key, b"100"], b":1\r\n")?;
            client.call(&[b"GET", &key], b"$1\r\nv\r\n")
        },
    },
    Test {
        step: 4,
        name: "ttl_rounds_up",
        topic: "commands",
        course_only: false,
        title: ("TTL right after EXPIRE 100 is 100", "EXPIRE 100 の直後の TTL は 100"),
        nudge: (
            "Round the seconds up (div_ceil): a moment later 99,999 ms are left, and that is still 100 s.",
            "秒数は切り上げます（div_ceil）。直後の残りは 99,999 ミリ秒ほどですが、これは 100 秒と答えます。",
        ),
        run: |context| {
            let (key, mut client) = (context.key("a"), context.client()?);
            loop {
                client.call(&[b"SET", &key, b"v"], b"+OK\r\n")?;
                let asked = Instant::now();
                client.call(&[b"EXPIRE", &key, b"100"], b":1\r\n")?;
                // A few milliseconds, so that rounding down cannot pass by luck.
                std::thread::sleep(Duration::from_millis(5));
                let result = client.call(&[b"TTL", &key], b":100\r\n");
                // On a computer so busy that a second went by, 99 is right: ask again.
                if result.is_ok() || asked.elapsed() < Duration::from_secs(1) {
                    return result;
                }
            }
        },
    },
    Test {
        step: 4,
        name: "expires",
        topic: "passive",
        course_only: false,
        title: ("a key is gone after its second", "1 秒の有効期限が来たキーは消える"),
        nudge: (
            "GET has to call self.expiry.check_and_remove_expired(&mut store, key) before it looks the key up.",
            "GET は、キーを探す前に self.expiry.check_and_remove_expired(&mut store, key) を呼ぶ必要があります。",
        ),
        run: |context| {
            let (key, mut client) = (context.key("a"), context.client()?);
            client.call(&[b"SET", &key, b"v"], b"+OK\r\n")?;
            client.call(&[b"EXPIRE", &key, b"1"], b":1\r\n")?;
            client.call_until(&[b"GET", &key], b"$-1\r\n", SOON)?;
            client.call(&[b"TTL", &key], b":-2\r\n")?;
            client.call(&[b"EXPIRE", &key, b"100"], b":0\r\n")
        },
    },
    Test {
        step: 4,
        name: "incr_expired",
        topic: "passive",
        course_only: false,
        title: ("INCR of an expired key begins at 1", "期限切れのキーの INCR は 1 から始まる"),
        nudge: (
            "INCR, EXPIRE and TTL need the passive check too.",
            "INCR、EXPIRE、TTL にも Passive expiry のチェックが必要です。",
        ),
        run: |context| {
            let (key, mut client) = (context.key("a"), context.client()?);
            client.call(&[b"SET", &key, b"41"], b"+OK\r\n")?;
            client.call(&[b"EXPIRE", &key, b"1"], b":1\r\n")?;
            client.call_until(&[b"TTL", &key], b":-2\r\n", SOON)?;
            client.call(&[b"INCR", &key], b":1\r\n")?;
            client.call(&[b"TTL", &key], b":-1\r\n")
        },
    },
    Test {
        step: 4,
        name: "incr_keeps_ttl",
        topic: "passive",
        course_only: false,
        title: ("INCR keeps the deadline", "INCR は有効期限を保つ"),
        nudge: (
            "INCR stores with store.update, which leaves expiry_at alone.",
            "INCR は、expiry_at を変更しない store.update で保存します。",
        ),
        run: |context| {
            let (key, mut client) = (context.key("a"), context.client()?);
            client.call(&[b"INCR", &key], b":1\r\n")?;
            client.call(&[b"EXPIRE", &key, b"100"], b":1\r\n")?;
            client.call(&[b"INCR", &key], b":2\r\n")?;
            ttl_about(&mut client, &key, 100)
        },
    },
    Test {
        step: 4,
        name: "set_clears_ttl",
        topic: "passive",
        course_only: false,
        title: ("SET takes the deadline away", "SET は有効期限をクリアする"),
        nudge: (
            "DataStore::set inserts a new entry with expiry_at: None.",
            "DataStore::set は expiry_at: None の新しいエントリを insert します。",
        ),
        run: |context| {
            let (key, mut client) = (context.key("a"), context.client()?);
            client.call(&[b"SET", &key, b"v"], b"+OK\r\n")?;
            client.call(&[b"EXPIRE", &key, b"100"], b":1\r\n")?;
            client.call(&[b"SET", &key, b"w"], b"+OK\r\n")?;
            client.call(&[b"TTL", &key], b":-1\r\n")
        },
    },
    Test {
        step: 4,
        name: "expire_now",
        topic: "commands",
        course_only: false,
        title: ("EXPIRE with 0 or less deletes", "0 以下の EXPIRE はキーを削除する"),
        nudge: (
            "If seconds <= 0, answer whether store.delete(key) found the key.",
            "seconds <= 0 なら store.delete(key) を呼び、キーがあったかどうかを返します。",
        ),
        run: |context| {
            let (key, mut client) = (context.key("a"), context.client()?);
            for seconds in [&b"0"[..], b"-5"] {
                client.call(&[b"SET", &key, b"v"], b"+OK\r\n")?;
                client.call(&[b"EXPIRE", &key, seconds], b":1\r\n")?;
                client.call(&[b"GET", &key], b"$-1\r\n")?;
                client.call(&[b"EXPIRE", &key, seconds], b":0\r\n")?;
            }
            client.call_line(&[b"EXPIRE", &key, b"soon"], b"-ERR value is not an integer or out of range").map(|_| ())
        },
    },
];

pub(super) const ACTIVE: &[Test] = &[
    Test {
        step: 5,
        name: "unread_keys",
        topic: "cycle",
        course_only: false,
        title: ("400 expired keys leave without being read", "400 個の期限切れキーが、読まれなくても消える"),
        nudge: (
            "active_expiry_cycle samples 20 keys and returns true while more than 25% of them were expired (deleted * 4 > sampled).",
            "active_expiry_cycle は 20 個のキーを調べ、25% を超えて期限切れだったあいだ true を返します（deleted * 4 > sampled）。",
        ),
        run: |context| {
            let mut client = context.client()?;
            let size = client.call_line(&[b"DBSIZE"], b":")?;
            let pair = |index: u32| {
                let key = context.key(&index.to_string());
                [command(&[b"SET", &key, b"v"]), command(&[b"EXPIRE", &key, b"1"])].concat()
            };
            client.send(&(0..400).flat_map(pair).collect::<Vec<u8>>());
            client.expect(&b"+OK\r\n:1\r\n".repeat(400))?;
            client.call_until(&[b"DBSIZE"], &[&size[..], b"\r\n"].concat(), SOON)
        },
    },
    Test {
        step: 5,
        name: "live_keys_stay",
        topic: "cycle",
        course_only: false,
        title: ("keys that have time left stay", "有効期限が残っているキーは消えない"),
        nudge: (
            "Delete through check_and_remove_expired: it leaves keys alone whose time has not come.",
            "削除は check_and_remove_expired で行います。期限の来ていないキーは削除されません。",
        ),
        run: |context| {
            let (mut client, kept, slow) = (context.client()?, context.key("kept"), context.key("slow"));
            client.call(&[b"SET", &kept, b"v"], b"+OK\r\n")?;
            client.call(&[b"SET", &slow, b"v"], b"+OK\r\n")?;
            client.call(&[b"EXPIRE", &slow, b"100"], b":1\r\n")?;
            let size = client.call_line(&[b"DBSIZE"], b":")?;
            let gone = context.key("gone");
            client.call(&[b"SET", &gone, b"v"], b"+OK\r\n")?;
            client.call(&[b"EXPIRE", &gone, b"1"], b":1\r\n")?;
            client.call_until(&[b"DBSIZE"], &[&size[..], b"\r\n"].concat(), SOON)?;
            client.call(&[b"GET", &kept], b"$1\r\nv\r\n")?;
            client.call(&[b"GET", &slow], b"$1\r\nv\r\n")
        },
    },
    Test {
        step: 5,
        name: "counted",
        topic: "cycle",
        course_only: true,
        title: ("INFO counts the keys that active expiry deleted", "INFO が Active expiry の削除数を示す"),
        nudge: (
            "Add the number to self.stats.actively_expired with fetch_add.",
            "削除した個数を fetch_add で self.stats.actively_expired に加えてください。",
        ),
        run: |context| {
            let mut client = context.client()?;
            client.send(&command(&[b"INFO"]));
            let (report, ending) = client.read_reply();
            let counted = report.windows(20).position(|window| window == b"active_expired_keys:");
            let digit = counted.and_then(|start| report.get(start + 20).copied());
            match digit {
                Some(b'1'..=b'9') => Ok(()),
                _ => Err(client.failure(
                    Expected::Bytes(b"... active_expired_keys:(more than 0)".to_vec()),
                    report,
                    ending,
                )),
            }
        },
    },
];
