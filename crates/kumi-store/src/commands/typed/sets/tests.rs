//! What the set commands answer, and what else they leave behind.

use crate::testing::Lab;

#[test]
fn members_are_added_found_and_removed() {
    Lab::new().check(&[
        ("SADD s 3 1 2 3", ":3\r\n"),
        ("SADD s 1", ":0\r\n"),
        ("SCARD s", ":3\r\n"),
        ("SCARD none", ":0\r\n"),
        ("SISMEMBER s 2", ":1\r\n"),
        ("SISMEMBER s 02", ":0\r\n"),
        ("SISMEMBER none 2", ":0\r\n"),
        ("SMISMEMBER s 1 x 3", "*3\r\n:1\r\n:0\r\n:1\r\n"),
        ("SMISMEMBER none 1", "*1\r\n:0\r\n"),
        ("SMEMBERS s", "*3\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n"),
        ("SMEMBERS none", "*0\r\n"),
        ("SREM s 1 x", ":1\r\n"),
        ("SREM none 1", ":0\r\n"),
        ("SREM s 2 3", ":2\r\n"),
        ("EXISTS s", ":0\r\n"),
        ("SADD t b a", ":2\r\n"),
        ("SMEMBERS t", "*2\r\n$1\r\nb\r\n$1\r\na\r\n"),
        ("TYPE t", "+set\r\n"),
    ]);
}

#[test]
fn other_types_are_refused() {
    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    Lab::new().check(&[
        ("SET k text", "+OK\r\n"),
        ("SADD s a", ":1\r\n"),
        ("SADD k a", wrong_type),
        ("SREM k a", wrong_type),
        ("SCARD k", wrong_type),
        ("SPOP k", wrong_type),
        ("SPOP k 2", wrong_type),
        ("SRANDMEMBER k", wrong_type),
        ("SMOVE s k a", wrong_type),
        ("SMOVE k s a", wrong_type),
        ("SMOVE none k a", ":0\r\n"),
        ("SINTER none k", wrong_type),
        ("SUNIONSTORE d s k", wrong_type),
        ("SDIFF s k", wrong_type),
        ("EXISTS d", ":0\r\n"),
        ("SCARD s", ":1\r\n"),
    ]);
}

#[test]
fn a_member_moves() {
    Lab::new().check(&[
        ("SADD a 1 2", ":2\r\n"),
        ("SADD b 2", ":1\r\n"),
        ("SMOVE a b 9", ":0\r\n"),
        ("SMOVE a a 1", ":1\r\n"),
        ("SMOVE a a 9", ":0\r\n"),
        ("SMOVE a b 1", ":1\r\n"),
        ("SMEMBERS b", "*2\r\n$1\r\n1\r\n$1\r\n2\r\n"),
        ("SMOVE a b 2", ":1\r\n"),
        ("EXISTS a", ":0\r\n"),
        ("SMOVE b c 1", ":1\r\n"),
        ("SMEMBERS c", "*1\r\n$1\r\n1\r\n"),
    ]);
}

#[test]
fn sets_are_combined() {
    Lab::new().check(&[
        ("SADD a 1 2 3 4", ":4\r\n"),
        ("SADD b 2 3 5", ":3\r\n"),
        ("SADD c 3", ":1\r\n"),
        ("SINTER a b", "*2\r\n$1\r\n2\r\n$1\r\n3\r\n"),
        ("SINTER a b none", "*0\r\n"),
        (
            "SINTER a a",
            "*4\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n",
        ),
        ("SUNION b c", "*3\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n5\r\n"),
        ("SUNION none", "*0\r\n"),
        ("SDIFF a b c", "*2\r\n$1\r\n1\r\n$1\r\n4\r\n"),
        ("SDIFF a a", "*0\r\n"),
        ("SDIFF none a", "*0\r\n"),
        ("SINTERSTORE d a b", ":2\r\n"),
        ("SMEMBERS d", "*2\r\n$1\r\n2\r\n$1\r\n3\r\n"),
        ("SUNIONSTORE d d c a", ":4\r\n"),
        ("SDIFFSTORE d d a", ":0\r\n"),
        ("EXISTS d", ":0\r\n"),
        ("SET d text", "+OK\r\n"),
        ("SINTERSTORE d a none", ":0\r\n"),
        ("EXISTS d", ":0\r\n"),
        ("SINTERCARD 2 a b", ":2\r\n"),
        ("SINTERCARD 2 a b LIMIT 1", ":1\r\n"),
        ("SINTERCARD 2 a b limit 0", ":2\r\n"),
        (
            "SINTERCARD 0 a",
            "-ERR numkeys should be greater than 0\r\n",
        ),
        (
            "SINTERCARD x a",
            "-ERR numkeys should be greater than 0\r\n",
        ),
        (
            "SINTERCARD 3 a b",
            "-ERR Number of keys can't be greater than number of args\r\n",
        ),
        (
            "SINTERCARD 1 a LIMIT -1",
            "-ERR LIMIT can't be negative\r\n",
        ),
        ("SINTERCARD 1 a b", "-ERR syntax error\r\n"),
        ("SINTERCARD 1 a LIMIT", "-ERR syntax error\r\n"),
    ]);
}

#[test]
fn random_members_come_in_every_form() {
    Lab::new().check(&[
        ("SRANDMEMBER none", "$-1\r\n"),
        ("SRANDMEMBER none 2", "*0\r\n"),
        ("SADD s a", ":1\r\n"),
        ("SRANDMEMBER s", "$1\r\na\r\n"),
        ("SRANDMEMBER s 3", "*1\r\n$1\r\na\r\n"),
        ("SRANDMEMBER s -2", "*2\r\n$1\r\na\r\n$1\r\na\r\n"),
        ("SRANDMEMBER s 0", "*0\r\n"),
        ("SRANDMEMBER s 1 2", "-ERR syntax error\r\n"),
        ("SPOP none", "$-1\r\n"),
        ("SPOP none 1", "*0\r\n"),
        ("SPOP s 0", "*0\r\n"),
        (
            "SPOP s -1",
            "-ERR value is out of range, must be positive\r\n",
        ),
        ("SPOP s 1 2", "-ERR syntax error\r\n"),
        ("SPOP s", "$1\r\na\r\n"),
        ("EXISTS s", ":0\r\n"),
        ("SADD s 1 2", ":2\r\n"),
        ("SPOP s 5", "*2\r\n$1\r\n1\r\n$1\r\n2\r\n"),
        ("EXISTS s", ":0\r\n"),
    ]);
}

#[test]
fn a_popped_member_is_gone() {
    let mut lab = Lab::new();
    for member in 0..1000 {
        lab.run(&format!("SADD s m{member}"));
    }
    assert!(lab.run("SPOP s 300").starts_with("*300\r\n"));
    assert_eq!(lab.run("SCARD s"), ":700\r\n");
    for _ in 0..700 {
        let reply = lab.run("SPOP s");
        let member = reply.split("\r\n").nth(1).unwrap_or_default().to_owned();
        assert_eq!(lab.run(&format!("SISMEMBER s {member}")), ":0\r\n");
    }
    assert_eq!(lab.run("EXISTS s"), ":0\r\n");
}

#[test]
fn encodings_follow_redis() {
    let mut lab = Lab::new();
    let encoding = |lab: &mut Lab, key: &str| {
        let reply = lab.run(&format!("OBJECT ENCODING {key}"));
        reply.split("\r\n").nth(1).unwrap_or_default().to_owned()
    };
    lab.run("SADD i 1 2");
    assert_eq!(encoding(&mut lab, "i"), "intset");
    lab.run("SADD i x");
    assert_eq!(encoding(&mut lab, "i"), "listpack");
    lab.run(&format!("SADD i {}", "x".repeat(65)));
    assert_eq!(encoding(&mut lab, "i"), "hashtable");
    lab.run("SADD t 1 2");
    lab.run("SINTERSTORE d i t");
    assert_eq!(encoding(&mut lab, "d"), "intset");
    lab.run("CONFIG SET set-max-intset-entries 2");
    lab.run("SADD t 3");
    assert_eq!(encoding(&mut lab, "t"), "hashtable");
}

#[test]
fn a_scan_shows_every_member() {
    let mut lab = Lab::new();
    lab.check(&[
        ("SADD s a b", ":2\r\n"),
        ("SSCAN s 0", "*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"),
        ("SSCAN s 0 MATCH b", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nb\r\n"),
        ("SSCAN none 0 nonsense", "*2\r\n$1\r\n0\r\n*0\r\n"),
    ]);
}

#[test]
fn events_tell_what_happened() {
    Lab::new().check_events(&[
        ("SADD s 1 2 3", &["new s", "sadd s"]),
        ("SADD s 1", &[]),
        ("SREM s 9", &[]),
        ("SMOVE s t 1", &["srem s", "new t", "sadd t"]),
        ("SPOP t", &["spop t", "del t"]),
        ("SUNIONSTORE u s", &["new u", "sunionstore u"]),
        ("SINTERSTORE u s none", &["keymiss none", "del u"]),
        ("SPOP s 9", &["spop s", "del s"]),
    ]);
}

#[test]
fn writes_are_propagated_as_redis_does() {
    Lab::new().check_writes(&[
        ("SADD s 1", &["SADD s 1"]),
        ("SADD s 1", &[]),
        ("SPOP s", &["SREM s 1"]),
        ("SADD s 1 2", &["SADD s 1 2"]),
        ("SPOP s 2", &["DEL s"]),
        ("SPOP s 2", &[]),
        ("SADD s 1 2", &["SADD s 1 2"]),
        ("SUNIONSTORE t s", &["SUNIONSTORE t s"]),
        ("SMOVE s t 1", &["SMOVE s t 1"]),
    ]);
}

#[test]
fn a_set_that_spop_empties_is_propagated_as_redis_frees_it() {
    let mut lab = Lab::new();
    lab.configure("lazyfree-lazy-server-del", "yes");
    lab.check_writes(&[
        ("SADD s 1 2", &["SADD s 1 2"]),
        ("SPOP s 2", &["UNLINK s"]),
        ("SADD s 1", &["SADD s 1"]),
        ("SPOP s", &["SREM s 1"]),
    ]);
    lab.configure("lazyfree-lazy-server-del", "no");
    lab.check_writes(&[("SADD s 1 2", &["SADD s 1 2"]), ("SPOP s 9", &["DEL s"])]);
}

#[test]
fn spop_counts_a_hit_where_it_returns_the_whole_set() {
    let mut lab = Lab::new();
    lab.run("SADD s 1 2 3");
    for (line, hits) in [("SPOP s", 0), ("SPOP s 1", 0), ("SPOP s 1", 1)] {
        lab.run(line);
        assert_eq!(lab.store.keyspace.stats.hits, hits, "after {line}");
    }
    lab.run("SPOP s 1");
    assert_eq!(lab.store.keyspace.stats.misses, 0);
}

#[test]
fn random_members_end_with_the_output_limit() {
    let mut lab = Lab::new();
    lab.configure("client-output-buffer-limit", "normal 100kb 0 0");
    lab.run("SADD s a b c");
    lab.run("HSET h a 1 b 2");
    lab.run("ZADD z 1 a 2 b");
    for line in [
        "SRANDMEMBER s -9223372036854775807",
        "HRANDFIELD h -4611686018427387903 WITHVALUES",
        "ZRANDMEMBER z -4611686018427387903 WITHSCORES",
    ] {
        let client = lab.connect();
        lab.leave_unread(client, line);
    }
    lab.check(&[("SCARD s", ":3\r\n")]);
}

#[test]
fn a_limited_count_of_common_members_is_exact() {
    let mut lab = Lab::new();
    let members: Vec<String> = (0..5000).map(|member| format!("m{member}")).collect();
    lab.run(&format!("SADD a {}", members.join(" ")));
    lab.run(&format!("SADD b {} more", members[1000..].join(" ")));
    lab.check(&[
        ("SINTERCARD 2 a b", ":4000\r\n"),
        ("SINTERCARD 2 a b LIMIT 3999", ":3999\r\n"),
        ("SINTERCARD 2 a b LIMIT 4001", ":4000\r\n"),
        ("SINTERCARD 3 a b a LIMIT 1", ":1\r\n"),
        ("SINTERCARD 2 a none LIMIT 1", ":0\r\n"),
        ("SINTERCARD 1 a", ":5000\r\n"),
    ]);
}

#[test]
fn results_have_the_encoding_of_how_they_are_computed() {
    let mut lab = Lab::new();
    lab.configure("set-max-intset-entries", "4");
    lab.configure("set-max-listpack-entries", "4");
    lab.run("SADD a 1 2 3 4 5 x y");
    lab.run("SADD b 1 2 6 7 8 x z");
    lab.run("SADD c 1 2 3 4 5 6");
    for (line, len, encoding) in [
        ("SINTERSTORE d a b", 3, "listpack"),
        ("SINTERSTORE d b c", 3, "intset"),
        ("SINTERSTORE d a c", 5, "hashtable"),
        ("SDIFFSTORE d a b", 4, "listpack"),
        ("SDIFFSTORE d c a", 1, "intset"),
        // Few members in the other sets: all are added, then some are removed.
        ("SADD e x", 1, ""),
        ("SADD f y", 1, ""),
        ("SADD g 1", 1, ""),
        ("SDIFFSTORE d a e f g", 4, "hashtable"),
        ("SUNIONSTORE d e f g", 3, "listpack"),
    ] {
        assert_eq!(lab.run(line), format!(":{len}\r\n"), "{line}");
        if !encoding.is_empty() {
            let reply = format!("${}\r\n{encoding}\r\n", encoding.len());
            assert_eq!(lab.run("OBJECT ENCODING d"), reply, "{line}");
        }
    }
}
