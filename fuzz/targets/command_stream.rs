//! Any bytes as what several clients send, on a clock that runs.
//!
//! Nothing may panic (the store would answer it, the fuzzer sees it first), every answer is whole RESP of the language
//! its client speaks, and the write records replay to the same data. Requests that begin with `@` are this target's:
//! `@client 2`, `@wait 1500` (milliseconds) and `@hangup`.
#![no_main]

use kumi_fuzz::{World, mutate_script};
use kumi_resp::{Decoder, Limits, Step};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

/// Enough to fill a few segments of the keyspace, too few to make one input slow.
const MAX_REQUESTS: usize = 400;

fuzz_target!(|stream: &[u8]| {
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
});

// Half of the mutations know what a request is, half of them know nothing.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed.is_multiple_of(2) {
        return fuzzer_mutate(data, size, max_size);
    }
    let script = mutate_script(&data[..size], max_size, seed);
    let size = script.len().min(max_size);
    data[..size].copy_from_slice(&script[..size]);
    size
});
