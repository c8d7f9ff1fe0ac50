//! When a payload is compressed, and how long a decompressed one may be.
//!
//! Compression is worth its time from about two kilobytes up, and only if the payload shrinks. Most large payloads that do
//! not shrink (images, archives, ciphertext) show it in any 4 KiB of them, so a sample from the middle is compressed first,
//! unless a test of its bytes shows that it is noise. Decompression stops at the length that the header announced: a
//! decompression bomb yields at most its announced length, which the packet limit bounds.

use std::sync::Mutex;

use rkyv::util::AlignedVec;
use zstd::bulk::Compressor;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::error::WireError;

/// Payloads shorter than this are sent as they are.
pub const COMPRESSION_THRESHOLD: usize = 2_048;

/// How much of a longer payload is tried before all of it is.
pub const COMPRESSION_SAMPLE: usize = 4_096;

/// See [`is_noise`]: five standard deviations above what random bytes have.
const UNEVEN: i32 = 368;

/// zstd's fastest regular level. `.cargo/config.toml` leaves out the strategies of higher levels.
const LEVEL: i32 = 1;

/// Idle compressors kept. One takes some hundred kilobytes, so a few serve a whole endpoint.
const KEPT_COMPRESSORS: usize = 4;

/// Decompression writes at most this much at a time, so memory grows with the bytes that it yields.
const UNFOLD_STEP: usize = 64 * 1024;

/// Windows above 8 MiB (2^23) would reserve more than a packet can hold.
const WINDOW_LOG_MAX: u32 = 23;

/// Compressors and the decision whether to use them. One is shared by all channels of an endpoint.
pub struct Codec {
    compresses: bool,
    idle: Mutex<Vec<Compressor<'static>>>,
}

impl Default for Codec {
    fn default() -> Self {
        Self {
            compresses: true,
            idle: Mutex::default(),
        }
    }
}

impl std::fmt::Debug for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Codec").finish_non_exhaustive()
    }
}

impl Codec {
    /// A codec without any compressor yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A codec that compresses nothing.
    pub(crate) fn plain() -> Self {
        Self {
            compresses: false,
            ..Self::default()
        }
    }

    /// The compressed payload, if it is long enough and compression makes it shorter. The payload is given
    /// in pieces (what precedes, the bulk, what follows), because its bulk is sent without being copied otherwise.
    pub(crate) fn compress(&self, pieces: [&[u8]; 3]) -> Result<Option<Vec<u8>>, WireError> {
        let len: usize = pieces.iter().map(|piece| piece.len()).sum();
        if len < COMPRESSION_THRESHOLD || !self.compresses {
            return Ok(None);
        }
        if sample_of(pieces[1]).is_some_and(is_noise) {
            return Ok(None);
        }
        let mut compressor = self.take()?;
        let compressed = compress_with(&mut compressor, pieces, len);
        self.put_back(compressor);
        compressed
    }

    fn take(&self) -> Result<Compressor<'static>, WireError> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .pop();
        match idle {
            Some(compressor) => Ok(compressor),
            None => {
                Compressor::new(LEVEL).map_err(|error| WireError::Compressor(error.to_string()))
            }
        }
    }

    fn put_back(&self, compressor: Compressor<'static>) {
        let mut idle = self
            .idle
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if idle.len() < KEPT_COMPRESSORS {
            idle.push(compressor);
        }
    }
}

fn compress_with(
    compressor: &mut Compressor<'static>,
    pieces: [&[u8]; 3],
    len: usize,
) -> Result<Option<Vec<u8>>, WireError> {
    let failed = |error: std::io::Error| WireError::Compressor(error.to_string());
    let [_, bulk, _] = pieces;
    if let Some(sample) = sample_of(bulk) {
        // A buffer one byte short of the sample: failing to fit is failing to shrink.
        let mut room = [0_u8; COMPRESSION_SAMPLE - 1];
        if compressor
            .compress_to_buffer(sample, &mut room[..])
            .is_err()
        {
            return Ok(None);
        }
    }
    let whole;
    let source: &[u8] = match pieces {
        [[], bulk, []] => bulk,
        pieces => {
            whole = pieces.concat();
            &whole
        }
    };
    let compressed = compressor.compress(source).map_err(failed)?;
    Ok((compressed.len() < len).then_some(compressed))
}

/// What is tried of a payload that is long enough.
fn sample_of(bulk: &[u8]) -> Option<&[u8; COMPRESSION_SAMPLE]> {
    let middle = bulk.len().checked_sub(COMPRESSION_SAMPLE + 1)? / 2;
    bulk[middle..].first_chunk()
}

/// Whether a sample has nothing to shrink by: no byte is more frequent than others, and no word comes twice. Compressing
/// it would tell exactly, and take three times as long. What is overlooked here is a gain of one or two in a hundred.
///
/// Bytes are counted in a few pieces of the sample. Of random ones the sum over all values of (count - mean)^2 / mean is
/// 255 on average, and above [`UNEVEN`] once in many thousand samples.
fn is_noise(sample: &[u8; COMPRESSION_SAMPLE]) -> bool {
    const PIECE: usize = 256;
    const PIECES: usize = 4;
    const APART: usize = (COMPRESSION_SAMPLE - PIECE) / (PIECES - 1);
    const MEAN: i32 = (PIECE * PIECES / 256) as i32;
    let mut counts = [0_i32; 256];
    for piece in 0..PIECES {
        for byte in &sample[piece * APART..][..PIECE] {
            counts[usize::from(*byte)] += 1;
        }
    }
    let squares: i32 = counts.iter().map(|count| (count - MEAN).pow(2)).sum();
    squares <= UNEVEN * MEAN && !has_repetition(sample)
}

/// Whether some words of four bytes come twice. One of each block is entered into a table, where it may displace an
/// earlier one; in every few blocks the words at all other places are looked up, so that a repetition of some length is
/// met wherever it begins.
fn has_repetition(sample: &[u8; COMPRESSION_SAMPLE]) -> bool {
    const BLOCK: usize = 16;
    const LOOKED_UP_EVERY: usize = 8;
    const SLOTS: usize = 512;
    let slot = |word: u32| (word.wrapping_mul(0x9e37_79b1) >> (32 - SLOTS.ilog2())) as usize;
    let word_at = |at: usize| {
        sample[at..]
            .first_chunk()
            .map_or(0, |word| u32::from_le_bytes(*word))
    };
    let mut entered = [0_u32; SLOTS];
    for at in (0..COMPRESSION_SAMPLE).step_by(BLOCK) {
        let word = word_at(at);
        let entry = &mut entered[slot(word)];
        if *entry == word {
            return true;
        }
        *entry = word;
    }
    (0..COMPRESSION_SAMPLE - BLOCK)
        .step_by(LOOKED_UP_EVERY * BLOCK)
        .flat_map(|block| block + 1..block + BLOCK)
        .any(|at| entered[slot(word_at(at))] == word_at(at))
}

/// Decompresses one zstd frame, which must yield exactly `expected` bytes and end with the input.
pub(crate) fn decompress(compressed: &[u8], expected: usize) -> Result<AlignedVec, WireError> {
    let mut decoder =
        Decoder::new().map_err(|_| WireError::Decompress("no memory for a decoder"))?;
    decoder
        .set_parameter(zstd::stream::raw::DParameter::WindowLogMax(WINDOW_LOG_MAX))
        .map_err(|_| WireError::Decompress("window limit refused"))?;
    let mut input = InBuffer::around(compressed);
    let mut out = AlignedVec::new();
    loop {
        let filled = out.len();
        // One byte beyond the announced length shows a frame that would yield more.
        let room = UNFOLD_STEP.min(expected + 1 - filled);
        out.resize(filled + room, 0);
        let mut output = OutBuffer::around(&mut out[filled..]);
        let hint = decoder
            .run(&mut input, &mut output)
            .map_err(|_| WireError::Decompress("not a valid zstd frame"))?;
        let written = output.pos();
        out.resize(filled + written, 0);
        if out.len() > expected {
            return Err(WireError::Decompress("yields more than announced"));
        }
        if hint == 0 {
            break;
        }
        if written == 0 && input.pos() == compressed.len() {
            return Err(WireError::Decompress("ends early"));
        }
    }
    if out.len() != expected || input.pos() != compressed.len() {
        return Err(WireError::Decompress("does not yield what was announced"));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(len: usize) -> Vec<u8> {
        let mut rng = fastrand::Rng::with_seed(7);
        (0..len).map(|_| rng.u8(..)).collect()
    }

    fn compress(payload: &[u8]) -> Option<Vec<u8>> {
        Codec::new().compress([&[], payload, &[]]).unwrap()
    }

    #[test]
    fn short_payloads_stay_as_they_are() {
        assert!(compress(&[0; COMPRESSION_THRESHOLD - 1]).is_none());
        assert!(compress(&[0; COMPRESSION_THRESHOLD]).is_some());
    }

    #[test]
    fn noise_is_not_compressed_whatever_its_length() {
        for len in [
            COMPRESSION_THRESHOLD,
            COMPRESSION_SAMPLE,
            COMPRESSION_SAMPLE + 1,
            64 * 1024,
        ] {
            assert!(compress(&noise(len)).is_none(), "{len} bytes");
        }
    }

    fn sample(bytes: &[u8]) -> &[u8; COMPRESSION_SAMPLE] {
        bytes.first_chunk().unwrap()
    }

    #[test]
    fn random_bytes_are_noise_at_a_glance() {
        let noise = noise(256 * COMPRESSION_SAMPLE);
        let (samples, _) = noise.as_chunks();
        let noisy = samples.iter().filter(|sample| is_noise(sample)).count();
        assert!(noisy >= 255, "{noisy} of 256");
    }

    #[test]
    fn a_glance_misses_only_what_shrinks_by_little() {
        let noise = noise(COMPRESSION_SAMPLE);
        let mut cases: Vec<(String, Vec<u8>)> = Vec::new();
        for period in [4, 7, 64, 333, 1_000, 1_001, 1_002, 1_003, 1_500, 2_048] {
            let repeated = noise[..period].iter().copied().cycle();
            cases.push((
                format!("period {period}"),
                repeated.take(COMPRESSION_SAMPLE).collect(),
            ));
        }
        for at in [300, 1_301, 2_222, 3_503] {
            let mut copied = noise.clone();
            copied.copy_within(..500, at);
            cases.push((format!("500 bytes again at {at}"), copied));
        }
        let hex = noise
            .iter()
            .map(|byte| b"0123456789abcdef"[usize::from(byte % 16)]);
        cases.push(("hexadecimal".to_owned(), hex.collect()));
        let seven_bits = noise.iter().map(|byte| byte & 0x7f);
        cases.push(("seven bits".to_owned(), seven_bits.collect()));
        let json = (0..COMPRESSION_SAMPLE).flat_map(|n| format!("{{\"n\":{n}}}").into_bytes());
        cases.push(("JSON".to_owned(), json.take(COMPRESSION_SAMPLE).collect()));
        let floats = (0..COMPRESSION_SAMPLE / 8).flat_map(|n| (n as f64).sqrt().to_le_bytes());
        cases.push(("floats".to_owned(), floats.collect()));
        for (name, bytes) in cases {
            assert!(!is_noise(sample(&bytes)), "{name}");
            let longer = [bytes.as_slice(); 4].concat();
            assert!(compress(&longer).is_some(), "{name}");
        }
    }

    #[test]
    fn what_is_compressed_unfolds_to_the_same() {
        let text: Vec<u8> = b"the same words again "
            .iter()
            .copied()
            .cycle()
            .take(300_000)
            .collect();
        let compressed = compress(&text).unwrap();
        assert!(compressed.len() < text.len() / 10);
        assert_eq!(
            decompress(&compressed, text.len()).unwrap().as_slice(),
            text
        );
    }

    #[test]
    fn pieces_compress_as_one_payload() {
        let bulk = vec![b'x'; 5_000];
        let compressed = Codec::new()
            .compress([b"head", &bulk, b"tail"])
            .unwrap()
            .unwrap();
        let whole = [&b"head"[..], &bulk, b"tail"].concat();
        assert_eq!(
            decompress(&compressed, whole.len()).unwrap().as_slice(),
            whole
        );
    }

    #[test]
    fn a_bomb_stops_at_the_announced_length() {
        let bomb = zstd::bulk::compress(&vec![0; 64 * 1024 * 1024], 19).unwrap();
        assert!(bomb.len() < 16 * 1024);
        assert_eq!(
            decompress(&bomb, 1_000).unwrap_err(),
            WireError::Decompress("yields more than announced")
        );
        assert!(decompress(&bomb, super::super::MAX_PAYLOAD).is_err());
    }

    #[test]
    fn too_little_too_much_and_garbage_are_refused() {
        let compressed = compress(&[b'a'; 10_000]).unwrap();
        assert!(decompress(&compressed, 9_999).is_err());
        assert!(decompress(&compressed, 10_001).is_err());
        assert!(decompress(&compressed[..compressed.len() - 1], 10_000).is_err());
        assert!(decompress(&[compressed.as_slice(), b"x"].concat(), 10_000).is_err());
        assert!(decompress(b"garbage", 10).is_err());
        assert!(decompress(b"", 0).is_err());
    }
}
