//! Runs the target that the variable `KUMI_FUZZ_TARGET` names.
#![no_main]

use kumi_fuzz::{Target, mutate_script, target};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use std::sync::LazyLock;

/// The target whose inputs are requests, and whose mutations know what a request is.
const OF_REQUESTS: &str = "command_stream";

static CHOSEN: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("KUMI_FUZZ_TARGET").unwrap_or_default();
    target(&name).unwrap_or_else(|| {
        eprintln!("KUMI_FUZZ_TARGET: no target is named '{name}' (fuzz/run.sh --list)");
        std::process::exit(2)
    })
});

fuzz_target!(|bytes: &[u8]| {
    let (_, run) = *CHOSEN;
    run(bytes);
});

// Half of the mutations of requests know what a request is, half of them know nothing.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if CHOSEN.0 != OF_REQUESTS || seed.is_multiple_of(2) {
        return fuzzer_mutate(data, size, max_size);
    }
    let script = mutate_script(&data[..size], max_size, seed);
    let size = script.len().min(max_size);
    data[..size].copy_from_slice(&script[..size]);
    size
});
