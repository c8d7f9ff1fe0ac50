//! Errors told apart, and calls that share a connection of an embedded server.

use super::*;
use futures_util::future::join_all;
use kumi_redis::ServerUrl;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A link that has not connected yet, whose replies may take so long.
fn link(server: &kumi_server::Embedded, response: Option<Duration>) -> Arc<Link> {
    let url = ServerUrl::parse(server.url()).expect("a URL");
    let route = Arc::new(Route::new(url).expect("a route"));
    let mut link = Link::new(route, b"key");
    link.response = response;
    Arc::new(link)
}

fn integer(value: Value) -> i64 {
    match value {
        Value::Int(number) => number,
        other => panic!("{other:?}"),
    }
}

/// A call that waits for an element of a list, once the server has it.
async fn blocked(link: &Arc<Link>, list: &'static str, of: &Link) -> JoinHandle<bool> {
    let before = blocked_clients(of).await;
    let link = link.clone();
    let call = tokio::spawn(async move {
        let mut pop = cmd("BLPOP");
        pop.arg(list).arg(0);
        link.call(&pop, Repeat::No).await.is_ok()
    });
    let is_blocked = async { while blocked_clients(of).await == before {} };
    let is_blocked = timeout(Duration::from_secs(30), is_blocked).await;
    is_blocked.expect("the server has the call");
    call
}

async fn blocked_clients(link: &Link) -> usize {
    let mut info = cmd("INFO");
    info.arg("clients");
    let info = link.call(&info, Repeat::No).await.expect("a reply");
    let info: String = ::redis::from_redis_value(info).expect("text");
    let line = info
        .lines()
        .find(|line| line.starts_with("blocked_clients"));
    let count = line.and_then(|line| line.split(':').nth(1)?.trim().parse().ok());
    count.expect("a count")
}

async fn push(link: &Link, list: &str) {
    let mut push = cmd("RPUSH");
    push.arg(list).arg("1");
    link.call(&push, Repeat::No).await.expect("a reply");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_connect_at_the_same_time_do_not_end_each_other() {
    let server = kumi_server::embedded().expect("a server");
    for _ in 0..20 {
        let link = link(&server, Some(RESPONSE));
        let calls = (0..30).map(|_| {
            let link = link.clone();
            tokio::spawn(async move { link.call(&cmd("PING"), Repeat::No).await })
        });
        for reply in join_all(calls).await {
            reply.expect("no panic").expect("a reply");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_does_not_end_calls_on_the_next_one() {
    let server = kumi_server::embedded().expect("a server");
    let (link, other) = (link(&server, None), link(&server, None));
    let id = link.call(cmd("CLIENT").arg("ID"), Repeat::No).await;
    let id = integer(id.expect("a reply"));
    let on_first = blocked(&link, "first", &other).await;
    link.disconnect();
    let on_second = blocked(&link, "second", &other).await;
    assert!(!on_first.is_finished(), "a call keeps its connection");
    let kill = |id: i64| {
        let mut kill = cmd("CLIENT");
        kill.arg("KILL").arg("ID").arg(id);
        kill
    };
    let killed = other.call(&kill(id), Repeat::No).await;
    assert_eq!(integer(killed.expect("a reply")), 1);
    assert!(!on_first.await.expect("no panic"), "its connection broke");
    push(&other, "second").await;
    assert!(on_second.await.expect("no panic"), "this one did not");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_a_reply_in_time_does_not_end_others_on_its_connection() {
    let server = kumi_server::embedded().expect("a server");
    let reply = Duration::from_secs(4);
    let (link, other) = (link(&server, Some(reply)), link(&server, None));
    let slow = blocked(&link, "slow", &other).await;
    sleep(reply / 2).await;
    // The server gets to it once the slow one is done.
    let beside = tokio::spawn({
        let link = link.clone();
        async move { link.call(&cmd("PING"), Repeat::No).await }
    });
    assert!(!slow.await.expect("no panic"), "it took too long");
    push(&other, "slow").await;
    beside.await.expect("no panic").expect("a reply");
}

fn verdict(reply: &[u8]) -> Verdict {
    let value = ::redis::parse_redis_value(reply).expect("a reply");
    let error = value.extract_error().expect_err("an error");
    Verdict::of(&error)
}

/// Redis 6.2 wraps what a command in a script answers; 7.0 passes it on.
#[test]
fn errors_inside_a_script_are_told_apart() {
    let wrapped = |text: &str| {
        let place = "ERR Error running script (call to f_0a1b): @user_script:9: @user_script: 9:";
        verdict(format!("-{place} {text}\r\n").as_bytes())
    };
    let read_only = "-READONLY You can't write against a read only replica.";
    assert!(matches!(wrapped(read_only), Verdict::Later));
    let read_only = verdict(b"-READONLY You can't write against a read only replica. script: 0a1b, on @user_script:9.\r\n");
    assert!(matches!(read_only, Verdict::Later));
    let elsewhere = "Script attempted to access a non local key in a cluster node";
    assert!(matches!(wrapped(elsewhere), Verdict::Broken));
    let plain = format!("-ERR {elsewhere} script: 0a1b, on @user_script:9.\r\n");
    assert!(matches!(verdict(plain.as_bytes()), Verdict::Broken));
    let other = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    assert!(matches!(wrapped(other), Verdict::Answer));
    let full = "-OOM command not allowed when used memory > 'maxmemory'.";
    assert!(matches!(wrapped(full), Verdict::Answer));
}
