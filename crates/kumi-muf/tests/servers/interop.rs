//! Nothing but redis-cli on one side, or on both.

use std::time::Duration;

use std::future::IntoFuture;

use kumi_muf::{Error, Request};

use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn a_person_with_redis_cli_answers_a_call() {
    for server in Server::each() {
        let web = server.unit("web").await;
        let asked = server.cli_waits_for("__keyspace@0__:MUF/web/REQ/*");
        let call = tokio::spawn(web.request("thumb.resize", "cat.png").into_future());
        asked.await.expect("the request is seen");
        let key = server.cli(&["--scan", "--pattern", "MUF/web/REQ/*"]);
        assert_eq!(server.cli(&["GET", &key]), "cat.png");
        assert!(server.cli(&["TTL", &key]).parse::<i64>().expect("a number") > 5);
        server.cli(&["SET", &key.replace("/REQ/", "/RES/"), "done", "EX", "30"]);
        let answer = call.await.expect("no panic").expect("an answer");
        assert_eq!(answer.text().expect("text"), "done");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_with_redis_cli_calls_a_backend() {
    for server in Server::each() {
        let backend = server.unit("echo").await;
        let serving = backend.serve("*", |request: Request| async move {
            let text = request.text()?.to_uppercase();
            Ok::<_, Error>(text)
        });
        serving.await.expect("a service");
        // Twice, because a person may use an ID again.
        for word in ["hello", "again"] {
            let answered = server.cli_waits_for("__keyspace@0__:MUF/me/RES/x");
            assert_eq!(server.cli(&["SET", "MUF/me/REQ/x", word, "EX", "10"]), "OK");
            answered.await.expect("an answer");
            assert_eq!(server.cli(&["GET", "MUF/me/RES/x"]), word.to_uppercase());
        }
        // What the protocol leaves behind is for everybody to see.
        assert!(
            server
                .cli(&["GET", "MUF/me/KEEP/x.claim"])
                .starts_with("echo~")
        );
        assert!(
            server
                .cli(&["TTL", "MUF/me/RES/x"])
                .parse::<i64>()
                .expect("a number")
                > 20
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_a_person_is_a_remote_error() {
    let server = Server::redis();
    let web = server.unit("web").await;
    let asked = server.cli_waits_for("__keyspace@0__:MUF/web/REQ/*");
    let call = tokio::spawn(web.request("a.b", ()).into_future());
    asked.await.expect("the request is seen");
    let key = server.cli(&["--scan", "--pattern", "MUF/web/REQ/*"]);
    server.cli(&["SET", &key.replace("/REQ/", "/ERR/"), "no", "EX", "30"]);
    let error = call.await.expect("no panic").expect_err("an error");
    assert!(matches!(error, Error::Remote(payload) if payload == "no"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_costs_four_commands_and_two_per_backend() {
    let server = Server::redis();
    let mut backends = Vec::new();
    for index in 0..4 {
        let backend = server
            .builder(&format!("b{index}"))
            .discovery(false)
            .connect()
            .await
            .expect("a unit");
        backend
            .serve("a.b", |request: Request| async move {
                Ok::<_, Error>(request.payload().clone())
            })
            .await
            .expect("a service");
        backends.push(backend);
        let web = server
            .builder("web")
            .discovery(false)
            .connect()
            .await
            .expect("a unit");
        // The first call makes losers subscribe to answers.
        web.request("a.b", "x").await.expect("an answer");
        web.request("a.b", "x").await.expect("an answer");
        let calls = 20;
        let before = commands(&server);
        for _ in 0..calls {
            web.request("a.b", "x").await.expect("an answer");
        }
        // Losers may still be on their way.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let spent = commands(&server) - before;
        let limit = calls * (4 + 2 * backends.len());
        println!(
            "{} backends: {} commands per call",
            backends.len(),
            spent as f64 / calls as f64
        );
        assert!(
            spent <= limit,
            "{spent} commands for {calls} calls with {} backends",
            backends.len()
        );
    }
}

/// Commands of MUF that the server has run: what tools and housekeeping send is not counted.
fn commands(server: &Server) -> usize {
    let stats = server.cli(&["INFO", "commandstats"]);
    let counted = ["set", "mget", "pexpire", "exists", "incr", "pttl", "get"];
    let calls = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        counted
            .contains(&name)
            .then(|| rest.split(',').next()?.parse::<usize>().ok())?
    };
    stats.lines().filter_map(calls).sum()
}
