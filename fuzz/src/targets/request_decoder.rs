//! Any bytes, cut anywhere: requests decoded from the whole buffer and from pieces of it are the same.

use kumi_resp::{Decoder, Limits, OwnedArgs, Step};

/// Low, so that a short input can exceed them.
const SMALL: Limits = Limits {
    max_bulk_len: 48,
    max_args: 6,
    max_inline_len: 32,
    authenticated: true,
};

/// What became of a stream of bytes.
#[derive(Debug, PartialEq)]
struct Outcome {
    requests: Vec<OwnedArgs>,
    error: Option<String>,
    /// Bytes that belong to no whole request yet.
    left: usize,
}

/// Runs one input.
pub fn run(input: &[u8]) {
    // The first two bytes choose the limits and the cuts, the rest is the stream.
    let [choice, seed, stream @ ..] = input else {
        return;
    };
    let limits = match choice % 3 {
        0 => Limits::default(),
        1 => SMALL,
        _ => Limits {
            authenticated: false,
            ..Limits::default()
        },
    };
    let mut rng = fastrand::Rng::with_seed(u64::from(*seed));
    let whole = decode(stream, &limits, || usize::MAX);
    let bytewise = decode(stream, &limits, || 1);
    let pieces = decode(stream, &limits, || rng.usize(1..16));
    agree(&whole, &bytewise);
    agree(&bytewise, &pieces);
}

/// An error may be noticed before the bytes behind it came, so what is left then differs.
#[track_caller]
fn agree(one: &Outcome, other: &Outcome) {
    assert_eq!(one.requests, other.requests);
    assert_eq!(one.error, other.error);
    if one.error.is_none() {
        assert_eq!(one.left, other.left);
    }
}

/// Decodes a stream that arrives in pieces, as a connection would.
fn decode(stream: &[u8], limits: &Limits, mut piece: impl FnMut() -> usize) -> Outcome {
    let mut decoder = Decoder::new();
    let mut outcome = Outcome {
        requests: Vec::new(),
        error: None,
        left: 0,
    };
    let (mut start, mut end) = (0, 0);
    while end < stream.len() {
        end = end.saturating_add(piece()).min(stream.len());
        loop {
            let buf = &stream[start..end];
            match decoder.decode(buf, limits) {
                Ok(Step::Request { args, consumed }) => {
                    assert!(!args.is_empty() && consumed > 0 && consumed <= buf.len());
                    outcome.requests.push(args.to_owned());
                    start += consumed;
                }
                Ok(Step::Incomplete { consumed, need }) => {
                    assert!(consumed <= buf.len() && need > 0);
                    start += consumed;
                    break;
                }
                Err(error) => {
                    outcome.error = Some(error.to_string());
                    return outcome;
                }
            }
        }
    }
    outcome.left = stream.len() - start;
    outcome
}
