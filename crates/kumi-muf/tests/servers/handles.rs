//! The guarantees of a unit's handles: owned values are written, states are published, errors give the reason.

use std::time::Duration;

use futures_util::StreamExt;
use kumi_muf::{Connection, Error, Fault, KeepEvent, Request};

use crate::support::{Place, Server, echo};

#[tokio::test(flavor = "multi_thread")]
async fn an_owned_value_that_was_set_is_there_for_everybody() {
    for mut server in Server::each() {
        let unit = server.unit("unit").await;
        let owned = unit.keep("status", "0").owned().await.expect("owned");
        let web = server.unit("web").await;
        for number in 0..500 {
            owned.set(number.to_string()).await.expect("written");
            let read = web.read_keep("unit", "status").await.expect("an answer");
            assert_eq!(
                read.expect("it is there").text().expect("text"),
                number.to_string()
            );
        }
        server.kill();
        let lost = owned.set("lost").await;
        assert!(matches!(lost, Err(Error::Disconnected { .. })), "{lost:?}");
        server.restart();
        owned.set("found").await.expect("written");
        assert_eq!(server.cli(&["GET", "MUF/unit/KEEP/status"]), "found");
        unit.close().await.expect("closed");
        let late = owned.set("late").await;
        assert!(matches!(late, Err(Error::Closed)), "{late:?}");
        assert_eq!(server.cli(&["GET", "MUF/unit/KEEP/status"]), "found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_tells_whether_its_server_is_there() {
    for mut server in Server::each() {
        let unit = server.unit("unit").await;
        assert_eq!(unit.connection(), Connection::Connected);
        assert_eq!(unit.stats().await.expect("stats").reconnects, 0);
        let mut changes = unit.connection_changes();
        server.kill();
        let away = changes
            .wait_for(|now| matches!(now, Connection::Away { .. }))
            .await;
        away.expect("open");
        server.restart();
        changes
            .wait_for(|now| now.is_connected())
            .await
            .expect("open");
        assert_eq!(unit.stats().await.expect("stats").reconnects, 1);
        let closer = unit.clone();
        let closed = tokio::spawn(async move { closer.closed().await });
        unit.clone().close().await.expect("closed");
        closed.await.expect("no panic");
        assert_eq!(unit.connection(), Connection::Closed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn json_that_does_not_fit_says_where_and_faults_say_what() {
    for server in Server::each() {
        let backend = server.unit("back").await;
        let state = String::from("stock");
        backend
            .serve_json_with(
                "s.take",
                state,
                |state, request: Request, count: u32| async move {
                    assert_eq!((state.as_str(), request.unit()), ("stock", "web"));
                    match count {
                        0..=3 => Ok(3 - count),
                        _ => Err(Fault::new("too_many", "there are three")
                            .with_details(serde_json::json!({ "left": 3 }))),
                    }
                },
            )
            .await
            .expect("a service");
        let web = server.unit("web").await;
        assert_eq!(
            web.request_json::<_, u32>("s.take", &1)
                .await
                .expect("some"),
            2
        );
        let many = web.request_json::<_, u32>("s.take", &9).await;
        let fault = many.expect_err("too many").fault().expect("a fault");
        assert_eq!(
            (
                fault.code.as_str(),
                fault.details.expect("some")["left"].as_u64()
            ),
            ("too_many", Some(3))
        );
        let wrong = web
            .request_json::<_, u32>("s.take", "many")
            .await
            .expect_err("no number");
        let text = wrong.to_string();
        assert!(text.contains("the request is not"), "{text}");
        assert!(text.contains("invalid type: string"), "{text}");
        let odd = web
            .request_json::<_, String>("s.take", &1)
            .await
            .expect_err("no text");
        let text = odd.to_string();
        assert!(
            text.contains("the answer is not") && text.contains("invalid type"),
            "{text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_live_as_long_as_their_service_says_and_no_less_than_two_leases() {
    for server in Server::each() {
        let backend = server.unit("back").await;
        let long = backend
            .serve("a.long", echo)
            .answer_ttl(Duration::from_secs(600));
        long.await.expect("a service");
        let short = backend
            .serve("a.short", echo)
            .answer_ttl(Duration::from_millis(1));
        short.await.expect("a service");
        let web = server.unit("web").await;
        web.request("a.long", "x").await.expect("an answer");
        web.request("a.short", "x").await.expect("an answer");
        let life = |glob: &str| {
            let keys = server.keys(glob);
            server
                .cli(&["PTTL", &keys[0]])
                .parse::<u64>()
                .expect("a number")
        };
        let long_ms = life("MUF/web/RES/a.long*");
        assert!((590_000..=600_000).contains(&long_ms), "{long_ms}");
        let short_ms = life("MUF/web/RES/a.short*");
        assert!((1_000..=4_000).contains(&short_ms), "{short_ms}");
        let gather = web
            .gather("a.long", "x")
            .count(1)
            .ttl(Duration::from_secs(300));
        gather.await.expect("answers");
        let gather_ms = life("MUF/web/REQ/a.long~all*");
        assert!((290_000..=300_000).contains(&gather_ms), "{gather_ms}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_are_streams_too() {
    for server in Server::each() {
        let backend = server.unit("back").await;
        backend.serve("a.b", echo).await.expect("a service");
        let web = server.unit("web").await;
        let borrowed = String::from("21.5");
        web.keep("temperature", &borrowed[..]).await.expect("kept");
        let watch = web.watch_keep("web/*").await.expect("a watch");
        let seen: Vec<KeepEvent> = watch.take(2).collect().await;
        assert!(matches!(&seen[0], KeepEvent::Value { value, .. } if value == "21.5"));
        assert_eq!(seen[1], KeepEvent::Live);
        let tap = web.tap().await.expect("a tap");
        let answers = web
            .gather("a.b", borrowed.as_bytes())
            .count(1)
            .start()
            .await;
        let answers: Vec<_> = answers.expect("a gather").collect().await;
        assert_eq!(answers.len(), 1);
        let seen: Vec<_> = tap.take(2).collect().await;
        assert!(seen.iter().all(Result::is_ok));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_bear_the_unit_and_its_instance() {
    for server in Server::each() {
        let earlier = server.unit("web").await;
        let units = earlier.units().await.expect("units");
        let instance = units[0].instance.clone();
        assert!(instance.len() == 16 && instance.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let list = server.cli(&["CLIENT", "LIST"]);
        let named = list.matches(&format!("name=web~{instance} ")).count();
        assert_eq!(named, 2, "{list}");
        let seen = earlier.last_seen(&units).await.expect("a reply");
        assert!(seen[0].expect("it was seen") < Duration::from_secs(15));
    }
}
