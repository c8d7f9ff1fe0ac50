//! A subscriber that does not read until the server has had enough of it: real output buffers, really overflowing.

use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::sync::mpsc;
use std::time::Duration;

use kumi_muf::{Error, KeepEvent, Muf, Request};

use crate::support::{Place, Server, wait_until};

/// What the server keeps for a subscriber before it drops it.
const BUFFER_LIMIT: &str = "pubsub 65536 0 0";
const CALLS: usize = 20;
/// Values that change while the watch is not read: their events are several times what sockets and the buffer hold.
const VALUES: usize = 100;
const ROUNDS: usize = 150;

/// What the sleeper saw when it woke up.
struct Seen {
    events: Vec<KeepEvent>,
    answers: Vec<Result<String, Error>>,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_that_overflows_gets_a_gap_and_every_caller_its_answer() {
    for server in Server::each() {
        let limit = ["CONFIG", "SET", "client-output-buffer-limit", BUFFER_LIMIT];
        assert_eq!(server.cli(&limit), "OK");
        let backend = server.unit("back").await;
        let (open, gate) = tokio::sync::watch::channel(false);
        let held = move |request: Request| {
            let mut gate = gate.clone();
            async move {
                let _ = gate.wait_for(|open| *open).await;
                Ok::<_, Error>(request.payload().clone())
            }
        };
        backend.serve("a.b", held).await.expect("a service");
        let (ready, is_ready) = tokio::sync::oneshot::channel();
        let (wake, woken) = mpsc::channel();
        let url = server.url();
        let sleeper = std::thread::spawn(move || sleep_on(&url, ready, &woken));
        is_ready.await.expect("it watches, and calls");
        while backend.stats().await.expect("stats").started < CALLS as u64 {
            tokio::task::yield_now().await;
        }
        let subscribers = server.clients("pubsub").len();

        // The sleeper's thread reads nothing now. Answers are pushed to it, and far more changes than it can be kept.
        open.send_replace(true);
        let sensor = server.unit("sensor").await;
        let subscribers = subscribers + 1;
        for round in 0..ROUNDS {
            for value in 0..VALUES {
                let name = format!("a-name-that-is-long-enough-to-fill-buffers-quickly-{value:03}");
                let keep = sensor.keep(&name, round.to_string());
                keep.await.expect("kept");
            }
            if server.clients("pubsub").len() < subscribers {
                break;
            }
        }
        wait_until("the server drops the sleeper", || {
            server.clients("pubsub").len() < subscribers
        });
        let last = sensor.keep("last", "word");
        last.await.expect("kept");
        wake.send(()).expect("it sleeps");
        let seen = tokio::task::spawn_blocking(|| sleeper.join().expect("no panic"));
        let seen = seen.await.expect("no panic");

        let gap = seen
            .events
            .iter()
            .position(|event| *event == KeepEvent::Gap);
        let after = &seen.events[gap.expect("it gets a gap")..];
        let ids = |event: &KeepEvent| match event {
            KeepEvent::Value { id, .. } => Some(id.clone()),
            _ => None,
        };
        let known: std::collections::BTreeSet<String> = after.iter().filter_map(ids).collect();
        assert_eq!(known.len(), VALUES + 1, "all that is there is shown again");
        assert!(known.contains("last"));
        let answered = seen.answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(answered, CALLS, "{:?}", seen.answers);
    }
}

/// A unit on one thread that watches and calls, and then does not read until it is woken.
fn sleep_on(
    url: &str,
    ready: tokio::sync::oneshot::Sender<()>,
    woken: &mpsc::Receiver<()>,
) -> Seen {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let web = Muf::connect(url, "web").await.expect("a unit");
        let mut watch = web.watch_keep("sensor/*").await.expect("a watch");
        assert_eq!(watch.next().await, Some(KeepEvent::Live));
        let calls: Vec<_> = (0..CALLS)
            .map(|n| tokio::spawn(web.request("a.b", n.to_string()).into_future()))
            .collect();
        // The driver has sent what it was asked to once it has answered something asked later.
        while web.stats().await.expect("stats").pending < CALLS as u64 {
            tokio::task::yield_now().await;
        }
        web.read_keep("web", "nothing").await.expect("an answer");
        let _ = ready.send(());
        woken.recv().expect("somebody wakes us");

        let mut events = Vec::new();
        let mut live = false;
        while !live {
            let next = tokio::time::timeout(Duration::from_secs(30), watch.next());
            let event = next.await.expect("no hang").expect("open");
            live = event == KeepEvent::Live;
            events.push(event);
        }
        let mut answers = Vec::new();
        for call in calls {
            let answer = call.await.expect("no panic");
            answers.push(answer.map(|answer| answer.text().expect("text").to_owned()));
        }
        Seen { events, answers }
    })
}

/// Kept values of a watch whose reader is slow: several times what a watch holds.
const MANY: usize = 3_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_watcher_of_many_values_gets_all_of_them_and_the_keyspace_is_searched_once() {
    for server in Server::each() {
        let sensor = server.unit("sensor").await;
        keep_many(&sensor, "first").await;
        let web = server.unit("web").await;
        // The first call searches; later ones are answered when all pushes so far have been taken in.
        web.units().await.expect("units");
        let before = scans(&server);
        let mut watch = web.watch_keep("sensor/*").await.expect("a watch");
        let shown = read_slowly(&mut watch).await;
        assert_eq!(shown.len(), MANY);
        // A probe of the permission, and one search of three thousand keys in steps.
        let searched = scans(&server) - before;
        assert!(searched <= 10, "{searched} commands");

        // It is not read while all values change: events are dropped, and a gap makes up for them.
        keep_many(&sensor, "second").await;
        web.units().await.expect("units");
        // The reads that the pushes caused are answered before this one.
        web.read_keep("sensor", "0").await.expect("an answer");
        let shown = read_slowly(&mut watch).await;
        assert_eq!(shown.len(), MANY);
        assert!(shown.values().all(|value| value == "second"));
        assert_eq!(scans(&server) - before, searched, "no other search");
    }
}

async fn keep_many(sensor: &Muf, value: &str) {
    let keeps = (0..MANY).map(|n| sensor.keep(&n.to_string(), value).into_future());
    let kept = futures_util::future::try_join_all(keeps).await;
    kept.expect("kept");
}

/// SCAN commands that the server has run.
fn scans(server: &Server) -> u64 {
    let stats = server.cli(&["INFO", "commandstats"]);
    let mut lines = stats.lines();
    let calls = lines.find_map(|line| line.strip_prefix("cmdstat_scan:calls="));
    calls.map_or(0, |calls| {
        let calls = calls.split(',').next();
        calls.and_then(|calls| calls.parse().ok()).expect("a count")
    })
}

/// What a slow reader knows when the watch is live: it pauses after every fourth event.
async fn read_slowly(watch: &mut kumi_muf::KeepWatch) -> BTreeMap<String, String> {
    let mut known = BTreeMap::new();
    for count in 1.. {
        let next = tokio::time::timeout(Duration::from_secs(30), watch.next());
        match next.await.expect("no hang").expect("open") {
            KeepEvent::Value { id, value, .. } => {
                known.insert(id, String::from_utf8_lossy(&value).into_owned());
            }
            KeepEvent::Gap => known.clear(),
            KeepEvent::Live => return known,
            other => panic!("{other:?}"),
        }
        if count % 4 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    unreachable!("it returns when the watch is live")
}
