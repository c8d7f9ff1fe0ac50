//! Step 7: the session by hand of kumi's docs/muf-protocol.md, in bytes, with a subscriber that sees each step.

use std::time::Duration;

use super::Test;
use super::expiry::ttl_about;
use crate::bytes::{bulk, command};
use crate::wire::{Client, Failure};

const PATTERN: &[u8] = b"__keyspace@0__:MUF/*";

fn pushed(client: &mut Client, key: &[u8], event: &[u8]) -> Result<(), Failure> {
    let channel = [b"__keyspace@0__:", key].concat();
    let parts = [bulk(b"pmessage"), bulk(PATTERN), bulk(&channel), bulk(event)];
    client.expect(&[b"*4\r\n".to_vec(), parts.concat()].concat())
}

fn subscribe(client: &mut Client) -> Result<(), Failure> {
    let reply = [b"*3\r\n".to_vec(), bulk(b"psubscribe"), bulk(PATTERN), b":1\r\n".to_vec()].concat();
    client.call(&[b"PSUBSCRIBE", PATTERN], &reply)
}

pub(super) const TESTS: &[Test] = &[
    Test {
        step: 7,
        name: "silent",
        topic: "notify",
        course_only: false,
        title: ("without CONFIG SET there are no notifications", "CONFIG SET をしなければ通知はない"),
        nudge: (
            "notify does nothing unless the flags contain K and the class.",
            "フラグに K と class が含まれていなければ、notify は何もしません。",
        ),
        run: |context| {
            let (mut watcher, mut client) = (context.client()?, context.client()?);
            client.call(&[b"CONFIG", b"SET", b"notify-keyspace-events", b""], b"+OK\r\n")?;
            subscribe(&mut watcher)?;
            client.call(&[b"SET", b"MUF/quiet/REQ/a", b"x"], b"+OK\r\n")?;
            watcher.send(&command(&[b"PING"]));
            watcher.expect(b"*2\r\n$4\r\npong\r\n$0\r\n\r\n")
        },
    },
    Test {
        step: 7,
        name: "call",
        topic: "notify",
        course_only: false,
        title: ("a MUF request is asked and answered", "MUF のリクエストと応答をやり取りする"),
        nudge: (
            "SET and SET with EX both call self.pubsub.notify('$', \"set\", key) after the value is stored.",
            "SET も EX 付きの SET も、値を保存したあとに self.pubsub.notify('$', \"set\", key) を呼びます。",
        ),
        run: |context| {
            let (mut watcher, mut client) = (context.client()?, context.client()?);
            client.call(&[b"CONFIG", b"SET", b"notify-keyspace-events", b"K$x"], b"+OK\r\n")?;
            subscribe(&mut watcher)?;
            client.call(&[b"SET", b"MUF/me/REQ/hello", b"some text", b"EX", b"10"], b"+OK\r\n")?;
            pushed(&mut watcher, b"MUF/me/REQ/hello", b"set")?;
            client.call(&[b"GET", b"MUF/me/REQ/hello"], b"$9\r\nsome text\r\n")?;
            client.call(&[b"SET", b"MUF/me/RES/hello", b"an answer", b"EX", b"30"], b"+OK\r\n")?;
            pushed(&mut watcher, b"MUF/me/RES/hello", b"set")?;
            client.call(&[b"GET", b"MUF/me/RES/hello"], b"$9\r\nan answer\r\n")?;
            ttl_about(&mut client, b"MUF/me/RES/hello", 30)
        },
    },
    Test {
        step: 7,
        name: "ends",
        topic: "expired",
        course_only: false,
        title: ("the end of a request is announced", "リクエストの期限切れが通知される"),
        nudge: (
            "check_and_remove_expired calls self.pubsub.notify('x', \"expired\", key) when it deleted the key.",
            "check_and_remove_expired は、キーを削除したら self.pubsub.notify('x', \"expired\", key) を呼びます。",
        ),
        run: |context| {
            let (mut watcher, mut client) = (context.client()?, context.client()?);
            client.call(&[b"CONFIG", b"SET", b"notify-keyspace-events", b"K$x"], b"+OK\r\n")?;
            subscribe(&mut watcher)?;
            client.call(&[b"SET", b"MUF/me/REQ/short", b"gone soon", b"EX", b"1"], b"+OK\r\n")?;
            pushed(&mut watcher, b"MUF/me/REQ/short", b"set")?;
            client.call_until(&[b"GET", b"MUF/me/REQ/short"], b"$-1\r\n", Duration::from_secs(8))?;
            pushed(&mut watcher, b"MUF/me/REQ/short", b"expired")
        },
    },
    Test {
        step: 7,
        name: "ex_must_be_positive",
        topic: "setex",
        course_only: false,
        title: ("EX with 0 is an error and stores nothing", "EX 0 はエラーになり、何も保存しない"),
        nudge: ("Check the seconds before you store the value.", "値を保存する前に秒数を確認してください。"),
        run: |context| {
            let (key, mut client) = (context.key("a"), context.client()?);
            client.call_line(&[b"SET", &key, b"v", b"EX", b"0"], b"-ERR")?;
            client.call(&[b"GET", &key], b"$-1\r\n")
        },
    },
];
