//! Decoded replies turned back into bytes, compared, and told apart by the language they belong to.

use kumi_resp::{Frame, Protocol::Resp3, encode};

/// Writes a frame so that it decodes to itself.
pub fn encode_frame(out: &mut Vec<u8>, frame: &Frame) {
    match frame {
        Frame::Simple(text) => line(out, b'+', text),
        Frame::Error(text) => line(out, b'-', text),
        Frame::Integer(value) => encode::integer(out, *value),
        Frame::Bulk(bytes) => encode::bulk(out, bytes),
        Frame::NullBulk => out.extend(b"$-1\r\n"),
        Frame::NullArray => out.extend(b"*-1\r\n"),
        Frame::Null => encode::null(out, Resp3),
        Frame::Boolean(value) => encode::boolean(out, Resp3, *value),
        Frame::Double(value) => encode::double(out, Resp3, *value),
        Frame::BigNumber(digits) => line(out, b'(', digits),
        Frame::BulkError(text) => encode::bulk_error(out, Resp3, text),
        Frame::Verbatim { format, text } => encode::verbatim(out, Resp3, format, text),
        Frame::Array(elements) => {
            encode::array(out, elements.len());
            elements.iter().for_each(|frame| encode_frame(out, frame));
        }
        Frame::Set(elements) => {
            encode::set(out, Resp3, elements.len());
            elements.iter().for_each(|frame| encode_frame(out, frame));
        }
        Frame::Push(elements) => {
            encode::push(out, Resp3, elements.len());
            elements.iter().for_each(|frame| encode_frame(out, frame));
        }
        Frame::Map(pairs) => {
            encode::map(out, Resp3, pairs.len());
            encode_pairs(out, pairs);
        }
        Frame::Attribute { pairs, reply } => {
            encode::attribute(out, pairs.len());
            encode_pairs(out, pairs);
            encode_frame(out, reply);
        }
        other => panic!("a kind of frame this does not know: {other:?}"),
    }
}

fn encode_pairs(out: &mut Vec<u8>, pairs: &[(Frame, Frame)]) {
    for (key, value) in pairs {
        encode_frame(out, key);
        encode_frame(out, value);
    }
}

/// Bytes of a decoded line are written as they are: the encoder would replace what a line may not hold, and a decoded
/// line may hold a line feed of its own.
fn line(out: &mut Vec<u8>, kind: u8, text: &[u8]) {
    out.push(kind);
    out.extend(text);
    out.extend(b"\r\n");
}

/// Equality that takes one NaN for another.
pub fn same(one: &Frame, other: &Frame) -> bool {
    // Frames that differ only in a NaN are written as the same bytes, and no others are.
    one == other || {
        let (mut one_bytes, mut other_bytes) = (Vec::new(), Vec::new());
        encode_frame(&mut one_bytes, one);
        encode_frame(&mut other_bytes, other);
        one_bytes == other_bytes
    }
}

/// Whether a client that never asked for RESP3 understands this.
pub(crate) fn is_resp2(frame: &Frame) -> bool {
    match frame {
        Frame::Simple(_)
        | Frame::Error(_)
        | Frame::Integer(_)
        | Frame::Bulk(_)
        | Frame::NullBulk
        | Frame::NullArray => true,
        Frame::Array(elements) => elements.iter().all(is_resp2),
        _ => false,
    }
}
