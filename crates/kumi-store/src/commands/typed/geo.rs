//! Places: sorted sets whose scores are geohashes. The arithmetic is in `crate::base::geo`, the searches are in
//! `geo/search.rs`.

mod search;

use super::sorted_sets::{add_scored, parse_score};
use crate::base::error::{CommandError, CommandResult};
use crate::base::geo::Point;
use crate::commands::options::OptionReader;
use crate::data::keyspace::Look;
use crate::engine::command::{Command, Group, category, flag};
use crate::engine::key_spec::{KeySpec, key};
use crate::engine::reply::Reply;
use crate::engine::store::ctx::Ctx;
use crate::types::zset::Zset;
use kumi_resp::{Args, OwnedArgs};
use search::{
    georadius, georadius_ro, georadiusbymember, georadiusbymember_ro, geosearch, geosearchstore,
};

const BASE: Command = Command {
    categories: category::GEO,
    group: Group::Geo,
    since: "3.2.0",
    ..Command::BASE
};
const READ: Command = Command {
    flags: flag::READONLY,
    keys: &[SOURCE],
    ..BASE
};
const SOURCE: KeySpec = KeySpec::one(1, key::RO | key::ACCESS);
const SEARCH_COST: &str =
    "O(N+log(M)), N being the number of members around the area and M the number of those inside.";

/// The keys of GEORADIUS, whose options begin at a position.
const fn storing(options: i32) -> [KeySpec; 3] {
    [
        SOURCE,
        KeySpec::after("STORE", options, key::OW | key::UPDATE),
        KeySpec::after("STOREDIST", options, key::OW | key::UPDATE),
    ]
}

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "geoadd",
        arity: -5,
        flags: flag::WRITE | flag::DENYOOM,
        keys: &[KeySpec::one(1, key::RW | key::UPDATE)],
        complexity: "O(log(N)) for each place, N being the size of the sorted set.",
        summary: "Adds places, or changes where members are.",
        usage: "key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]",
        run: geoadd,
        ..BASE
    },
    Command {
        name: "geodist",
        arity: -4,
        complexity: "O(1)",
        summary: "Measures the distance between two members.",
        usage: "key member1 member2 [M | KM | FT | MI]",
        run: geodist,
        ..READ
    },
    Command {
        name: "geohash",
        arity: -2,
        complexity: "O(1) for each member.",
        summary: "Shows members as geohash strings.",
        usage: "key [member [member ...]]",
        run: geohash,
        ..READ
    },
    Command {
        name: "geopos",
        arity: -2,
        complexity: "O(1) for each member.",
        summary: "Shows the longitude and latitude of members.",
        usage: "key [member [member ...]]",
        run: geopos,
        ..READ
    },
    Command {
        name: "geosearch",
        arity: -7,
        since: "6.2.0",
        complexity: SEARCH_COST,
        summary: "Lists the members inside a circle or a box.",
        usage: "key <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]",
        run: geosearch,
        ..READ
    },
    Command {
        name: "geosearchstore",
        arity: -8,
        flags: flag::WRITE | flag::DENYOOM,
        keys: &[
            KeySpec::one(1, key::OW | key::UPDATE),
            KeySpec::one(2, key::RO | key::ACCESS),
        ],
        since: "6.2.0",
        complexity: SEARCH_COST,
        summary: "Stores the members inside a circle or a box under another key.",
        usage: "destination source <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [STOREDIST]",
        run: geosearchstore,
        ..BASE
    },
    Command {
        name: "georadius",
        arity: -6,
        flags: flag::WRITE | flag::DENYOOM | flag::MOVABLE_KEYS,
        keys: &storing(6),
        destinations: Some(6),
        complexity: SEARCH_COST,
        summary: "Lists or stores the members inside a circle around a place.",
        usage: "key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC] [STORE key | STOREDIST key]",
        deprecated: Some((
            "6.2.0",
            "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument",
        )),
        run: georadius,
        ..BASE
    },
    Command {
        name: "georadius_ro",
        arity: -6,
        since: "3.2.10",
        complexity: SEARCH_COST,
        summary: "Lists the members inside a circle around a place.",
        usage: "key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC]",
        deprecated: Some(("6.2.0", "`GEOSEARCH` with the `BYRADIUS` argument")),
        run: georadius_ro,
        ..READ
    },
    Command {
        name: "georadiusbymember",
        arity: -5,
        flags: flag::WRITE | flag::DENYOOM | flag::MOVABLE_KEYS,
        keys: &storing(5),
        destinations: Some(5),
        complexity: SEARCH_COST,
        summary: "Lists or stores the members inside a circle around a member.",
        usage: "key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC] [STORE key | STOREDIST key]",
        deprecated: Some((
            "6.2.0",
            "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
        )),
        run: georadiusbymember,
        ..BASE
    },
    Command {
        name: "georadiusbymember_ro",
        arity: -5,
        since: "3.2.10",
        complexity: SEARCH_COST,
        summary: "Lists the members inside a circle around a member.",
        usage: "key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC]",
        deprecated: Some((
            "6.2.0",
            "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments",
        )),
        run: georadiusbymember_ro,
        ..READ
    },
];

/// GEOADD is ZADD with scores computed from coordinates, and is recorded as that.
fn geoadd(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut nx, mut xx) = (false, false);
    let first = OptionReader::new(args, 2).take_while(|word| {
        match word {
            b"nx" => nx = true,
            b"xx" => xx = true,
            b"ch" => {}
            _ => return false,
        }
        true
    });
    let places = args.tail(first);
    if !places.len().is_multiple_of(3) || nx && xx {
        return Err(CommandError::SYNTAX);
    }
    let mut request: Vec<Vec<u8>> = vec![b"ZADD".to_vec()];
    request.extend(args.iter().take(first).skip(1).map(<[u8]>::to_vec));
    for at in (0..places.len()).step_by(3) {
        let point = point(&places[at], &places[at + 1])?;
        request.push(format!("{}", point.score()).into_bytes());
        request.push(places[at + 2].to_vec());
    }
    let request = OwnedArgs::from_slices(request);
    let before = ctx.changes();
    add_scored(ctx, request.as_args())?;
    if ctx.changes() != before {
        ctx.propagate_as(request.as_args());
    }
    Ok(())
}

fn geodist(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let metres = match args.len() {
        4 => 1.0,
        5 => unit(&args[4])?,
        _ => return Err(CommandError::SYNTAX),
    };
    let (mut keys, reply) = ctx.keys_and_reply();
    let zset = keys.view::<Zset>(&args[1], Look::Read)?;
    let place = |member: &[u8]| Some(Point::from_score(zset?.score(member)?));
    match (place(&args[2]), place(&args[3])) {
        (Some(one), Some(other)) => distance(reply, one.distance(other) / metres),
        _ => reply.null(),
    }
    Ok(())
}

fn geohash(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let zset = keys.view::<Zset>(&args[1], Look::Read)?;
    reply.array(args.len() - 2);
    for member in args.tail(2).iter() {
        match zset.and_then(|zset| zset.score(member)) {
            Some(score) => reply.bulk(Point::from_score(score).geohash()),
            None => reply.null(),
        }
    }
    Ok(())
}

fn geopos(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let zset = keys.view::<Zset>(&args[1], Look::Read)?;
    reply.array(args.len() - 2);
    for member in args.tail(2).iter() {
        match zset.and_then(|zset| zset.score(member)) {
            Some(score) => coordinates(reply, Point::from_score(score)),
            None => reply.null_array(),
        }
    }
    Ok(())
}

/// Coordinates as clients write them.
fn point(longitude: &[u8], latitude: &[u8]) -> Result<Point, CommandError> {
    let point = Point {
        longitude: parse_score(longitude).ok_or(CommandError::NOT_FLOAT)?,
        latitude: parse_score(latitude).ok_or(CommandError::NOT_FLOAT)?,
    };
    if point.is_valid() {
        return Ok(point);
    }
    Err(CommandError::new(format!(
        "ERR invalid longitude,latitude pair {:.6},{:.6}",
        point.longitude, point.latitude
    )))
}

/// How many metres a unit has.
fn unit(text: &[u8]) -> Result<f64, CommandError> {
    match text.to_ascii_lowercase().as_slice() {
        b"m" => Ok(1.0),
        b"km" => Ok(1000.0),
        b"ft" => Ok(0.3048),
        b"mi" => Ok(1609.34),
        _ => Err(CommandError::fixed(
            "ERR unsupported unit provided. please use M, KM, FT, MI",
        )),
    }
}

/// A distance, always as a string with four digits behind the point.
fn distance(reply: &mut Reply<'_>, distance: f64) {
    reply.bulk(format!("{distance:.4}"));
}

/// Longitude and latitude, with 17 digits behind the point at most.
fn coordinates(reply: &mut Reply<'_>, point: Point) {
    reply.array(2);
    for degrees in [point.longitude, point.latitude] {
        let text = format!("{degrees:.17}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        let text = if text == "-0" { "0" } else { text };
        if reply.is_resp3() {
            reply.encoded(format!(",{text}\r\n").as_bytes());
        } else {
            reply.bulk(text);
        }
    }
}

#[cfg(test)]
mod tests;
