mod model;
mod redis;

use super::insert::MAX_NODE_BYTES;
use super::*;
use std::time::{Duration, Instant};

fn limits(fill: i32) -> ListLimits {
    ListLimits {
        fill,
        ..ListLimits::default()
    }
}

/// Pushes as RPUSH does.
fn rpush(list: &mut List, elements: &[&[u8]], limits: ListLimits) {
    let bytes = elements.iter().map(|element| element.len()).sum();
    list.prepare(elements.len(), bytes, limits);
    for element in elements {
        list.push(Side::Back, element, limits);
    }
}

fn name(list: &List) -> &'static str {
    list.view().encoding().name()
}

fn texts(list: &List) -> Vec<Vec<u8>> {
    list.view()
        .iter()
        .map(|elem| elem.text().to_vec())
        .collect()
}

/// A snapshot copies a list before its first change, in one step.
#[test]
fn a_copy_shares_the_elements_of_every_kind_of_node() {
    let (lone, plain) = (vec![b'x'; 4_096], vec![b'y'; 100_000]);
    let mut list = List::new();
    for _ in 0..3 {
        rpush(&mut list, &[&lone, &plain, b"a", b"b"], limits(-2));
    }
    let starts = |list: &List| -> Vec<*const u8> {
        let texts = list.view().iter().map(|elem| match elem {
            Elem::Bytes(bytes) => bytes.as_ptr(),
            Elem::Int(_) => std::ptr::null(),
        });
        texts.collect()
    };
    let mut copy = list.clone();
    assert_eq!(starts(&copy), starts(&list));
    copy.push(Side::Back, b"c", limits(-2));
    assert_eq!(starts(&copy)[..9], starts(&list)[..9]);
    assert_eq!(texts(&copy)[..12], texts(&list)[..]);
}

#[test]
fn names_follow_the_limit_in_bytes() {
    let cases = [
        (-1, 4096),
        (-2, 8192),
        (-3, 16_384),
        (-4, 32_768),
        (-5, 65_536),
        (-9, 65_536),
    ];
    for (fill, limit) in cases {
        let mut list = List::new();
        // A string of over 4,095 bytes: seven bytes for the listpack, five for its head, and its own length behind it.
        rpush(&mut list, &[&vec![b'x'; limit - 7]], limits(fill));
        assert_eq!(name(&list), "listpack", "{fill}");
        let mut list = List::new();
        rpush(&mut list, &[&vec![b'x'; limit - 6]], limits(fill));
        assert_eq!(name(&list), "quicklist", "{fill}");
    }
}

#[test]
fn names_follow_the_limit_in_elements() {
    let elements: Vec<&[u8]> = vec![b"x"; 8];
    let mut list = List::new();
    rpush(&mut list, &elements, limits(8));
    assert_eq!(name(&list), "listpack");
    rpush(&mut list, &[b"y"], limits(8));
    assert_eq!(name(&list), "quicklist");
    // Nine elements are two nodes; one node is left, and then half the limit.
    list.remove_range(8, 1);
    list.settle(true, limits(8));
    assert_eq!((name(&list), list.view().node_count()), ("quicklist", 1));
    list.remove_range(0, 3);
    list.settle(true, limits(8));
    assert_eq!(name(&list), "quicklist");
    list.remove_range(0, 1);
    list.settle(true, limits(8));
    assert_eq!(name(&list), "listpack");
    assert_eq!(texts(&list), vec![b"x".to_vec(); 4]);
}

#[test]
fn a_quicklist_reverts_at_half_the_limit() {
    let big = vec![b'x'; 1000];
    let mut list = List::new();
    rpush(&mut list, &[&big[..]; 9], limits(-2));
    assert_eq!((name(&list), list.view().node_count()), ("quicklist", 2));
    for left in (1..9).rev() {
        list.remove_range(left, 1);
        list.settle(true, limits(-2));
        let expected = if left <= 4 { "listpack" } else { "quicklist" };
        assert_eq!(name(&list), expected, "{left}");
    }
    // Two nodes are a quicklist however short they are.
    let mut list = List::new();
    rpush(&mut list, &[&big[..]; 9], limits(-2));
    list.remove_range(0, 7);
    list.settle(true, limits(-2));
    assert_eq!((name(&list), list.view().node_count()), ("quicklist", 2));
    assert!(list.small().is_none());
}

#[test]
fn small_lists_can_be_kept_elsewhere() {
    let mut list = List::new();
    rpush(&mut list, &[b"a", b"12", b""], limits(-2));
    let (form, bytes) = list.small().unwrap();
    let view = ListRef::from_small(form, bytes);
    assert_eq!((view.len(), view.get(1)), (3, Some(Elem::Int(12))));
    assert_eq!(view.position(b"12"), Some(1));
    assert_eq!(view.position(b"13"), None);
    let again = List::from_small(form, bytes.to_vec());
    assert_eq!(texts(&again), texts(&list));
    assert_eq!(again.len(), 3);
    let bytes = bytes.to_vec();
    assert_eq!(list.into_buffer().map(|buffer| buffer == bytes), Some(true));
}

/// How many elements each node has.
fn counts(list: &List) -> Vec<usize> {
    let view = list.view();
    let nodes = (0..view.node_count()).filter_map(|at| view.node(at));
    nodes
        .map(|node| match node {
            NodeRef::Packed(node) => node.len(),
            NodeRef::Lone(_) | NodeRef::Plain(_) => 1,
        })
        .collect()
}

#[test]
fn a_quicklist_keeps_the_limit_it_was_created_with() {
    let (few, many) = (limits(4), limits(100));
    let mut list = List::new();
    rpush(&mut list, &[b"a", b"b", b"c", b"d", b"e"], few);
    rpush(&mut list, &[b"f", b"g", b"h", b"i"], many);
    assert_eq!(counts(&list), [4, 4, 1]);
    // A split leaves nodes that together are too large for one.
    assert!(list.insert(1, Side::Back, b"x", many));
    assert_eq!(counts(&list), [2, 3, 4, 1]);
    list.remove_range(0, 5);
    list.settle(true, many);
    assert_eq!((name(&list), counts(&list)), ("quicklist", vec![4, 1]));
    // The name follows the limit of today.
    list.remove_range(4, 1);
    let mut same = list.clone();
    same.settle(true, few);
    list.settle(true, many);
    assert_eq!((name(&same), name(&list)), ("quicklist", "listpack"));
    // A copy has the same limit, and a listpack has none: the next quicklist is a new one.
    rpush(&mut same, &[b"j"], many);
    assert_eq!(counts(&same), [4, 1]);
    rpush(&mut list, &[&b"y"[..]; 97], many);
    rpush(&mut list, &[&b"z"[..]; 5], few);
    assert_eq!((name(&list), counts(&list)), ("quicklist", vec![100, 6]));
}

#[test]
fn a_loaded_quicklist_has_the_limit_of_today() {
    let mut list = List::new();
    for texts in [["a", "b"], ["c", "d"]] {
        let mut node = PackedList::new();
        for text in texts {
            node.push_back(Elem::parse(text.as_bytes()));
        }
        list.push_node(node);
    }
    list.settle(false, limits(3));
    rpush(&mut list, &[b"e", b"f"], limits(100));
    assert_eq!(counts(&list), [2, 3, 1]);
}

#[test]
fn small_quicklists_keep_their_limit() {
    for fill in [-9, -5, -4, -3, -2, -1, 0, 1] {
        let mut list = List::quicklist(limits(fill));
        list.push(Side::Back, b"a", limits(100));
        let (form, bytes) = list.small().unwrap();
        assert!(form < 8, "{fill}");
        assert_eq!(ListRef::from_small(form, bytes).fill(), fill.max(-5));
        let mut again = List::from_small(form, bytes.to_vec());
        assert_eq!((name(&again), again.fill), ("quicklist", fill.max(-5)));
        rpush(&mut again, &[b"b", b"c"], limits(100));
        let expected = if fill < 0 { vec![3] } else { vec![1; 3] };
        assert_eq!(counts(&again), expected, "{fill}");
    }
    // Another number of elements has no form. The list keeps no more than its bytes then.
    let mut buffer = Vec::with_capacity(60_000);
    let mut packed = PackedList::new();
    for text in [b"a", b"b"] {
        packed.push_back(Elem::Bytes(text));
    }
    buffer.extend_from_slice(packed.view().bytes());
    let mut list = List::from_small(0, buffer);
    list.prepare(1, 1, limits(2));
    assert!(name(&list) == "quicklist" && list.small().is_none());
    assert!(list.heap_bytes() < 100, "{}", list.heap_bytes());
}

#[test]
fn large_elements_are_nodes_of_their_own() {
    let limits = ListLimits {
        fill: -2,
        plain_bytes: 5,
    };
    let mut list = List::quicklist(limits);
    for element in ["a", "b", "longer", "c", "d", "e"] {
        list.push(Side::Back, element.as_bytes(), limits);
    }
    assert_eq!(list.view().node_count(), 3);
    assert!(list.insert(4, Side::Front, b"between", limits));
    assert_eq!(list.view().node_count(), 5);
    assert!(list.set(2, b"packed", limits) && list.set(2, b"x", limits));
    assert!(list.set(0, b"plain too", limits));
    assert!(!list.set(9, b"x", limits) && !list.insert(9, Side::Back, b"x", limits));
    let expected = ["plain too", "b", "x", "c", "between", "d", "e"];
    assert_eq!(texts(&list), expected.map(|text| text.as_bytes().to_vec()));
    let back: Vec<_> = list
        .view()
        .iter_back()
        .map(|elem| elem.text().to_vec())
        .collect();
    let mut reversed = texts(&list);
    reversed.reverse();
    assert_eq!(back, reversed);
    assert_eq!(list.remove_equal(b"between", Side::Back, 0), 1);
    assert_eq!(list.remove_range(0, 100), 6);
    assert!(list.is_empty());
    list.settle(true, limits);
    assert_eq!(list.heap_bytes(), 0);
}

/// The sizes of the packed nodes. None is larger than a listpack can be.
fn node_sizes(list: &List) -> Vec<usize> {
    let view = list.view();
    let nodes = (0..view.node_count()).filter_map(|at| match view.node(at)? {
        NodeRef::Packed(node) => Some(node.listpack_bytes()),
        NodeRef::Lone(_) | NodeRef::Plain(_) => None,
    });
    let sizes: Vec<usize> = nodes.collect();
    assert!(
        sizes.iter().all(|&bytes| bytes <= MAX_NODE_BYTES),
        "{sizes:?}"
    );
    sizes
}

#[test]
fn replaced_elements_do_not_make_a_node_larger_than_a_listpack() {
    let limits = limits(-2);
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 3, 1]] {
        let mut list = List::quicklist(limits);
        let mut model: Vec<Vec<u8>> = (0..5).map(|index| vec![b'a' + index]).collect();
        for element in &model {
            list.push(Side::Back, element, limits);
        }
        for (step, index) in order.into_iter().enumerate() {
            let element = vec![b'0' + step as u8; MAX_NODE_BYTES / 10 * 3];
            assert!(list.set(index, &element, limits));
            model[index] = element;
            assert_eq!(texts(&list), model, "{order:?} {step}");
            let nodes = node_sizes(&list).len();
            assert_eq!(nodes > 1, step > 2, "{order:?} {step}");
        }
        // The place of a large element has room for another one.
        let nodes = node_sizes(&list).len();
        let element = vec![b'y'; MAX_NODE_BYTES / 10 * 3];
        assert!(list.set(0, &element, limits));
        assert_eq!(node_sizes(&list).len(), nodes);
        list.remove_range(0, 5);
        list.settle(true, limits);
        assert_eq!(list.heap_bytes(), 0);
    }
}

#[test]
fn inserted_elements_do_not_make_a_node_larger_than_a_listpack() {
    let limits = limits(-2);
    for side in [Side::Front, Side::Back] {
        for index in 0..3 {
            let mut list = List::quicklist(limits);
            for element in [b"a", b"b", b"c"] {
                list.push(Side::Back, element, limits);
            }
            let mut model = vec![vec![b'x'; MAX_NODE_BYTES / 10 * 3]; 3];
            for (index, element) in model.iter().enumerate() {
                assert!(list.set(index, element, limits));
            }
            assert_eq!(node_sizes(&list).len(), 1);
            let element = vec![b'y'; MAX_NODE_BYTES / 10 * 9];
            assert!(list.insert(index, side, &element, limits));
            model.insert(index + usize::from(side == Side::Back), element);
            assert_eq!(texts(&list), model, "{side:?} {index}");
            node_sizes(&list);
        }
    }
}

#[test]
fn a_long_list_is_dropped_in_slices() {
    let mut list = List::new();
    let element = vec![b'x'; 1000];
    for _ in 0..800 {
        rpush(&mut list, &[&element], limits(-2));
    }
    let pieces = list.pieces();
    assert_eq!(pieces, 100);
    for piece in 1..=pieces {
        assert_eq!(list.drop_piece(), piece < pieces, "piece {piece}");
    }
}

/// With a move of the ring for every node that goes, removing takes many times as long as building.
#[test]
fn many_nodes_are_removed_with_one_move_of_the_others() {
    const NODES: usize = 400_000;
    let limits = limits(1);
    let mut list = List::new();
    for index in 0..NODES {
        let element: &[u8] = if index % 2 == 0 { b"even" } else { b"odd" };
        rpush(&mut list, &[element], limits);
    }
    assert_eq!(list.pieces(), NODES);
    let (mut middle, mut end) = (list.clone(), list.clone());
    let started = Instant::now();
    assert_eq!(list.remove_equal(b"even", Side::Back, 0), NODES / 2);
    assert_eq!(middle.remove_range(NODES / 4, NODES / 2), NODES / 2);
    assert_eq!(end.remove_range(NODES / 2 + 1, NODES), NODES / 2 - 1);
    // One move of the others for each node would take a minute.
    let removing = started.elapsed();
    assert!(removing < Duration::from_secs(10), "{removing:?}");
    assert!(list.view().iter().all(|elem| elem == Elem::Bytes(b"odd")));
    assert_eq!(
        [list.len(), middle.len(), end.len()],
        [NODES / 2, NODES / 2, NODES / 2 + 1]
    );
}

#[test]
fn equal_elements_of_one_node_go_from_either_end() {
    for (side, left) in [(Side::Front, "baa"), (Side::Back, "aab")] {
        let mut list = List::new();
        for element in ["a", "a", "b", "a", "a"] {
            rpush(&mut list, &[element.as_bytes()], limits(-2));
        }
        assert_eq!(list.remove_equal(b"a", side, 2), 2, "{side:?}");
        assert_eq!(texts(&list).concat(), left.as_bytes(), "{side:?}");
    }
}

#[test]
fn a_copy_counts_its_own_bytes() {
    let mut list = List::new();
    for index in 0..2000 {
        rpush(
            &mut list,
            &[format!("element:{index}").as_bytes()],
            limits(-2),
        );
    }
    let mut copy = list.clone();
    assert_eq!(texts(&copy), texts(&list));
    copy.remove_range(0, 1999);
    copy.settle(true, limits(-2));
    let (_, bytes) = copy.small().unwrap();
    assert!(copy.heap_bytes() >= bytes.len() && copy.heap_bytes() < 20_000);
}

#[test]
fn a_new_node_at_an_end_has_all_its_room_in_a_long_list_only() {
    for side in [Side::Front, Side::Back] {
        let mut list = List::new();
        list.prepare(0, 10_000, limits(-2));
        let mut nodes = 0;
        while nodes < LONG_LIST + 4 {
            list.push(side, b"element", limits(-2));
            let Nodes::Many(many) = &list.nodes else {
                continue;
            };
            let opened = many.nodes.len() > nodes;
            nodes = many.nodes.len();
            if opened && nodes > 2 {
                let at = if side == Side::Front { 0 } else { nodes - 1 };
                let has_all = many.nodes[at].heap_bytes() == NODE_BYTES + block_bytes(8192);
                assert_eq!(has_all, nodes > LONG_LIST, "{side:?} {nodes}");
            }
        }
    }
}

#[test]
fn a_node_that_few_elements_fill_gets_no_more_room_than_it_needs() {
    let mut list = List::new();
    list.prepare(0, 10_000, limits(-2));
    for _ in 0..LONG_LIST + 4 {
        list.push(Side::Back, &[b'x'; 5000], limits(-2));
    }
    let Nodes::Many(many) = &list.nodes else {
        panic!("several nodes: {list:?}");
    };
    for node in &many.nodes {
        assert_eq!(node.heap_bytes(), NODE_BYTES + block_bytes(5011));
    }
}

#[test]
fn the_first_node_of_several_keeps_no_scratch_buffer() {
    let mut scratch = Vec::with_capacity(65_536);
    let mut one = List::new();
    one.push(Side::Back, b"a", limits(1));
    scratch.extend_from_slice(one.small().expect("a small form").1);
    let mut list = List::from_small(0, scratch);
    list.prepare(1, 1, limits(1));
    list.push(Side::Back, b"b", limits(1));
    assert_eq!(counts(&list), [1, 1]);
    assert!(list.heap_bytes() < 1024, "{}", list.heap_bytes());
}

#[test]
fn a_long_list_costs_little_more_than_its_elements() {
    let mut list = List::new();
    for index in 0..100_000 {
        rpush(
            &mut list,
            &[format!("element:{index:08}").as_bytes()],
            limits(-2),
        );
    }
    // 16 bytes each, and a header and a size of a byte each.
    assert!(list.heap_bytes() < 100_000 * 20, "{}", list.heap_bytes());
}
