//! The rows of the hash commands.

use super::{Generator, Row, row};
use crate::command::Arg;

pub(super) const ROWS: &[Row] = &[
    row("HSET", &[], hset).weight(50),
    row("HSETNX", &[], key_field_value),
    row("HGET", &[], key_field).weight(15),
    row("HMSET", &[], hset),
    row("HMGET", &[], key_fields),
    row("HGETALL", &[], one_key).weight(20),
    row("HDEL", &[], key_fields).weight(15),
    row("HLEN", &[], one_key),
    row("HSTRLEN", &[], key_field),
    row("HEXISTS", &[], key_field),
    row("HKEYS", &[], one_key),
    row("HVALS", &[], one_key),
    row("HINCRBY", &[], hincrby).weight(20),
    row("HINCRBYFLOAT", &[], hincrbyfloat).weight(20),
    row("HRANDFIELD", &["WITHVALUES"], hrandfield).weight(15),
    row("HSCAN", &["MATCH", "COUNT"], hscan).weight(15),
];

fn key(generator: &mut Generator<'_>) -> Arg {
    generator.collection_key(&[b"h1", b"h2"])
}

fn one_key(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![key(generator)]
}

fn key_field(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![key(generator), generator.element()]
}

fn key_fields(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator)];
    args.extend(generator.elements(4));
    args
}

fn key_field_value(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![key(generator), generator.element(), generator.value()]
}

fn hset(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator)];
    for _ in 0..generator.rng.between(1, 4) {
        args.push(generator.element());
        args.push(generator.value());
    }
    args
}

fn hincrby(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![key(generator), generator.element(), generator.integer()]
}

fn hincrbyfloat(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![key(generator), generator.element(), generator.float()]
}

fn hrandfield(generator: &mut Generator<'_>) -> Vec<Arg> {
    let key = key(generator);
    generator.random_elements(key, "WITHVALUES")
}

fn hscan(generator: &mut Generator<'_>) -> Vec<Arg> {
    let key = key(generator);
    generator.element_scan(key)
}
