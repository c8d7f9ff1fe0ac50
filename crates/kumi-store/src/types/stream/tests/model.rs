//! Random changes beside a plain ordered map.

use super::*;
use std::collections::BTreeMap;

type Model = BTreeMap<StreamId, Vec<Vec<u8>>>;

fn texts(entry: &Entry<'_>) -> Vec<Vec<u8>> {
    assert_eq!(entry.fields().count(), entry.field_count());
    entry
        .fields()
        .flat_map(|(field, value)| [field.text().to_vec(), value.text().to_vec()])
        .collect()
}

#[test]
fn a_stream_holds_what_an_ordered_map_holds() {
    for seed in 0..30 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let limits = NodeLimits {
            max_bytes: rng.usize(0..400),
            max_entries: rng.u64(0..12),
        };
        let mut stream = Stream::new();
        let mut model = Model::new();
        let mut last = StreamId::MIN;
        for step in 0..400 {
            let context = format!("seed {seed} step {step}");
            let newest = last.ms;
            let some_id = |rng: &mut fastrand::Rng| id(rng.u64(0..newest + 2), rng.u64(0..3));
            match rng.u8(0..12) {
                0..8 => {
                    last = match rng.bool() {
                        true => id(last.ms + 1, rng.u64(0..3)),
                        false => last.next().unwrap(),
                    };
                    let fields: Vec<Vec<u8>> = (0..rng.usize(1..4))
                        .flat_map(|at| {
                            let name = format!("f{}", at + usize::from(rng.u8(0..5) == 0));
                            [
                                name.into_bytes(),
                                rng.i32(-9..9000).to_string().into_bytes(),
                            ]
                        })
                        .collect();
                    let borrowed: Vec<&[u8]> = fields.iter().map(|field| &field[..]).collect();
                    stream.append(last, &borrowed, limits).unwrap();
                    model.insert(last, fields);
                }
                8..11 => {
                    let doomed = some_id(&mut rng);
                    let removed = u64::from(model.remove(&doomed).is_some());
                    assert_eq!(stream.delete(&[doomed]), removed, "{context}");
                }
                _ => {
                    let before = model.len() as u64;
                    let to = match rng.bool() {
                        true => TrimTo::MaxLen(rng.u64(0..60)),
                        false => TrimTo::MinId(some_id(&mut rng)),
                    };
                    model = match to {
                        TrimTo::MaxLen(max) => {
                            let excess = before.saturating_sub(max) as usize;
                            model.into_iter().skip(excess).collect()
                        }
                        TrimTo::MinId(min) => model.split_off(&min),
                    };
                    let trim = Trim {
                        to,
                        approximate: false,
                        limit: 0,
                    };
                    let removed = before - model.len() as u64;
                    assert_eq!(stream.trim(trim), removed, "{context}");
                }
            }
            assert_eq!(stream.len(), model.len() as u64, "{context}");
            let first = model.keys().next().copied().unwrap_or_default();
            assert_eq!(stream.first_id(), first, "{context}");
            let (start, end) = (some_id(&mut rng), some_id(&mut rng));
            let expected: Vec<_> = model
                .iter()
                .filter(|(id, _)| (start..=end).contains(*id))
                .map(|(id, fields)| (*id, fields.clone()))
                .collect();
            let pair = |entry: Entry<'_>| (entry.id(), texts(&entry));
            let forward: Vec<_> = stream.range(start, end).map(pair).collect();
            assert_eq!(forward, expected, "{context}");
            let mut back: Vec<_> = stream.range_back(start, end).map(pair).collect();
            back.reverse();
            assert_eq!(back, expected, "{context}");
        }
        let node_bytes: usize = stream.nodes.iter().map(|(_, node)| node.heap_bytes()).sum();
        assert_eq!(stream.node_bytes, node_bytes, "seed {seed}");
    }
}
