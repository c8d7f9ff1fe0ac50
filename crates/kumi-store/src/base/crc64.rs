//! CRC-64 as RDB files and DUMP payloads carry it: the Jones polynomial, reflected, no initial value, no final xor.
//!
//! Sixteen bytes are folded per step through sixteen tables (32 KiB, built at compile time), because a checksum over
//! every saved byte is on the path of a whole data set.

/// The Jones polynomial 0xad93d23594c935a9 with its bits reversed.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;
/// How many bytes one step folds.
const LANES: usize = 16;

static TABLES: [[u64; 256]; LANES] = tables();

/// Continues a checksum over more bytes; a new one starts at 0.
#[must_use]
pub fn update(crc: u64, bytes: &[u8]) -> u64 {
    let mut crc = crc;
    let mut chunks = bytes.chunks_exact(LANES);
    for chunk in &mut chunks {
        let mut folded = 0;
        for (lane, &byte) in chunk.iter().enumerate() {
            // The first eight bytes meet the checksum so far, the others only shift through.
            let mixed = match lane {
                0..8 => byte ^ (crc >> (lane * 8)) as u8,
                _ => byte,
            };
            folded ^= TABLES[LANES - 1 - lane][usize::from(mixed)];
        }
        crc = folded;
    }
    for &byte in chunks.remainder() {
        crc = TABLES[0][usize::from(crc as u8 ^ byte)] ^ (crc >> 8);
    }
    crc
}

/// The checksum of one piece.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u64 {
    update(0, bytes)
}

/// `tables()[n][byte]` is the checksum of `byte` followed by `n` zero bytes.
const fn tables() -> [[u64; 256]; LANES] {
    let mut tables = [[0; 256]; LANES];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                (crc >> 1) ^ POLYNOMIAL
            } else {
                crc >> 1
            };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut lane = 1;
    while lane < LANES {
        let mut byte = 0;
        while byte < 256 {
            let shorter = tables[lane - 1][byte];
            tables[lane][byte] = tables[0][(shorter & 0xff) as usize] ^ (shorter >> 8);
            byte += 1;
        }
        lane += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One bit at a time, straight from the definition.
    fn bitwise(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0, |crc, &byte| {
            (0..8).fold(crc ^ u64::from(byte), |crc: u64, _| {
                (crc >> 1) ^ (POLYNOMIAL * (crc & 1))
            })
        })
    }

    #[test]
    fn published_check_value() {
        assert_eq!(checksum(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(checksum(b""), 0);
    }

    proptest! {
        #[test]
        fn folding_equals_the_definition(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(checksum(&bytes), bitwise(&bytes));
        }

        #[test]
        fn pieces_equal_the_whole(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0usize..200) {
            let (head, tail) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(update(update(0, head), tail), checksum(&bytes));
        }
    }
}
