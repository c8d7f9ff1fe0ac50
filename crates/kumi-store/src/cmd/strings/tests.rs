//! Strings through their commands.

use crate::testing::Lab;

#[test]
fn integers_are_counted_in_place_and_keep_their_deadline() {
    Lab::new().check(&[
        ("INCR i", ":1\r\n"),
        ("INCRBY i 10", ":11\r\n"),
        ("DECRBY i 3", ":8\r\n"),
        ("EXPIRE i 100", ":1\r\n"),
        ("DECR i", ":7\r\n"),
        ("TTL i", ":100\r\n"),
    ]);
}
