use crate::engine::store::{Effect, Flow};
use crate::testing::Lab;

#[test]
fn shutdown_answers_nothing_and_asks_the_host_to_stop() {
    let mut lab = Lab::new();
    lab.check(&[
        ("SHUTDOWN NOW please", "-ERR syntax error\r\n"),
        ("SHUTDOWN SAVE NOSAVE", "-ERR syntax error\r\n"),
        ("SHUTDOWN ABORT NOW", "-ERR syntax error\r\n"),
        ("SHUTDOWN ABORT", "-ERR No shutdown in progress.\r\n"),
    ]);
    lab.host.disk_is_full = true;
    assert!(lab.run("SHUTDOWN SAVE").starts_with("-ERR Errors trying"));
    assert!(lab.effects().is_empty());
    assert_eq!(lab.run("shutdown nosave now force"), "");
    assert_eq!(lab.last_flow, Flow::Close);
    let effects = lab.effects();
    let [Effect::Shutdown(request)] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    assert!(request.now && request.force);
    assert_eq!(lab.run("PING"), "");
}

#[test]
fn shutdown_is_refused_in_a_transaction() {
    let mut lab = Lab::new();
    lab.check(&[
        ("MULTI", "+OK\r\n"),
        (
            "SHUTDOWN",
            "-ERR Command not allowed inside a transaction\r\n",
        ),
    ]);
    assert!(lab.effects().is_empty());
}

#[test]
fn save_writes_what_can_be_loaded_again() {
    let mut lab = Lab::new();
    for line in [
        "SET a 1",
        "SET t text PX 60000",
        "RPUSH l x y 3",
        "HSET h f v g w",
        "SADD s 1 2 three",
        "ZADD z 1.5 m 2 n",
        "SELECT 3",
        "SET b 2",
        "SELECT 0",
    ] {
        lab.run(line);
    }
    let info = |lab: &mut Lab| lab.run("INFO persistence");
    assert!(info(&mut lab).contains("rdb_changes_since_last_save:13\r\n"));
    lab.advance_ms(5000);
    lab.check(&[("SAVE", "+OK\r\n")]);
    assert!(info(&mut lab).contains("rdb_changes_since_last_save:0\r\n"));
    let saved = lab.host.saved.clone().expect("a file");
    let mut other = Lab::new();
    let loaded = other.store.load_rdb(&saved[..], |_| {}).expect("it loads");
    assert_eq!((loaded.keys, loaded.version), (7, 10));
    for line in [
        "GET a",
        "GET t",
        "LRANGE l 0 -1",
        "HGETALL h",
        "SMISMEMBER s 1 2 three 4",
        "ZRANGE z 0 -1 WITHSCORES",
        "DBSIZE",
    ] {
        assert_eq!(other.run(line), lab.run(line), "{line}");
    }
    assert!(other.run("PTTL t").as_str() > ":50000");
    other.check(&[("SELECT 3", "+OK\r\n"), ("GET b", "$1\r\n2\r\n")]);
    for cut in [0, 8, 9, 40, saved.len() - 1] {
        let mut third = Lab::new();
        third
            .store
            .load_rdb(&saved[..cut], |_| {})
            .expect_err("it is cut");
    }
    let mut damaged = saved.clone();
    damaged[60] ^= 1;
    let mut third = Lab::new();
    third
        .store
        .load_rdb(&damaged[..], |_| {})
        .expect_err("it is damaged");
}

#[test]
fn a_file_that_cannot_be_written_is_an_error() {
    let mut lab = Lab::new();
    lab.host.disk_is_full = true;
    assert!(
        lab.run("SAVE")
            .starts_with("-ERR the RDB file cannot be written")
    );
    // As in Redis, only a save in the background counts.
    assert!(
        lab.run("INFO persistence")
            .contains("rdb_last_bgsave_status:ok")
    );
    lab.check(&[(
        "SHUTDOWN SAVE",
        "-ERR Errors trying to SHUTDOWN. Check logs.\r\n",
    )]);
    assert_eq!(lab.run("SHUTDOWN SAVE FORCE"), "");
}

fn info(lab: &mut Lab, field: &str) -> String {
    let text = lab.run("INFO persistence");
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.strip_prefix(':'))
        .expect("a field")
        .to_owned()
}

#[test]
fn bgsave_writes_what_there_was_when_it_began() {
    let mut lab = Lab::new();
    lab.run("SET a before");
    lab.host.holds_snapshots = true;
    lab.check(&[("BGSAVE", "+Background saving started\r\n")]);
    lab.run("SET a after");
    lab.run("SET b after");
    assert_eq!(info(&mut lab, "rdb_bgsave_in_progress"), "1");
    assert_eq!(info(&mut lab, "rdb_current_bgsave_time_sec"), "0");
    assert_eq!(info(&mut lab, "current_save_keys_total"), "1");
    lab.check(&[
        ("BGSAVE", "-ERR Background save already in progress\r\n"),
        (
            "BGSAVE SCHEDULE",
            "-ERR Background save already in progress\r\n",
        ),
        ("SAVE", "-ERR Background save already in progress\r\n"),
        ("BGSAVE now", "-ERR syntax error\r\n"),
    ]);
    lab.advance_ms(2000);
    lab.host.holds_snapshots = false;
    lab.advance_ms(1000);
    assert_eq!(info(&mut lab, "rdb_bgsave_in_progress"), "0");
    assert_eq!(info(&mut lab, "rdb_last_bgsave_status"), "ok");
    assert_eq!(info(&mut lab, "rdb_last_bgsave_time_sec"), "3");
    assert_eq!(info(&mut lab, "rdb_saves"), "1");
    assert_eq!(info(&mut lab, "rdb_changes_since_last_save"), "2");
    lab.check(&[("LASTSAVE", ":1700000003\r\n")]);
    let saved = lab.host.saved.clone().expect("a file");
    let mut other = Lab::new();
    other.store.load_rdb(&saved[..], |_| {}).expect("it loads");
    other.check(&[("GET a", "$6\r\nbefore\r\n"), ("DBSIZE", ":1\r\n")]);
}

#[test]
fn bgsave_in_a_transaction_is_scheduled() {
    let mut lab = Lab::new();
    lab.check(&[
        ("MULTI", "+OK\r\n"),
        ("BGSAVE", "+QUEUED\r\n"),
        ("EXEC", "*1\r\n+Background saving scheduled\r\n"),
    ]);
    lab.advance_ms(100);
    lab.advance_ms(100);
    assert_eq!(info(&mut lab, "rdb_saves"), "1");
    lab.advance_ms(1000);
    assert_eq!(info(&mut lab, "rdb_saves"), "1");
}

#[test]
fn save_points_save_once_both_their_numbers_are_reached() {
    let mut lab = Lab::new();
    lab.configure("save", "60 2");
    lab.run("SET a 1");
    lab.advance_ms(70_000);
    assert_eq!(info(&mut lab, "rdb_saves"), "0");
    lab.run("SET b 1");
    lab.advance_ms(100);
    lab.advance_ms(100);
    assert_eq!(info(&mut lab, "rdb_saves"), "1");
    lab.run("MSET a 1 b 2 c 3");
    lab.advance_ms(60_000);
    assert_eq!(info(&mut lab, "rdb_saves"), "1", "not yet");
    lab.advance_ms(1_000);
    lab.advance_ms(100);
    assert_eq!(info(&mut lab, "rdb_saves"), "2");
}

#[test]
fn writes_are_refused_after_a_save_that_failed() {
    let mut lab = Lab::new();
    lab.configure("save", "60 1");
    lab.host.disk_is_full = true;
    assert!(lab.run("BGSAVE").starts_with("-ERR the RDB file"));
    assert_eq!(info(&mut lab, "rdb_last_bgsave_status"), "err");
    for line in [
        "SET a 1",
        "PING",
        "DEL a",
        "EVAL return(redis.call('DEL','a')) 0",
    ] {
        assert!(
            lab.run(line).starts_with("-MISCONF Redis is configured"),
            "{line}"
        );
    }
    lab.check(&[("EVAL return(1) 0", ":1\r\n"), ("PUBLISH c m", ":0\r\n")]);
    lab.check(&[
        ("GET a", "$-1\r\n"),
        ("CONFIG SET stop-writes-on-bgsave-error no", "+OK\r\n"),
    ]);
    lab.check(&[
        ("SET a 1", "+OK\r\n"),
        ("CONFIG SET stop-writes-on-bgsave-error yes", "+OK\r\n"),
    ]);
    assert!(lab.run("SET a 1").starts_with("-MISCONF"));
    lab.host.disk_is_full = false;
    // Not before five seconds have passed.
    lab.advance_ms(3_000);
    assert!(lab.run("SET a 1").starts_with("-MISCONF"));
    lab.advance_ms(60_000);
    lab.advance_ms(100);
    lab.check(&[("SET a 1", "+OK\r\n"), ("PING", "+PONG\r\n")]);
}

#[test]
fn flushall_ends_a_save_and_empties_the_file() {
    let mut lab = Lab::new();
    lab.configure("save", "60 10000");
    lab.run("SET a 1");
    lab.host.holds_snapshots = true;
    lab.run("BGSAVE");
    lab.check(&[("FLUSHALL", "+OK\r\n")]);
    assert_eq!(info(&mut lab, "rdb_bgsave_in_progress"), "0");
    assert_eq!(info(&mut lab, "rdb_changes_since_last_save"), "0");
    let saved = lab.host.saved.clone().expect("a file");
    let mut other = Lab::new();
    let loaded = other.store.load_rdb(&saved[..], |_| {}).expect("it loads");
    assert_eq!(loaded.keys, 0);
    lab.configure("save", "");
    lab.host.saved = None;
    lab.check(&[("FLUSHALL", "+OK\r\n")]);
    assert!(lab.host.saved.is_none());
}

#[test]
fn shutdown_saves_if_there_are_save_points() {
    for (points, line, saves) in [
        ("60 1", "SHUTDOWN", true),
        ("60 1", "SHUTDOWN NOSAVE", false),
        ("", "SHUTDOWN", false),
        ("", "SHUTDOWN SAVE", true),
    ] {
        let mut lab = Lab::new();
        lab.configure("save", points);
        lab.run("SET a 1");
        assert_eq!(lab.run(line), "");
        assert_eq!(lab.host.saved.is_some(), saves, "{points:?} {line}");
    }
}
