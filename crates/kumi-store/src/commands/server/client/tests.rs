//! What CLIENT answers, and what a pause, a kill or silenced replies do to others.

use crate::base::ids::SessionKey;
use crate::data::keyspace::{Expiry, NewValue};
use crate::engine::store::{Effect, Flow};
use crate::testing::Lab;

#[test]
fn names_are_kept_and_checked() {
    let mut lab = Lab::new();
    lab.check(&[
        ("CLIENT GETNAME", "$-1\r\n"),
        ("CLIENT SETNAME me", "+OK\r\n"),
        ("CLIENT GETNAME", "$2\r\nme\r\n"),
        ("CLIENT SETINFO lib-name thing", "+OK\r\n"),
        ("CLIENT SETINFO LIB-VER 1.0", "+OK\r\n"),
        (
            "CLIENT SETINFO other 1.0",
            "-ERR Unrecognized option 'other'\r\n",
        ),
        ("CLIENT ID", ":1\r\n"),
        (
            "CLIENT",
            "-ERR wrong number of arguments for 'client' command\r\n",
        ),
        (
            "CLIENT NOPE",
            "-ERR unknown subcommand 'NOPE'. Try CLIENT HELP.\r\n",
        ),
    ]);
    let client = lab.client;
    assert!(
        lab.send(client, &[b"CLIENT", b"SETNAME", b"a b"])
            .starts_with("-ERR Client names cannot")
    );
    let listed = lab.run("CLIENT LIST");
    assert!(
        listed.contains(" name=me ") && listed.contains(" lib-name=thing lib-ver=1.0\n"),
        "{listed}"
    );
    assert!(
        listed.contains(" cmd=client|list ") && listed.contains(" flags=N "),
        "{listed}"
    );
    assert_eq!(
        lab.run("CLIENT INFO").lines().nth(1),
        listed.replace("client|list", "client|info").lines().nth(1)
    );
}

#[test]
fn lists_are_filtered_by_type_and_id() {
    let mut lab = Lab::new();
    let subscriber = lab.connect();
    lab.run_as(subscriber, "SUBSCRIBE a");
    let ids = |text: String| text.matches("id=").count();
    assert_eq!(ids(lab.run("CLIENT LIST TYPE pubsub")), 1);
    assert_eq!(ids(lab.run("CLIENT LIST TYPE normal")), 1);
    assert_eq!(ids(lab.run("CLIENT LIST ID 1 2 3")), 2);
    lab.check(&[
        ("CLIENT LIST TYPE x", "-ERR Unknown client type 'x'\r\n"),
        ("CLIENT LIST ID x", "-ERR Invalid client ID\r\n"),
        ("CLIENT LIST ID", "-ERR syntax error\r\n"),
    ]);
}

#[test]
fn kill_closes_others_at_once_and_itself_after_the_answer() {
    let mut lab = Lab::new();
    let other = lab.connect();
    lab.check(&[
        ("CLIENT KILL 1.1.1.1:1", "-ERR No such client\r\n"),
        ("CLIENT KILL ID 99", ":0\r\n"),
        ("CLIENT KILL ID 2 SKIPME yes", ":1\r\n"),
        ("CLIENT KILL USER nobody", "-ERR No such user 'nobody'\r\n"),
        (
            "CLIENT KILL ID 0",
            "-ERR client-id should be greater than 0\r\n",
        ),
    ]);
    assert!(matches!(lab.effects()[..], [Effect::Close(key)] if key == other));
    assert_eq!(lab.run("CLIENT KILL ID 1 SKIPME no"), ":1\r\n");
    assert_eq!(lab.last_flow, Flow::Close);
}

#[test]
fn no_evict_and_no_touch_are_shown_until_reset() {
    let mut lab = Lab::new();
    lab.check(&[
        ("CLIENT NO-EVICT on", "+OK\r\n"),
        ("CLIENT NO-TOUCH on", "+OK\r\n"),
    ]);
    assert!(lab.run("CLIENT INFO").contains(" flags=eT "));
    lab.run("RESET");
    assert!(lab.run("CLIENT INFO").contains(" flags=N "));
}

#[test]
fn replies_can_be_turned_off_and_skipped() {
    Lab::new().check(&[
        ("CLIENT REPLY SKIP", ""),
        ("PING", ""),
        ("PING", "+PONG\r\n"),
        ("CLIENT REPLY OFF", ""),
        ("PING", ""),
        ("CLIENT REPLY SKIP", ""),
        ("CLIENT REPLY ON", "+OK\r\n"),
        ("CLIENT REPLY x", "-ERR syntax error\r\n"),
    ]);
}

#[test]
fn answers_that_come_late_are_skipped_too() {
    let mut lab = Lab::new();
    for (mode, rest) in [("SKIP", "+PONG\r\n"), ("OFF", "")] {
        let waiting = lab.connect();
        lab.run_as(waiting, &format!("CLIENT REPLY {mode}"));
        assert_eq!(lab.run_as(waiting, "WAIT 1 100"), "");
        lab.advance_ms(200);
        assert_eq!(lab.received(waiting), "", "{mode}: after the timeout");
        assert_eq!(lab.run_as(waiting, "PING"), rest);

        lab.run_as(waiting, &format!("CLIENT REPLY {mode}"));
        assert_eq!(lab.run_as(waiting, "WAIT 1 0"), "");
        let id = waiting_id(&mut lab, waiting);
        lab.check(&[(&format!("CLIENT UNBLOCK {id} ERROR"), ":1\r\n")]);
        assert_eq!(lab.received(waiting), "", "{mode}: after UNBLOCK");
        assert_eq!(lab.run_as(waiting, "PING"), rest);

        lab.check(&[("CLIENT PAUSE 300 WRITE", "+OK\r\n")]);
        lab.run_as(waiting, &format!("CLIENT REPLY {mode}"));
        assert_eq!(lab.run_as(waiting, "SET held 1"), "");
        lab.advance_ms(400);
        assert_eq!(lab.received(waiting), "", "{mode}: after the pause");
        assert_eq!(lab.run_as(waiting, "PING"), rest);
    }
    lab.check(&[("GET held", "$1\r\n1\r\n")]);
}

fn waiting_id(lab: &mut Lab, key: SessionKey) -> u64 {
    lab.store.clients.sessions.get(key).expect("connected").id
}

#[test]
fn a_monitor_that_wants_no_answers_gets_no_lines() {
    let mut lab = Lab::new();
    let monitor = lab.connect();
    assert_eq!(lab.run_as(monitor, "MONITOR"), "+OK\r\n");
    lab.run_as(monitor, "CLIENT REPLY OFF");
    lab.received(monitor);
    lab.run("PING");
    assert_eq!(lab.received(monitor), "");
}

#[test]
fn a_pause_of_no_length_pauses_nothing() {
    let mut lab = Lab::new();
    lab.store.keyspace.expiry.active = false;
    lab.run("SET k v PX 10");
    lab.advance_ms(20);
    lab.check(&[
        ("MULTI", "+OK\r\n"),
        ("CLIENT PAUSE 0", "+QUEUED\r\n"),
        ("PERSIST k", "+QUEUED\r\n"),
        ("EXEC", "*2\r\n+OK\r\n:0\r\n"),
        ("DBSIZE", ":0\r\n"),
        ("SET k v", "+OK\r\n"),
    ]);
}

#[test]
fn a_pause_holds_writes_until_it_ends() {
    let mut lab = Lab::new();
    let other = lab.connect();
    lab.check(&[
        ("SET a 1", "+OK\r\n"),
        ("CLIENT PAUSE 100 WRITE", "+OK\r\n"),
    ]);
    assert_eq!(lab.run_as(other, "GET a"), "$1\r\n1\r\n");
    assert_eq!(lab.run_as(other, "SET a 2"), "");
    assert_eq!(lab.last_flow, Flow::Blocked);
    lab.check(&[("GET a", "$1\r\n1\r\n")]);
    lab.advance_ms(99);
    assert_eq!(lab.received(other), "");
    lab.advance_ms(1);
    assert_eq!(lab.received(other), "+OK\r\n");
    assert!(matches!(lab.effects()[..], [Effect::Resume(key)] if key == other));
    lab.check(&[("GET a", "$1\r\n2\r\n")]);
}

#[test]
fn a_command_that_a_pause_holds_cannot_be_unblocked() {
    let mut lab = Lab::new();
    let other = lab.connect();
    lab.check(&[("CLIENT PAUSE 100 WRITE", "+OK\r\n")]);
    assert_eq!(lab.run_as(other, "BLPOP l 0"), "");
    let id = waiting_id(&mut lab, other);
    for how in ["", "TIMEOUT", "ERROR"] {
        lab.check(&[(&format!("CLIENT UNBLOCK {id} {how}"), ":0\r\n")]);
        assert_eq!(lab.received(other), "", "{how}");
    }
    lab.advance_ms(100);
    // Now it waits for its key.
    lab.check(&[(&format!("CLIENT UNBLOCK {id}"), ":1\r\n")]);
    assert_eq!(lab.received(other), "*-1\r\n");
}

#[test]
fn a_pause_ends_in_time_when_the_wall_clock_is_set_back() {
    let mut lab = Lab::new();
    let other = lab.connect();
    lab.check(&[("CLIENT PAUSE 100 WRITE", "+OK\r\n")]);
    assert_eq!(lab.run_as(other, "SET a 2"), "");
    lab.host.now.unix_us -= 3_600_000_000;
    lab.advance_ms(60);
    assert_eq!(lab.received(other), "");
    let deadline_ms = lab.store.next_deadline();
    let wait_ms = deadline_ms.saturating_sub(lab.host.now.unix_ms());
    assert!(wait_ms <= 40, "{wait_ms} ms");
    lab.advance_ms(39);
    assert_eq!(lab.received(other), "");
    lab.advance_ms(1);
    assert_eq!(lab.received(other), "+OK\r\n");
}

#[test]
fn unpause_lets_everything_go_on() {
    let mut lab = Lab::new();
    let other = lab.connect();
    lab.check(&[("CLIENT PAUSE 100000 WRITE", "+OK\r\n")]);
    assert_eq!(lab.run_as(other, "SET a 2"), "");
    lab.check(&[("CLIENT UNPAUSE", "+OK\r\n")]);
    lab.advance_ms(0);
    assert_eq!(lab.received(other), "+OK\r\n");
}

#[test]
fn a_pause_hides_expired_keys_without_removing_them() {
    let mut lab = Lab::new();
    let now_ms = lab.host.now.unix_ms();
    let mut keys = lab.store.keyspace.keys(0, now_ms, true);
    keys.put(b"a", NewValue::Int(1), Expiry::At(now_ms + 10))
        .expect("no limits are set");
    lab.check(&[("CLIENT PAUSE 1000 WRITE", "+OK\r\n")]);
    lab.advance_ms(50);
    lab.check(&[("GET a", "$-1\r\n")]);
    assert_eq!(lab.store.keyspace.len(0), 1);
    lab.advance_ms(1000);
    assert_eq!(lab.store.keyspace.len(0), 0);
}

#[test]
fn bad_pauses_are_refused() {
    Lab::new().check(&[
        (
            "CLIENT PAUSE x",
            "-ERR timeout is not an integer or out of range\r\n",
        ),
        ("CLIENT PAUSE -1", "-ERR timeout is negative\r\n"),
        (
            "CLIENT PAUSE 9223372036854775807",
            "-ERR timeout is out of range\r\n",
        ),
        (
            "CLIENT PAUSE 1 x",
            "-ERR CLIENT PAUSE mode must be WRITE or ALL\r\n",
        ),
        ("CLIENT UNBLOCK 9", ":0\r\n"),
        (
            "CLIENT UNBLOCK x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "CLIENT UNBLOCK 9 x",
            "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n",
        ),
        ("CLIENT NO-EVICT on", "+OK\r\n"),
        ("CLIENT NO-TOUCH maybe", "-ERR syntax error\r\n"),
    ]);
}
