//! Any bytes as an RDB file: they are loaded or refused, and what was loaded can be saved and loaded again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    kumi_store::fuzzing::load_file(file);
});
