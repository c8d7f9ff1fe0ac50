//! Any bytes as replies: no prefix of a reply is one, and a reply encoded again decodes to itself.

use crate::{encode_frame, same};
use kumi_resp::{Frame, ReplyLimits, decode_reply};

const SMALL: ReplyLimits = ReplyLimits {
    max_len: 24,
    max_elements: 5,
    max_depth: 3,
};

/// Runs one input.
pub fn run(input: &[u8]) {
    let [choice, stream @ ..] = input else {
        return;
    };
    let limits = if choice % 2 == 0 {
        ReplyLimits::default()
    } else {
        SMALL
    };
    let mut rest = stream;
    while let Ok(Some((frame, consumed))) = decode_reply(rest, &limits) {
        assert!(consumed > 0 && consumed <= rest.len());
        check_prefixes(&rest[..consumed], &limits);
        check_round_trip(&frame);
        rest = &rest[consumed..];
    }
}

/// Decoding starts over each time, so long replies are only cut at some places.
fn check_prefixes(reply: &[u8], limits: &ReplyLimits) {
    let step = reply.len().div_ceil(256);
    for end in (0..reply.len()).step_by(step) {
        let decoded = decode_reply(&reply[..end], limits);
        assert!(matches!(decoded, Ok(None)), "cut at {end}: {decoded:?}");
    }
}

fn check_round_trip(frame: &Frame) {
    let mut bytes = Vec::new();
    encode_frame(&mut bytes, frame);
    match decode_reply(&bytes, &ReplyLimits::default()) {
        Ok(Some((again, consumed))) => {
            assert!(same(frame, &again), "{frame:?} came back as {again:?}");
            assert_eq!(consumed, bytes.len());
        }
        other => panic!("{frame:?} encoded again is {other:?}"),
    }
}
