//! The rows of the sorted-set commands.

use super::{Generator, Row, row};
use crate::command::Arg;

pub(super) const ROWS: &[Row] = &[
    row("ZADD", &["NX", "XX", "GT", "LT", "CH", "INCR"], zadd).weight(90),
    row("ZINCRBY", &[], zincrby).weight(15),
    row("ZREM", &[], key_members).weight(15),
    row("ZCARD", &[], one_key),
    row("ZSCORE", &[], key_member),
    row("ZMSCORE", &[], key_members),
    row("ZRANK", &[], key_member),
    row("ZREVRANK", &[], key_member),
    row("ZCOUNT", &[], by_score),
    row("ZLEXCOUNT", &[], by_member),
    row(
        "ZRANGE",
        &["BYSCORE", "BYLEX", "REV", "LIMIT", "WITHSCORES"],
        zrange,
    )
    .weight(40),
    row("ZREVRANGE", &["WITHSCORES"], zrevrange),
    row("ZRANGEBYSCORE", &["WITHSCORES", "LIMIT"], zrangebyscore).weight(15),
    row("ZREVRANGEBYSCORE", &["WITHSCORES", "LIMIT"], zrangebyscore).weight(15),
    row("ZRANGEBYLEX", &["LIMIT"], zrangebylex),
    row("ZREVRANGEBYLEX", &["LIMIT"], zrangebylex),
    row("ZREMRANGEBYRANK", &[], by_rank),
    row("ZREMRANGEBYSCORE", &[], by_score),
    row("ZREMRANGEBYLEX", &[], by_member),
    row("ZPOPMIN", &[], pop),
    row("ZPOPMAX", &[], pop),
    row("ZRANDMEMBER", &["WITHSCORES"], zrandmember).weight(15),
    row("ZMPOP", &["MIN", "MAX", "COUNT"], zmpop).weight(15),
    row(
        "ZRANGESTORE",
        &["BYSCORE", "BYLEX", "REV", "LIMIT"],
        zrangestore,
    )
    .weight(20),
    row(
        "ZUNION",
        &["WEIGHTS", "AGGREGATE", "SUM", "MIN", "MAX", "WITHSCORES"],
        |generator| combined(generator, Combined::Listed),
    )
    .weight(15),
    row(
        "ZUNIONSTORE",
        &["WEIGHTS", "AGGREGATE", "SUM", "MIN", "MAX"],
        |generator| combined(generator, Combined::Stored),
    )
    .weight(15),
    row(
        "ZINTER",
        &["WEIGHTS", "AGGREGATE", "SUM", "MIN", "MAX", "WITHSCORES"],
        |generator| combined(generator, Combined::Listed),
    )
    .weight(15),
    row(
        "ZINTERSTORE",
        &["WEIGHTS", "AGGREGATE", "SUM", "MIN", "MAX"],
        |generator| combined(generator, Combined::Stored),
    )
    .weight(15),
    row("ZDIFF", &["WITHSCORES"], |generator| {
        combined(generator, Combined::Difference)
    })
    .weight(12),
    row("ZDIFFSTORE", &[], |generator| {
        combined(generator, Combined::StoredDifference)
    })
    .weight(12),
    row("ZINTERCARD", &["LIMIT"], zintercard).weight(12),
    row("ZSCAN", &["MATCH", "COUNT"], zscan).weight(15),
];

/// The sorted set whose members all have the score 0.
pub(super) const ONE_SCORE: &str = "zlex";

fn key(generator: &mut Generator<'_>) -> Arg {
    generator.collection_key(&[b"z1", b"z2"])
}

fn one_key(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![key(generator)]
}

fn key_member(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![key(generator), generator.element()]
}

fn key_members(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator)];
    args.extend(generator.elements(4));
    args
}

fn score(generator: &mut Generator<'_>) -> Arg {
    if generator.rng.percent(70) {
        Arg::from(generator.rng.below(9) as i64 - 2)
    } else {
        generator.float()
    }
}

fn zadd(generator: &mut Generator<'_>) -> Vec<Arg> {
    if generator.rng.percent(20) {
        let mut args = vec![Arg::from(ONE_SCORE)];
        for _ in 0..generator.rng.between(1, 6) {
            args.push(Arg::from("0"));
            args.push(generator.element());
        }
        return args;
    }
    let mut args = vec![key(generator)];
    let mut pairs = generator.rng.between(1, 5);
    if generator.rng.percent(40) {
        for _ in 0..generator.rng.between(1, 3) {
            let word = generator.one_of(&["NX", "XX", "GT", "LT", "CH", "CH", "INCR"]);
            if word == Arg::from("INCR") && generator.rng.percent(90) {
                pairs = 1;
            }
            args.push(word);
        }
    }
    for _ in 0..pairs {
        // Many members of one score are ordered by their bytes.
        args.push(match generator.rng.below(3) {
            0 => Arg::from("0"),
            _ => score(generator),
        });
        args.push(generator.element());
    }
    args
}

fn zincrby(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![key(generator), score(generator), generator.element()]
}

/// An end of a range of scores.
fn score_bound(generator: &mut Generator<'_>) -> Arg {
    match generator.rng.below(10) {
        0..3 => Arg::from(
            generator
                .rng
                .pick(&["-inf", "+inf", "inf", "(-inf", "(+inf"]),
        ),
        3..6 => score(generator),
        6..9 => Arg::from(format!("({}", generator.rng.below(9) as i64 - 2).as_str()),
        _ => Arg::from(
            generator
                .rng
                .pick(&["(", "((1", "(abc", "", "(1.5", "[1", "nan", "(nan"]),
        ),
    }
}

/// An end of a range of members.
fn member_bound(generator: &mut Generator<'_>) -> Arg {
    match generator.rng.below(10) {
        0..3 => Arg::from(generator.rng.pick(&["-", "+"])),
        3..9 => {
            let mut bound = vec![[b'[', b'('][generator.rng.below(2)]];
            if let Arg::Bytes(member) = generator.element() {
                bound.extend(member);
            }
            Arg::Bytes(bound)
        }
        _ => Arg::from(generator.rng.pick(&["", "a", "+a", "-a", "[", "("])),
    }
}

fn by_rank(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![key(generator), generator.index(), generator.index()]
}

fn by_score(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![
        key(generator),
        score_bound(generator),
        score_bound(generator),
    ]
}

/// A range of members has a meaning only where all scores are equal: there is a sorted set for that.
fn by_member(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![
        Arg::from(ONE_SCORE),
        member_bound(generator),
        member_bound(generator),
    ]
}

fn limit(generator: &mut Generator<'_>, percent: usize, args: &mut Vec<Arg>) {
    if generator.rng.percent(percent) {
        args.push(generator.word("LIMIT"));
        args.push(generator.count());
        if generator.rng.percent(95) {
            args.push(generator.count());
        }
    }
}

fn zrange(generator: &mut Generator<'_>) -> Vec<Arg> {
    let kind = generator.rng.below(3);
    let mut args = match kind {
        0 => by_rank(generator),
        1 => by_score(generator),
        _ => by_member(generator),
    };
    let token = ["", "BYSCORE", "BYLEX"][kind];
    if kind > 0 && generator.rng.percent(95) {
        args.push(generator.word(token));
    }
    generator.maybe(40, "REV", &mut args);
    limit(generator, if kind == 0 { 5 } else { 40 }, &mut args);
    generator.maybe(if kind == 2 { 5 } else { 40 }, "WITHSCORES", &mut args);
    generator.maybe(3, "FOO", &mut args);
    args
}

fn zrevrange(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = by_rank(generator);
    generator.maybe(50, "WITHSCORES", &mut args);
    generator.maybe(5, "REV", &mut args);
    args
}

fn zrangebyscore(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = by_score(generator);
    generator.maybe(50, "WITHSCORES", &mut args);
    limit(generator, 40, &mut args);
    generator.maybe(3, "REV", &mut args);
    args
}

fn zrangebylex(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = by_member(generator);
    limit(generator, 40, &mut args);
    generator.maybe(5, "WITHSCORES", &mut args);
    args
}

fn pop(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator)];
    if generator.rng.percent(60) {
        args.push(generator.count());
    }
    args
}

fn zrandmember(generator: &mut Generator<'_>) -> Vec<Arg> {
    let key = key(generator);
    generator.random_elements(key, "WITHSCORES")
}

/// The number of keys and the keys: sorted sets, plain sets at times.
fn counted_keys(generator: &mut Generator<'_>, plain_sets: bool) -> Vec<Arg> {
    let mut args: Vec<Arg> = (0..generator.rng.between(1, 3))
        .map(|_| match generator.rng.below(8) {
            0 if plain_sets => Arg::from("s1"),
            1 => Arg::from(ONE_SCORE),
            _ => key(generator),
        })
        .collect();
    let number = match generator.rng.below(12) {
        0 => generator.integer(),
        _ => Arg::from(args.len() as i64),
    };
    args.insert(0, number);
    args
}

fn zmpop(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = counted_keys(generator, false);
    args.push(generator.one_of(&["MIN", "MAX", "MIN", "MAX", "MIN", "MAX", "MEDIUM"]));
    if generator.rng.percent(60) {
        args.push(generator.word("COUNT"));
        if generator.rng.percent(95) {
            args.push(generator.count());
        }
    }
    generator.maybe(3, "FOO", &mut args);
    args
}

fn zrangestore(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = zrange(generator);
    args.insert(0, key(generator));
    args
}

/// Which of the commands that combine sorted sets, by the options it takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Combined {
    Listed,
    Stored,
    Difference,
    StoredDifference,
}

fn combined(generator: &mut Generator<'_>, kind: Combined) -> Vec<Arg> {
    let mut args = counted_keys(generator, true);
    let keys = args.len() - 1;
    let stored = matches!(kind, Combined::Stored | Combined::StoredDifference);
    let difference = matches!(kind, Combined::Difference | Combined::StoredDifference);
    if generator.rng.percent(if difference { 3 } else { 40 }) {
        args.push(generator.word("WEIGHTS"));
        let weights = match generator.rng.below(12) {
            0 => generator.rng.below(4),
            _ => keys,
        };
        for _ in 0..weights {
            args.push(score(generator));
        }
    }
    if generator.rng.percent(if difference { 3 } else { 40 }) {
        args.push(generator.word("AGGREGATE"));
        if generator.rng.percent(95) {
            args.push(generator.one_of(&["SUM", "MIN", "MAX", "SUM", "MIN", "MAX", "AVG"]));
        }
    }
    generator.maybe(if stored { 3 } else { 50 }, "WITHSCORES", &mut args);
    generator.maybe(2, "FOO", &mut args);
    if stored {
        args.insert(0, key(generator));
    }
    args
}

fn zintercard(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = counted_keys(generator, true);
    if generator.rng.percent(50) {
        args.push(generator.word("LIMIT"));
        if generator.rng.percent(95) {
            args.push(generator.count());
        }
    }
    generator.maybe(3, "FOO", &mut args);
    args
}

fn zscan(generator: &mut Generator<'_>) -> Vec<Arg> {
    let key = key(generator);
    generator.element_scan(key)
}
