//! Large arguments, however they arrive.

use kumi_resp::{Decoder, LARGE_ARG_BYTES, Limits, OwnedArgs, Step};
use proptest::prelude::*;

fn encode(args: &[Vec<u8>]) -> Vec<u8> {
    let mut wire = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        wire.extend(format!("${}\r\n", arg.len()).bytes());
        wire.extend_from_slice(arg);
        wire.extend_from_slice(b"\r\n");
    }
    wire
}

/// A connection that reads at most `pieces` bytes at a time, one after the other.
struct Reader<'a> {
    wire: &'a [u8],
    pieces: std::iter::Cycle<std::slice::Iter<'a, usize>>,
}

impl Reader<'_> {
    fn read(&mut self, out: &mut Vec<u8>, room: usize) {
        let piece = *self.pieces.next().expect("a cycle does not end");
        let count = piece.min(room).min(self.wire.len());
        out.extend_from_slice(&self.wire[..count]);
        self.wire = &self.wire[count..];
    }
}

/// Decodes everything the way a front does, reading into large arguments if `direct`.
fn decode_all(wire: &[u8], pieces: &[usize], direct: bool) -> Vec<OwnedArgs> {
    let mut reader = Reader {
        wire,
        pieces: pieces.iter().cycle(),
    };
    let (mut decoder, mut buf, mut requests) = (Decoder::new(), Vec::new(), Vec::new());
    loop {
        match decoder
            .decode(&buf, &Limits::default())
            .expect("well-formed")
        {
            Step::Request { args, consumed } => {
                for (index, arg) in args.iter().enumerate() {
                    assert_eq!(args.shared(index).is_some(), arg.len() >= LARGE_ARG_BYTES);
                }
                requests.push(args.to_owned());
                buf.drain(..consumed);
                continue;
            }
            Step::Incomplete { consumed, .. } => drop(buf.drain(..consumed)),
        }
        if direct {
            decoder.settle(&mut buf);
        }
        if reader.wire.is_empty() {
            assert!(buf.is_empty(), "{} bytes are left", buf.len());
            return requests;
        }
        match decoder.large_room() {
            Some(large) if direct => {
                let room = large.capacity() - large.len();
                assert!(room > 0);
                reader.read(large, room);
                decoder.settle(&mut buf);
            }
            _ => reader.read(&mut buf, usize::MAX),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn large_arguments_arrive_whole_in_any_pieces(
        lens in prop::collection::vec(
            prop_oneof![0usize..20, (LARGE_ARG_BYTES - 2)..(LARGE_ARG_BYTES + 3), 60_000usize..200_000],
            1..6,
        ),
        pieces in prop::collection::vec(prop_oneof![1usize..100, 1000usize..70_000], 1..8),
        direct: bool,
        blank_lines in 0usize..3,
    ) {
        // Single bytes only would take too long.
        let pieces: Vec<usize> = pieces.into_iter().chain([50_000]).collect();
        let args: Vec<Vec<u8>> = lens
            .iter()
            .enumerate()
            .map(|(index, &len)| (0..len).map(|at| (at * 7 + index) as u8).collect())
            .collect();
        let small = vec![b"GET".to_vec(), b"key".to_vec()];
        let wire = [
            b"\r\n".repeat(blank_lines),
            encode(&args),
            encode(&small),
            encode(&args),
        ]
        .concat();
        let expected = [&args, &small, &args].map(OwnedArgs::from_slices);
        prop_assert_eq!(decode_all(&wire, &pieces, direct), expected);
    }
}

#[test]
fn a_claimed_length_takes_at_most_a_megabyte() {
    let mut decoder = Decoder::new();
    let wire = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$500000000\r\nabc";
    let mut buf = wire.to_vec();
    let step = decoder.decode(&buf, &Limits::default());
    assert_eq!(
        step,
        Ok(Step::Incomplete {
            consumed: 0,
            need: 500_000_000 - 3 + 2
        })
    );
    decoder.settle(&mut buf);
    assert_eq!(buf.len(), wire.len() - 3);
    assert_eq!(decoder.large_bytes(), 3);
    let room = decoder.large_room().map(|room| room.capacity());
    assert!(room.is_some_and(|capacity| capacity <= 1 << 20));
}

#[test]
fn an_owned_copy_shares_large_arguments() {
    let wire = encode(&[b"SET".to_vec(), vec![b'v'; 100_000], b"k".to_vec()]);
    let mut decoder = Decoder::new();
    let step = decoder.decode(&wire, &Limits::default());
    let Ok(Step::Request { args, .. }) = step else {
        panic!("{step:?}");
    };
    let owned = args.to_owned();
    assert_eq!(owned.as_args(), args);
    drop(decoder.take_large());
    let shared = owned.as_args().shared(1).expect("it is large");
    assert!(shared.is_unique());
    assert_eq!(owned.as_args().tail(1).shared(0), Some(shared));
    assert_eq!(owned.as_args().shared(2), None);
}
