use super::*;
use crate::reference::Reference;
use crate::support::frame::Frame;
use proptest::prelude::*;

/// Redis's default of `hll-sparse-max-bytes`.
const MAX_BYTES: usize = 3000;

fn filled(elements: std::ops::Range<u32>) -> Vec<u8> {
    let mut hll = empty();
    for element in elements {
        add(&mut hll, element.to_string().as_bytes(), MAX_BYTES).unwrap();
    }
    invalidate(&mut hll);
    hll
}

#[test]
fn a_new_string_is_one_run_of_zeros() {
    let hll = empty();
    assert_eq!(&hll[..], b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff");
    assert_eq!(count(&hll), Ok(0));
    assert_eq!(cached(&hll), Some(0));
    assert_eq!(decode(&hll), Ok(Some("Z:16384".into())));
}

#[test]
fn estimates_are_near_the_truth_in_both_layouts() {
    for elements in [1, 10, 100, 1000, 10_000, 100_000] {
        let hll = filled(0..elements);
        let error = count(&hll).unwrap() as f64 / f64::from(elements) - 1.0;
        assert!(error.abs() < 0.03, "{elements}: {error}");
        let mut dense = hll.clone();
        to_dense(&mut dense).unwrap();
        assert_eq!(count(&dense), count(&hll));
        assert_eq!(registers(&dense), registers(&hll));
    }
}

#[test]
fn the_self_test_passes() {
    assert_eq!(self_test(), Ok(()));
}

#[test]
fn strings_that_are_none_are_refused() {
    let dense = {
        let mut hll = empty();
        to_dense(&mut hll).unwrap();
        hll
    };
    let cases: &[&[u8]] = &[
        b"",
        b"HYLL",
        b"HYLX\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff",
        b"HYLL\x02\0\0\0\0\0\0\0\0\0\0\0\x7f\xff",
        &dense[..dense.len() - 1],
    ];
    for hll in cases {
        assert_eq!(encoding(hll), Err(HllError::NotHyperLogLog));
    }
    let damaged: &[&[u8]] = &[b"", b"\x7f", b"\x7f\xfe", b"\x7f\xff\x00", b"\x7f\xff\x40"];
    for registers in damaged {
        let mut hll = header(SPARSE);
        hll.extend_from_slice(registers);
        assert_eq!(count(&hll), Err(HllError::Corrupted), "{registers:?}");
    }
}

proptest! {
    #[test]
    fn registers_keep_the_maximum_of_what_was_raised(
        raises in prop::collection::vec((0usize..200, 1u8..=51), 1..200), limit in 20usize..400
    ) {
        let mut hll = empty();
        let mut model = vec![0; REGISTERS];
        for (register, value) in raises {
            let changed = raise(&mut hll, register * 82, value, limit).unwrap();
            prop_assert_eq!(changed, model[register * 82] < value);
            model[register * 82] = value.max(model[register * 82]);
        }
        prop_assert_eq!(registers(&hll).unwrap(), model);
        prop_assert!(encoding(&hll) == Ok(Encoding::Dense) || hll.len() <= limit);
    }

    #[test]
    fn damaged_registers_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..80), register in 0usize..REGISTERS
    ) {
        let mut hll = header(SPARSE);
        hll.extend_from_slice(&bytes);
        let _ = count(&hll);
        let _ = decode(&hll);
        let _ = raise(&mut hll.clone(), register, 33, MAX_BYTES);
        let _ = raise(&mut hll, register, 3, MAX_BYTES);
        let _ = Union::new().merge(&hll);
    }
}

#[test]
fn strings_and_counts_are_those_of_redis() {
    let seed = 23;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut redis = Reference::start();
    for round in 0..12 {
        let limit = [3000, 200, 16_000][rng.usize(0..3)];
        redis.call(&["CONFIG", "SET", "hll-sparse-max-bytes", &limit.to_string()]);
        redis.call(&["DEL", "a", "b", "u"]);
        let mut strings = Vec::new();
        for key in ["a", "b"] {
            let mut hll = empty();
            for step in 0..rng.usize(1..60) {
                let mut command = vec![b"PFADD".to_vec(), key.as_bytes().to_vec()];
                let mut changed = step == 0;
                for _ in 0..rng.usize(1..40) {
                    let element: Vec<u8> = (0..rng.usize(0..20)).map(|_| rng.u8(..)).collect();
                    changed |= add(&mut hll, &element, limit).unwrap();
                    command.push(element);
                }
                if changed {
                    invalidate(&mut hll);
                }
                let reply = redis.number(&command);
                let context = format!("seed {seed} round {round} key {key} step {step}");
                assert_eq!(reply, i64::from(changed), "{context}");
                assert_eq!(redis.text(&["GET", key]), hll, "{context}");
                if rng.u8(0..5) == 0 {
                    let cardinality = count(&hll).unwrap();
                    store_cardinality(&mut hll, cardinality);
                    assert_eq!(redis.number(&["PFCOUNT", key]), cardinality as i64);
                    assert_eq!(redis.text(&["GET", key]), hll, "{context}");
                }
            }
            if encoding(&hll) == Ok(Encoding::Sparse) {
                assert_eq!(
                    redis.text(&["PFDEBUG", "DECODE", key]),
                    decode(&hll).unwrap().unwrap().into_bytes()
                );
            }
            strings.push(hll);
        }
        let mut union = Union::new();
        for hll in &strings {
            union.merge(hll).unwrap();
        }
        assert_eq!(
            redis.number(&["PFCOUNT", "a", "b"]),
            union.count() as i64,
            "seed {seed} round {round}"
        );
        let mut merged = empty();
        union.store(&mut merged, limit).unwrap();
        redis.call(&["PFMERGE", "u", "a", "b"]);
        assert_eq!(
            redis.text(&["GET", "u"]),
            merged,
            "seed {seed} round {round}"
        );
    }
}

#[test]
fn errors_are_those_of_redis() {
    let mut redis = Reference::start();
    let strings: &[&[u8]] = &[
        b"x",
        b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x7f\xfe",
        b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x7f",
        b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x7f\xff\x78",
        b"HYLL\x03\0\0\0\0\0\0\0\0\0\0\x80\x7f\xff",
        b"HYLL\x00\0\0\0\0\0\0\0\0\0\0\x80\x7f\xff",
    ];
    for hll in strings {
        redis.call(&[b"SET".as_slice(), b"k", hll]);
        let reply = redis.call(&["PFCOUNT", "k"]);
        let error = count(hll).unwrap_err().to_string();
        assert_eq!(reply, Frame::Error(error.into_bytes()), "{hll:?}");
    }
}
