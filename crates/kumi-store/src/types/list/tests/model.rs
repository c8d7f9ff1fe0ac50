//! Random changes beside a plain vector.

use super::*;

fn element(rng: &mut fastrand::Rng) -> Vec<u8> {
    match rng.u8(0..5) {
        0 if rng.u8(0..4) == 0 => vec![b'y'; [2048, 2049, 4096, 5000][rng.usize(0..4)]],
        0 => vec![b'x'; rng.usize(0..200)],
        1 => rng.i64(..).to_string().into_bytes(),
        _ => rng.u32(0..6).to_string().into_bytes(),
    }
}

fn check(list: &List, model: &[Vec<u8>], rng: &mut fastrand::Rng, context: &str) {
    assert_eq!(list.len(), model.len(), "{context}");
    assert_eq!(texts(list), model, "{context}");
    let index = rng.usize(0..model.len() + 2);
    let text = |elem: Option<Elem<'_>>| elem.map(|elem| elem.text().to_vec());
    let view = list.view();
    assert_eq!(
        text(view.get(index)),
        model.get(index).cloned(),
        "{context}"
    );
    assert_eq!(text(view.first()), model.first().cloned(), "{context}");
    assert_eq!(text(view.last()), model.last().cloned(), "{context}");
    let forward: Vec<_> = view
        .iter_from(index)
        .map(|elem| elem.text().to_vec())
        .collect();
    assert_eq!(forward, model[index.min(model.len())..], "{context}");
    let mut back: Vec<_> = view
        .iter_back()
        .skip(view.len().saturating_sub(index + 1))
        .map(|elem| elem.text().to_vec())
        .collect();
    back.reverse();
    assert_eq!(back, model[..(index + 1).min(model.len())], "{context}");
    if let Nodes::Many(many) = &list.nodes {
        let node_bytes: usize = many.nodes.iter().map(Node::heap_bytes).sum();
        assert_eq!(many.node_bytes, node_bytes, "{context}");
        for node in &many.nodes {
            assert!(node.count() > 0, "{context}");
            if let Node::Packed { block, .. } = node {
                assert_eq!(block.view().len(), node.count(), "{context}");
            }
        }
    }
}

#[test]
fn a_list_holds_what_a_vector_holds() {
    for seed in 0..60 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let limits = ListLimits {
            fill: [-2, -1, 4, 1, 0, 30][rng.usize(0..6)],
            plain_bytes: [1 << 30, 100][rng.usize(0..2)],
        };
        let mut list = List::new();
        let mut model: Vec<Vec<u8>> = Vec::new();
        for step in 0..400 {
            let context = format!("seed {seed} step {step} {limits:?}");
            let element = element(&mut rng);
            let index = rng.usize(0..model.len() + 1);
            match rng.u8(0..12) {
                0..6 => {
                    list.prepare(1, element.len(), limits);
                    match rng.bool() {
                        true => {
                            list.push(Side::Front, &element, limits);
                            model.insert(0, element);
                        }
                        false => {
                            list.push(Side::Back, &element, limits);
                            model.push(element);
                        }
                    }
                }
                6 | 7 => {
                    list.prepare(1, element.len(), limits);
                    let side = [Side::Front, Side::Back][rng.usize(0..2)];
                    let place = index + usize::from(side == Side::Back);
                    let inserted = list.insert(index, side, &element, limits);
                    assert_eq!(inserted, index < model.len(), "{context}");
                    if inserted {
                        model.insert(place, element);
                    }
                }
                8 => {
                    list.prepare(1, element.len(), limits);
                    let replaced = list.set(index, &element, limits);
                    assert_eq!(replaced, index < model.len(), "{context}");
                    if replaced {
                        model[index] = element;
                    }
                    list.settle(true, limits);
                }
                9 => {
                    let count = rng.usize(0..3);
                    let most = if count == 0 { usize::MAX } else { count };
                    let side = [Side::Front, Side::Back][rng.usize(0..2)];
                    let mut places: Vec<usize> = (0..model.len())
                        .filter(|&at| model[at] == element)
                        .collect();
                    if side == Side::Back {
                        places.reverse();
                    }
                    places.truncate(most);
                    places.sort_unstable();
                    for at in places.iter().rev() {
                        model.remove(*at);
                    }
                    let removed = list.remove_equal(&element, side, count);
                    assert_eq!(removed, places.len(), "{context}");
                    list.settle(true, limits);
                }
                _ => {
                    let count = rng.usize(0..6);
                    let end = (index + count).min(model.len());
                    let removed = list.remove_range(index, count);
                    assert_eq!(removed, end - index, "{context}");
                    model.drain(index..end);
                    list.settle(true, limits);
                }
            }
            check(&list, &model, &mut rng, &context);
        }
    }
}
