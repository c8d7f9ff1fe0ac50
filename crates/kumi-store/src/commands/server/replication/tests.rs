use crate::engine::store::{Effect, Flow};
use crate::testing::Lab;

#[test]
fn wait_answers_at_once_without_replicas() {
    Lab::new().check(&[
        ("WAIT 0 0", ":0\r\n"),
        ("WAIT -1 0", ":0\r\n"),
        (
            "WAIT x y",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "WAIT 1 x",
            "-ERR timeout is not an integer or out of range\r\n",
        ),
        ("WAIT 1 -1", "-ERR timeout is negative\r\n"),
        (
            "WAIT 1 9223372036854775807",
            "-ERR timeout is out of range\r\n",
        ),
        ("MULTI", "+OK\r\n"),
        ("WAIT 1 0", "+QUEUED\r\n"),
        ("EXEC", "*1\r\n:0\r\n"),
    ]);
}

#[test]
fn wait_for_a_replica_ends_with_its_timeout() {
    let mut lab = Lab::new();
    let client = lab.client;
    lab.check(&[("WAIT 1 100", "")]);
    assert_eq!(lab.last_flow, Flow::Blocked);
    lab.advance_ms(99);
    assert_eq!(lab.received(client), "");
    lab.advance_ms(1);
    assert_eq!(lab.received(client), ":0\r\n");
    assert!(matches!(lab.effects()[..], [Effect::Resume(key)] if key == client));
}

#[test]
fn only_replicaof_no_one_is_possible() {
    let mut lab = Lab::new();
    lab.check(&[
        ("REPLICAOF no one", "+OK\r\n"),
        ("SLAVEOF NO ONE", "+OK\r\n"),
        ("REPLICAOF no two", "-ERR Invalid master port\r\n"),
        ("REPLICAOF host 65536", "-ERR Invalid master port\r\n"),
        ("ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"),
    ]);
    assert!(lab.run("REPLICAOF host 6379").starts_with("-ERR kumi"));
}
