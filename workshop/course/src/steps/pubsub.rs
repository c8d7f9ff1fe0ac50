//! Step 6: Pub/Sub.

use std::time::Duration;

use super::Test;
use crate::bytes::{bulk, command};

/// An array of bulk strings; a reply about subscriptions ends with an integer.
fn event(parts: &[&[u8]], count: Option<u8>) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", parts.len() + usize::from(count.is_some())).into_bytes();
    for part in parts {
        bytes.extend(bulk(part));
    }
    if let Some(count) = count {
        bytes.extend(format!(":{count}\r\n").into_bytes());
    }
    bytes
}

pub(super) const TESTS: &[Test] = &[
    Test {
        step: 6,
        name: "still_works",
        topic: "session",
        course_only: false,
        title: ("commands still work, in order", "これまでのコマンドが順番どおりに動く"),
        nudge: (
            "Every reply goes through the session's message queue; one part of handle writes what the queue gives.",
            "応答はすべてセッションのメッセージキューを通ります。handle の片方の処理がキューの中身を書き込みます。",
        ),
        run: |context| {
            let (key, mut client) = (context.key("a"), context.client()?);
            client.send(&[command(&[b"SET", &key, b"1"]), command(&[b"INCR", &key]), command(&[b"PING"])].concat());
            client.expect(b"+OK\r\n:2\r\n+PONG\r\n")
        },
    },
    Test {
        step: 6,
        name: "publish",
        topic: "publish",
        course_only: false,
        title: ("a message reaches two subscribers", "メッセージが 2 つの購読者に届く"),
        nudge: (
            "subscribe puts the session's queue into the channel's table; publish delivers [\"message\", channel, message].",
            "subscribe はセッションのキューをチャンネルの表に入れ、publish は [\"message\", channel, message] を届けます。",
        ),
        run: |context| {
            let channel = context.key("news");
            let (mut one, mut two, mut publisher) = (context.client()?, context.client()?, context.client()?);
            publisher.call(&[b"PUBLISH", &channel, b"early"], b":0\r\n")?;
            for client in [&mut one, &mut two] {
                client.call(&[b"SUBSCRIBE", &channel], &event(&[b"subscribe", &channel], Some(1)))?;
            }
            publisher.call(&[b"PUBLISH", &channel, b"hello"], b":2\r\n")?;
            for client in [&mut one, &mut two] {
                client.expect(&event(&[b"message", &channel, b"hello"], None))?;
            }
            Ok(())
        },
    },
    Test {
        step: 6,
        name: "several_channels",
        topic: "session",
        course_only: false,
        title: ("SUBSCRIBE to two channels has two replies", "2 つのチャンネルの SUBSCRIBE には 2 つ応答する"),
        nudge: (
            "execute_in_session returns one reply per channel, and each counts the subscriptions so far.",
            "execute_in_session はチャンネルごとに 1 つの応答を返し、それぞれがその時点の購読数を示します。",
        ),
        run: |context| {
            let (a, b, mut client) = (context.key("a"), context.key("b"), context.client()?);
            client.call(
                &[b"SUBSCRIBE", &a, &b],
                &[event(&[b"subscribe", &a], Some(1)), event(&[b"subscribe", &b], Some(2))].concat(),
            )?;
            client.call(&[b"UNSUBSCRIBE", &a], &event(&[b"unsubscribe", &a], Some(1)))?;
            context.client()?.call_line(&[b"SUBSCRIBE"], b"-ERR wrong number of arguments").map(|_| ())
        },
    },
    Test {
        step: 6,
        name: "patterns",
        topic: "publish",
        course_only: false,
        title: ("PSUBSCRIBE hears every channel that matches", "PSUBSCRIBE は一致するすべてのチャンネルを受信する"),
        nudge: (
            "For every pattern with glob::matches(pattern, channel): deliver [\"pmessage\", pattern, channel, message].",
            "glob::matches(pattern, channel) が真のパターンごとに [\"pmessage\", pattern, channel, message] を届けます。",
        ),
        run: |context| {
            let (pattern, hit, miss) = (context.key("news.*"), context.key("news.tech"), context.key("new"));
            let (mut client, mut publisher) = (context.client()?, context.client()?);
            client.call(&[b"PSUBSCRIBE", &pattern], &event(&[b"psubscribe", &pattern], Some(1)))?;
            publisher.call(&[b"PUBLISH", &miss, b"no"], b":0\r\n")?;
            publisher.call(&[b"PUBLISH", &hit, b"yes"], b":1\r\n")?;
            client.expect(&event(&[b"pmessage", &pattern, &hit, b"yes"], None))
        },
    },
    Test {
        step: 6,
        name: "mode",
        topic: "session",
        course_only: false,
        title: ("a subscribed connection takes only some commands", "購読中の接続は一部のコマンドだけを受け付ける"),
        nudge: (
            "While session.is_subscribed(): PING answers pubsub_pong, other commands are CommandError::PubSubMode.",
            "session.is_subscribed() のあいだ、PING は pubsub_pong、ほかのコマンドは CommandError::PubSubMode です。",
        ),
        run: |context| {
            let (channel, mut client) = (context.key("a"), context.client()?);
            client.call(&[b"SUBSCRIBE", &channel], &event(&[b"subscribe", &channel], Some(1)))?;
            client.call_line(&[b"GET", b"k"], b"-ERR Can't execute")?;
            client.call(&[b"PING"], &event(&[b"pong", b""], None))?;
            client.call(&[b"UNSUBSCRIBE", &channel], &event(&[b"unsubscribe", &channel], Some(0)))?;
            client.call(&[b"PING"], b"+PONG\r\n")
        },
    },
    Test {
        step: 6,
        name: "leaving",
        topic: "session",
        course_only: false,
        title: ("a client that left is not counted any more", "切断したクライアントは購読者に数えない"),
        nudge: (
            "After handle_commands ends, call self.commands.forget(&mut session).",
            "handle_commands が終わったら self.commands.forget(&mut session) を呼びます。",
        ),
        run: |context| {
            let channel = context.key("a");
            let (mut client, mut publisher) = (context.client()?, context.client()?);
            client.call(&[b"SUBSCRIBE", &channel], &event(&[b"subscribe", &channel], Some(1)))?;
            drop(client);
            publisher.call_until(&[b"PUBLISH", &channel, b"x"], b":0\r\n", Duration::from_secs(4))
        },
    },
    Test {
        step: 6,
        name: "quit",
        topic: "session",
        course_only: false,
        title: ("QUIT answers OK and closes", "QUIT は OK と応答して接続を閉じる"),
        nudge: (
            "QUIT is executed in both modes. The connection ends when the session, and with it the queue, is dropped.",
            "QUIT は両方のモードで実行します。セッションとキューが破棄されると、接続は終わります。",
        ),
        run: |context| {
            let mut client = context.client()?;
            client.call(&[b"QUIT"], b"+OK\r\n")?;
            client.expect_closed()
        },
    },
];
