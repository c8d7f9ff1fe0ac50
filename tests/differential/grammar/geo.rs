//! The rows of the commands on places.

use super::{Generator, Row, row};
use crate::command::Arg;

const RADIUS: &[&str] = &[
    "WITHCOORD",
    "WITHDIST",
    "WITHHASH",
    "COUNT",
    "ANY",
    "ASC",
    "DESC",
    "STORE",
    "STOREDIST",
];

pub(super) const ROWS: &[Row] = &[
    row("GEOADD", &["NX", "XX", "CH"], geoadd).weight(60),
    row("GEODIST", &["M", "KM", "FT", "MI"], geodist).weight(15),
    row("GEOHASH", &[], members),
    row("GEOPOS", &[], members),
    row(
        "GEOSEARCH",
        &[
            "FROMMEMBER",
            "FROMLONLAT",
            "BYRADIUS",
            "BYBOX",
            "WITHCOORD",
            "WITHDIST",
            "WITHHASH",
            "COUNT",
            "ANY",
            "ASC",
            "DESC",
        ],
        |generator| search(generator, false),
    )
    .weight(40),
    row(
        "GEOSEARCHSTORE",
        &["FROMMEMBER", "FROMLONLAT", "BYRADIUS", "BYBOX", "STOREDIST"],
        |generator| search(generator, true),
    )
    .weight(25),
    row("GEORADIUS", RADIUS, |generator| {
        radius(generator, false, true)
    })
    .weight(20),
    row("GEORADIUS_RO", &["ASC", "DESC"], |generator| {
        radius(generator, false, false)
    }),
    row("GEORADIUSBYMEMBER", RADIUS, |generator| {
        radius(generator, true, true)
    })
    .weight(20),
    row("GEORADIUSBYMEMBER_RO", &["ASC", "DESC"], |generator| {
        radius(generator, true, false)
    }),
];

/// Members and where they are. Each is in a place of its own: members that are equally far away have no order.
const PLACES: &[(&str, &str, &str)] = &[
    ("palermo", "13.361389", "38.115556"),
    ("catania", "15.087269", "37.502669"),
    ("rome", "12.496366", "41.902782"),
    ("tokyo", "139.691706", "35.689487"),
    ("sydney", "151.209296", "-33.868820"),
    ("nuuk", "-51.694138", "64.183472"),
    ("fiji", "179.414413", "-17.713371"),
    ("edge", "180", "85.05112878"),
    ("corner", "-180", "-85.05112878"),
    ("null", "0", "0"),
];

fn key(generator: &mut Generator<'_>) -> Arg {
    generator.collection_key(&[b"g1", b"g2"])
}

fn member(generator: &mut Generator<'_>) -> Arg {
    if generator.rng.percent(92) {
        Arg::from(PLACES[generator.rng.below(PLACES.len())].0)
    } else {
        generator.element()
    }
}

fn geoadd(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator)];
    if generator.rng.percent(30) {
        for _ in 0..generator.rng.between(1, 2) {
            args.push(generator.one_of(&["NX", "XX", "CH"]));
        }
    }
    for _ in 0..generator.rng.between(1, 5) {
        let (name, longitude, latitude) = PLACES[generator.rng.below(PLACES.len())];
        args.extend([longitude, latitude, name].map(Arg::from));
    }
    if generator.rng.percent(8) {
        let at = 1 + generator.rng.below(args.len() - 1);
        args[at] = Arg::from(generator.rng.pick(&[
            "181", "-181", "86", "abc", "", "nan", "inf", "1e400", " 1", "0x1p4",
        ]));
    }
    args
}

fn members(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator)];
    for _ in 0..generator.rng.below(4) {
        args.push(member(generator));
    }
    args
}

fn unit(generator: &mut Generator<'_>) -> Arg {
    generator.one_of(&["M", "KM", "FT", "MI", "KM", "M", "KM", "LY"])
}

fn geodist(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator), member(generator), member(generator)];
    if generator.rng.percent(60) {
        args.push(unit(generator));
    }
    generator.maybe(4, "FOO", &mut args);
    args
}

fn size(generator: &mut Generator<'_>) -> Arg {
    match generator.rng.below(10) {
        0..9 => Arg::from(generator.rng.pick(&[
            "0",
            "1",
            "200",
            "500",
            "1000",
            "5000",
            "20000",
            "50000",
            "1000000",
            "166274.15",
        ])),
        _ => Arg::from(generator.rng.pick(&["-1", "abc", "", "nan", "1e400"])),
    }
}

/// The options that all searches share.
fn options(generator: &mut Generator<'_>, stored: bool, args: &mut Vec<Arg>) {
    for word in ["WITHCOORD", "WITHDIST", "WITHHASH"] {
        generator.maybe(if stored { 2 } else { 30 }, word, args);
    }
    if generator.rng.percent(60) {
        args.push(generator.one_of(&["ASC", "DESC"]));
    }
    if generator.rng.percent(30) {
        args.push(generator.word("COUNT"));
        if generator.rng.percent(97) {
            args.push(generator.count());
        }
        generator.maybe(20, "ANY", args);
    }
    generator.maybe(2, "ANY", args);
    generator.maybe(2, "FOO", args);
}

fn search(generator: &mut Generator<'_>, stored: bool) -> Vec<Arg> {
    let mut args = vec![key(generator)];
    if stored {
        args.push(key(generator));
    }
    if generator.rng.percent(96) {
        if generator.rng.percent(50) {
            args.push(generator.word("FROMMEMBER"));
            args.push(member(generator));
        } else {
            args.push(generator.word("FROMLONLAT"));
            let (_, longitude, latitude) = PLACES[generator.rng.below(PLACES.len())];
            args.extend([longitude, latitude].map(Arg::from));
        }
    }
    if generator.rng.percent(96) {
        if generator.rng.percent(50) {
            args.push(generator.word("BYRADIUS"));
        } else {
            args.push(generator.word("BYBOX"));
            args.push(size(generator));
        }
        args.push(size(generator));
        args.push(unit(generator));
    }
    options(generator, stored, &mut args);
    generator.maybe(if stored { 40 } else { 2 }, "STOREDIST", &mut args);
    args
}

fn radius(generator: &mut Generator<'_>, by_member: bool, may_store: bool) -> Vec<Arg> {
    let mut args = vec![key(generator)];
    if by_member {
        args.push(member(generator));
    } else {
        let (_, longitude, latitude) = PLACES[generator.rng.below(PLACES.len())];
        args.extend([longitude, latitude].map(Arg::from));
    }
    args.push(size(generator));
    args.push(unit(generator));
    let stored = generator.rng.percent(if may_store { 30 } else { 3 });
    options(generator, stored, &mut args);
    if stored {
        args.push(generator.one_of(&["STORE", "STOREDIST"]));
        if generator.rng.percent(95) {
            args.push(key(generator));
        }
    }
    args
}
