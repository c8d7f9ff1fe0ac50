use super::*;
use kumi_common::{Life, Name};
use kumi_jobs::ClusterId;
use proptest::prelude::*;

fn node(name: &str) -> NameAndLife {
    Name::new(name)
        .expect("a name")
        .with_life(Life::from_raw(1))
}

fn id(text: &str) -> StoreId {
    text.parse().expect("an id")
}

fn pin(count: u64, by: &str, store: &str) -> Pin {
    let (by, id) = (node(by), id(store));
    Pin { count, by, id }
}

fn clusters(raw: &[u64]) -> Vec<ClusterId> {
    raw.iter().copied().map(ClusterId::from_raw).collect()
}

/// As a node of the cluster that wrote it reads a file.
fn read(text: &str) -> Result<Pin, PinTextError> {
    let pin = Pin::from_file(text, &clusters(&[0xc1]))?;
    Ok(pin.expect("of this cluster"))
}

fn written(pin: &Pin) -> String {
    pin.to_file(&clusters(&[0xc1]))
}

fn store(store: &str, name: &str) -> LiveStore {
    LiveStore {
        id: id(store),
        node: node(name),
        address: format!("{name}:6379"),
    }
}

/// What can happen to a pin.
#[derive(Clone, Debug)]
enum Event {
    Stores(Vec<LiveStore>),
    Announced(Pin),
    Use(&'static str),
}

fn apply(state: &mut StorePin, event: &Event) -> bool {
    match event {
        Event::Stores(stores) => state.handle_stores(stores.clone()),
        Event::Announced(announced) => state.handle_announced(announced),
        Event::Use(store) => state.use_store(id(store)),
    }
}

/// Every state with every event: the pin afterwards.
#[test]
fn every_pair_of_state_and_event_has_its_outcome() {
    let events = [
        Event::Stores(Vec::new()),
        Event::Stores(vec![store("aa", "s")]),
        Event::Stores(vec![store("bb", "t")]),
        Event::Announced(pin(0, "p", "aa")),
        Event::Announced(pin(0, "p", "bb")),
        Event::Announced(pin(1, "p", "bb")),
        Event::Announced(pin(2, "a", "bb")),
        Event::Announced(pin(2, "p", "bb")),
        Event::Announced(pin(3, "p", "bb")),
        Event::Use("aa"),
        Event::Use("bb"),
    ];
    let (none, first, decided) = (None, Some(pin(0, "me", "aa")), Some(pin(2, "me", "aa")));
    let table = [
        // Nothing pinned, pinned first, and decided for the second time.
        [none.clone(), first.clone(), decided.clone()],
        [Some(pin(0, "me", "aa")), first.clone(), decided.clone()],
        [Some(pin(0, "me", "bb")), first.clone(), decided.clone()],
        [Some(pin(0, "p", "aa")), first.clone(), decided.clone()],
        [Some(pin(0, "p", "bb")), first.clone(), decided.clone()],
        [
            Some(pin(1, "p", "bb")),
            Some(pin(1, "p", "bb")),
            decided.clone(),
        ],
        // Of two decisions with one number the later name wins, on every node.
        [
            Some(pin(2, "a", "bb")),
            Some(pin(2, "a", "bb")),
            decided.clone(),
        ],
        [
            Some(pin(2, "p", "bb")),
            Some(pin(2, "p", "bb")),
            Some(pin(2, "p", "bb")),
        ],
        [
            Some(pin(3, "p", "bb")),
            Some(pin(3, "p", "bb")),
            Some(pin(3, "p", "bb")),
        ],
        [Some(pin(1, "me", "aa")), first.clone(), decided.clone()],
        [
            Some(pin(1, "me", "bb")),
            Some(pin(1, "me", "bb")),
            Some(pin(3, "me", "bb")),
        ],
    ];
    for (event, row) in events.iter().zip(table) {
        for (before, expected) in [none.clone(), first.clone(), decided.clone()]
            .into_iter()
            .zip(row)
        {
            let mut state = StorePin::new(node("me"), before.clone());
            let changed = apply(&mut state, event);
            assert_eq!(state.pin(), expected.as_ref(), "{before:?} {event:?}");
            assert_eq!(changed, before != expected, "{before:?} {event:?}");
        }
    }
}

#[test]
fn another_store_is_a_fault_and_is_not_used_until_a_person_decides() {
    let mut state = StorePin::new(node("me"), Some(pin(0, "me", "aa")));
    state.handle_stores([store("bb", "t")]);
    assert_eq!(state.choice(), StoreChoice::Away(id("aa")));
    let fault = StoreFault::Other {
        pinned: id("aa"),
        found: store("bb", "t"),
    };
    assert_eq!(state.faults(), [fault]);
    assert!(state.use_store(id("bb")));
    assert_eq!(state.choice(), StoreChoice::Use(store("bb", "t")));
    assert_eq!(state.faults(), []);
    // The former one comes back, and is the other one now.
    state.handle_stores([store("aa", "s"), store("bb", "t")]);
    assert_eq!(state.choice(), StoreChoice::Use(store("bb", "t")));
    assert_eq!(state.faults().len(), 1);
}

#[test]
fn of_two_primaries_the_one_in_use_stays_and_a_newcomer_uses_none() {
    let [old, new] = [store("aa", "s"), store("aa", "t")];
    let both = [old.clone(), new.clone()];
    let fault = StoreFault::TwoPrimaries {
        id: id("aa"),
        nodes: vec![node("s"), node("t")],
    };
    for first in [&old, &new] {
        let mut state = StorePin::new(node("me"), None);
        state.handle_stores([first.clone()]);
        state.handle_stores(both.clone());
        assert_eq!(state.choice(), StoreChoice::Use(first.clone()));
        assert_eq!(state.faults(), std::slice::from_ref(&fault));
    }
    let mut newcomer = StorePin::new(node("me"), Some(pin(0, "s", "aa")));
    newcomer.handle_stores(both);
    assert_eq!(newcomer.choice(), StoreChoice::Away(id("aa")));
    newcomer.handle_stores([new.clone()]);
    assert_eq!(newcomer.choice(), StoreChoice::Use(new));
    assert_eq!(newcomer.faults(), []);
}

/// The killed life is a member until the others give it up; its restart has another port, and so another authority.
#[test]
fn a_later_life_of_a_node_replaces_the_store_of_the_earlier_one() {
    let old = store("aa", "s");
    let new = LiveStore {
        node: Name::new("s").expect("a name").with_life(Life::from_raw(2)),
        address: "s:6380".into(),
        ..old.clone()
    };
    for both in [[old.clone(), new.clone()], [new.clone(), old.clone()]] {
        for before in [vec![], vec![old.clone()]] {
            let mut state = StorePin::new(node("me"), Some(pin(0, "s", "aa")));
            state.handle_stores(before);
            state.handle_stores(both.clone());
            assert_eq!(state.choice(), StoreChoice::Use(new.clone()));
            assert_eq!(state.faults(), []);
        }
    }
    // A node that came back with another data set has not two.
    let other = LiveStore {
        id: id("bb"),
        ..new.clone()
    };
    let mut state = StorePin::new(node("me"), Some(pin(0, "s", "aa")));
    state.handle_stores([old, other.clone()]);
    assert_eq!(state.choice(), StoreChoice::Away(id("aa")));
    let found = StoreFault::Other {
        pinned: id("aa"),
        found: other,
    };
    assert_eq!(state.faults(), [found]);
}

#[test]
fn a_store_that_moved_to_another_address_or_node_is_used_there() {
    let mut state = StorePin::new(node("me"), None);
    assert_eq!(state.choice(), StoreChoice::None);
    state.handle_stores([store("aa", "s")]);
    state.handle_stores([]);
    assert_eq!(state.choice(), StoreChoice::Away(id("aa")));
    state.handle_stores([store("aa", "t")]);
    assert_eq!(state.choice(), StoreChoice::Use(store("aa", "t")));
}

#[test]
fn different_first_pins_are_a_fault_that_one_decision_ends_everywhere() {
    let mut ours = StorePin::new(node("a"), Some(pin(0, "a", "aa")));
    let mut theirs = StorePin::new(node("b"), Some(pin(0, "b", "bb")));
    let before = theirs.pin().cloned().expect("a pin");
    assert!(!ours.handle_announced(&before));
    let fault = StoreFault::PinsDiffer {
        ours: id("aa"),
        theirs: before,
    };
    assert_eq!(ours.faults(), [fault]);
    // Deciding for the one that is pinned here counts, because another node pinned another one.
    assert!(ours.use_store(id("aa")));
    assert_eq!(ours.faults(), []);
    let decided = ours.pin().cloned().expect("a pin");
    assert!(theirs.handle_announced(&decided));
    assert_eq!(theirs.pin(), Some(&decided));
    assert_eq!(theirs.faults(), []);
    // An announcement of a node that has not heard of it yet changes nothing.
    assert!(!ours.handle_announced(&pin(0, "c", "bb")));
    assert_eq!(ours.faults(), []);
}

#[test]
fn a_file_of_a_later_format_is_refused_by_its_number() {
    let newer = "kumi store pin 2\nid aa\n";
    assert_eq!(read(newer), Err(PinTextError::Newer(2)));
    assert_eq!(Pin::from_announcement("7 x"), Err(PinTextError::Newer(7)));
    let said = PinTextError::Newer(2).to_string();
    assert_eq!(
        said,
        "format 2 of a store pin is later than this version of kumi knows (up to 1)"
    );
    for wrong in [
        "",
        "kumi store pin",
        "kumi store pin 0\ncount 0\nby a~0000000000000001\nid aa\n",
        "kumi store pin x\n",
        "kumi store pin 1\ncount -1\nby a~0000000000000001\nid aa\nclusters 00000000000000c1\n",
        "kumi store pin 1\ncount 1\nby a\nid aa\nclusters 00000000000000c1\n",
        "kumi store pin 1\ncount 1\nby a~0000000000000001\nid A-\nclusters 00000000000000c1\n",
        "kumi store pin 1\ncount 1\nby a~0000000000000001\n",
        "kumi store pin 1\ncount 1\nby a~0000000000000001\nid aa\n",
        "kumi store pin 1\ncount 1\nby a~0000000000000001\nid aa\nclusters \n",
        "kumi store pin 1\ncount 1\nby a~0000000000000001\nid aa\nclusters c1\n",
        "REDIS0011",
    ] {
        let read = read(wrong);
        assert!(
            matches!(read, Err(PinTextError::Malformed(_))),
            "{wrong:?} {read:?}"
        );
    }
}

/// A node that was in one cluster and joins another with the same state directory brings no decision along.
#[test]
fn the_pin_of_another_cluster_is_none() {
    let decided = pin(5, "a", "aa");
    let check = |written: &[u64], ours: &[u64], is_ours: bool| {
        let text = decided.to_file(&clusters(written));
        let read = Pin::from_file(&text, &clusters(ours)).expect("readable");
        assert_eq!(read.is_some(), is_ours, "{written:?} {ours:?}");
    };
    check(&[1], &[1], true);
    check(&[1], &[2], false);
    // While the key is replaced, a cluster has the ids of both.
    check(&[1], &[1, 2], true);
    check(&[1, 2], &[2, 1], true);
    check(&[1, 2], &[2], true);
    check(&[1, 2], &[3, 4], false);
}

fn any_pin() -> impl Strategy<Value = Pin> {
    (0..3_u64, "[a-c]", "[a-c]{1,2}").prop_map(|(count, by, store)| pin(count, &by, &store))
}

#[test]
fn a_count_that_no_decision_can_follow_is_refused() {
    let highest = pin(u64::MAX, "a", "one");
    let expected = Err(PinTextError::Malformed("its count is the highest there is"));
    assert_eq!(Pin::from_announcement(&highest.to_announcement()), expected);
    assert_eq!(read(&written(&highest)), expected);
    let high = pin(MAX_COUNT, "a", "one");
    let announced = Pin::from_announcement(&high.to_announcement());
    assert_eq!(announced, Ok(high.clone()));
    // What this node decides after it can be read again.
    let mut state = StorePin::new(node("b"), Some(high));
    assert!(state.use_store(id("two")));
    let kept = state.pin().cloned().unwrap();
    assert_eq!(read(&written(&kept)), Ok(kept));
}

proptest! {
    #[test]
    fn both_texts_are_read_back(pin in any_pin(), huge in 0..=MAX_COUNT) {
        for count in [pin.count, huge] {
            let pin = Pin { count, ..pin.clone() };
            prop_assert_eq!(read(&written(&pin)), Ok(pin.clone()));
            prop_assert_eq!(Pin::from_announcement(&pin.to_announcement()), Ok(pin));
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = Pin::from_file(&text, &[]);
        let _ = Pin::from_file(&format!("kumi store pin 1\n{text}"), &[]);
        let _ = Pin::from_announcement(&text);
        let _ = text.parse::<StoreId>();
    }

    /// Decisions reach nodes in any order, some of them twice. Once each node has heard all of them, all have the same pin.
    #[test]
    fn nodes_that_heard_the_same_decisions_agree(
        decisions in proptest::collection::vec(any_pin(), 1..8),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 0..30),
    ) {
        let decided = |pin: &Pin| Pin { count: pin.count + 1, ..pin.clone() };
        let decisions: Vec<Pin> = decisions.iter().map(decided).collect();
        let mut one = StorePin::new(node("x"), Some(pin(0, "x", "first")));
        let mut other = StorePin::new(node("y"), None);
        for decision in &decisions {
            one.handle_announced(decision);
        }
        for index in order {
            other.handle_announced(index.get(&decisions));
        }
        for decision in decisions.iter().rev() {
            other.handle_announced(decision);
        }
        prop_assert_eq!(one.pin(), other.pin());
        prop_assert_eq!(one.pin(), decisions.iter().max());
    }
}
