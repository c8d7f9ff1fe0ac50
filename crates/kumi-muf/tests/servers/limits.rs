//! Values over a unit's limit: a large value where a unit reads does not stall it.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use kumi_muf::{Error, KeepEvent, Traffic};

use crate::support::{Place, Server, echo, wait_until};

/// What units of these tests read, and what is written for them.
const LIMIT_BYTES: usize = 4 * 1024;
const LARGE_BYTES: usize = 32 * 1024 * 1024;

/// Sets a key to a large value, as anybody with redis-cli can.
fn set_large(server: &Server, key: &str) {
    let mut cli = server.everywhere().remove(0);
    cli.args(["-x", "SET", key]).stdin(Stdio::piped());
    let mut child = cli.stdout(Stdio::null()).spawn().expect("redis-cli");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(&vec![b'x'; LARGE_BYTES]).expect("it reads");
    drop(input);
    assert!(child.wait().expect("an end").success());
}

/// Bytes that the server has sent to anybody so far.
fn sent_bytes(server: &Server) -> usize {
    let stats = server.cli(&["INFO", "stats"]);
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix("total_net_output_bytes:"));
    line.expect("a counter").trim().parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_over_the_limit_is_answered_with_err_and_not_read() {
    for server in Server::each() {
        let mut backends = Vec::new();
        for name in ["b1", "b2", "b3"] {
            let unit = server.builder(name).payload_limit(LIMIT_BYTES);
            let unit = unit.connect().await.expect("a unit");
            unit.serve("*", echo).await.expect("a service");
            backends.push(unit);
        }
        let before = sent_bytes(&server);
        for id in ["a.b~1", "bare", "a.b~all~2"] {
            set_large(&server, &format!("MUF/me/REQ/{id}"));
            let err = match id {
                "a.b~all~2" => "MUF/me/ERR/a.b~all~2.b2".to_owned(),
                id => format!("MUF/me/ERR/{id}"),
            };
            wait_until("an answer", || server.cli(&["EXISTS", &err]) == "1");
            let text = server.cli(&["GET", &err]);
            assert!(text.contains("over the limit of 4096 bytes"), "{text}");
        }
        let sent = sent_bytes(&server) - before;
        assert!(sent < LARGE_BYTES / 4, "{sent} bytes were read");
        // The service goes on.
        let web = server.unit("web").await;
        let answer = web.request("a.b", "x").await.expect("an answer");
        assert_eq!(answer.text().expect("text"), "x");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_over_the_limit_is_an_error() {
    for server in Server::each() {
        let backend = server.unit("back").await;
        let large = |_| async { Ok::<_, Error>("x".repeat(LIMIT_BYTES + 1)) };
        backend.serve("a.b", large).await.expect("a service");
        let web = server.builder("web").payload_limit(LIMIT_BYTES);
        let web = web.connect().await.expect("a unit");
        let answer = web.request("a.b", ()).await;
        let is_it = |error: &Error| {
            matches!(
                error,
                Error::TooLargeToRead {
                    limit_bytes: LIMIT_BYTES
                }
            )
        };
        assert!(is_it(&answer.expect_err("it is too large")));
        let gathered = web.gather("a.b", ()).count(1).await.expect("an answer");
        let text = gathered[0].result.as_ref().expect_err("it is too large");
        assert!(String::from_utf8_lossy(text).contains("over the limit"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kept_values_and_taps_show_that_something_is_too_large() {
    for server in Server::each() {
        let web = server.builder("web").payload_limit(LIMIT_BYTES);
        let web = web.connect().await.expect("a unit");
        set_large(&server, "MUF/x/KEEP/large");
        let read = web.read_keep("x", "large").await;
        assert!(matches!(read, Err(Error::TooLargeToRead { .. })));
        let mut watch = web.watch_keep("x/*").await.expect("a watch");
        let event = watch.next().await.expect("an event");
        assert!(matches!(event, KeepEvent::TooLarge { .. }), "{event:?}");
        let mut tap = web.tap().await.expect("a tap");
        set_large(&server, "MUF/x/REQ/a.b~1");
        let seen = tokio::time::timeout(Duration::from_secs(30), tap.next()).await;
        let Traffic::Key(seen) = seen.expect("in time").expect("open").expect("read") else {
            panic!("a gap");
        };
        assert!(seen.is_cut);
        assert_eq!(seen.value.map(|value| value.len()), Some(LIMIT_BYTES));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_answers_of_nothing_are_whole() {
    for server in Server::each() {
        let backend = server.unit("back").await;
        backend.serve("*", echo).await.expect("a service");
        let web = server.unit("web").await;
        let answer = web.request("a.b", ()).await.expect("an answer");
        assert!(answer.bytes().is_empty());
        let failing = |_| async { Err::<(), _>("") };
        backend.serve("a.c", failing).await.expect("a service");
        let failed = web.request("a.c", ()).await.expect_err("ERR");
        assert!(matches!(failed, Error::Remote(text) if text.is_empty()));
        web.keep("nothing", "").await.expect("kept");
        let kept = web.read_keep("web", "nothing").await.expect("an answer");
        assert!(kept.expect("it is there").bytes().is_empty());
        assert!(web.read_keep("web", "other").await.expect("none").is_none());
        assert!(web.end_keep("nothing").await.expect("an answer"));
        wait_until("it is gone", || {
            server.cli(&["EXISTS", "MUF/web/KEEP/nothing"]) == "0"
        });
        assert!(!web.end_keep("nothing").await.expect("an answer"));
    }
}
