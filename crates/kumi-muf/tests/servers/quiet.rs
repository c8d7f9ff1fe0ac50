//! What units cost a server when nothing is missed: no searches of its keyspace, and no subscription without a service.

use std::time::Duration;

use kumi_muf::{Error, Muf, Request};

use crate::support::{Place, Server, echo, wait_until};

/// SCANs that the server has run.
fn scans(server: &Server) -> usize {
    let stats = server.cli(&["INFO", "commandstats"]);
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_scan:calls="));
    line.and_then(|rest| rest.split(',').next()?.parse().ok())
        .unwrap_or(0)
}

/// Waits until no more are run for longer than sweeps and their locks take.
fn settled_scans(server: &Server) -> usize {
    let (mut last, mut same) = (scans(server), 0);
    wait_until("the first sweeps are done", || {
        let now = scans(server);
        same = if now == last { same + 1 } else { 0 };
        last = now;
        same == 120
    });
    last
}

#[tokio::test(flavor = "multi_thread")]
async fn units_that_miss_nothing_search_nothing() {
    for server in Server::each() {
        // Times that are short enough for anything done by the clock to be done a few times, and long enough for an answer
        // on a machine that stalls.
        let unit = |name: String| {
            let builder = server.builder(&name);
            let builder = builder.req_ttl(Duration::from_secs(4));
            let builder = builder.heartbeat(Duration::from_secs(1));
            async move { builder.connect().await.expect("a unit") }
        };
        let mut backends: Vec<Muf> = Vec::new();
        for number in 0..5 {
            let backend = unit(format!("b{number}")).await;
            backend.serve("a.b", echo).await.expect("a service");
            backends.push(backend);
        }
        let web = unit("web".into()).await;
        let _watch = web.watch_keep("*/*").await.expect("a watch");
        assert_eq!(web.units().await.expect("units").len(), 6);
        let before = settled_scans(&server);
        for _ in 0..50 {
            web.request("a.b", "x").await.expect("an answer");
            let gathered = web.gather("a.b", "x").count(5);
            assert_eq!(gathered.await.expect("answers").len(), 5);
            let short = web.gather("a.b", "x").timeout(Duration::from_millis(200));
            short.await.expect("answers");
            assert_eq!(web.units().await.expect("units").len(), 6);
        }
        assert_eq!(scans(&server), before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_units_has_whom_was_there_before_it_was_asked_for() {
    for server in Server::each() {
        let web = server.unit("web").await;
        for number in 0..20 {
            let unit = server.unit(&format!("u{number}")).await;
            let is_there =
                |infos: Vec<kumi_muf::Info>| infos.iter().any(|it| it.unit == unit.unit());
            // It is written before `connect` returns, or soon after: from its first call on it is there for certain.
            unit.read_keep("x", "x").await.expect("an answer");
            assert!(is_there(web.units().await.expect("units")));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_service_leaves_no_subscription() {
    for server in Server::each() {
        let backend = server.unit("back").await;
        let patterns = || {
            server
                .cli(&["PUBSUB", "NUMPAT"])
                .parse::<usize>()
                .expect("a number")
        };
        let before = patterns();
        let other = server.unit("other").await;
        let kept = other.serve("a.c", echo).await.expect("a service");
        let slow = |request: Request| async move { Ok::<_, Error>(request.payload().clone()) };
        for _ in 0..3 {
            let service = backend.serve("a.b", slow).await.expect("a service");
            let again = backend.serve("a.b", slow).await.expect("a service");
            service.drain().await.expect("drained");
            let web = server.unit("web").await;
            web.request("a.b", "x").await.expect("the other one serves");
            again.drain().await.expect("drained");
            web.close().await.expect("closed");
        }
        kept.drain().await.expect("drained");
        other.close().await.expect("closed");
        wait_until("nothing is subscribed to but answers", || {
            patterns() == before
        });
        // It can be served again.
        backend.serve("a.b", slow).await.expect("a service");
        let web = server.unit("web").await;
        web.request("a.b", "x").await.expect("an answer");
    }
}
