//! Invalidations as clients see them.

use crate::base::ids::SessionKey;
use crate::testing::Lab;

/// The push that invalidates one key.
fn invalidate(key: &str) -> String {
    format!(
        ">2\r\n$10\r\ninvalidate\r\n*1\r\n${}\r\n{key}\r\n",
        key.len()
    )
}

const EVERYTHING: &str = ">2\r\n$10\r\ninvalidate\r\n_\r\n";

/// A client in RESP3, with CLIENT TRACKING ON and these options.
fn tracker(lab: &mut Lab, options: &str) -> SessionKey {
    let client = lab.connect();
    lab.run_as(client, "HELLO 3");
    let line = format!("CLIENT TRACKING ON {options}");
    assert_eq!(lab.run_as(client, &line), "+OK\r\n");
    client
}

fn id_of(lab: &mut Lab, client: SessionKey) -> String {
    let reply = lab.run_as(client, "CLIENT ID");
    reply.trim_start_matches(':').trim_end().to_owned()
}

#[test]
fn a_key_that_was_read_is_invalidated_once() {
    let mut lab = Lab::new();
    let reader = tracker(&mut lab, "");
    lab.run_as(reader, "GET k");
    lab.run("SET k 1");
    assert_eq!(lab.received(reader), invalidate("k"));
    lab.run("SET k 2");
    assert_eq!(lab.received(reader), "");
    lab.run_as(reader, "MGET a b a");
    lab.run("MSET b 1 c 1 a 1");
    assert_eq!(
        lab.received(reader),
        [invalidate("b"), invalidate("a")].concat()
    );
}

#[test]
fn a_rename_invalidates_the_old_name_first() {
    let mut lab = Lab::new();
    lab.run("MSET old 1 new 2");
    let reader = tracker(&mut lab, "");
    lab.run_as(reader, "MGET new old");
    lab.run("RENAME old new");
    assert_eq!(
        lab.received(reader),
        [invalidate("old"), invalidate("new")].concat()
    );
}

#[test]
fn writes_are_not_tracked_and_errors_of_reads_are() {
    let mut lab = Lab::new();
    let reader = tracker(&mut lab, "");
    lab.run_as(reader, "GETSET k 1");
    lab.run_as(reader, "LRANGE k 0 -1");
    lab.run("DEL k");
    assert_eq!(lab.received(reader), invalidate("k"));
}

#[test]
fn own_invalidations_do_not_outlive_their_command() {
    let mut lab = Lab::new();
    let client = tracker(&mut lab, "");
    lab.run_as(client, "GET k");
    for line in ["MULTI", "SET k x", "CLIENT TRACKING OFF"] {
        lab.run_as(client, line);
    }
    let replies = lab.run_as(client, "EXEC");
    let sent = [replies, lab.received(client)].concat();
    let expected = ["*2\r\n+OK\r\n+OK\r\n", &invalidate("k")].concat();
    assert_eq!(sent, expected);
    assert!(!lab.store.outbox.invalidations.are_pending());
}

#[test]
fn own_invalidations_follow_the_reply() {
    let mut lab = Lab::new();
    let client = tracker(&mut lab, "");
    lab.run_as(client, "GET k");
    assert_eq!(
        lab.run_as(client, "SET k 1"),
        ["+OK\r\n", &invalidate("k")].concat()
    );
    for line in ["MULTI", "GET k", "SET k 2", "PING"] {
        lab.run_as(client, line);
    }
    assert_eq!(
        lab.run_as(client, "EXEC"),
        ["*3\r\n$1\r\n1\r\n+OK\r\n+PONG\r\n", &invalidate("k")].concat()
    );
    lab.run_as(client, "GET k");
    assert_eq!(
        lab.run_as(client, "FLUSHALL"),
        ["+OK\r\n", EVERYTHING].concat()
    );
}

#[test]
fn noloop_leaves_out_what_the_client_changed_itself() {
    let mut lab = Lab::new();
    let client = tracker(&mut lab, "NOLOOP");
    lab.run_as(client, "GET k");
    assert_eq!(lab.run_as(client, "SET k 1"), "+OK\r\n");
    lab.run_as(client, "GET k");
    let script = b"redis.call('set', 'k', 2) return 1";
    assert_eq!(lab.send(client, &[b"EVAL", script, b"0"]), ":1\r\n");
    lab.run_as(client, "GET k");
    lab.run("SET k 3");
    assert_eq!(lab.received(client), invalidate("k"));
}

#[test]
fn keys_that_scripts_read_are_tracked_and_declared_keys_are_not() {
    let mut lab = Lab::new();
    let client = tracker(&mut lab, "");
    let script = b"return redis.call('get', 'read')";
    for command in [&b"EVAL"[..], b"EVAL_RO"] {
        lab.send(client, &[command, script, b"1", b"declared"]);
        lab.run("SET declared 1");
        assert_eq!(lab.received(client), "");
        lab.run("SET read 1");
        assert_eq!(lab.received(client), invalidate("read"));
    }
}

#[test]
fn keys_that_expire_are_invalidated() {
    let mut lab = Lab::new();
    let client = tracker(&mut lab, "");
    lab.run("SET k v PX 50");
    lab.run_as(client, "GET k");
    lab.advance_ms(100);
    assert_eq!(lab.received(client), invalidate("k"));
    // By the client's own read, after the reply.
    lab.store.keyspace.expiry.active = false;
    lab.run("SET k v PX 50");
    lab.run_as(client, "GET k");
    lab.advance_ms(100);
    assert_eq!(
        lab.run_as(client, "GET k"),
        ["_\r\n", &invalidate("k")].concat()
    );
}

#[test]
fn broadcasts_hold_the_changed_keys_of_a_turn_by_prefix() {
    let mut lab = Lab::new();
    let client = tracker(&mut lab, "BCAST PREFIX user: PREFIX item:");
    lab.run("MSET user:2 b user:1 a other x item:9 z");
    let push = |keys: &[&str]| {
        let keys: Vec<String> = keys
            .iter()
            .map(|key| format!("${}\r\n{key}\r\n", key.len()))
            .collect();
        let count = keys.len();
        format!(">2\r\n$10\r\ninvalidate\r\n*{count}\r\n{}", keys.concat())
    };
    assert_eq!(
        lab.received(client),
        [push(&["item:9"]), push(&["user:1", "user:2"])].concat()
    );
    assert_eq!(
        lab.run_as(client, "SET user:1 x"),
        ["+OK\r\n", &push(&["user:1"])].concat()
    );
    lab.run("FLUSHDB");
    assert_eq!(lab.received(client), EVERYTHING);
}

#[test]
fn a_broadcast_with_noloop_leaves_out_own_keys() {
    let mut lab = Lab::new();
    let client = tracker(&mut lab, "BCAST NOLOOP");
    assert_eq!(lab.run_as(client, "SET k 1"), "+OK\r\n");
    lab.run("SET k 2");
    assert_eq!(lab.received(client), invalidate("k"));
    // As in Redis, NOLOOP does not apply to a script's writes.
    let script = b"redis.call('set', 'k', 3) return 1";
    assert_eq!(
        lab.send(client, &[b"EVAL", script, b"0"]),
        [":1\r\n", &invalidate("k")].concat()
    );
}

#[test]
fn optin_and_optout_follow_caching() {
    let mut lab = Lab::new();
    let client = tracker(&mut lab, "OPTIN");
    lab.run_as(client, "GET a");
    assert_eq!(lab.run_as(client, "CLIENT CACHING YES"), "+OK\r\n");
    lab.run_as(client, "CLIENT ID");
    lab.run_as(client, "GET b");
    lab.run_as(client, "GET c");
    lab.run("MSET a 1 b 1 c 1");
    assert_eq!(lab.received(client), invalidate("b"));
    lab.run_as(client, "CLIENT CACHING YES");
    for line in ["MULTI", "GET a", "GET b", "EXEC", "GET c"] {
        lab.run_as(client, line);
    }
    lab.run("MSET a 1 b 1 c 1");
    assert_eq!(
        lab.received(client),
        [invalidate("a"), invalidate("b")].concat()
    );
    let client = tracker(&mut lab, "OPTOUT");
    lab.run_as(client, "CLIENT CACHING NO");
    lab.run_as(client, "GET a");
    lab.run_as(client, "GET b");
    lab.run("MSET a 1 b 1");
    assert_eq!(lab.received(client), invalidate("b"));
}

#[test]
fn resp2_gets_invalidations_through_a_subscriber() {
    let mut lab = Lab::new();
    let (reader, listener) = (lab.connect(), lab.connect());
    let id = id_of(&mut lab, listener);
    let line = format!("CLIENT TRACKING ON REDIRECT {id}");
    assert_eq!(lab.run_as(reader, &line), "+OK\r\n");
    lab.run_as(reader, "GET k");
    lab.run("SET k 1");
    assert_eq!(lab.received(listener), "", "it is not subscribed");
    lab.run_as(listener, "SUBSCRIBE __redis__:invalidate");
    lab.run_as(reader, "GET k");
    lab.run("SET k 1");
    let message = "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n";
    assert_eq!(
        lab.received(listener),
        [message, "*1\r\n$1\r\nk\r\n"].concat()
    );
    lab.run("FLUSHALL");
    assert_eq!(lab.received(listener), [message, "$-1\r\n"].concat());
    assert_eq!(lab.received(reader), "");
}

#[test]
fn a_flush_reaches_a_common_receiver_in_the_order_of_the_trackers_ids() {
    let mut lab = Lab::new();
    let receiver = lab.connect();
    lab.run_as(receiver, "HELLO 3");
    let id = id_of(&mut lab, receiver);
    // The first tracker gets the place in the table of sessions that another one has left, and a higher id.
    let (free, older) = (lab.connect(), lab.connect());
    lab.store.disconnect(free);
    let newer = lab.connect();
    lab.run_as(newer, "HELLO 3");
    for client in [older, newer] {
        lab.run_as(client, &format!("CLIENT TRACKING ON REDIRECT {id}"));
    }
    lab.run("FLUSHALL");
    // The null is written in the tracker's own protocol.
    let in_resp2 = EVERYTHING.replace("_\r\n", "$-1\r\n");
    assert_eq!(lab.received(receiver), [&in_resp2, EVERYTHING].concat());
}

#[test]
fn a_redirection_to_a_client_that_is_gone_is_reported() {
    let mut lab = Lab::new();
    let listener = lab.connect();
    let id = id_of(&mut lab, listener);
    let reader = tracker(&mut lab, &format!("REDIRECT {id}"));
    lab.store.disconnect(listener);
    lab.run_as(reader, "GET k");
    lab.run("SET k 1");
    let broken = format!(">2\r\n$21\r\ntracking-redir-broken\r\n:{id}\r\n");
    assert_eq!(lab.received(reader), broken);
    let info = lab.run_as(reader, "CLIENT TRACKINGINFO");
    assert!(info.contains("broken_redirect"), "{info}");
    let info = lab.run_as(reader, "CLIENT INFO");
    assert!(info.contains(" flags=tR "), "{info}");
    assert!(info.contains(&format!(" redir={id} ")), "{info}");
}

#[test]
fn the_table_of_keys_is_limited() {
    let mut lab = Lab::new();
    lab.configure("tracking-table-max-keys", "2");
    let client = tracker(&mut lab, "");
    for key in ["a", "b", "c"] {
        assert_eq!(lab.run_as(client, &format!("GET {key}")), "_\r\n");
    }
    // The next command evicts before it runs.
    assert_eq!(
        lab.run_as(client, "PING"),
        [&invalidate("a"), "+PONG\r\n"].concat()
    );
    assert_eq!(lab.store.keyspace.interest.tracking.keys(), 2);
    lab.run_as(client, "GET d");
    lab.advance_ms(1000);
    assert_eq!(lab.received(client), invalidate("b"));
}

#[test]
fn reset_and_disconnecting_end_tracking() {
    let mut lab = Lab::new();
    let client = tracker(&mut lab, "BCAST PREFIX a");
    lab.run_as(client, "RESET");
    assert_eq!(lab.store.keyspace.interest.tracking.clients, 0);
    assert_eq!(lab.store.keyspace.interest.tracking.prefixes(), 0);
    let other = tracker(&mut lab, "");
    lab.run_as(other, "GET k");
    lab.store.disconnect(other);
    assert_eq!(lab.store.keyspace.interest.tracking.clients, 0);
    lab.run("SET k 1");
    assert_eq!(lab.store.keyspace.interest.tracking.keys(), 0);
    // A table that no session uses is dropped in time.
    let last = tracker(&mut lab, "");
    lab.run_as(last, "GET k");
    lab.store.disconnect(last);
    for _ in 0..12 {
        lab.advance_ms(1000);
    }
    assert!(!lab.store.keyspace.interest.tracking.is_on());
}

#[test]
fn info_counts_clients_keys_items_and_prefixes() {
    let mut lab = Lab::new();
    let (a, b) = (tracker(&mut lab, ""), tracker(&mut lab, ""));
    tracker(&mut lab, "BCAST PREFIX x PREFIX y");
    lab.run_as(a, "MGET k l");
    lab.run_as(b, "GET k");
    let info = lab.run("INFO");
    for field in [
        "tracking_clients:3",
        "tracking_total_keys:2",
        "tracking_total_items:3",
        "tracking_total_prefixes:2",
    ] {
        assert!(info.contains(&format!("{field}\r\n")), "{field}");
    }
}

#[test]
fn a_denied_read_is_not_tracked() {
    let mut lab = Lab::new();
    lab.run("ACL SETUSER reader on nopass +@all ~open:* &*");
    let client = tracker(&mut lab, "");
    lab.run_as(client, "AUTH reader x");
    assert!(lab.run_as(client, "GET secret").starts_with("-NOPERM"));
    lab.run_as(client, "GET open:1");
    lab.run("MSET secret 1 open:1 1");
    assert_eq!(lab.received(client), invalidate("open:1"));
    lab.run("ACL SETUSER reader -client|tracking");
    assert!(
        lab.run_as(client, "CLIENT TRACKING OFF")
            .starts_with("-NOPERM")
    );
}

#[test]
fn a_resumed_command_gets_its_own_invalidation_after_its_reply() {
    let mut lab = Lab::new();
    let client = tracker(&mut lab, "");
    lab.run_as(client, "LLEN l");
    assert_eq!(lab.run_as(client, "BLPOP l 0"), "");
    lab.run("RPUSH l x");
    let reply = "*2\r\n$1\r\nl\r\n$1\r\nx\r\n";
    assert_eq!(lab.received(client), [&invalidate("l"), reply].concat());
}
