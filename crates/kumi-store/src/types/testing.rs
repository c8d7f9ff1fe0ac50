//! What the tests of several data types share.

/// Texts of every element encoding and of the lengths around each limit.
pub(super) fn any_text(rng: &mut fastrand::Rng) -> Vec<u8> {
    match rng.u32(..8) {
        0 => rng.i64(..).to_string().into_bytes(),
        1 => (rng.i64(..) >> rng.u32(..64)).to_string().into_bytes(),
        2 => rng.i64(-200..200).to_string().into_bytes(),
        3 => vec![b'x'; rng.usize(60..68)],
        4 => vec![b'y'; rng.usize(120..132)],
        5 if rng.u32(..20) == 0 => vec![b'z'; rng.usize(4090..4100)],
        6 if rng.u32(..40) == 0 => vec![b'w'; rng.usize(16_370..16_390)],
        _ => (0..rng.usize(..12)).map(|_| rng.u8(b'0'..=b'9')).collect(),
    }
}

/// Calls `draw` until it has counted `each` choices of each of `len` members on average, and panics
/// if the counts are too uneven for uniform choices: chi-square beyond five standard deviations.
pub(super) fn assert_uniform(len: usize, each: usize, mut draw: impl FnMut(&mut [u32])) {
    let mut counts = vec![0; len];
    while counts.iter().map(|&count| count as usize).sum::<usize>() < len * each {
        draw(&mut counts);
    }
    let mean = counts.iter().sum::<u32>() as f64 / len as f64;
    let chi_square: f64 = counts
        .iter()
        .map(|&count| (f64::from(count) - mean).powi(2) / mean)
        .sum();
    let freedom = (len - 1) as f64;
    let limit = freedom + 5.0 * (2.0 * freedom).sqrt() + 5.0;
    assert!(
        chi_square < limit,
        "{chi_square} of {limit} for {len} members"
    );
}
