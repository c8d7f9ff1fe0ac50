//! Entries through their own functions. CI runs these under AddressSanitizer, which is what shows
//! a wrong layout, a double free or a leak; the assertions alone would not.

use std::thread;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn bytes(bytes: &[u8]) -> Option<StringRef<'_>> {
    Some(StringRef::Bytes {
        bytes,
        raw: false,
        shared: None,
    })
}

fn raw(bytes: &[u8]) -> Option<StringRef<'_>> {
    Some(StringRef::Bytes {
        bytes,
        raw: true,
        shared: None,
    })
}

#[test]
fn an_entry_gives_back_what_it_was_made_of() {
    let entry = Entry::new(b"key", NewValue::Bytes(b"value"), Some(17), 5);
    assert_eq!(
        (entry.key(), entry.string()),
        (&b"key"[..], bytes(b"value"))
    );
    assert_eq!((entry.deadline(), entry.access_clock()), (Some(17), 5));
}

#[test]
fn an_empty_slot_costs_no_more_than_the_pointer() {
    assert_eq!(size_of::<Option<Entry>>(), 8);
}

#[test]
fn a_small_entry_takes_one_small_allocation() {
    let size = |deadline, value| {
        Entry::new(b"0123456789abcdef", value, deadline, 0)
            .header()
            .size()
    };
    assert_eq!(size(None, NewValue::Bytes(b"0123456789abcdef")), 40);
    assert_eq!(size(Some(1), NewValue::Bytes(b"0123456789abcdef")), 48);
    assert_eq!(size(None, NewValue::Int(i64::MIN)), 32);
}

#[test]
fn keys_of_every_length_come_back() {
    for len in [
        0, 1, 7, 8, 9, 255, 32_767, 32_768, 65_535, 65_536, 1_000_000,
    ] {
        let key: Vec<u8> = (0..len).map(|i| i as u8).collect();
        let mut entry = Entry::new(&key, NewValue::Int(-1), None, 0);
        entry.set_deadline(Some(3));
        entry.replace_value(NewValue::Bytes(b"x"));
        assert_eq!((entry.key(), entry.string()), (&key[..], bytes(b"x")));
        assert_eq!(entry.with_key(b"other").string(), bytes(b"x"));
    }
}

#[test]
fn a_key_is_told_from_those_that_differ_in_one_byte_or_in_length() {
    for len in 0..40 {
        let key: Vec<u8> = (1..=len).collect();
        let entry = Entry::new(&key, NewValue::Int(1), None, 0);
        assert!(entry.has_key(&key), "{len}");
        assert!(!entry.has_key(&[&key[..], b"\0"].concat()), "{len}");
        for at in 0..key.len() {
            let mut other = key.clone();
            other[at] ^= 0x80;
            assert!(!entry.has_key(&other), "{len} {at}");
            other.remove(at);
            assert!(!entry.has_key(&other), "{len} {at}");
        }
    }
}

#[test]
fn small_collections_of_every_length_and_form_come_back() {
    for key_len in [0, 16, 32_767, 32_768] {
        let key = vec![b'k'; key_len];
        for (form, len) in [(0, 0), (6, 1_024), (7, 1_025), (7, SMALL_MAX)] {
            let value: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let mut entry = Entry::new(&key, NewValue::Small(Type::Hash, form, &value), None, 9);
            entry.set_copied(true);
            entry.set_deadline(Some(3));
            assert_eq!(entry.key(), &key[..]);
            assert_eq!(entry.small(Type::Hash), Some((form, &value[..])));
            assert!(entry.is_copied());
            assert_eq!((entry.deadline(), entry.access_clock()), (Some(3), 9));
            let mut renamed = entry.with_key(b"other");
            assert_eq!(renamed.small(Type::Hash), Some((form, &value[..])));
            renamed.replace_value(NewValue::Small(Type::Set, 7 - form, &value[len / 2..]));
            assert_eq!(
                renamed.small(Type::Set),
                Some((7 - form, &value[len / 2..]))
            );
            assert_eq!(renamed.deadline(), Some(3));
        }
    }
}

#[test]
#[should_panic(expected = "a small collection fits its entry")]
fn a_small_collection_beyond_the_limit_is_a_defect_in_every_build() {
    let long = [7; SMALL_MAX + 1];
    let _ = Entry::new(b"k", NewValue::Small(Type::Hash, 0, &long), None, 0);
}

#[test]
fn a_value_is_inline_up_to_the_limit_and_boxed_above() {
    let long = [7; INLINE_MAX + 1];
    let mut entry = Entry::new(b"k", NewValue::Bytes(&long[1..]), None, 0);
    assert!(entry.boxed().is_none());
    assert!(entry.replace_value(NewValue::Bytes(&long)).is_none());
    assert!(entry.boxed().is_some());
    assert_eq!(entry.string(), raw(&long));
    assert!(entry.heap_bytes() > INLINE_MAX);
}

#[test]
fn a_value_of_the_same_size_is_replaced_in_place() {
    let mut entry = Entry::new(b"key", NewValue::Bytes(b"12345"), Some(1), 0);
    let before = entry.0;
    entry.replace_value(NewValue::Bytes(b"1"));
    entry.replace_value(NewValue::RawBytes(b"543"));
    assert_eq!(entry.string(), raw(b"543"));
    entry.set_deadline(Some(u64::MAX));
    assert_eq!(entry.0, before);
    assert_eq!(entry.deadline(), Some(u64::MAX));
}

#[test]
fn a_number_is_replaced_in_place_and_nothing_else_by_it() {
    let mut entry = Entry::new(b"key", NewValue::Int(1), None, 0);
    let before = entry.0;
    assert!(entry.set_int(i64::MAX));
    assert_eq!(
        (entry.string(), entry.0),
        (Some(StringRef::Int(i64::MAX)), before)
    );
    entry.replace_value(NewValue::Bytes(b"text"));
    assert!(!entry.set_int(2));
    assert_eq!(entry.string(), bytes(b"text"));
}

#[test]
fn replacing_a_boxed_value_returns_the_old_one() {
    let mut entry = Entry::new(b"key", NewValue::Boxed(Value::Bytes(vec![1])), None, 0);
    entry.value_bytes_mut().unwrap().push(2);
    let Some(Value::Bytes(old)) = entry.replace_value(NewValue::Int(9)) else {
        panic!("the boxed value is gone");
    };
    assert_eq!(old, [1, 2]);
    assert!(
        entry
            .replace_value(NewValue::Boxed(Value::Bytes(vec![3])))
            .is_none()
    );
    assert_eq!(
        entry.value_bytes_mut().map(|bytes| bytes.clone()),
        Some(vec![3])
    );
}

#[test]
fn a_renamed_entry_keeps_its_boxed_value_where_it_is() {
    let entry = Entry::new(b"old", NewValue::Bytes(&[5; 5000]), Some(2), 3);
    let at = |entry: &Entry| match entry.boxed() {
        Some(Value::Bytes(bytes)) => bytes.as_ptr(),
        other => panic!("5,000 bytes do not fit inside: {other:?}"),
    };
    let before = at(&entry);
    let renamed = entry.with_key(b"a new and longer name");
    assert_eq!(at(&renamed), before);
    assert_eq!((renamed.deadline(), renamed.access_clock()), (Some(2), 3));
}

#[test]
fn the_access_clock_keeps_24_bits_and_disturbs_nothing() {
    let entry = Entry::new(b"key", NewValue::Bytes(b"value"), Some(4), 0);
    let key = entry.key();
    entry.set_access_clock(0x12ff_ffff);
    assert_eq!((entry.access_clock(), key), (0xff_ffff, &b"key"[..]));
    assert_eq!(
        (entry.string(), entry.deadline()),
        (bytes(b"value"), Some(4))
    );
}

#[test]
fn an_entry_can_be_dropped_on_another_thread() {
    let entry = Entry::new(&[1; 100_000], NewValue::Bytes(&[2; 100_000]), Some(1), 0);
    thread::spawn(move || drop(entry)).join().unwrap();
}

/// What a key may hold, owned: the model of an entry's value.
#[derive(Clone, Debug)]
enum Model {
    Int(i64),
    Bytes(Vec<u8>),
    Raw(Vec<u8>),
    Boxed(Vec<u8>),
}

impl Model {
    fn to_new(&self) -> NewValue<'_> {
        match self {
            Model::Int(number) => NewValue::Int(*number),
            Model::Bytes(bytes) => NewValue::Bytes(bytes),
            Model::Raw(bytes) => NewValue::RawBytes(bytes),
            Model::Boxed(bytes) => NewValue::Boxed(Value::Bytes(bytes.clone())),
        }
    }

    fn to_ref(&self) -> Option<StringRef<'_>> {
        match self {
            Model::Int(number) => Some(StringRef::Int(*number)),
            Model::Bytes(bytes) => Some(StringRef::Bytes {
                bytes,
                raw: bytes.len() > INLINE_MAX,
                shared: None,
            }),
            Model::Raw(bytes) | Model::Boxed(bytes) => raw(bytes),
        }
    }
}

#[derive(Clone, Debug)]
enum Change {
    Replace(Model),
    SetInt(i64),
    Append(Vec<u8>),
    Deadline(Option<u64>),
    Clock(u32),
    Rename(Vec<u8>),
    /// One bit for each block that is asked about, from the second on.
    Relocate(u8),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![8 => vec(any::<u8>(), 0..40), 1 => vec(any::<u8>(), 65_530..65_545)]
}

fn string() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![4 => vec(any::<u8>(), 0..50), 1 => vec(any::<u8>(), 1000..1100)]
}

fn model() -> impl Strategy<Value = Model> {
    prop_oneof![
        any::<i64>().prop_map(Model::Int),
        string().prop_map(Model::Bytes),
        string().prop_map(Model::Raw),
        string().prop_map(Model::Boxed),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => model().prop_map(Change::Replace),
        1 => any::<i64>().prop_map(Change::SetInt),
        1 => string().prop_map(Change::Append),
        2 => any::<Option<u64>>().prop_map(Change::Deadline),
        1 => any::<u32>().prop_map(Change::Clock),
        1 => key().prop_map(Change::Rename),
        2 => any::<u8>().prop_map(Change::Relocate),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_sequence_of_changes_leaves_what_was_last_written(
        mut key in key(), mut value in model(), mut deadline in any::<Option<u64>>(),
        changes in vec(change(), 0..30),
    ) {
        let mut entry = Entry::new(&key, value.to_new(), deadline, 0);
        let mut clock = 0;
        for change in changes {
            match change {
                Change::Replace(new) => {
                    entry.replace_value(new.to_new());
                    value = new;
                }
                Change::SetInt(number) => {
                    let is_int = matches!(value, Model::Int(_));
                    prop_assert_eq!(entry.set_int(number), is_int);
                    value = if is_int { Model::Int(number) } else { value };
                }
                Change::Append(bytes) => {
                    if let Some(boxed) = entry.value_bytes_mut() {
                        boxed.extend(&bytes);
                        value = Model::Boxed(boxed.clone());
                    }
                }
                Change::Deadline(new) => {
                    entry.set_deadline(new);
                    deadline = new;
                }
                Change::Clock(new) => {
                    entry.set_access_clock(new);
                    clock = new & 0xff_ffff;
                }
                Change::Rename(new) => {
                    entry = entry.with_key(&new);
                    key = new;
                }
                Change::Relocate(blocks) => {
                    let (bytes, mut left) = (entry.heap_bytes(), blocks);
                    let moved = entry.relocate(&mut |_| { left >>= 1; left & 1 == 1 });
                    prop_assert!(moved <= 3);
                    prop_assert_eq!(entry.heap_bytes(), bytes);
                }
            }
            prop_assert_eq!(entry.key(), &key[..]);
            prop_assert_eq!(entry.string(), value.to_ref());
            prop_assert_eq!(entry.deadline(), deadline);
            prop_assert_eq!(entry.access_clock(), clock);
        }
    }
}
