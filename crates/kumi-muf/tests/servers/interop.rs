//! Nothing but redis-cli on one side, or on both. `cluster.rs` does the same on a cluster.

use std::future::IntoFuture;
use std::time::Duration;

use kumi_muf::{Error, Muf, Request};

use crate::support::{Place, Server, echo, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn a_person_with_redis_cli_answers_a_call() {
    for server in Server::each() {
        a_person_answers(&server).await;
    }
}

pub(crate) async fn a_person_answers(place: &impl Place) {
    let web = Muf::connect(&place.url(), "web").await.expect("a unit");
    let answers = [
        ("RES", "done", Ok("done".to_owned())),
        ("ERR", "no", Err("no".to_owned())),
    ];
    for (status, word, expected) in answers {
        let asked = place.listen("__keyspace@0__:MUF/web/REQ/*");
        let call = tokio::spawn(web.request("thumb.resize", "cat.png").into_future());
        asked.await.expect("the request is seen");
        let unanswered = |key: &String| {
            let absent = |status| {
                let answer = key.replace("/REQ/", status);
                place.cli(&["EXISTS", &answer]) == "0"
            };
            absent("/RES/") && absent("/ERR/")
        };
        let keys = place.keys("MUF/web/REQ/*");
        let key = keys
            .into_iter()
            .find(unanswered)
            .expect("a request is there");
        assert_eq!(place.cli(&["GET", &key]), "cat.png");
        let ttl: i64 = place.cli(&["TTL", &key]).parse().expect("a number");
        assert!(ttl > 5, "{ttl}");
        let answer = key.replace("/REQ/", &format!("/{status}/"));
        assert_eq!(place.cli(&["SET", &answer, word, "EX", "30"]), "OK");
        let told = match call.await.expect("no panic") {
            Ok(answer) => Ok(answer.text().expect("text").to_owned()),
            Err(Error::Remote(payload)) => Err(String::from_utf8_lossy(&payload).into_owned()),
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(told, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_with_redis_cli_calls_a_backend() {
    for server in Server::each() {
        a_person_calls(&server).await;
    }
}

pub(crate) async fn a_person_calls(place: &impl Place) {
    let backend = Muf::connect(&place.url(), "echo").await.expect("a unit");
    let shout = |request: Request| async move {
        let text = request.text()?.to_uppercase();
        Ok::<_, Error>(text)
    };
    backend.serve("*", shout).await.expect("a service");
    // Twice, because a person may use an ID again.
    for word in ["hello", "again"] {
        let answered = place.listen("__keyspace@0__:MUF/me/RES/x");
        assert_eq!(place.cli(&["SET", "MUF/me/REQ/x", word, "EX", "10"]), "OK");
        answered.await.expect("an answer");
        assert_eq!(place.cli(&["GET", "MUF/me/RES/x"]), word.to_uppercase());
    }
    // What the protocol leaves behind is for everybody to see.
    let claim = place.cli(&["GET", "MUF/me/KEEP/x.claim"]);
    assert!(claim.starts_with("echo~"), "{claim}");
    let ttl: i64 = place
        .cli(&["TTL", "MUF/me/RES/x"])
        .parse()
        .expect("a number");
    assert!(ttl > 20, "{ttl}");
    backend.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_with_redis_cli_need_nothing_else() {
    for server in Server::each() {
        two_people(&server).await;
    }
}

/// The session that the protocol's document shows.
pub(crate) async fn two_people(place: &impl Place) {
    for mut cli in place.everywhere() {
        let switched = cli.args(["CONFIG", "SET", "notify-keyspace-events", "K$x"]);
        assert_eq!(crate::support::output(switched), "OK");
    }
    let asked = place.listen("__keyspace@0__:MUF/*/REQ/*");
    assert_eq!(
        place.cli(&["SET", "MUF/me/REQ/hello", "what time is it", "EX", "10"]),
        "OK"
    );
    asked
        .await
        .expect("the subscriber for requests gets the push");
    let claim = ["SET", "MUF/me/KEEP/hello.claim", "you", "NX", "PX", "2000"];
    assert_eq!(place.cli(&claim), "OK");
    assert_eq!(place.cli(&claim), "", "somebody has it");
    assert_eq!(place.cli(&["GET", "MUF/me/REQ/hello"]), "what time is it");
    let answered = place.listen("__keyspace@0__:MUF/me/RES/*");
    assert_eq!(
        place.cli(&["SET", "MUF/me/RES/hello", "noon", "EX", "30"]),
        "OK"
    );
    answered
        .await
        .expect("the subscriber for answers gets the push");
    assert_eq!(place.cli(&["GET", "MUF/me/RES/hello"]), "noon");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_costs_four_commands_and_three_per_backend() {
    for server in Server::each() {
        let quiet = |name: String| {
            let builder = server.builder(&name).discovery(false);
            async move { builder.connect().await.expect("a unit") }
        };
        let mut backends = Vec::new();
        for count in 1..=4 {
            let backend = quiet(format!("b{count}")).await;
            backend.serve("a.b", echo).await.expect("a service");
            backends.push(backend);
            let web = quiet("web".to_owned()).await;
            // The first call makes losers subscribe to answers.
            web.request("a.b", "x").await.expect("an answer");
            web.request("a.b", "x").await.expect("an answer");
            let calls = 20;
            // The first sweep of a backend looks at every request that is still there. It comes once, at a random
            // moment, and is no part of a call.
            let spent = loop {
                let (before, sweeps) = (settled_commands(&server), calls_of(&server, &["scan"]));
                for _ in 0..calls {
                    web.request("a.b", "x").await.expect("an answer");
                }
                let spent = settled_commands(&server) - before;
                if calls_of(&server, &["scan"]) == sweeps {
                    break spent;
                }
            };
            // The locks of sweeps may fall into it: less than half a command per call.
            let limit = calls * (4 + 3 * count) + calls / 2;
            println!(
                "{count} backends: {} commands per call",
                spent as f64 / calls as f64
            );
            assert!(
                spent <= limit,
                "{spent} commands for {calls} calls with {count} backends"
            );
        }
    }
}

/// Commands of MUF that the server has run, once no more come: losers may still be on their way.
fn settled_commands(server: &Server) -> usize {
    let (mut before, mut now) = (0, commands(server));
    wait_until("losers are done", || {
        std::thread::sleep(Duration::from_millis(50));
        (before, now) = (now, commands(server));
        before == now
    });
    now
}

/// What tools and housekeeping send is not counted.
fn commands(server: &Server) -> usize {
    let counted = [
        "set", "getrange", "pexpire", "exists", "incr", "pttl", "get", "mget",
    ];
    calls_of(server, &counted)
}

/// How often the server has run these commands.
fn calls_of(server: &Server, counted: &[&str]) -> usize {
    let stats = server.cli(&["INFO", "commandstats"]);
    let calls = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        counted
            .contains(&name)
            .then(|| rest.split(',').next()?.parse::<usize>().ok())?
    };
    stats.lines().filter_map(calls).sum()
}
