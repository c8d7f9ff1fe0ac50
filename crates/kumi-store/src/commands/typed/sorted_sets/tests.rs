//! What the commands of sorted sets answer, and what else they leave behind.

mod combined;

use crate::testing::Lab;

#[test]
fn members_are_added_under_every_condition() {
    Lab::new().check(&[
        ("ZADD z 1 a 2 b 1.5 c", ":3\r\n"),
        ("ZADD z 5 a 9 d", ":1\r\n"),
        ("ZADD z CH 6 a 9 d 1 e", ":2\r\n"),
        ("ZADD z NX 7 a 7 f", ":1\r\n"),
        ("ZSCORE z a", "$1\r\n6\r\n"),
        ("ZADD z XX CH 8 a 8 new", ":1\r\n"),
        ("ZSCORE z new", "$-1\r\n"),
        ("ZADD z GT CH 7 a", ":0\r\n"),
        ("ZADD z LT CH 7 a", ":1\r\n"),
        ("ZADD z INCR 2 a", "$1\r\n9\r\n"),
        ("ZADD z NX INCR 2 a", "$-1\r\n"),
        ("ZADD z XX INCR 2 none", "$-1\r\n"),
        ("ZADD none XX 1 a", ":0\r\n"),
        ("EXISTS none", ":0\r\n"),
        ("ZINCRBY z -0.5 c", "$1\r\n1\r\n"),
        ("ZINCRBY z 3 fresh", "$1\r\n3\r\n"),
        ("ZINCRBY z nx fresh", "-ERR syntax error\r\n"),
        ("ZCARD z", ":7\r\n"),
        ("ZADD z inf i", ":1\r\n"),
        (
            "ZINCRBY z -inf i",
            "-ERR resulting score is not a number (NaN)\r\n",
        ),
        ("ZADD z NX INCR -inf i", "$-1\r\n"),
        (
            "ZADD z GT INCR -inf i",
            "-ERR resulting score is not a number (NaN)\r\n",
        ),
        ("ZSCORE z i", "$3\r\ninf\r\n"),
        ("TYPE z", "+zset\r\n"),
    ]);
}

#[test]
fn wrong_requests_are_refused_and_change_nothing() {
    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    Lab::new().check(&[
        ("SET s text", "+OK\r\n"),
        ("ZADD s 1 a", wrong_type),
        ("ZRANGE s 0 -1", wrong_type),
        ("ZPOPMIN s", wrong_type),
        ("ZADD z 1 a 2", "-ERR syntax error\r\n"),
        ("ZADD z NX 1", "-ERR syntax error\r\n"),
        ("ZADD z x a", "-ERR value is not a valid float\r\n"),
        ("ZADD z 1 a nan b", "-ERR value is not a valid float\r\n"),
        (
            "ZADD z NX XX 1 a",
            "-ERR XX and NX options at the same time are not compatible\r\n",
        ),
        (
            "ZADD z GT LT 1 a",
            "-ERR GT, LT, and/or NX options at the same time are not compatible\r\n",
        ),
        (
            "ZADD z INCR 1 a 2 b",
            "-ERR INCR option supports a single increment-element pair\r\n",
        ),
        ("EXISTS z", ":0\r\n"),
        ("ZADD z 1 a", ":1\r\n"),
        ("ZCOUNT z x 1", "-ERR min or max is not a float\r\n"),
        (
            "ZLEXCOUNT z a b",
            "-ERR min or max not valid string range item\r\n",
        ),
        (
            "ZRANGE z 0 1 LIMIT 0 1",
            "-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX\r\n",
        ),
        (
            "ZRANGE z - + BYLEX WITHSCORES",
            "-ERR syntax error, WITHSCORES not supported in combination with BYLEX\r\n",
        ),
        ("ZRANGEBYSCORE z 0 1 REV", "-ERR syntax error\r\n"),
        ("ZRANGE z 0 x", "-ERR value is not an integer or out of range\r\n"),
        ("ZRANK z a x", "-ERR syntax error\r\n"),
        ("ZPOPMIN z -1", "-ERR value is out of range, must be positive\r\n"),
    ]);
}

#[test]
fn ranks_and_scores_are_read() {
    Lab::new().check(&[
        ("ZADD z 1 a 2 b 3 c", ":3\r\n"),
        ("ZRANK z a", ":0\r\n"),
        ("ZREVRANK z a", ":2\r\n"),
        ("ZRANK z none", "$-1\r\n"),
        ("ZRANK z b WITHSCORE", "*2\r\n:1\r\n$1\r\n2\r\n"),
        ("ZRANK z none WITHSCORE", "*-1\r\n"),
        ("ZREVRANK z a withscore", "*2\r\n:2\r\n$1\r\n1\r\n"),
        ("ZREVRANK none a WITHSCORE", "*-1\r\n"),
        ("ZMSCORE z a none", "*2\r\n$1\r\n1\r\n$-1\r\n"),
        ("ZCOUNT z -inf (3", ":2\r\n"),
        ("ZCOUNT z (1 +inf", ":2\r\n"),
        ("ZCOUNT z 3 1", ":0\r\n"),
        ("ZLEXCOUNT z - +", ":3\r\n"),
    ]);
    let mut lab = Lab::new();
    lab.run("HELLO 3");
    lab.check(&[
        ("ZADD z 1 a 2.5 b", ":2\r\n"),
        ("ZRANK z b WITHSCORE", "*2\r\n:1\r\n,2.5\r\n"),
        ("ZREVRANK z b WITHSCORE", "*2\r\n:0\r\n,2.5\r\n"),
        ("ZRANK z none WITHSCORE", "_\r\n"),
        ("ZREVRANK z none", "_\r\n"),
    ]);
}

#[test]
fn ranges_are_listed_from_both_ends() {
    Lab::new().check(&[
        ("ZADD z 1 a 2 b 3 c", ":3\r\n"),
        ("ZRANGE z 0 -1", "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n"),
        ("ZRANGE z 0 0 REV", "*1\r\n$1\r\nc\r\n"),
        ("ZREVRANGE z 0 1", "*2\r\n$1\r\nc\r\n$1\r\nb\r\n"),
        (
            "ZRANGE z -2 5 WITHSCORES",
            "*4\r\n$1\r\nb\r\n$1\r\n2\r\n$1\r\nc\r\n$1\r\n3\r\n",
        ),
        ("ZRANGE z 2 1", "*0\r\n"),
        ("ZRANGE z 9 10", "*0\r\n"),
        ("ZRANGE none 0 -1", "*0\r\n"),
        ("ZRANGE z (1 3 BYSCORE", "*2\r\n$1\r\nb\r\n$1\r\nc\r\n"),
        ("ZRANGE z 3 (1 BYSCORE REV LIMIT 1 5", "*1\r\n$1\r\nb\r\n"),
        ("ZRANGEBYSCORE z -inf +inf LIMIT 1 1", "*1\r\n$1\r\nb\r\n"),
        (
            "ZRANGEBYSCORE z -inf +inf LIMIT 1 -1",
            "*2\r\n$1\r\nb\r\n$1\r\nc\r\n",
        ),
        ("ZRANGEBYSCORE z -inf +inf LIMIT -1 2", "*0\r\n"),
        ("ZREVRANGEBYSCORE z 2 1", "*2\r\n$1\r\nb\r\n$1\r\na\r\n"),
        ("ZADD l 0 a 0 b 0 c", ":3\r\n"),
        ("ZRANGEBYLEX l [b +", "*2\r\n$1\r\nb\r\n$1\r\nc\r\n"),
        ("ZREVRANGEBYLEX l (c -", "*2\r\n$1\r\nb\r\n$1\r\na\r\n"),
        ("ZRANGE l + - BYLEX REV LIMIT 0 1", "*1\r\n$1\r\nc\r\n"),
    ]);
}

#[test]
fn members_are_removed() {
    Lab::new().check(&[
        ("ZADD z 1 a 2 b 3 c 4 d 5 e", ":5\r\n"),
        ("ZREM z a none", ":1\r\n"),
        ("ZREMRANGEBYRANK z 0 0", ":1\r\n"),
        ("ZREMRANGEBYSCORE z (3 4", ":1\r\n"),
        ("ZPOPMAX z", "*2\r\n$1\r\ne\r\n$1\r\n5\r\n"),
        ("ZPOPMIN z 5", "*2\r\n$1\r\nc\r\n$1\r\n3\r\n"),
        ("EXISTS z", ":0\r\n"),
        ("ZPOPMIN z", "*0\r\n"),
        ("ZADD l 0 a 0 b", ":2\r\n"),
        ("ZREMRANGEBYLEX l - (b", ":1\r\n"),
        ("ZPOPMIN l 0", "*0\r\n"),
        ("ZREM l b", ":1\r\n"),
        ("EXISTS l", ":0\r\n"),
    ]);
}

#[test]
fn random_members_and_scans_come_in_every_form() {
    let mut lab = Lab::new();
    lab.check(&[
        ("ZADD z 1.5 a", ":1\r\n"),
        ("ZRANDMEMBER z", "$1\r\na\r\n"),
        ("ZRANDMEMBER none", "$-1\r\n"),
        ("ZRANDMEMBER none 2", "*0\r\n"),
        ("ZRANDMEMBER z -2", "*2\r\n$1\r\na\r\n$1\r\na\r\n"),
        (
            "ZRANDMEMBER z 5 WITHSCORES",
            "*2\r\n$1\r\na\r\n$3\r\n1.5\r\n",
        ),
        ("ZRANDMEMBER z 1 x", "-ERR syntax error\r\n"),
        (
            "ZSCAN z 0",
            "*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$3\r\n1.5\r\n",
        ),
    ]);
    lab.run("HELLO 3");
    lab.check(&[
        ("ZSCORE z a", ",1.5\r\n"),
        (
            "ZRANGE z 0 -1 WITHSCORES",
            "*1\r\n*2\r\n$1\r\na\r\n,1.5\r\n",
        ),
        (
            "ZRANDMEMBER z 1 WITHSCORES",
            "*1\r\n*2\r\n$1\r\na\r\n,1.5\r\n",
        ),
        (
            "ZSCAN z 0",
            "*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$3\r\n1.5\r\n",
        ),
        ("ZPOPMIN z", "*2\r\n$1\r\na\r\n,1.5\r\n"),
        ("ZADD z 1.5 a", ":1\r\n"),
        ("ZPOPMIN z 1", "*1\r\n*2\r\n$1\r\na\r\n,1.5\r\n"),
    ]);
}

#[test]
fn a_scan_of_a_skiplist_shows_17_digits() {
    let scanned = |score: &str| format!("*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n{score}\r\n");
    let mut lab = Lab::new();
    lab.run("ZADD z 0.1 a");
    assert_eq!(lab.run("ZSCAN z 0"), scanned("$3\r\n0.1"));
    lab.run("CONFIG SET zset-max-listpack-entries 0");
    for (score, shown) in [
        ("0.1", "$19\r\n0.10000000000000001"),
        ("1e17", "$5\r\n1e+17"),
        ("1152921504606846976", "$21\r\n1.152921504606847e+18"),
        ("3", "$1\r\n3"),
        ("-inf", "$4\r\n-inf"),
    ] {
        lab.run("DEL z");
        lab.run(&format!("ZADD z {score} a"));
        assert_eq!(lab.run("OBJECT ENCODING z"), "$8\r\nskiplist\r\n");
        assert_eq!(lab.run("ZSCAN z 0"), scanned(shown), "{score}");
    }
    lab.run("ZADD z 0.1 a");
    assert_eq!(lab.run("ZSCORE z a"), "$3\r\n0.1\r\n");
}

#[test]
fn encodings_follow_the_configuration() {
    let mut lab = Lab::new();
    lab.run("ZADD z 1 a");
    assert_eq!(lab.run("OBJECT ENCODING z"), "$8\r\nlistpack\r\n");
    lab.run("CONFIG SET zset-max-listpack-entries 2");
    lab.run("ZADD z 1 b");
    assert_eq!(lab.run("OBJECT ENCODING z"), "$8\r\nlistpack\r\n");
    lab.run("ZADD z 1 c");
    assert_eq!(lab.run("OBJECT ENCODING z"), "$8\r\nskiplist\r\n");
    lab.run("ZREM z a b");
    assert_eq!(lab.run("OBJECT ENCODING z"), "$8\r\nskiplist\r\n");
}

#[test]
fn events_and_records_tell_what_happened() {
    Lab::new().check_events(&[
        ("ZADD z 1 a 2 b 3 c 4 d", &["new z", "zadd z"]),
        ("ZADD z 1 a", &[]),
        ("ZINCRBY z 1 a", &["zincr z"]),
        ("ZREM z a", &["zrem z"]),
        ("ZREMRANGEBYRANK z 0 0", &["zremrangebyrank z"]),
        ("ZPOPMAX z", &["zpopmax z"]),
        ("ZPOPMIN z", &["zpopmin z", "del z"]),
    ]);
    Lab::new().check_writes(&[
        ("ZADD z 1 a", &["ZADD z 1 a"]),
        ("ZADD z 1 a", &[]),
        ("ZINCRBY z 1 a", &["ZINCRBY z 1 a"]),
        ("ZPOPMIN z", &["ZPOPMIN z"]),
        ("ZPOPMIN z", &[]),
    ]);
}
