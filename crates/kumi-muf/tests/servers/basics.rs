//! What a user of the crate meets on a day when nothing breaks.

use std::future::IntoFuture;
use std::time::{Duration, Instant};

use kumi_muf::{Error, Json, KeepEvent, Request, Traffic};

use crate::support::{Place, Server, echo};

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_answered_by_services_that_match() {
    for server in Server::each() {
        let backend = server.unit("math").await;
        backend
            .serve_json("sum.add", |n: Vec<i64>| async move {
                Ok::<_, String>(n.iter().sum::<i64>())
            })
            .await
            .expect("a service");
        backend
            .serve("sum.*", |request: Request| async move {
                Err::<(), _>(format!("no method {}", request.target().unwrap_or("?")))
            })
            .await
            .expect("a service");
        let web = server.unit("web").await;
        let sum: i64 = web
            .request("sum.add", Json([1, 2, 3]))
            .await
            .expect("an answer")
            .json()
            .expect("JSON");
        assert_eq!(sum, 6);
        let error = web
            .request("sum.sub", Json([1]))
            .await
            .expect_err("no such method");
        assert!(matches!(error, Error::Remote(text) if text == "no method sum.sub"));
        let error = web
            .request("sum.add", "not JSON")
            .await
            .expect_err("not JSON");
        assert!(
            matches!(error, Error::Remote(text) if text.starts_with(b"the request is not the JSON"))
        );
        let big = "x".repeat(2 << 20);
        assert!(matches!(
            web.request("sum.add", big).await,
            Err(Error::TooLarge { .. })
        ));
        assert!(matches!(
            web.request("no dots", ()).await,
            Err(Error::Name(_))
        ));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unclaimed_call_and_an_unanswered_one_have_different_errors() {
    for server in Server::each() {
        let web = server.unit("web").await;
        let error = web
            .request("a.b", ())
            .ttl(Duration::from_millis(300))
            .await
            .expect_err("there is no backend");
        assert!(matches!(error, Error::NoResponder), "{error:?}");
        let backend = server.unit("sleepy").await;
        backend
            .serve("a.*", |_: Request| async {
                std::future::pending::<Result<(), String>>().await
            })
            .await
            .expect("a service");
        let error = web
            .request("a.b", ())
            .timeout(Duration::from_secs(3))
            .await
            .expect_err("silence");
        assert!(
            matches!(&error, Error::HandlerTimeout { claimant } if claimant == "sleepy"),
            "{error:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_answered_and_the_service_goes_on() {
    for server in Server::each() {
        let backend = server.unit("bomb").await;
        let explode = |request: Request| async move {
            assert!(request.text()? != "boom", "told to");
            Ok::<_, Error>("fine")
        };
        backend
            .serve("b.b", explode)
            .concurrency(1)
            .await
            .expect("a service");
        let web = server.unit("web").await;
        assert!(
            matches!(web.request("b.b", "boom").await, Err(Error::Remote(text)) if text == "the handler panicked")
        );
        assert_eq!(
            web.request("b.b", "tick").await.expect("an answer").bytes(),
            "fine"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_service_answers_what_it_has() {
    for server in Server::each() {
        let backend = server.unit("slow").await;
        let (began, begun) = tokio::sync::oneshot::channel();
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let parts = std::sync::Mutex::new(Some((began, gone)));
        let service = backend
            .serve_with("s.s", parts, |parts, _: Request| {
                let taken = parts.lock().expect("no panic").take();
                async move {
                    if let Some((began, gone)) = taken {
                        let _ = began.send(());
                        let _ = gone.await;
                    }
                    Ok::<_, Error>("done")
                }
            })
            .await
            .expect("a service");
        let web = server.unit("web").await;
        let call = tokio::spawn(web.request("s.s", ()).into_future());
        begun.await.expect("the handler begins");
        let drain = tokio::spawn(service.drain());
        // It says so itself once it takes no more.
        let serves =
            |units: Vec<kumi_muf::Info>| units.iter().any(|info| !info.services.is_empty());
        while serves(web.units().await.expect("units")) {
            tokio::task::yield_now().await;
        }
        let error = web
            .request("s.s", ())
            .ttl(Duration::from_millis(200))
            .await
            .expect_err("it is draining");
        assert!(matches!(error, Error::NoResponder), "{error:?}");
        go.send(()).expect("the handler waits");
        assert_eq!(
            call.await.expect("no panic").expect("an answer").bytes(),
            "done"
        );
        drain.await.expect("no panic").expect("drained");
        backend.close().await.expect("closed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_in_flight_get_one_answer_each() {
    for server in Server::each() {
        let mut backends = Vec::new();
        for index in 0..3 {
            let backend = server.unit(&format!("b{index}")).await;
            backend
                .serve("a.b", |request: Request| async move {
                    Ok::<_, Error>(request.payload().clone())
                })
                .await
                .expect("a service");
            backends.push(backend);
        }
        let web = server.unit("web").await;
        let calls: Vec<_> = (0..1_000)
            .map(|n| tokio::spawn(web.request("a.b", n.to_string()).into_future()))
            .collect();
        for (n, call) in calls.into_iter().enumerate() {
            let answer = call.await.expect("no panic").expect("an answer");
            assert_eq!(answer.text().expect("text"), n.to_string());
        }
        let mut started = 0;
        for backend in &backends {
            started += backend.stats().await.expect("stats").started;
        }
        assert_eq!(started, 1_000, "each request ran once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_call_forgets_it() {
    for server in Server::each() {
        let web = server.unit("web").await;
        let call = tokio::time::timeout(
            Duration::from_millis(50),
            web.request("a.b", ()).into_future(),
        );
        assert!(call.await.is_err());
        // The driver gets it after this, because it takes what is ready in turns.
        let until = Instant::now() + Duration::from_secs(20);
        while web.stats().await.expect("stats").pending > 0 {
            assert!(Instant::now() < until, "the call is still pending");
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gather_hears_every_backend() {
    for server in Server::each() {
        let mut backends = Vec::new();
        for index in 0..3 {
            let backend = server.unit(&format!("b{index}")).await;
            let name = backend.unit().to_owned();
            backend
                .serve("who.*", move |_: Request| {
                    let name = name.clone();
                    async move {
                        if name == "b1" {
                            Err("not me".to_owned())
                        } else {
                            Ok(name)
                        }
                    }
                })
                .await
                .expect("a service");
            backends.push(backend);
        }
        let web = server.unit("web").await;
        let mut answers = web.gather("who.there", ()).count(3).await.expect("answers");
        answers.sort_by(|a, b| a.backend.cmp(&b.backend));
        let told: Vec<_> = answers
            .iter()
            .map(|answer| (answer.backend.as_str(), answer.result.clone()))
            .collect();
        assert_eq!(
            told,
            [
                ("b0", Ok("b0".into())),
                ("b1", Err("not me".into())),
                ("b2", Ok("b2".into()))
            ]
        );
        let some = web
            .gather("who.there", ())
            .quiet(Duration::from_secs(2))
            .await
            .expect("answers");
        assert_eq!(some.len(), 3);
        let none = web
            .gather("no.body", ())
            .timeout(Duration::from_millis(100))
            .await
            .expect("no answers");
        assert_eq!(none, []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_see_a_snapshot_and_then_what_changes() {
    for server in Server::each() {
        let sensor = server.unit("sensor").await;
        sensor.keep("temperature", "20").await.expect("kept");
        assert!(matches!(
            sensor.keep("_mine", ()).await,
            Err(Error::Name(_))
        ));
        let web = server.unit("web").await;
        let mut watch = web.watch_keep("sensor/*").await.expect("a watch");
        let value = |event: &KeepEvent| match event {
            KeepEvent::Value { value, .. } => String::from_utf8_lossy(value).into_owned(),
            other => format!("{other:?}"),
        };
        assert_eq!(value(&watch.next().await.expect("the snapshot")), "20");
        assert_eq!(watch.next().await, Some(KeepEvent::Live));
        sensor.keep("temperature", "21").await.expect("kept");
        assert_eq!(value(&watch.next().await.expect("a change")), "21");
        server.cli(&["DEL", "MUF/sensor/KEEP/temperature"]);
        let gone = KeepEvent::Deleted {
            unit: "sensor".into(),
            id: "temperature".into(),
        };
        assert_eq!(watch.next().await, Some(gone));
        sensor
            .keep("blink", "1")
            .ttl(Duration::from_secs(2))
            .await
            .expect("kept");
        assert_eq!(value(&watch.next().await.expect("a change")), "1");
        let gone = KeepEvent::Expired {
            unit: "sensor".into(),
            id: "blink".into(),
        };
        assert_eq!(watch.next().await, Some(gone));
        assert_eq!(web.read_keep("sensor", "blink").await.expect("read"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owned_value_outlives_its_ttl_while_its_unit_lives() {
    for server in Server::each() {
        let unit = server.unit("unit").await;
        let owned = unit
            .keep("status", "up")
            .ttl(Duration::from_secs(2))
            .owned()
            .await
            .expect("owned");
        let web = server.unit("web").await;
        let mut watch = web.watch_keep("unit/status").await.expect("a watch");
        assert!(matches!(watch.next().await, Some(KeepEvent::Value { .. })));
        assert_eq!(watch.next().await, Some(KeepEvent::Live));
        // Refreshing is not a change.
        assert!(
            tokio::time::timeout(Duration::from_secs(5), watch.next())
                .await
                .is_err()
        );
        owned.set("busy").await.expect("changed");
        assert!(
            matches!(watch.next().await, Some(KeepEvent::Value { value, .. }) if value == "busy")
        );
        drop(owned);
        let gone = KeepEvent::Expired {
            unit: "unit".into(),
            id: "status".into(),
        };
        assert_eq!(watch.next().await, Some(gone));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn units_are_listed_while_they_live() {
    for server in Server::each() {
        let beat = Duration::from_secs(1);
        let backend = server
            .builder("back")
            .version("1.2")
            .heartbeat(beat)
            .connect()
            .await
            .expect("a unit");
        backend
            .serve("a.*", |_: Request| async { Ok::<_, Error>(()) })
            .await
            .expect("a service");
        let web = server.unit("web").await;
        let names = |units: Vec<kumi_muf::Info>| {
            units.into_iter().map(|info| info.unit).collect::<Vec<_>>()
        };
        loop {
            let units = web.units().await.expect("units");
            let back = units
                .iter()
                .find(|info| info.unit == "back")
                .expect("it is there");
            if back.services == ["a.*"] {
                assert_eq!(back.version, "1.2");
                assert_eq!(names(units), ["back", "web"]);
                break;
            }
        }
        drop(backend);
        let mut watch = web.watch_keep("*/*").await.expect("a watch");
        assert_eq!(
            watch.next().await,
            Some(KeepEvent::Live),
            "info is not shown to watchers"
        );
        while names(web.units().await.expect("units")) != ["web"] {
            tokio::time::sleep(beat).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tracing_travels_beside_the_request() {
    for server in Server::each() {
        let backend = server
            .builder("back")
            .tracing(true)
            .connect()
            .await
            .expect("a unit");
        backend
            .serve("a.b", |request: Request| async move {
                assert!(request.deadline().is_some());
                Ok::<_, Error>(request.traceparent().unwrap_or_default())
            })
            .await
            .expect("a service");
        let web = server
            .builder("web")
            .tracing(true)
            .connect()
            .await
            .expect("a unit");
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let answer = web
            .request("a.b", "payload")
            .traceparent(parent)
            .await
            .expect("an answer");
        assert_eq!(answer.text().expect("text"), parent);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tap_shows_request_claim_and_answer_of_other_units_once_each() {
    for server in Server::each() {
        let looker = server.unit("looker").await;
        let mut tap = looker.tap().await.expect("a tap");
        let backend = server.unit("echo").await;
        backend
            .serve("echo.*", |request: Request| async move {
                Ok::<_, Error>(request.payload().clone())
            })
            .await
            .expect("a service");
        let web = server.unit("web").await;
        web.request("echo.say", "hi").await.expect("an answer");
        let mut seen = Vec::new();
        while seen.len() < 4 {
            let next = tokio::time::timeout(Duration::from_secs(20), tap.next());
            match next.await.expect("no hang").expect("open").expect("read") {
                Traffic::Key(event) => {
                    let kind = match event.id.ends_with(".claim") {
                        true => "claim",
                        false => event.status.as_str(),
                    };
                    let value = event.value.unwrap_or_default();
                    let value = String::from_utf8_lossy(&value).into_owned();
                    seen.push(format!("{} {kind} {} {value}", event.unit, event.event));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(seen[0], "web REQ set hi");
        assert!(seen[1].starts_with("web claim set echo~"), "{seen:?}");
        assert_eq!(seen[2], "web RES set hi");
        assert_eq!(seen[3], "web REQ expired ");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_all_processes_of_a_name_served_is_summed() {
    for server in Server::each() {
        let unit = async |name: &str| {
            let builder = server.builder(name).heartbeat(Duration::from_millis(50));
            builder.connect().await.expect("a unit")
        };
        let (first, second, web) = (unit("back").await, unit("back").await, unit("web").await);
        assert_eq!(
            web.served(&["back"]).await.expect("a reply")[0].requests(),
            0
        );
        first.serve("a.good", echo).await.expect("a service");
        second
            .serve("a.bad", |_: Request| async move {
                tokio::time::sleep(Duration::from_millis(3)).await;
                Err::<(), _>("no".to_owned())
            })
            .await
            .expect("a service");
        for _ in 0..3 {
            web.request("a.good", "x").await.expect("an answer");
        }
        web.request("a.bad", "x").await.expect_err("an error");
        // One of them ends, and what it served counts on; the other writes at its next heartbeat.
        first.close().await.expect("closed");
        let served = loop {
            let served = web.served(&["back", "none"]).await.expect("a reply");
            if served[0].requests() >= 4 {
                break served;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        assert_eq!((served[0].requests(), served[0].errors), (4, 1));
        // The one that slept took longer than 2 ms.
        assert!(served[0].times[2..].iter().sum::<u64>() >= 1);
        assert_eq!(served[1].requests(), 0);
        // A unit that is dropped before its next heartbeat writes what it served.
        let late = server.builder("late").heartbeat(Duration::from_secs(3_600));
        let late = late.connect().await.expect("a unit");
        late.serve("a.late", echo).await.expect("a service");
        web.request("a.late", "x").await.expect("an answer");
        drop(late);
        let is_written = async {
            while web.served(&["late"]).await.expect("a reply")[0].requests() == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let is_written = tokio::time::timeout(Duration::from_secs(30), is_written).await;
        is_written.expect("what it served is written");
        let week_ms: i64 = 7 * 24 * 3_600 * 1_000;
        let left_ms = server.cli(&["PTTL", "MUF/back/KEEP/_served.errors"]);
        let left_ms: i64 = left_ms.parse().expect("a number");
        assert!((week_ms - 60_000..=week_ms).contains(&left_ms), "{left_ms}");
    }
}
