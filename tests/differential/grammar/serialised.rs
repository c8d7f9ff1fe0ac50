//! The rows of DUMP and RESTORE, and the payloads they are about.

use super::{Generator, Row, row};
use crate::command::Arg;

pub(super) const ROWS: &[Row] = &[
    row("DUMP", &[], |generator| vec![generator.key()]).weight(20),
    row(
        "RESTORE",
        &["REPLACE", "ABSTTL", "IDLETIME", "FREQ"],
        restore,
    )
    .weight(40),
    row("RESTORE-ASKING", &["REPLACE"], restore),
    row("DEBUG DIGEST-VALUE", &[], |generator| generator.keys(3)).weight(20),
    row("DEBUG DIGEST", &[], |_| vec![]).weight(10),
];

/// Values as Redis 7.0 wrote them, without version and checksum.
const VALUES: &[&str] = &[
    // A string, an integer, a compressed string.
    "000568656c6c6f",
    "00c13930",
    "00c30940c8017676e0bb00017676",
    // A list.
    "120102141400000005008161028162020101dff9026401ff",
    // An intset and a set.
    "0b0e0200000003000000010002002c01",
    "020301620161c001",
    // A packed hash and a hash.
    "101414000000040081610201018162028374776f04ff",
    "04010161c3094046017878e03900017878",
    // A packed sorted set and a sorted set.
    "111d1d0000000600816302842d696e6605816102010181620283322e3504ff",
    "050201620000000000000440c3094046017979e03900017979000000000000f03f",
];

/// What no version reads: types that nothing has, an empty set, a set with a member twice, a string that ends early.
const BROKEN: &[&str] = &["fe00", "1e00", "0200", "020201610161", "00ff"];

/// The version that Redis 7.0 writes.
const VERSION: u16 = 10;

fn restore(generator: &mut Generator<'_>) -> Vec<Arg> {
    let ttl = match generator.rng.below(10) {
        0..6 => Arg::from("0"),
        6..9 => generator.lifetime(),
        _ => generator.integer(),
    };
    let mut args = vec![generator.key(), ttl, payload(generator)];
    for _ in 0..generator.rng.below(3) {
        match generator.rng.below(10) {
            0..5 => args.push(generator.word("REPLACE")),
            5 => args.push(generator.word("ABSTTL")),
            6 | 7 => {
                args.push(generator.word("IDLETIME"));
                args.push(generator.integer());
            }
            8 => {
                args.push(generator.word("FREQ"));
                args.push(generator.integer());
            }
            _ => args.push(generator.one_of(&["FOO", "IDLETIME", "FREQ"])),
        }
    }
    args
}

fn payload(generator: &mut Generator<'_>) -> Arg {
    let broken = generator.rng.percent(8);
    let value = generator.rng.pick(if broken { BROKEN } else { VALUES });
    let mut bytes: Vec<u8> = (0..value.len() / 2)
        .map(|at| u8::from_str_radix(&value[at * 2..at * 2 + 2], 16).expect("it is hexadecimal"))
        .collect();
    let version = match generator.rng.below(20) {
        0 => 12,
        1 => 6,
        _ => VERSION,
    };
    bytes.extend(version.to_le_bytes());
    let mut checksum = crc64(&bytes);
    if generator.rng.percent(3) {
        checksum ^= 1;
    }
    bytes.extend(checksum.to_le_bytes());
    if generator.rng.percent(2) {
        bytes.truncate(generator.rng.below(bytes.len()));
    }
    Arg::Bytes(bytes)
}

/// The checksum of a payload, bit by bit.
fn crc64(bytes: &[u8]) -> u64 {
    const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;
    bytes.iter().fold(0, |checksum, &byte| {
        (0..8).fold(checksum ^ u64::from(byte), |bits, _| {
            (bits >> 1) ^ (POLYNOMIAL & (bits & 1).wrapping_neg())
        })
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_is_that_of_redis() {
        assert_eq!(super::crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }
}
