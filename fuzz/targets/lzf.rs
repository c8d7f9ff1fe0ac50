//! Any bytes: what was compressed comes back, and compressed text of any kind is expanded or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [low, high, bytes @ ..] = input else {
        return;
    };
    kumi_store::fuzzing::lzf(bytes, usize::from(u16::from_le_bytes([*low, *high])));
});
