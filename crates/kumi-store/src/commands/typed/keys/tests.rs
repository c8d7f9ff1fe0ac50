//! What the key commands answer, as a real server was seen to answer, and what else they leave behind.

use crate::testing::Lab;

#[test]
fn deleted_keys_are_counted() {
    Lab::new().check(&[
        ("MSET a 1 b 2 c 3", "+OK\r\n"),
        ("DEL a a none", ":1\r\n"),
        ("UNLINK b b none", ":1\r\n"),
        ("EXISTS a b c", ":1\r\n"),
        ("DEL none", ":0\r\n"),
        (
            "DEL",
            "-ERR wrong number of arguments for 'del' command\r\n",
        ),
        (
            "UNLINK",
            "-ERR wrong number of arguments for 'unlink' command\r\n",
        ),
    ]);
}

#[test]
fn exists_counts_repeated_keys_again() {
    Lab::new().check(&[
        ("MSET a 1 b 2", "+OK\r\n"),
        ("EXISTS a a b none", ":3\r\n"),
        ("EXISTS none", ":0\r\n"),
        ("TOUCH a a b none", ":3\r\n"),
        (
            "TOUCH",
            "-ERR wrong number of arguments for 'touch' command\r\n",
        ),
        (
            "EXISTS",
            "-ERR wrong number of arguments for 'exists' command\r\n",
        ),
        ("TYPE a", "+string\r\n"),
        ("TYPE none", "+none\r\n"),
        (
            "TYPE",
            "-ERR wrong number of arguments for 'type' command\r\n",
        ),
    ]);
}

#[test]
fn rename_takes_value_and_deadline_along() {
    Lab::new().check(&[
        ("SET a v EX 100", "+OK\r\n"),
        ("SET b w", "+OK\r\n"),
        ("RENAME a b", "+OK\r\n"),
        ("EXISTS a", ":0\r\n"),
        ("GET b", "$1\r\nv\r\n"),
        ("TTL b", ":100\r\n"),
        ("RENAME none b", "-ERR no such key\r\n"),
        ("RENAME none none", "-ERR no such key\r\n"),
        ("RENAME b b", "+OK\r\n"),
        ("SET n 12", "+OK\r\n"),
        ("APPEND n 3", ":3\r\n"),
        ("RENAME n m", "+OK\r\n"),
        ("OBJECT ENCODING m", "$3\r\nraw\r\n"),
        ("RENAMENX m b", ":0\r\n"),
        ("RENAMENX m m", ":0\r\n"),
        ("RENAMENX none none", "-ERR no such key\r\n"),
        ("RENAMENX m n", ":1\r\n"),
        ("GET n", "$3\r\n123\r\n"),
        (
            "RENAME a",
            "-ERR wrong number of arguments for 'rename' command\r\n",
        ),
    ]);
}

#[test]
fn copy_leaves_the_source_alone() {
    Lab::new().check(&[
        ("SET a v EX 100", "+OK\r\n"),
        ("COPY a b", ":1\r\n"),
        ("GET b", "$1\r\nv\r\n"),
        ("TTL b", ":100\r\n"),
        ("COPY a b", ":0\r\n"),
        ("SET a w", "+OK\r\n"),
        ("COPY a b REPLACE", ":1\r\n"),
        ("GET b", "$1\r\nw\r\n"),
        ("TTL b", ":-1\r\n"),
        ("COPY none b REPLACE", ":0\r\n"),
        (
            "COPY a a",
            "-ERR source and destination objects are the same\r\n",
        ),
        (
            "COPY a a DB 0",
            "-ERR source and destination objects are the same\r\n",
        ),
        ("COPY a a DB 1", ":1\r\n"),
        ("COPY a a DB 1", ":0\r\n"),
        ("COPY a a DB 1 REPLACE", ":1\r\n"),
        ("COPY a c REPLACE DB 1 DB 0", ":1\r\n"),
        ("EXISTS c", ":1\r\n"),
        ("COPY a b DB", "-ERR syntax error\r\n"),
        (
            "COPY a b DB x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        ("COPY a b DB 16", "-ERR DB index is out of range\r\n"),
        ("COPY a b DB -1", "-ERR DB index is out of range\r\n"),
        (
            "COPY a b DB 99999999999",
            "-ERR value is out of range, value must between -2147483648 and 2147483647\r\n",
        ),
        ("COPY a b FOO", "-ERR syntax error\r\n"),
        ("COPY none b FOO", "-ERR syntax error\r\n"),
        ("APPEND a x", ":2\r\n"),
        ("COPY a r", ":1\r\n"),
        ("OBJECT ENCODING r", "$3\r\nraw\r\n"),
        (
            "COPY a",
            "-ERR wrong number of arguments for 'copy' command\r\n",
        ),
    ]);
}

#[test]
fn move_changes_the_database() {
    Lab::new().check(&[
        ("SET a v EX 100", "+OK\r\n"),
        ("MOVE a 1", ":1\r\n"),
        ("EXISTS a", ":0\r\n"),
        ("MOVE a 1", ":0\r\n"),
        ("SET a w", "+OK\r\n"),
        ("MOVE a 1", ":0\r\n"),
        (
            "MOVE a 0",
            "-ERR source and destination objects are the same\r\n",
        ),
        ("MOVE a 16", "-ERR DB index is out of range\r\n"),
        ("MOVE a -1", "-ERR DB index is out of range\r\n"),
        (
            "MOVE a x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "MOVE a 99999999999",
            "-ERR value is out of range, value must between -2147483648 and 2147483647\r\n",
        ),
        (
            "MOVE none 0",
            "-ERR source and destination objects are the same\r\n",
        ),
        ("SELECT 1", "+OK\r\n"),
        ("GET a", "$1\r\nv\r\n"),
        ("TTL a", ":100\r\n"),
        ("DBSIZE", ":1\r\n"),
    ]);
}

#[test]
fn databases_are_counted_emptied_and_swapped() {
    Lab::new().check(&[
        ("MSET a 1 b 2", "+OK\r\n"),
        ("DBSIZE", ":2\r\n"),
        ("SWAPDB 0 1", "+OK\r\n"),
        ("DBSIZE", ":0\r\n"),
        ("SELECT 1", "+OK\r\n"),
        ("DBSIZE", ":2\r\n"),
        ("SWAPDB 1 1", "+OK\r\n"),
        ("SWAPDB 0 16", "-ERR DB index is out of range\r\n"),
        ("SWAPDB -1 0", "-ERR DB index is out of range\r\n"),
        ("SWAPDB x 0", "-ERR invalid first DB index\r\n"),
        ("SWAPDB 0 x", "-ERR invalid second DB index\r\n"),
        ("SWAPDB 99999999999 0", "-ERR invalid first DB index\r\n"),
        ("SWAPDB 0 99999999999", "-ERR invalid second DB index\r\n"),
        ("FLUSHDB x", "-ERR syntax error\r\n"),
        ("FLUSHDB SYNC x", "-ERR syntax error\r\n"),
        ("FLUSHALL x", "-ERR syntax error\r\n"),
        ("DBSIZE", ":2\r\n"),
        ("FLUSHDB ASYNC", "+OK\r\n"),
        ("DBSIZE", ":0\r\n"),
        ("SET a 1", "+OK\r\n"),
        ("FLUSHDB sync", "+OK\r\n"),
        ("SET a 1", "+OK\r\n"),
        ("FLUSHALL", "+OK\r\n"),
        ("FLUSHALL ASYNC", "+OK\r\n"),
        ("DBSIZE", ":0\r\n"),
    ]);
}

#[test]
fn key_commands_tell_what_they_did() {
    let mut lab = Lab::new();
    lab.check_events(&[
        (
            "MSET a 1 b 2 c 3",
            &["new a", "set a", "new b", "set b", "new c", "set c"],
        ),
        ("DEL a none a", &["del a"]),
        ("UNLINK b none", &["del b"]),
        ("EXISTS c none", &["keymiss none"]),
        ("TYPE none", &["keymiss none"]),
        ("TOUCH none", &["keymiss none"]),
        ("RENAME none x", &[]),
        ("RENAME c c", &[]),
        ("RENAME c d", &["new d", "rename_from c", "rename_to d"]),
        ("SET e 1", &["new e", "set e"]),
        ("RENAMENX d e", &[]),
        ("RENAME d e", &["new e", "rename_from d", "rename_to e"]),
        ("RENAMENX e f", &["new f", "rename_from e", "rename_to f"]),
        ("COPY f g", &["new g", "copy_to g"]),
        ("COPY f g", &[]),
        ("COPY f g REPLACE", &["new g", "copy_to g"]),
        ("COPY none g", &["keymiss none"]),
        ("COPY f g DB 1", &["new g @1", "copy_to g @1"]),
        ("MOVE g 1", &[]),
        ("MOVE f 1", &["new f @1", "move_from f", "move_to f @1"]),
        ("SWAPDB 0 1", &[]),
        ("FLUSHALL", &[]),
    ]);
}

#[test]
fn key_commands_count_their_changes() {
    let mut lab = Lab::new();
    lab.run("MSET a 1 b 2 c 3");
    let changes = [
        ("DEL a none", 1),
        ("DEL none", 0),
        ("TOUCH b", 0),
        ("RENAME b b", 0),
        ("RENAME b d", 1),
        ("RENAMENX d c", 0),
        ("COPY d e", 1),
        ("COPY d e", 0),
        ("MOVE e 1", 1),
        ("SWAPDB 0 0", 1),
        ("FLUSHDB", 2),
        ("FLUSHALL", 1),
        ("FLUSHALL", 0),
    ];
    for (line, expected) in changes {
        let before = lab.store.keyspace.dirty;
        lab.run(line);
        assert_eq!(
            lab.store.keyspace.dirty - before,
            expected,
            "after {line:?}"
        );
    }
}

#[test]
fn key_commands_leave_records_that_replay() {
    let mut lab = Lab::new();
    lab.check_writes(&[
        ("SET a 1", &["SET a 1"]),
        ("RENAME a b", &["RENAME a b"]),
        ("RENAMENX b b", &[]),
        ("COPY b c", &["COPY b c"]),
        ("MOVE c 1", &["MOVE c 1"]),
        ("DEL b none", &["DEL b none"]),
        ("DEL none", &[]),
        ("SWAPDB 0 1", &["SWAPDB 0 1"]),
        ("FLUSHDB", &["FLUSHDB"]),
        ("FLUSHALL ASYNC", &["FLUSHALL ASYNC"]),
    ]);
}

#[test]
fn copy_obeys_max_keys() {
    let mut lab = Lab::new();
    lab.configure("max-keys", "2");
    lab.check(&[
        ("MSET a 1 b 2", "+OK\r\n"),
        (
            "COPY a c",
            "-OOM command not allowed: max-keys limit of 2 keys reached\r\n",
        ),
        (
            "COPY a a DB 1",
            "-OOM command not allowed: max-keys limit of 2 keys reached\r\n",
        ),
        ("COPY a b REPLACE", ":1\r\n"),
        ("MGET a b c", "*3\r\n$1\r\n1\r\n$1\r\n1\r\n$-1\r\n"),
        ("RENAME a c", "+OK\r\n"),
        ("MOVE b 1", ":1\r\n"),
    ]);
}

#[test]
fn copies_of_big_values_are_their_own() {
    let mut lab = Lab::new();
    lab.run("SETRANGE a 99999 x");
    lab.check(&[
        ("COPY a b", ":1\r\n"),
        ("SETRANGE a 0 abc", ":100000\r\n"),
        ("GETRANGE b 0 2", "$3\r\n\0\0\0\r\n"),
        ("RENAME a c", "+OK\r\n"),
        ("GETRANGE c 0 2", "$3\r\nabc\r\n"),
    ]);
}

#[test]
fn touch_moves_the_clock_even_for_a_client_that_does_not() {
    let mut lab = Lab::new();
    lab.run("SET a v");
    lab.run("CLIENT NO-TOUCH ON");
    lab.advance_ms(10_000);
    lab.check(&[
        ("GET a", "$1\r\nv\r\n"),
        ("OBJECT IDLETIME a", ":10\r\n"),
        ("TOUCH a", ":1\r\n"),
        ("OBJECT IDLETIME a", ":0\r\n"),
    ]);
}

#[test]
fn an_emptied_database_leaves_in_one_piece() {
    let mut lab = Lab::new();
    lab.run("MSET a 1 b 2");
    let empty = Lab::new().store.keyspace.memory_bytes();
    lab.run("FLUSHALL SYNC");
    assert_eq!(lab.store.keyspace.memory_bytes(), empty);
    assert_eq!(lab.effects().len(), 1);
}
