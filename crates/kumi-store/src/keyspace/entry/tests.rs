//! Entries through their public functions.

use super::*;

#[test]
fn an_entry_gives_back_what_it_was_made_of() {
    let entry = Entry::new(b"key", NewValue::Bytes(b"value"), Some(17), 5);
    assert_eq!(entry.key(), b"key");
    assert_eq!(
        entry.value(),
        ValueRef::Bytes {
            bytes: b"value",
            raw: false
        }
    );
    assert_eq!((entry.deadline(), entry.access_clock()), (Some(17), 5));
}
