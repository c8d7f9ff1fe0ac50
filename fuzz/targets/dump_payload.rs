//! Any value behind a right footer: it is read or refused, and what was read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|value: &[u8]| {
    // As it is: the footer is judged.
    kumi_store::fuzzing::restore(value);
    // With a footer of its own: the value is judged.
    let mut payload = value.to_vec();
    kumi_store::fuzzing::seal_dump(&mut payload);
    kumi_store::fuzzing::restore(&payload);
});
