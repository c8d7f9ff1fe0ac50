//! How much memory an allocation takes, as opposed to how much was asked for.
//!
//! Allocators hand out blocks of certain sizes. Accounts that add up what was asked for are too
//! low by up to a quarter, and `maxmemory` with them. The classes here are those of mimalloc,
//! which the programs use: four between two powers of two. Other allocators are close to it.

/// Blocks up to this size come in multiples of 16 bytes.
const SMALL_BYTES: usize = 64;
/// Larger blocks are rounded to pages; what more they get is never touched.
const MEDIUM_BYTES: usize = 128 * 1024;
const PAGE_BYTES: usize = 4096;

/// The size of the block that an allocation of `bytes` gets.
#[inline]
pub(crate) const fn block_bytes(bytes: usize) -> usize {
    if bytes <= SMALL_BYTES {
        bytes.next_multiple_of(16)
    } else if bytes <= MEDIUM_BYTES {
        let quarter = 1 << ((bytes - 1).ilog2() - 2);
        (bytes + quarter - 1) & !(quarter - 1)
    } else {
        match bytes.checked_next_multiple_of(PAGE_BYTES) {
            Some(pages) => pages,
            None => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_of_the_allocator() {
        let cases = [
            (0, 0),
            (1, 16),
            (16, 16),
            (17, 32),
            (64, 64),
            (65, 80),
            (80, 80),
            (113, 128),
            (128, 128),
            (129, 160),
            (560, 640),
            (641, 768),
            (4000, 4096),
            (4097, 5120),
            (131_072, 131_072),
            (131_073, 135_168),
            (100 << 20, 100 << 20),
        ];
        for (asked, block) in cases {
            assert_eq!(block_bytes(asked), block, "{asked} bytes");
        }
    }

    #[test]
    fn a_block_is_never_smaller_than_what_was_asked_for() {
        for asked in (0..300_000).chain([usize::MAX]) {
            let block = block_bytes(asked);
            assert!(block >= asked);
            assert!(
                asked < 64 || block / 5 <= asked / 4,
                "{asked} gives {block}"
            );
        }
    }
}
