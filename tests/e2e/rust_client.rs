//! The `redis` crate against a node: pipelines, transactions, pub/sub, RESP3 and the asynchronous clients.

use crate::node::{Node, TIMEOUT};
use redis::{AsyncTypedCommands, Client, Connection, TypedCommands};
use std::future::Future;
use std::thread;

fn connect(url: &str, query: &str) -> Connection {
    let client = Client::open(format!("{url}{query}")).expect("a valid URL");
    let connection = client.get_connection_with_timeout(TIMEOUT);
    let connection = connection.expect("the node listens");
    connection
        .set_read_timeout(Some(TIMEOUT))
        .expect("a socket has timeouts");
    connection
}

fn in_tokio<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let limited = async { tokio::time::timeout(TIMEOUT, future).await };
    runtime.block_on(limited).expect("it takes no time")
}

#[test]
fn a_pipeline_of_many_commands_comes_back_in_order() {
    let node = Node::start(&[]);
    let mut connection = connect(&node.url(), "");
    let mut pipeline = redis::pipe();
    for index in 0..5000 {
        pipeline.set(format!("key:{index}"), index).ignore();
        pipeline.get(format!("key:{index}"));
    }
    let values: Vec<u32> = pipeline.query(&mut connection).expect("all succeed");
    assert_eq!(values, (0..5000).collect::<Vec<u32>>());
}

#[test]
fn a_watched_counter_loses_no_increment_of_several_clients() {
    const CLIENTS: i64 = 4;
    const ROUNDS: i64 = 50;
    let node = Node::start(&[]);
    let url = node.url();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut connection = connect(&url, "");
                for _ in 0..ROUNDS {
                    increment_by_hand(&mut connection);
                }
            });
        }
    });
    let counter = connect(&node.url(), "")
        .get("counter")
        .expect("it is there");
    assert_eq!(counter, Some((CLIENTS * ROUNDS).to_string()));
}

fn increment_by_hand(connection: &mut Connection) {
    let done: Result<(i64,), _> =
        redis::transaction(connection, &["counter"], |connection, pipeline| {
            let text = connection.get("counter")?;
            let value: i64 = text.map_or(0, |text| text.parse().expect("only we write it"));
            pipeline
                .set("counter", value + 1)
                .ignore()
                .cmd("INCRBY")
                .arg("counter")
                .arg(0)
                .query(connection)
        });
    done.expect("a transaction is tried until it goes through");
}

#[test]
fn published_messages_arrive_in_both_protocols() {
    for query in ["", "?protocol=resp3"] {
        let node = Node::start(&[]);
        let mut subscriber = connect(&node.url(), query);
        let mut publisher = connect(&node.url(), query);
        let mut received = Vec::new();
        let mut pubsub = subscriber.as_pubsub();
        pubsub.subscribe("news").expect("subscribing works");
        pubsub.psubscribe("w*").expect("subscribing works");
        for (channel, text) in [
            ("news", "one"),
            ("weather", "two"),
            ("sports", "three"),
            ("news", "end"),
        ] {
            publisher.publish(channel, text).expect("publishing works");
        }
        while received.last().is_none_or(|text| text != "end") {
            let message = pubsub.get_message().expect("a message comes");
            received.push(message.get_payload::<String>().expect("it is text"));
        }
        assert_eq!(received, ["one", "two", "end"], "with {query:?}");
    }
}

#[test]
fn a_resp3_client_gets_typed_replies() {
    let node = Node::start(&[]);
    let mut connection = connect(&node.url(), "?protocol=resp3");
    let value: redis::Value = redis::cmd("CONFIG")
        .arg("GET")
        .arg("maxmemory")
        .query(&mut connection)
        .expect("CONFIG GET works");
    assert!(matches!(value, redis::Value::Map(_)), "{value:?}");
    let value: redis::Value = redis::cmd("GET")
        .arg("nothing")
        .query(&mut connection)
        .expect("GET works");
    assert_eq!(value, redis::Value::Nil);
}

#[test]
fn many_tasks_share_one_connection() {
    let node = Node::start(&[]);
    let client = Client::open(node.url()).expect("a valid URL");
    in_tokio(async {
        let connection = client.get_multiplexed_async_connection().await;
        let connection = connection.expect("the node listens");
        let tasks: Vec<_> = (0..100)
            .map(|index: usize| {
                let mut connection = connection.clone();
                tokio::spawn(async move {
                    let key = format!("task:{index}");
                    connection.set(&key, index).await?;
                    connection.incr("finished", 1).await?;
                    connection.get_int(&key).await
                })
            })
            .collect();
        for (index, task) in tasks.into_iter().enumerate() {
            let value = task
                .await
                .expect("it does not panic")
                .expect("its commands work");
            assert_eq!(value, Some(index as isize));
        }
        let finished = connection.clone().get_int("finished").await;
        assert_eq!(finished.expect("it is there"), Some(100));
    });
}

#[test]
fn a_connection_manager_comes_back_after_its_client_was_killed() {
    let node = Node::start(&[]);
    let client = Client::open(node.url()).expect("a valid URL");
    in_tokio(async {
        let mut manager = client
            .get_connection_manager()
            .await
            .expect("the node listens");
        manager.set("a", 1).await.expect("SET works");
        node.cli("CLIENT KILL TYPE normal SKIPME yes");
        // What was sent on the dead connection may fail; what is sent later must not.
        while manager.get_int("a").await.is_err() {}
        assert_eq!(manager.get_int("a").await.expect("it is back"), Some(1));
    });
}
