//! What no event tells of: flags that are missing or taken away, a server that is emptied, a process that shares its name.

use std::time::Duration;

use kumi_muf::{Error, Info, KeepEvent, Muf, Request, ServerError};

use crate::support::{Place, Server, echo, wait_until};

/// Rechecks come every second heartbeat.
const BEAT: Duration = Duration::from_millis(200);

async fn brisk(server: &Server, name: &str) -> Muf {
    let builder = server.builder(name).heartbeat(BEAT);
    builder.connect().await.expect("a unit")
}

/// The next event, briefly.
async fn next(watch: &mut kumi_muf::KeepWatch) -> String {
    let next = tokio::time::timeout(Duration::from_secs(20), watch.next());
    match next.await.expect("no hang").expect("open") {
        KeepEvent::Value { id, value, .. } => format!("{id}={}", String::from_utf8_lossy(&value)),
        KeepEvent::Deleted { id, .. } => format!("{id} deleted"),
        KeepEvent::Expired { id, .. } => format!("{id} expired"),
        KeepEvent::Live => "live".into(),
        KeepEvent::Gap => "gap".into(),
        other => format!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_that_somebody_cleared_are_set_again_and_watchers_told() {
    for server in Server::each() {
        let web = brisk(&server, "web").await;
        let mut watch = web.watch_keep("s/*").await.expect("a watch");
        assert_eq!(next(&mut watch).await, "live");
        server.cli(&["CONFIG", "SET", "notify-keyspace-events", ""]);
        server.cli(&["SET", "MUF/s/KEEP/unseen", "1"]);
        assert_eq!(next(&mut watch).await, "gap");
        assert_eq!(next(&mut watch).await, "unseen=1");
        assert_eq!(next(&mut watch).await, "live");
        server.cli(&["SET", "MUF/s/KEEP/seen", "2"]);
        assert_eq!(next(&mut watch).await, "seen=2");
        let mut tap = web.tap().await.expect("a tap");
        server.cli(&["CONFIG", "SET", "notify-keyspace-events", "g"]);
        let gap = tokio::time::timeout(Duration::from_secs(20), tap.next());
        let gap = gap.await.expect("no hang").expect("open").expect("read");
        assert_eq!(gap, kumi_muf::Traffic::Gap);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_a_flush_took_are_deleted_for_watchers() {
    for server in Server::each() {
        server.cli(&["MSET", "MUF/s/KEEP/a", "1", "MUF/s/KEEP/b", "2"]);
        let web = brisk(&server, "web").await;
        let mut watch = web.watch_keep("s/*").await.expect("a watch");
        let mut seen = [next(&mut watch).await, next(&mut watch).await];
        seen.sort();
        assert_eq!(seen, ["a=1", "b=2"]);
        assert_eq!(next(&mut watch).await, "live");
        for flush in ["FLUSHALL", "FLUSHDB"] {
            server.cli(&["MSET", "MUF/s/KEEP/a", "1", "MUF/s/KEEP/b", "2"]);
            if flush == "FLUSHDB" {
                let mut seen = [next(&mut watch).await, next(&mut watch).await];
                seen.sort();
                assert_eq!(seen, ["a=1", "b=2"]);
            }
            server.cli(&[flush]);
            let gone = [next(&mut watch).await, next(&mut watch).await];
            assert_eq!(gone, ["a deleted", "b deleted"], "{flush}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_where_deletions_are_not_told_of_is_refused_or_polled() {
    for server in Server::each() {
        server.cli(&[
            "ACL", "SETUSER", "shy", "on", ">pw", "~*", "&*", "+@all", "-config",
        ]);
        let flags = |flags: &str| server.cli(&["CONFIG", "SET", "notify-keyspace-events", flags]);
        let shy = |name: &str| {
            let builder = server.builder(name).heartbeat(BEAT);
            builder.credentials("shy", "pw")
        };
        flags("K$");
        let deaf = shy("web").connect().await.map(|_| ());
        assert!(
            matches!(deaf, Err(Error::Server(ServerError::Notifications { need, .. })) if need == "K$x")
        );
        flags("K$x");
        let web = shy("web").connect().await.expect("a unit");
        web.serve("a.b", echo).await.expect("a service");
        let refused = web.watch_keep("s/*").await.map(|_| ());
        assert!(
            matches!(&refused, Err(Error::Server(ServerError::Notifications { need, .. })) if need == "K$xg"),
            "{refused:?}"
        );
        // Nothing else is the worse for it.
        web.request("a.b", ()).await.expect("an answer");
        let poll = shy("poller").poll_every(Duration::from_millis(50));
        let poller = poll.connect().await.expect("a unit");
        assert!(!poller.is_polling(), "calls need no polling");
        let mut watch = poller.watch_keep("s/*").await.expect("a watch");
        assert_eq!(next(&mut watch).await, "live");
        server.cli(&["SET", "MUF/s/KEEP/a", "1"]);
        assert_eq!(next(&mut watch).await, "a=1");
        server.cli(&["DEL", "MUF/s/KEEP/a"]);
        assert_eq!(next(&mut watch).await, "a deleted");
        // Once somebody switches them on, a probe finds them; once somebody switches them off, another does.
        flags("K$xg");
        let mut watch = web.watch_keep("s/*").await.expect("a watch");
        assert_eq!(next(&mut watch).await, "live");
        server.cli(&["SET", "MUF/s/KEEP/a", "1"]);
        assert_eq!(next(&mut watch).await, "a=1");
        flags("");
        assert_eq!(next(&mut watch).await, "gap");
        assert_eq!(next(&mut watch).await, "a=1");
        assert_eq!(next(&mut watch).await, "live");
        server.cli(&["DEL", "MUF/s/KEEP/a"]);
        assert_eq!(next(&mut watch).await, "a deleted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_stops_leaves_what_another_of_its_name_tells() {
    for server in Server::each() {
        let looker = server.unit("looker").await;
        let back = async || -> Option<Info> {
            let units = looker.units().await.expect("units");
            units.into_iter().find(|info| info.unit == "back")
        };
        // The values of discovery are written some time later.
        let until = async |told: &dyn Fn(&Info) -> bool| -> Info {
            let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
            loop {
                match back().await {
                    Some(info) if told(&info) => return info,
                    other => assert!(tokio::time::Instant::now() < deadline, "{other:?}"),
                }
                tokio::task::yield_now().await;
            }
        };
        let first = brisk(&server, "back").await;
        let service = first.serve("a.*", echo).await.expect("a service");
        let firsts = until(&|info| info.services == ["a.*"]).await;
        let second = brisk(&server, "back").await;
        second.serve("a.*", echo).await.expect("a service");
        let another = |info: &Info| info.services == ["a.*"] && info.instance != firsts.instance;
        let seconds = until(&another).await;
        // The second spoke last. That the first stops changes nothing.
        service.drain().await.expect("drained");
        first.close().await.expect("closed");
        assert_eq!(back().await.as_ref(), Some(&seconds));
        // The one that speaks stops: the one that lives has its say.
        let third = brisk(&server, "back").await;
        third.serve("a.b", echo).await.expect("a service");
        until(&|info| info.services == ["a.b"]).await;
        third.close().await.expect("closed");
        until(&|info| *info == seconds).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_never_ends_is_answered_for_and_gives_its_place_back() {
    for server in Server::each() {
        let backend = server.unit("back").await;
        let hang = |request: Request| async move {
            if request.payload().is_empty() {
                std::future::pending::<()>().await;
            }
            Ok::<_, Error>("done")
        };
        let serve = backend.serve("a.b", hang).concurrency(1);
        let serve = serve.handler_timeout(Duration::from_millis(200));
        serve.await.expect("a service");
        let web = server.unit("web").await;
        let error = web.request("a.b", ()).await.expect_err("it hangs");
        assert!(
            matches!(&error, Error::Remote(text) if text == "the handler did not end within 200ms"),
            "{error:?}"
        );
        let answer = web.request("a.b", "x").await.expect("an answer");
        assert_eq!(answer.bytes(), "done");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_may_not_do_what_is_needed_is_told_so() {
    for server in Server::each() {
        server.cli(&["CONFIG", "SET", "notify-keyspace-events", "K$xg"]);
        let unit = async |forbidden: &str| {
            let user = [
                "ACL", "SETUSER", "u", "reset", "on", ">pw", "~*", "&*", "+@all",
            ];
            server.cli(&[&user[..], &[forbidden]].concat());
            let builder = server.builder("web").credentials("u", "pw");
            builder.connect().await.expect("a unit")
        };
        let is_refused = |error: &Error| matches!(error, Error::Server(ServerError::Refused { reason, .. }) if reason.contains("NOPERM"));
        let blind = unit("-scan").await;
        let served = blind.serve("a.b", echo).await.map(|_| ());
        assert!(is_refused(&served.expect_err("no sweeps")));
        let watched = blind.watch_keep("*/*").await.map(|_| ());
        assert!(is_refused(&watched.expect_err("no snapshot")));
        let listed = blind.units().await;
        assert!(is_refused(&listed.expect_err("no list")));
        let deaf = unit("-getrange").await;
        let called = deaf.request("a.b", ()).await;
        assert!(is_refused(&called.expect_err("no answer can be read")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_may_not_subscribe_is_told_so_and_comes_back_after_a_lost_connection() {
    for server in Server::each() {
        server.cli(&["CONFIG", "SET", "notify-keyspace-events", "K$xg"]);
        allow(&server, &[]);
        let web = server.builder("web").credentials("u", "pw").connect().await;
        let web = web.expect("a unit");
        let is_refused = |error: &Error| matches!(error, Error::Server(ServerError::Refused { reason, server }) if reason.contains("NOPERM") && server.ends_with("/s"));
        let served = web.serve("c.d", echo).await.map(|_| ());
        assert!(is_refused(&served.expect_err("no requests would come")));
        let watched = web.watch_keep("*/*").await.map(|_| ());
        assert!(is_refused(&watched.expect_err("no changes would come")));
        let tapped = web.tap().await.map(|_| ());
        assert!(is_refused(&tapped.expect_err("nothing would be seen")));

        // What was refused is not asked for again.
        cut_and_return(&server, &web).await;
        web.keep("here", "yes").await.expect("kept");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_watch_over_the_keys_of_the_list_of_units_leaves_the_list_alone() {
    for server in Server::each() {
        let web = server.unit("web").await;
        assert_eq!(web.units().await.expect("a list").len(), 1);
        drop(web.watch_keep("*/_info").await.expect("a watch"));
        // The server replies in order, so that what the dropped watch led to is done.
        web.units().await.expect("a list");
        let _back = server.unit("back").await;
        let units = web.units().await.expect("a list");
        let names: Vec<&str> = units.iter().map(|info| info.unit.as_str()).collect();
        assert_eq!(names, ["back", "web"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_units_on_a_server_that_is_gone_is_no_empty_list() {
    for mut server in Server::each() {
        let web = server.unit("web").await;
        server.kill();
        let error = web.units().await.expect_err("no list");
        assert!(matches!(error, Error::Disconnected { .. }), "{error:?}");
        let named = format!("the server at {} could not", web.server());
        assert!(error.to_string().starts_with(&named), "{error}");
        assert!(web.server().ends_with("/s"), "{}", web.server());
    }
}

/// Lets a user see the answers to its own calls, and what else is named. A pattern has to be allowed letter by letter.
fn allow(server: &Server, channels: &[&str]) {
    let user = ["ACL", "SETUSER", "u", "reset", "on", ">pw", "~*", "+@all"];
    let channels = channels
        .iter()
        .map(|glob| format!("&__keyspace@0__:MUF/{glob}"));
    let channels: Vec<String> = channels.collect();
    let own = "&__keyspace@0__:MUF/web/[RE][ER][SR]/*";
    let channels = channels.iter().map(String::as_str).chain([own]);
    let arguments: Vec<&str> = user.into_iter().chain(channels).collect();
    assert_eq!(server.cli(&arguments), "OK");
}

/// Waits until a unit has lost its connection and is back.
async fn cut_and_return(server: &Server, unit: &Muf) {
    let before = unit.stats().await.expect("open").reconnects;
    server.cli(&["CLIENT", "KILL", "USER", "u"]);
    let back = async {
        while unit.stats().await.expect("open").reconnects == before {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let back = tokio::time::timeout(Duration::from_secs(30), back);
    back.await.expect("it is connected again");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_who_ask_at_once_for_a_refused_pattern_are_told_so() {
    for server in Server::each() {
        server.cli(&["CONFIG", "SET", "notify-keyspace-events", "K$xg"]);
        allow(&server, &[]);
        let web = server.builder("web").credentials("u", "pw").connect().await;
        let web = web.expect("a unit");
        let is_refused = |result: Result<(), Error>| matches!(&result, Err(Error::Server(ServerError::Refused { reason, .. })) if reason.contains("NOPERM"));
        let serve = async || is_refused(web.serve("c.d", echo).await.map(|_| ()));
        let watch = async || is_refused(web.watch_keep("*/*").await.map(|_| ()));
        let tap = async || is_refused(web.tap().await.map(|_| ()));
        let list = async || is_refused(web.units().await.map(|_| ()));
        let all = async {
            let serves = tokio::join!(serve(), serve(), serve());
            let watches = tokio::join!(watch(), watch(), watch());
            let taps = tokio::join!(tap(), tap(), tap());
            let lists = tokio::join!(list(), list(), list());
            [serves, watches, taps, lists]
        };
        let all = tokio::time::timeout(Duration::from_secs(30), all).await;
        assert_eq!(all.expect("no hang"), [(true, true, true); 4]);
        cut_and_return(&server, &web).await;

        // Nothing is left of it once all is allowed.
        server.cli(&["ACL", "SETUSER", "u", "allchannels"]);
        web.serve("c.d", echo).await.expect("a service");
        web.request("c.d", ()).await.expect("an answer");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_may_not_subscribe_any_more_is_away_for_that_reason_until_it_may() {
    for server in Server::each() {
        server.cli(&["CONFIG", "SET", "notify-keyspace-events", "K$xg"]);
        allow(&server, &["*/REQ/a.b~*"]);
        let web = server.builder("web").credentials("u", "pw").connect().await;
        let web = web.expect("a unit");
        web.serve("a.b", echo).await.expect("a service");
        let mut changes = web.connection_changes();
        allow(&server, &[]);
        server.cli(&["CLIENT", "KILL", "USER", "u"]);
        let refused =
            changes.wait_for(|now| now.reason().is_some_and(|why| why.contains("refused")));
        let refused = tokio::time::timeout(Duration::from_secs(30), refused).await;
        let state = refused.expect("a reason").expect("open");
        let reason = state.reason().expect("a reason").to_owned();
        for part in ["NOPERM", "PSUBSCRIBE __keyspace@0__:MUF/*/REQ/a.b~*"] {
            assert!(reason.contains(part), "{reason}");
        }
        let call = web.request("a.b", ()).timeout(Duration::from_millis(300));
        let error = call.await.expect_err("it is away");
        assert!(error.to_string().ends_with(&reason), "{error}");
        assert!(matches!(error, Error::Disconnected { .. }), "{error:?}");

        allow(&server, &["*/REQ/a.b~*"]);
        let back = changes.wait_for(kumi_muf::Connection::is_connected);
        let back = tokio::time::timeout(Duration::from_secs(30), back).await;
        back.expect("it is tried again").expect("open");
        web.request("a.b", ()).await.expect("an answer");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_permissions_are_enough() {
    let page = include_str!("../../../../docs/muf.md");
    let (_, words) = page.split_once("server with ACLs needs ").expect("a list");
    let (words, _) = words.split_once(" on\n").expect("its end");
    let words = words.replace(" and ", ", ").to_lowercase();
    let commands: Vec<String> = words.split(", ").map(|word| format!("+{word}")).collect();
    for server in Server::each() {
        server.cli(&["CONFIG", "SET", "notify-keyspace-events", "K$xg"]);
        let user = "ACL SETUSER u reset on >pw ~MUF/* allchannels";
        let user: Vec<&str> = user
            .split(' ')
            .chain(commands.iter().map(String::as_str))
            .collect();
        assert_eq!(server.cli(&user), "OK", "{user:?}");
        let unit = async |name: &str| {
            let builder = server.builder(name).heartbeat(BEAT).credentials("u", "pw");
            builder.connect().await.expect("a unit")
        };
        let (back, web) = (unit("back").await, unit("web").await);
        let mut tap = web.tap().await.expect("a tap");
        let mut watch = web.watch_keep("back/*").await.expect("a watch");
        assert_eq!(next(&mut watch).await, "live");
        let service = back.serve("a.b", echo).await.expect("a service");
        assert_eq!(
            web.request("a.b", "x").await.expect("an answer").bytes(),
            "x"
        );
        assert_eq!(
            web.gather("a.b", ()).count(1).await.expect("answers").len(),
            1
        );
        tap.next().await.expect("open").expect("read");
        let owned = back.keep("own", "1").owned().await.expect("owned");
        assert_eq!(next(&mut watch).await, "own=1");
        owned.set("2").await.expect("written");
        assert_eq!(next(&mut watch).await, "own=2");
        assert!(back.end_keep("own").await.expect("an answer"));
        let units = web.units().await.expect("units");
        assert_eq!(web.last_seen(&units).await.expect("a reply").len(), 2);
        service.drain().await.expect("drained");
        back.close().await.expect("closed");
        web.close().await.expect("closed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_tap_leaves_the_one_that_is_open() {
    for server in Server::each() {
        server.cli(&["CONFIG", "SET", "notify-keyspace-events", "K$xg"]);
        allow(&server, &["*"]);
        let web = server.builder("web").credentials("u", "pw").connect().await;
        let web = web.expect("a unit");
        let mut tap = web.tap().await.expect("a tap");
        server.cli(&["ACL", "SETUSER", "u", "-psubscribe"]);
        let refused = web.tap().await.map(|_| ()).expect_err("no more");
        assert!(
            matches!(refused, Error::Server(ServerError::Refused { .. })),
            "{refused:?}"
        );
        server.cli(&["SET", "MUF/x/REQ/a.b~1", "1"]);
        let seen = tokio::time::timeout(Duration::from_secs(20), tap.next());
        seen.await.expect("no hang").expect("open").expect("read");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_refused_pattern_of_answers_leaves_the_others() {
    for server in Server::each() {
        server.cli(&["CONFIG", "SET", "notify-keyspace-events", "K$xg"]);
        let own = "*/[RE][ER][SR]/c.d~*";
        allow(&server, &["*/REQ/a.b~*", "*/REQ/c.d~*", own]);
        let web = server.builder("web").credentials("u", "pw").connect().await;
        let web = web.expect("a unit");
        let patterns = || server.cli(&["PUBSUB", "NUMPAT"]);
        let places = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
        let wait = {
            let places = places.clone();
            move |request: Request| {
                let places = places.clone();
                async move {
                    let _place = places.acquire().await;
                    Ok::<_, Error>(request.payload().clone())
                }
            }
        };
        web.serve("a.b", wait)
            .concurrency(1)
            .await
            .expect("a service");
        web.serve("c.d", echo).await.expect("a service");
        assert_eq!(patterns(), "3");
        // A request that has to wait makes the unit watch for answers of other backends.
        let calls = async { tokio::join!(web.request("a.b", ()), web.request("a.b", ())) };
        let answers = async {
            wait_until("one pattern of answers", || patterns() == "4");
            cut_and_return(&server, &web).await;
            assert_eq!(patterns(), "4");
            places.add_permits(1);
        };
        let ((first, second), ()) = tokio::join!(calls, answers);
        first.expect("an answer");
        second.expect("an answer");
        web.request("c.d", ()).await.expect("an answer");
    }
}
