use crate::testing::Lab;

#[test]
fn a_message_reaches_channels_and_patterns() {
    let mut lab = Lab::new();
    let subscriber = lab.connect();
    assert_eq!(
        lab.run_as(subscriber, "SUBSCRIBE a b"),
        "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n"
    );
    assert_eq!(
        lab.run_as(subscriber, "PSUBSCRIBE ?"),
        "*3\r\n$10\r\npsubscribe\r\n$1\r\n?\r\n:3\r\n"
    );
    lab.check(&[("PUBLISH a hi", ":2\r\n"), ("PUBLISH none hi", ":0\r\n")]);
    assert_eq!(
        lab.received(subscriber),
        "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n*4\r\n$8\r\npmessage\r\n$1\r\n?\r\n$1\r\na\r\n$2\r\nhi\r\n"
    );
    lab.check(&[
        ("PUBSUB CHANNELS", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"),
        ("PUBSUB CHANNELS b*", "*1\r\n$1\r\nb\r\n"),
        (
            "PUBSUB NUMSUB a x",
            "*4\r\n$1\r\na\r\n:1\r\n$1\r\nx\r\n:0\r\n",
        ),
        ("PUBSUB NUMPAT", ":1\r\n"),
        ("PUBSUB SHARDCHANNELS", "*0\r\n"),
    ]);
}

#[test]
fn a_resp2_subscriber_may_only_manage_its_subscriptions() {
    let mut lab = Lab::new();
    lab.run("SUBSCRIBE a");
    lab.check(&[
            (
                "GET x",
                "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context\r\n",
            ),
            ("PING", "*2\r\n$4\r\npong\r\n$0\r\n\r\n"),
            ("PING hey", "*2\r\n$4\r\npong\r\n$3\r\nhey\r\n"),
            ("UNSUBSCRIBE", "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n"),
            ("GET x", "$-1\r\n"),
            ("UNSUBSCRIBE", "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n"),
        ]);
}

#[test]
fn a_resp3_subscriber_runs_any_command_and_gets_its_own_message_after_the_reply() {
    let mut lab = Lab::new();
    lab.run("HELLO 3");
    lab.check(&[
        ("SUBSCRIBE a", ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"),
        ("GET x", "_\r\n"),
        (
            "PUBLISH a hi",
            ":1\r\n>3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n",
        ),
        ("PING", "+PONG\r\n"),
    ]);
}

#[test]
fn shard_channels_count_on_their_own() {
    let mut lab = Lab::new();
    lab.run("HELLO 3");
    lab.check(&[
        ("SUBSCRIBE a", ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"),
        (
            "SSUBSCRIBE a",
            ">3\r\n$10\r\nssubscribe\r\n$1\r\na\r\n:1\r\n",
        ),
        (
            "SPUBLISH a x",
            ":1\r\n>3\r\n$8\r\nsmessage\r\n$1\r\na\r\n$1\r\nx\r\n",
        ),
        ("PUBSUB SHARDNUMSUB a", "*2\r\n$1\r\na\r\n:1\r\n"),
        (
            "SUNSUBSCRIBE",
            ">3\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n:0\r\n",
        ),
    ]);
}

#[test]
fn confirmations_reach_a_client_with_replies_off() {
    let mut lab = Lab::new();
    lab.check(&[
        ("CLIENT REPLY OFF", ""),
        ("PING", ""),
        ("SUBSCRIBE a", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"),
    ]);
}

#[test]
fn a_gone_subscriber_is_forgotten() {
    let mut lab = Lab::new();
    let subscriber = lab.connect();
    lab.run_as(subscriber, "SUBSCRIBE a");
    lab.store.disconnect(subscriber);
    lab.check(&[("PUBLISH a hi", ":0\r\n"), ("PUBSUB CHANNELS", "*0\r\n")]);
}

#[test]
fn keyspace_events_come_before_keyevents() {
    let mut lab = Lab::new();
    let _changes = lab
        .store
        .config
        .set_many(
            &[(b"notify-keyspace-events", b"KEA")],
            crate::config::Origin::Startup,
        )
        .expect("a valid directive");
    lab.store.load_settings();
    let subscriber = lab.connect();
    lab.run_as(subscriber, "PSUBSCRIBE __key*");
    lab.run("SET k v");
    let received = lab.received(subscriber);
    let keyspace = received.find("__keyspace@0__:k").expect("a keyspace event");
    let keyevent = received
        .find("__keyevent@0__:set")
        .expect("a keyevent event");
    assert!(keyspace < keyevent);
}
