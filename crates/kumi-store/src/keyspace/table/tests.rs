//! The table through its own functions.

use super::super::value::NewValue;
use super::*;

#[test]
fn what_was_inserted_is_found_and_removed_again() {
    let mut table = Table::new((1, 2));
    let keys: Vec<Vec<u8>> = (0..100_000)
        .map(|i| format!("key:{i:012}").into_bytes())
        .collect();
    for key in &keys {
        let hash = table.hash(key);
        table.insert_new(hash, Entry::new(key, NewValue::Bytes(b"value"), None, 0));
    }
    assert_eq!(table.len(), keys.len());
    for key in &keys {
        let hash = table.hash(key);
        assert_eq!(table.get(hash, key).unwrap().key(), key);
        assert_eq!(table.remove(hash, key).unwrap().key(), key);
        assert!(table.get(hash, key).is_none());
    }
    assert_eq!((table.len(), table.depth, table.slots.len()), (0, 0, 1));
}
