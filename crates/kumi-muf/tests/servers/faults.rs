//! What goes wrong with real processes: connections are killed, servers restart, backends die, watchers sleep.
//!
//! Each test counts callers without a result, and results that are not answers.

use std::future::IntoFuture;
use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kumi_muf::{Error, KeepEvent, Muf, Request, ServerError};

use crate::children;
use crate::support::{Place, Server, echo, end};

/// Ten callers that call until they are stopped.
struct Callers {
    web: Muf,
    told: Arc<Told>,
    calls: tokio::task::JoinSet<Vec<Error>>,
}

#[derive(Default)]
struct Told {
    stop: AtomicBool,
    answers: AtomicUsize,
}

impl Callers {
    fn start(web: &Muf) -> Self {
        let told = Arc::new(Told::default());
        let mut calls = tokio::task::JoinSet::new();
        for caller in 0..10 {
            let (web, told) = (web.clone(), told.clone());
            calls.spawn(async move {
                let mut errors = Vec::new();
                while !told.stop.load(Ordering::Relaxed) {
                    match web.request("a.b", caller.to_string()).await {
                        Ok(answer) => {
                            assert_eq!(answer.bytes(), &caller.to_string());
                            told.answers.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => errors.push(error),
                    }
                }
                errors
            });
        }
        let web = web.clone();
        Self { web, told, calls }
    }

    /// Waits until all is well again: calls are answered that began after now, and others beside them.
    async fn go_on(&self) {
        let answers = || self.told.answers.load(Ordering::Relaxed);
        let before = answers();
        while answers() < before + 20 {
            let ping = self.web.request("a.b", "ping");
            ping.await.expect("an answer");
        }
    }

    /// Ends them; all that came back besides answers.
    async fn stop(self) -> Vec<Error> {
        self.told.stop.store(true, Ordering::Relaxed);
        self.calls.join_all().await.into_iter().flatten().collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_connections_cost_time_and_nothing_else() {
    for server in Server::each() {
        let backend = server.unit("back").await;
        backend.serve("a.b", echo).await.expect("a service");
        let web = server.unit("web").await;
        let callers = Callers::start(&web);
        for round in 0..12 {
            let kind = ["normal", "pubsub"][round % 2];
            for id in server.clients(kind) {
                server.cli(&["CLIENT", "KILL", "ID", &id]);
            }
            callers.go_on().await;
        }
        let errors = callers.stop().await;
        assert!(errors.is_empty(), "{errors:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_restart_loses_no_caller() {
    for mut server in Server::each() {
        let backend = server.unit("back").await;
        backend.serve("a.b", echo).await.expect("a service");
        let web = server.unit("web").await;
        let callers = Callers::start(&web);
        for _ in 0..4 {
            server.restart();
            callers.go_on().await;
        }
        let errors = callers.stop().await;
        assert!(errors.is_empty(), "{errors:?}");
        // Events are switched on again, though the new process knew nothing of it.
        assert!(
            server
                .cli(&["CONFIG", "GET", "notify-keyspace-events"])
                .contains('K')
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stays_away_is_told_from_silence() {
    for mut server in Server::each() {
        let web = server.unit("web").await;
        let call = tokio::spawn(
            web.request("a.b", ())
                .timeout(Duration::from_millis(700))
                .into_future(),
        );
        server.kill();
        let error = call.await.expect("no panic").expect_err("it is gone");
        assert!(matches!(error, Error::Disconnected { .. }), "{error:?}");
    }
}

/// A backend in a process of its own that begins requests and finishes none.
struct Victim {
    process: std::process::Child,
    says: std::io::Lines<BufReader<ChildStdout>>,
}

impl Victim {
    /// Waits until it has said a word this often.
    fn has_said(mut self, word: &str, times: usize) -> Self {
        let lines = self.says.by_ref().map_while(Result::ok);
        let said = lines.filter(|line| line.ends_with(word)).take(times);
        assert_eq!(said.count(), times, "it lives");
        self
    }

    async fn serving(url: String) -> Self {
        let serving = move || {
            let mut process = children::program("hanging-backend", &[&url, "victim"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("a child");
            let says = BufReader::new(process.stdout.take().expect("a pipe")).lines();
            Self { process, says }.has_said("serving", 1)
        };
        tokio::task::spawn_blocking(serving)
            .await
            .expect("it serves")
    }

    async fn began(self, times: usize) -> Self {
        let began = move || self.has_said("began", times);
        tokio::task::spawn_blocking(began).await.expect("it begins")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_requests_of_a_killed_process_are_taken_over_within_three_seconds() {
    for server in Server::each() {
        let calls = 20;
        let victim = Victim::serving(server.url()).await;
        // The heir takes one request at the most until the victim is dead; the victim gets all others.
        let heir = server.unit("heir").await;
        let (die, dead) = tokio::sync::watch::channel(false);
        let attempt = move |request: Request| {
            let mut dead = dead.clone();
            async move {
                let _ = dead.wait_for(|dead| *dead).await;
                Ok::<_, Error>(request.attempt().to_string())
            }
        };
        let service = heir.serve("a.b", attempt).concurrency(1);
        service.await.expect("a service");
        let web = server.unit("web").await;
        let asked: Vec<_> = (0..calls)
            .map(|_| tokio::spawn(web.request("a.b", "x").into_future()))
            .collect();
        let mut victim = victim.began(calls - 1).await;
        end(&mut victim.process);
        let killed = Instant::now();
        die.send_replace(true);
        let mut attempts = Vec::new();
        for call in asked {
            let answer = call.await.expect("no panic").expect("an answer");
            attempts.push(answer.text().expect("text").to_owned());
        }
        let took = killed.elapsed();
        let second = attempts.iter().filter(|attempt| *attempt == "2").count();
        assert!(second >= calls - 1, "{attempts:?}");
        assert!(took < Duration::from_secs(3), "{took:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_written_again_after_a_flush_is_run_as_one_that_may_have_run() {
    for server in Server::each() {
        let victim = Victim::serving(server.url()).await;
        let web = server.unit("web").await;
        let call = tokio::spawn(web.request("a.b", "x").into_future());
        let mut victim = victim.began(1).await;
        end(&mut victim.process);
        // Nothing on the server shows any more that it was run.
        server.cli(&["FLUSHALL"]);
        let heir = server.unit("heir").await;
        let attempt =
            |request: Request| async move { Ok::<_, Error>(request.attempt().to_string()) };
        heir.serve("a.b", attempt).await.expect("a service");
        let answer = call.await.expect("no panic").expect("an answer");
        assert_eq!(answer.text().expect("text"), "2");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_comes_later_takes_over_within_three_seconds_too() {
    for server in Server::each() {
        let victim = Victim::serving(server.url()).await;
        let web = server.unit("web").await;
        let call = tokio::spawn(web.request("a.b", "x").into_future());
        let mut victim = victim.began(1).await;
        end(&mut victim.process);
        let killed = Instant::now();
        // It got no event of the request: it finds it by its first sweep, and sees for how long it is claimed.
        let heir = server.unit("heir").await;
        let attempt =
            |request: Request| async move { Ok::<_, Error>(request.attempt().to_string()) };
        heir.serve("a.b", attempt).await.expect("a service");
        let answer = call.await.expect("no panic").expect("an answer");
        assert_eq!(answer.text().expect("text"), "2");
        let took = killed.elapsed();
        assert!(took < Duration::from_secs(3), "{took:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loser_takes_over_within_three_seconds_of_a_death() {
    for server in Server::each() {
        let web = server.unit("web").await;
        let heir = server.unit("heir").await;
        let attempts =
            |request: Request| async move { Ok::<_, Error>(request.attempt().to_string()) };
        // A backend that claims by hand and dies before it answers: the heir loses, and waits for the lease to lapse.
        let asked = server.listen("__keyspace@0__:MUF/web/REQ/*");
        let call = tokio::spawn(web.request("a.b", "x").into_future());
        asked.await.expect("the request is seen");
        let claim = server
            .cli(&["--scan", "--pattern", "MUF/web/REQ/*"])
            .replace("/REQ/", "/KEEP/")
            + ".claim";
        assert_eq!(
            server.cli(&["SET", &claim, "ghost~1", "NX", "PX", "2000"]),
            "OK"
        );
        let died = Instant::now();
        heir.serve("a.b", attempts).await.expect("a service");
        let request = claim.replace("/KEEP/", "/REQ/").replace(".claim", "");
        server.cli(&["SET", &request, "x", "XX", "KEEPTTL"]);
        let answer = call.await.expect("no panic").expect("an answer");
        assert_eq!(answer.bytes(), "2");
        assert!(
            died.elapsed() < Duration::from_secs(3),
            "{:?}",
            died.elapsed()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_sleeps_is_told_of_the_gap() {
    for server in Server::each() {
        let web = server.unit("web").await;
        let mut watch = web.watch_keep("s/*").await.expect("a watch");
        assert_eq!(watch.next().await, Some(KeepEvent::Live));
        let sensor = server.unit("s").await;
        for round in 0..3_000 {
            sensor
                .keep(&format!("v{}", round % 700), round.to_string())
                .await
                .expect("kept");
        }
        let mut last = std::collections::HashMap::new();
        let (mut gap, mut live) = (false, false);
        while !live {
            match tokio::time::timeout(Duration::from_secs(20), watch.next())
                .await
                .expect("no hang")
                .expect("open")
            {
                KeepEvent::Value { id, value, .. } => {
                    last.insert(id, value);
                }
                KeepEvent::Gap => gap = true,
                KeepEvent::Live => live = gap,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(last.len(), 700, "after the gap everything is known");
        for round in 2_300..3_000 {
            assert_eq!(last[&format!("v{}", round % 700)], round.to_string());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_that_the_server_drops_comes_back() {
    for server in Server::each() {
        let web = server.unit("web").await;
        let mut watch = web.watch_keep("s/*").await.expect("a watch");
        assert_eq!(watch.next().await, Some(KeepEvent::Live));
        for id in server.clients("pubsub") {
            server.cli(&["CLIENT", "KILL", "ID", &id]);
        }
        assert_eq!(watch.next().await, Some(KeepEvent::Gap));
        assert_eq!(watch.next().await, Some(KeepEvent::Live));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_config_and_events_is_refused_or_polled() {
    for server in Server::each() {
        let user = [
            "ACL", "SETUSER", "shy", "on", ">pw", "~*", "&*", "+@all", "-config",
        ];
        assert_eq!(server.cli(&user), "OK");
        // An error on kumi-server, which has no such command.
        server.cli(&["ACL", "SETUSER", "shy", "-cluster"]);
        let shy = |name: &str| server.builder(name).credentials("shy", "pw");
        let refused = shy("web").connect().await.map(|_| ());
        assert!(
            matches!(
                refused,
                Err(Error::Server(ServerError::Notifications { .. }))
            ),
            "{refused:?}"
        );
        let polled = Duration::from_millis(50);
        let web = shy("web")
            .poll_every(polled)
            .connect()
            .await
            .expect("a unit");
        let backend = shy("back")
            .poll_every(polled)
            .connect()
            .await
            .expect("a unit");
        assert!(web.is_polling());
        backend.serve("a.b", echo).await.expect("a service");
        assert_eq!(
            web.request("a.b", "x").await.expect("an answer").bytes(),
            "x"
        );
        // Once somebody else switches events on, a probe finds them.
        server.cli(&["CONFIG", "SET", "notify-keyspace-events", "K$x"]);
        assert!(!shy("third").connect().await.expect("a unit").is_polling());
    }
}
