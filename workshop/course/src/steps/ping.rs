//! Step 1: a TCP server that answers PING.

use super::{Context, Test};
use crate::wire::Failure;

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
const PONG: &[u8] = b"+PONG\r\n";

pub(super) const TESTS: &[Test] = &[
    Test {
        step: 1,
        name: "ping",
        topic: "accept",
        course_only: false,
        title: ("PING is answered with PONG", "PING に PONG と応答する"),
        nudge: (
            "Does accept_clients accept a connection and spawn a task, and does handle write +PONG\\r\\n?",
            "accept_clients は接続を受け入れてタスクを起動していますか。handle は +PONG\\r\\n を書き込んでいますか。",
        ),
        run: |context| {
            let mut client = context.client()?;
            client.send(PING);
            client.expect(PONG)
        },
    },
    Test {
        step: 1,
        name: "ping_again",
        topic: "pong",
        course_only: false,
        title: ("the connection stays open for a second PING", "接続を保ち、2 回目の PING にも応答する"),
        nudge: (
            "handle has to read and answer in a loop until read gives 0.",
            "handle は、read が 0 を返すまで、読み込みと応答をループで繰り返す必要があります。",
        ),
        run: |context| {
            let mut client = context.client()?;
            for _ in 0..3 {
                client.send(PING);
                client.expect(PONG)?;
            }
            Ok(())
        },
    },
    Test {
        step: 1,
        name: "two_clients",
        topic: "accept",
        course_only: false,
        title: ("a second client does not wait for the first", "2 つ目のクライアントが 1 つ目を待たされない"),
        nudge: (
            "Serve each client in a task of its own (connections.spawn), and do not await the task in the accept loop.",
            "クライアントごとにタスクを起動し（connections.spawn）、accept のループの中でタスクの終了を待たないでください。",
        ),
        run: |context| {
            let mut first = context.client()?;
            let mut second = context.client()?;
            second.send(PING);
            second.expect(PONG)?;
            first.send(PING);
            first.expect(PONG)
        },
    },
    Test {
        step: 1,
        name: "client_leaves",
        topic: "pong",
        course_only: false,
        title: ("the server survives a client that leaves", "クライアントが切断してもサーバは動き続ける"),
        nudge: (
            "When read gives 0 bytes the client is gone: return Ok(()) from handle.",
            "read が 0 バイトを返したらクライアントは切断しています。handle から Ok(()) を返してください。",
        ),
        run: |context| {
            drop(context.client()?);
            let mut client = context.client()?;
            client.send(PING);
            client.expect(PONG)
        },
    },
    Test {
        step: 1,
        name: "ten_clients",
        topic: "accept",
        course_only: false,
        title: ("ten clients at once", "10 クライアントの同時接続"),
        nudge: ("Every connection needs its own task.", "接続ごとに専用のタスクが必要です。"),
        run: |context| many_clients(context, 10),
    },
];

/// All connect, then all ask, then all read.
pub(super) fn many_clients(context: &mut Context, count: usize) -> Result<(), Failure> {
    let clients: Result<Vec<_>, Failure> = (0..count).map(|_| context.client()).collect();
    let mut clients = clients?;
    for client in clients.iter_mut().rev() {
        client.send(PING);
    }
    clients.iter_mut().try_for_each(|client| client.expect(PONG))
}
