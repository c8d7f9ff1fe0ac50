//! Any bytes as what several clients send, on a clock that runs.
//!
//! Nothing may panic (the store would answer it, the fuzzer sees it first), every answer is whole RESP of the language
//! its client speaks, and the write records replay to the same data. Requests that begin with `@` are this target's:
//! `@client 2`, `@wait 1500` (milliseconds) and `@hangup`.

use crate::World;
use kumi_resp::{Decoder, Limits, Step};

/// Enough to fill a few segments of the keyspace, too few to make one input slow.
const MAX_REQUESTS: usize = 400;

/// Runs one input.
pub fn run(stream: &[u8]) {
    let mut world = World::new();
    let mut decoder = Decoder::new();
    let mut rest = stream;
    for _ in 0..MAX_REQUESTS {
        match decoder.decode(rest, &Limits::default()) {
            Ok(Step::Request { args, consumed }) => {
                world.request(args);
                rest = &rest[consumed..];
            }
            Ok(Step::Incomplete { .. }) => break,
            Err(error) => {
                world.protocol_error(&error);
                break;
            }
        }
    }
    world.finish();
}
