//! The store of a cluster: away and back, and a second one.

use kumi_common::Name;
use kumi_node::Node;
use kumi_node::config::{NodeConfig, StoreHere, StoreSection};
use kumi_node::core::status::{AttentionKind, Severity};
use kumi_node::driver::channel::{self, Operate, Status, StoreUse};
use kumi_node::driver::state_dir::StateDir;
use kumi_node::http::Readiness;

use crate::common::{builder, free_port, in_time, joining, seed, store_at, until, until_status};

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_was_away_is_used_again_and_nothing_is_lost() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let a = builder("a", directory.path()).store(store_at(port));
        let a = a.start().await.expect("a node");
        let first_seed = seed(&a);
        let b = joining("b", directory.path(), first_seed);
        let b = b.start().await.expect("a node");
        b.ready().await;
        let jobs = b.queue("mail").await.expect("a queue");
        let task = kumi_jobs::NewTask::new(kumi_jobs::TaskEnvelope::json("send", "1"));
        let made = jobs.enqueue_raw(task).await.expect("enqueued");
        let pinned = b.status().await.store.expect("a store").id;

        a.shutdown().await.expect("stopped");
        until(|| b.readiness() == Readiness::NoStore).await;
        // The status may be a second old, from before the stop.
        until_status(&b, |status| {
            let away = status.attention.iter();
            let mut away = away.filter(|one| one.kind == AttentionKind::StoreAway);
            away.any(|one| one.severity == Severity::Red)
        })
        .await;
        let store = b.status().await.store.expect("a store");
        assert!(store.away_since_unix_ms.is_some());
        assert_eq!(store.id, pinned);

        let a = joining("a", directory.path(), seed(&b)).store(store_at(port));
        let a = a.start().await.expect("a node");
        until(|| b.readiness() == Readiness::Ready).await;
        let record = jobs.get_status(made.id()).await.expect("a reply");
        assert!(record.is_some(), "a task was lost");
        until_status(&b, |status| {
            let mut kinds = status.attention.iter().map(|one| one.kind);
            !kinds.any(|kind| kind == AttentionKind::StoreAway)
        })
        .await;
        a.shutdown().await.expect("stopped");
        b.shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_store_is_red_until_the_operator_decides() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let a = builder("a", directory.path()).store(store_at(free_port()));
        let a = a.start().await.expect("a node");
        a.ready().await;
        let used = a.status().await.store.expect("a store").id;
        let b = joining("b", directory.path(), seed(&a)).store(store_at(free_port()));
        let b = b.start().await.expect("a node");
        b.ready().await;
        until_status(&a, |status| {
            let red = status.attention.iter();
            let mut red = red.filter(|one| one.severity == Severity::Red);
            red.any(|one| {
                one.kind == AttentionKind::StoreOther && one.words.contains("kumi store use")
            })
        })
        .await;
        let status = a.status().await;
        assert_eq!(status.store.expect("a store").id, used);
        let other = status.attention.into_iter();
        let mut other = other.filter(|one| one.kind == AttentionKind::StoreOther);
        let other = other.next().expect("told").subject;

        // Over the channel of the other node, and only with the operator's key.
        let name = Name::new("b").expect("a name");
        let connection = a.cluster().connect(&name).await.expect("a connection");
        let client = channel::open(&connection).await.expect("a channel");
        let document = client.status(&Status::default()).await.expect("a status");
        assert!(
            document.json.contains("\"name\":\"b\""),
            "{}",
            document.json
        );
        let refused = client.store_use(&StoreUse::new(other.clone())).await;
        assert!(refused.is_err(), "{refused:?}");
        let wrong = client.operate(&Operate::new("x")).await;
        assert!(wrong.is_err(), "{wrong:?}");
        let key = a.operator_key().expect("a key").expose().to_owned();
        client.operate(&Operate::new(key)).await.expect("rights");
        let decided = client.store_use(&StoreUse::new(other.clone())).await;
        assert_eq!(decided.expect("decided").pinned, other);
        for node in [&a, &b] {
            until_status(node, |status| {
                status.store.as_ref().is_some_and(|store| store.id == other)
            })
            .await;
        }
        let url = a.store_url().expect("a store");
        assert_eq!(Some(url), b.store_url());
        connection.close().await;
        b.shutdown().await.expect("stopped");
        a.shutdown().await.expect("stopped");
    })
    .await;
}

/// Its data set was never saved. A person who runs such a store does not want to decide at each restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_saves_nothing_is_the_clusters_again_after_a_restart() {
    in_time(async {
        let mut ephemeral = StoreHere::default();
        ephemeral.ephemeral = Some(true);
        let mut unsaved = StoreHere::default();
        unsaved.directives.insert("appendonly".into(), "no".into());
        for mut here in [ephemeral, unsaved] {
            let directory = tempfile::tempdir().expect("a directory");
            let port = free_port().to_string();
            here.directives.insert("port".into(), port);
            let mut ids = Vec::new();
            for _ in 0..2 {
                let store = StoreSection::Here(here.clone());
                let node = builder("a", directory.path()).store(store);
                let node = node.start().await.expect("a node");
                node.ready().await;
                ids.push(node.status().await.store.expect("a store").id);
                node.shutdown().await.expect("stopped");
            }
            assert_eq!(ids[0], ids[1]);
        }
    })
    .await;
}

/// It was in another cluster before, where somebody decided.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_comes_from_another_cluster_does_not_decide_for_its_new_one() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let a = builder("a", directory.path()).store(store_at(free_port()));
        let a = a.start().await.expect("a node");
        a.ready().await;
        let used = a.status().await.store.expect("a store").id;
        let state = StateDir::at(&directory.path().join("b")).expect("a directory");
        let pin = "kumi store pin 1\ncount 7\nby b~0000000000000001\nid other\nclusters 00000000000000c1\n";
        std::fs::write(state.path().join("store-pin"), pin).expect("written");
        let b = joining("b", directory.path(), seed(&a));
        let b = b.start().await.expect("a node");
        b.ready().await;
        for node in [&a, &b] {
            assert_eq!(node.status().await.store.expect("a store").id, used);
        }
        let kept = std::fs::read_to_string(state.path().join("store-pin")).expect("a file");
        assert!(kept.contains(&format!("\nid {used}\n")), "{kept}");
        b.shutdown().await.expect("stopped");
        a.shutdown().await.expect("stopped");
    })
    .await;
}

/// The wildcard of IPv6 takes no connections over IPv4.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_on_all_addresses_of_a_family_is_used_by_its_own_node() {
    in_time(async {
        let has_ipv6 = std::net::TcpListener::bind("[::1]:0").is_ok();
        for bind in ["0.0.0.0", "::"]
            .into_iter()
            .take(1 + usize::from(has_ipv6))
        {
            let directory = tempfile::tempdir().expect("a directory");
            let mut config = NodeConfig::default();
            config.node.advertise = Some("a.example".into());
            let node = Node::builder()
                .config(config)
                .name("a")
                .bind(bind.parse().expect("an address"))
                .ports(0, 0)
                .state_dir(directory.path())
                .store(store_at(free_port()))
                .start()
                .await
                .expect("a node");
            node.ready().await;
            node.shutdown().await.expect("stopped");
        }
    })
    .await;
}
