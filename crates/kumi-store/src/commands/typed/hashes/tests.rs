//! What the hash commands answer, and what else they leave behind.

use crate::testing::Lab;

#[test]
fn fields_are_set_read_and_counted() {
    Lab::new().check(&[
        ("HSET h a 1 b two a 3", ":2\r\n"),
        ("HGET h a", "$1\r\n3\r\n"),
        ("HGET h none", "$-1\r\n"),
        ("HGET none a", "$-1\r\n"),
        ("HSET h a 4", ":0\r\n"),
        ("HMSET h c 5", "+OK\r\n"),
        ("HLEN h", ":3\r\n"),
        ("HLEN none", ":0\r\n"),
        ("HMGET h a none c", "*3\r\n$1\r\n4\r\n$-1\r\n$1\r\n5\r\n"),
        ("HMGET none a b", "*2\r\n$-1\r\n$-1\r\n"),
        ("HSTRLEN h b", ":3\r\n"),
        ("HSTRLEN h a", ":1\r\n"),
        ("HSTRLEN h none", ":0\r\n"),
        ("HEXISTS h b", ":1\r\n"),
        ("HEXISTS h none", ":0\r\n"),
        ("HSETNX h b 9", ":0\r\n"),
        ("HSETNX h d 9", ":1\r\n"),
        ("HSETNX new d 9", ":1\r\n"),
        (
            "HGETALL h",
            "*8\r\n$1\r\na\r\n$1\r\n4\r\n$1\r\nb\r\n$3\r\ntwo\r\n$1\r\nc\r\n$1\r\n5\r\n$1\r\nd\r\n$1\r\n9\r\n",
        ),
        ("HKEYS new", "*1\r\n$1\r\nd\r\n"),
        ("HVALS new", "*1\r\n$1\r\n9\r\n"),
        ("HGETALL none", "*0\r\n"),
        ("HKEYS none", "*0\r\n"),
        ("TYPE h", "+hash\r\n"),
    ]);
}

#[test]
fn the_last_field_takes_the_hash_with_it() {
    Lab::new().check(&[
        ("HSET h a 1 b 2", ":2\r\n"),
        ("HDEL h a none", ":1\r\n"),
        ("HDEL none a", ":0\r\n"),
        ("HDEL h b b", ":1\r\n"),
        ("EXISTS h", ":0\r\n"),
    ]);
}

#[test]
fn wrong_requests_are_refused_and_change_nothing() {
    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    Lab::new().check(&[
        ("SET s text", "+OK\r\n"),
        ("HSET s a 1", wrong_type),
        ("HSETNX s a 1", wrong_type),
        ("HGET s a", wrong_type),
        ("HMGET s a", wrong_type),
        ("HDEL s a", wrong_type),
        ("HINCRBY s a 1", wrong_type),
        ("HRANDFIELD s", wrong_type),
        ("HSCAN s 0", wrong_type),
        (
            "HSET h a",
            "-ERR wrong number of arguments for 'hset' command\r\n",
        ),
        (
            "HSET h a 1 b",
            "-ERR wrong number of arguments for 'hset' command\r\n",
        ),
        (
            "HMSET h a 1 b",
            "-ERR wrong number of arguments for 'hmset' command\r\n",
        ),
        ("EXISTS h", ":0\r\n"),
        ("HSET h a 1", ":1\r\n"),
        ("GET h", wrong_type),
    ]);
}

#[test]
fn fields_count_as_integers_and_fractions_do() {
    Lab::new().check(&[
        ("HINCRBY h n 5", ":5\r\n"),
        ("HINCRBY h n -7", ":-2\r\n"),
        (
            "HINCRBY h n x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        ("HSET h t text m 9223372036854775807", ":2\r\n"),
        ("HINCRBY h t 1", "-ERR hash value is not an integer\r\n"),
        (
            "HINCRBY h m 1",
            "-ERR increment or decrement would overflow\r\n",
        ),
        ("HINCRBYFLOAT h n 0.5", "$4\r\n-1.5\r\n"),
        ("HINCRBYFLOAT h new 3.0e3", "$4\r\n3000\r\n"),
        ("HINCRBYFLOAT h t 1", "-ERR hash value is not a float\r\n"),
        ("HINCRBYFLOAT h n x", "-ERR value is not a valid float\r\n"),
        ("HINCRBYFLOAT h n inf", "-ERR value is NaN or Infinity\r\n"),
        ("HGET h n", "$4\r\n-1.5\r\n"),
        (
            "HINCRBY none n x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        ("EXISTS none", ":0\r\n"),
    ]);
}

#[test]
fn random_fields_come_in_every_form() {
    let mut lab = Lab::new();
    lab.check(&[
        ("HRANDFIELD none", "$-1\r\n"),
        ("HRANDFIELD none 3", "*0\r\n"),
        ("HSET h a 1", ":1\r\n"),
        ("HRANDFIELD h", "$1\r\na\r\n"),
        ("HRANDFIELD h 5", "*1\r\n$1\r\na\r\n"),
        ("HRANDFIELD h -2", "*2\r\n$1\r\na\r\n$1\r\na\r\n"),
        ("HRANDFIELD h 0", "*0\r\n"),
        ("HRANDFIELD h 1 WITHVALUES", "*2\r\n$1\r\na\r\n$1\r\n1\r\n"),
        (
            "HRANDFIELD h -2 withvalues",
            "*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\na\r\n$1\r\n1\r\n",
        ),
        ("HRANDFIELD h 1 x", "-ERR syntax error\r\n"),
        ("HRANDFIELD h 1 WITHVALUES x", "-ERR syntax error\r\n"),
        (
            "HRANDFIELD h x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "HRANDFIELD h -9223372036854775808",
            "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807\r\n",
        ),
        (
            "HRANDFIELD h 9223372036854775807 WITHVALUES",
            "-ERR value is out of range\r\n",
        ),
    ]);
    lab.run("HELLO 3");
    lab.check(&[
        (
            "HRANDFIELD h 1 WITHVALUES",
            "*1\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n",
        ),
        ("HGETALL h", "%1\r\n$1\r\na\r\n$1\r\n1\r\n"),
        ("HGETALL none", "%0\r\n"),
    ]);
}

#[test]
fn a_scan_shows_fields_with_their_values() {
    let mut lab = Lab::new();
    lab.check(&[
        ("HSET h a 1 b 2", ":2\r\n"),
        (
            "HSCAN h 0",
            "*2\r\n$1\r\n0\r\n*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n2\r\n",
        ),
        (
            "HSCAN h 0 MATCH b* COUNT 1",
            "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nb\r\n$1\r\n2\r\n",
        ),
        ("HSCAN none 0", "*2\r\n$1\r\n0\r\n*0\r\n"),
        ("HSCAN h x", "-ERR invalid cursor\r\n"),
        ("HSCAN h 0 COUNT 0", "-ERR syntax error\r\n"),
        ("HSCAN h 0 TYPE hash", "-ERR syntax error\r\n"),
        ("HSCAN h 0 MATCH", "-ERR syntax error\r\n"),
    ]);
    for field in 0..2000 {
        lab.run(&format!("HSET big f{field} v"));
    }
    let (mut cursor, mut fields) = ("0".to_owned(), std::collections::HashSet::new());
    loop {
        let reply = lab.run(&format!("HSCAN big {cursor} COUNT 100"));
        let mut words = reply
            .split("\r\n")
            .filter(|word| !word.starts_with(['*', '$']));
        cursor = words.next().unwrap_or_default().to_owned();
        fields.extend(words.step_by(2).map(str::to_owned));
        if cursor == "0" {
            break;
        }
    }
    fields.remove("");
    assert_eq!(fields.len(), 2000);
}

#[test]
fn encodings_follow_the_configuration() {
    let mut lab = Lab::new();
    let long = "x".repeat(65);
    lab.run("HSET h a 1");
    assert_eq!(lab.run("OBJECT ENCODING h"), "$8\r\nlistpack\r\n");
    lab.run(&format!("HSET h a {long}"));
    assert_eq!(lab.run("OBJECT ENCODING h"), "$9\r\nhashtable\r\n");
    lab.run("CONFIG SET hash-max-listpack-entries 2");
    lab.run("HSET g a 1 b 2");
    assert_eq!(lab.run("OBJECT ENCODING g"), "$8\r\nlistpack\r\n");
    lab.run("HSET g c 3");
    assert_eq!(lab.run("OBJECT ENCODING g"), "$9\r\nhashtable\r\n");
}

#[test]
fn events_tell_what_happened() {
    Lab::new().check_events(&[
        ("HSET h a 1 b 2", &["new h", "hset h"]),
        ("HSETNX h a 1", &[]),
        ("HINCRBY h a 1", &["hincrby h"]),
        ("HINCRBYFLOAT h a 1", &["hincrbyfloat h"]),
        ("HDEL h a", &["hdel h"]),
        ("HDEL h none", &[]),
        ("HDEL h b", &["hdel h", "del h"]),
    ]);
}

#[test]
fn writes_are_propagated_as_redis_does() {
    Lab::new().check_writes(&[
        ("HSET h a 1", &["HSET h a 1"]),
        ("HSETNX h a 1", &[]),
        ("HINCRBY h a 1", &["HINCRBY h a 1"]),
        ("HINCRBYFLOAT h a 0.5", &["HSET h a 2.5"]),
        ("HDEL h none", &[]),
        ("HDEL h a", &["HDEL h a"]),
    ]);
}
