//! Generated programs run in kumi-lua and through EVAL on a real redis-server; what they return must be equal.
//!
//! The reference is Debian's `/usr/bin/redis-server` (7.0.15), or the program that `REDIS_SERVER_BIN` names. A run uses
//! fixed seeds. `KUMI_LUA_SEED=n` sets the first seed and `KUMI_LUA_ROUNDS=n` how many follow; a difference prints its
//! seed, the case and both results.

mod generate;
mod programs;
mod redis;
mod tokens;

use fastrand::Rng;
use kumi_lua::{Limits, Lua, Value};
use redis::Redis;

/// Runs every case under `pcall` and writes results so that equal texts mean equal values: numbers with 17 digits, tables
/// in the order of `next`, addresses left out.
const PRELUDE: &str = include_str!("prelude.lua");

fn rounds(default: u64) -> std::ops::Range<u64> {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let first = number("KUMI_LUA_SEED").unwrap_or(1);
    first..first + number("KUMI_LUA_ROUNDS").unwrap_or(default)
}

/// A chunk with the prelude and one case a line.
fn chunk(cases: &[String]) -> String {
    let mut source = PRELUDE.to_owned();
    for case in cases {
        source.push_str("T(function() ");
        source.push_str(case);
        source.push_str(" end)\n");
    }
    source.push_str("return table.concat(out, '\\n')\n");
    source
}

fn run_here(source: &str) -> String {
    let mut limits = Limits::default();
    limits.memory_bytes = 512 << 20;
    let mut lua = Lua::redis(limits);
    let script = match lua.load("@user_script", source.as_bytes()) {
        Ok(script) => script,
        Err(error) => return format!("ERR Error compiling script (new function): {error}"),
    };
    let value = match lua.call(&mut (), &script, &[]) {
        Ok(results) => results.first().copied().unwrap_or_default(),
        Err(error) => error.value,
    };
    match value {
        Value::Str(_) => String::from_utf8_lossy(lua.bytes(value).unwrap_or_default()).into_owned(),
        other => format!("{other:?}"),
    }
}

/// Compares one chunk line by line.
fn compare(redis: &mut Redis, seed: u64, cases: &[String]) {
    let source = chunk(cases);
    let expected = redis.eval(&source);
    let found = run_here(&source);
    if expected == found {
        return;
    }
    let mut report = format!("seed {seed}:\n");
    let mut shown = 0;
    for (at, (left, right)) in expected.lines().zip(found.lines()).enumerate() {
        if left != right && shown < 8 {
            shown += 1;
            let case = cases.get(at).map_or("?", String::as_str);
            report.push_str(&format!("{case}\n  redis: {left}\n  here:  {right}\n"));
        }
    }
    if shown == 0 {
        report.push_str(&format!("redis: {expected}\nhere: {found}\n"));
    }
    panic!("{report}");
}

fn run(default_rounds: u64, make: fn(&mut Rng) -> Vec<String>) {
    let mut redis = Redis::start();
    for seed in rounds(default_rounds) {
        let mut rng = Rng::with_seed(seed);
        let cases = make(&mut rng);
        compare(&mut redis, seed, &cases);
    }
}

#[test]
fn expressions_give_what_redis_gives() {
    run(40, generate::expressions);
}

#[test]
fn library_calls_give_what_redis_gives() {
    run(60, generate::calls);
}

#[test]
fn programs_give_what_redis_gives() {
    run(30, programs::programs);
}

#[test]
fn broken_sources_fail_as_in_redis() {
    run(40, tokens::broken_sources);
}
