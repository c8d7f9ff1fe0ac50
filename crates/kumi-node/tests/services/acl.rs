//! The store's users may do what their programs need, and no more.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use kumi_jobs::conformance::{Harness, run_all};
use kumi_jobs::{NewTask, Queue, RedisOptions, Settings, TaskEnvelope};
use kumi_muf::{KeepEvent, Muf};
use kumi_node::trust::{AclUser, Trust};
use kumi_unison::ClusterKey;

use crate::store::Store;
use crate::web::LONG;

/// Queues as a user, with one clock that the suite moves.
struct Queues {
    url: String,
    made: AtomicU64,
    clock: Arc<AtomicU64>,
}

impl Harness for Queues {
    fn queue(&self, settings: Settings) -> BoxFuture<'_, Arc<dyn Queue>> {
        Box::pin(async move {
            let number = self.made.fetch_add(1, Ordering::Relaxed);
            let url = format!("{}&queue=q{number}", self.url);
            let options = RedisOptions::from_url(&url).expect("a URL");
            let queue = options.settings(settings).virtual_clock(self.clock.clone());
            Arc::new(queue.connect().await.expect("a queue")) as Arc<dyn Queue>
        })
    }

    fn advance(&self, by: Duration) -> BoxFuture<'_, ()> {
        self.clock
            .fetch_add(by.as_millis() as u64, Ordering::SeqCst);
        Box::pin(async {})
    }
}

async fn unit(store: &Store, user: &AclUser, name: &str) -> Muf {
    Muf::connect(&store.url(user), name).await.expect("a unit")
}

/// Calls, calls to all, kept values, watches, the list of units and a tap.
async fn muf_works(store: &Store, user: &AclUser) {
    let backend = unit(store, user, "math").await;
    backend
        .serve("sum.add", |request: kumi_muf::Request| async move {
            Ok::<_, String>(request.payload().to_vec())
        })
        .await
        .expect("a service");
    let web = unit(store, user, "web").await;
    let mut tap = web.tap().await.expect("a tap");
    let answer = web.request("sum.add", "1 2").await.expect("an answer");
    assert_eq!(&answer.bytes()[..], b"1 2");
    assert!(tap.next().await.is_some());
    let large = "x".repeat(600_000);
    let answer = web
        .request("sum.add", large.clone())
        .await
        .expect("an answer");
    assert_eq!(&answer.bytes()[..], large.as_bytes());
    let mut watch = web.watch_keep("math/*").await.expect("a watch");
    let kept = backend.keep("state", "on").owned().await.expect("a value");
    kept.set("off").await.expect("written");
    loop {
        match watch.next().await.expect("an event") {
            KeepEvent::Value { value, .. } if value.as_ref() == b"off" => break,
            _ => {}
        }
    }
    assert!(backend.end_keep("state").await.is_ok());
    // Their ends unsubscribe while the unit goes on.
    drop((tap, watch));
    let units = web.units().await.expect("units");
    assert_eq!(units.len(), 2, "{units:?}");
    backend.close().await.expect("closed");
    web.close().await.expect("closed");
}

/// Commands of `kumi-node` that the server counts no call of here: SELECT is for URLs with a database and WAIT for those
/// with replicas, which have a test of their own; MUF asks for a cluster's slots, which the store answers with an error.
const NOT_COUNTED: &[&str] = &["select", "cluster|slots", "wait"];

/// What jobs and messaging try and can do without.
const TRIED: [&str; 1] = ["config|get"];

/// Status sends it; here the test itself does, to read what was counted.
const SENT_BY_THE_TEST: &str = "info";

#[tokio::test(flavor = "multi_thread")]
async fn kumi_node_may_send_what_jobs_and_messaging_send_and_no_more() {
    let store = Store::start();
    let user = store.trust.node_user();
    let queues = Queues {
        url: store.url(&user),
        made: AtomicU64::new(0),
        clock: Arc::new(AtomicU64::new(1_700_000_000_000)),
    };
    run_all(&queues).await;
    muf_works(&store, &user).await;
    assert_eq!(store.denied(), TRIED.map(str::to_owned).into());
    let rules = user.rules();
    let unused = || -> Vec<&str> {
        let statistics = store.connect().ask(&["INFO", "commandstats"]);
        let allowed = rules.iter().filter_map(|rule| rule.strip_prefix('+'));
        let is_unused = |command: &&str| {
            *command != SENT_BY_THE_TEST && !statistics.contains(&format!("cmdstat_{command}:"))
        };
        allowed.filter(is_unused).collect()
    };
    // The end of a watch unsubscribes in its own time.
    let began = Instant::now();
    while unused() != NOT_COUNTED && began.elapsed() < LONG {
        tokio::task::yield_now().await;
    }
    assert_eq!(unused(), NOT_COUNTED);
}

/// The store is reached by a URL with a database, whose tasks replicas are to confirm. There are none, so the enqueue is
/// told that, and not that it may not ask.
#[tokio::test(flavor = "multi_thread")]
async fn kumi_node_may_use_a_url_with_a_database_and_replicas() {
    let store = Store::start();
    let user = store.trust.node_user();
    let url = format!("{}&db=2&replicas=1&queue=q", store.url(&user));
    let options = RedisOptions::from_url(&url).expect("a URL");
    let queue = options.connect().await.expect("a queue");
    let task = NewTask::new(TaskEnvelope::json("resize", "1"));
    let refused = queue.enqueue(vec![task]).await.expect_err("no replicas");
    assert!(!refused.is_unauthorized(), "{refused}");
    let statistics = store.connect().ask(&["INFO", "commandstats"]);
    for command in ["select", "wait"] {
        assert!(
            statistics.contains(&format!("cmdstat_{command}:")),
            "{command}"
        );
    }
    Muf::connect(&format!("{}&db=2", store.url(&user)), "web")
        .await
        .expect("a unit");
    assert_eq!(store.denied(), TRIED.map(str::to_owned).into());
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_of_the_team_can_use_messaging_and_jobs() {
    let store = Store::start();
    let user = store.trust.app_user();
    muf_works(&store, &user).await;
    let url = format!("{}&queue=app", store.url(&user));
    let queue = RedisOptions::from_url(&url).expect("a URL").connect().await;
    queue.expect("a queue");
}

#[test]
fn kumi_node_gets_status_and_nothing_that_administers() {
    let store = Store::start();
    let mut client = store.connect_as(&store.trust.node_user());
    assert!(
        client
            .ask(&["INFO", "everything"])
            .contains("# Commandstats")
    );
    for refused in [
        &["FLUSHALL"][..],
        &["FLUSHDB"],
        &["CONFIG", "SET", "maxmemory", "1"],
        &["CONFIG", "GET", "requirepass"],
        &["CONFIG", "GET", "*"],
        &["CONFIG", "REWRITE"],
        &["ACL", "SETUSER", "x"],
        &["ACL", "WHOAMI"],
        &["SHUTDOWN"],
        &["DEBUG", "SLEEP", "0"],
        &["KEYS", "*"],
        &["CLIENT", "KILL", "ID", "1"],
        &["REPLICAOF", "NO", "ONE"],
        &["PUBLISH", "a", "b"],
        &["SAVE"],
        &["SET", "mine", "1"],
        &["GET", "MUFFIN"],
        &["EVAL", "return redis.call('GET', 'mine')", "0"],
        &["EVAL", "return redis.call('FLUSHALL')", "0"],
        &["FUNCTION", "FLUSH"],
        &["MONITOR"],
    ] {
        let said = client.ask(refused);
        assert!(
            said.starts_with("-NOPERM") || said.contains("ACL"),
            "{refused:?}: {said}"
        );
    }
    assert_eq!(client.ask(&["SET", "kumi:x", "1"]), "+OK");
}

#[test]
fn kumi_app_may_all_but_what_is_dangerous() {
    let store = Store::start();
    let mut client = store.connect_as(&store.trust.app_user());
    assert_eq!(client.ask(&["SET", "mine", "1"]), "+OK");
    assert_eq!(client.ask(&["GET", "mine"]), "1");
    assert_eq!(client.ask(&["PUBLISH", "a", "b"]), ":0");
    for refused in [
        &["FLUSHALL"][..],
        &["KEYS", "*"],
        &["CONFIG", "GET", "dir"],
        &["ACL", "LIST"],
        &["SHUTDOWN"],
        &["DEBUG", "SLEEP", "0"],
        &["MONITOR"],
    ] {
        let said = client.ask(refused);
        assert!(said.starts_with("-NOPERM"), "{refused:?}: {said}");
    }
}

#[test]
fn a_password_of_the_second_key_logs_in_and_another_does_not() {
    let store = Store::start();
    let [old, new] = [7, 8].map(|fill| ClusterKey::from_secret(&[fill; 32]).expect("long enough"));
    let both = Trust::from_key(&new.clone().accepting(&old)).expect("a trust");
    let user = both.node_user();
    let rules = user.rules();
    let mut words = vec!["ACL", "SETUSER", user.name()];
    words.extend(rules.iter().map(String::as_str));
    assert_eq!(store.connect().ask(&words), "+OK");
    store.connect_as(&user);
    store.connect_as(&store.trust.node_user());
    let app = store.trust.app_user();
    let said = store
        .connect()
        .ask(&["AUTH", user.name(), app.password().expose()]);
    assert!(said.starts_with("-WRONGPASS"), "{said}");
}
