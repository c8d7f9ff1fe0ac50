//! What the PF commands answer, as a real server was seen to.

use crate::testing::Lab;

#[test]
fn counting_and_merging() {
    Lab::new().check(&[
        ("PFADD a", ":1\r\n"),
        ("PFADD a", ":0\r\n"),
        ("PFCOUNT a", ":0\r\n"),
        ("PFADD a x y z x", ":1\r\n"),
        ("PFADD a x y", ":0\r\n"),
        ("PFCOUNT a", ":3\r\n"),
        ("PFCOUNT a", ":3\r\n"),
        ("PFADD b z w", ":1\r\n"),
        ("PFCOUNT a b missing", ":4\r\n"),
        ("EXPIRE a 100", ":1\r\n"),
        ("PFMERGE a b missing", "+OK\r\n"),
        ("PFCOUNT a", ":4\r\n"),
        ("TTL a", ":100\r\n"),
        ("PFMERGE new", "+OK\r\n"),
        ("PFCOUNT new", ":0\r\n"),
        ("PFCOUNT missing", ":0\r\n"),
        ("EXISTS missing", ":0\r\n"),
    ]);
}

#[test]
fn strings_that_are_none() {
    let wrong = "-WRONGTYPE Key is not a valid HyperLogLog string value.\r\n";
    Lab::new().check(&[
        ("SET a 12", "+OK\r\n"),
        ("PFADD a x", wrong),
        ("PFCOUNT a", wrong),
        ("PFCOUNT a b", wrong),
        ("PFMERGE b a", wrong),
        ("EXISTS b", ":0\r\n"),
        ("GET a", "$2\r\n12\r\n"),
    ]);
}

#[test]
fn looking_inside() {
    Lab::new().check(&[
        (
            "PFDEBUG ENCODING a",
            "-ERR The specified key does not exist\r\n",
        ),
        ("PFADD a", ":1\r\n"),
        ("PFDEBUG ENCODING a", "+sparse\r\n"),
        ("PFDEBUG DECODE a", "$7\r\nZ:16384\r\n"),
        ("PFDEBUG TODENSE a", ":1\r\n"),
        ("PFDEBUG TODENSE a", ":0\r\n"),
        ("PFDEBUG ENCODING a", "+dense\r\n"),
        ("PFDEBUG DECODE a", "-ERR HLL encoding is not sparse\r\n"),
        ("STRLEN a", ":12304\r\n"),
        (
            "PFDEBUG NOTHING a",
            "-ERR Unknown PFDEBUG subcommand 'NOTHING'\r\n",
        ),
        ("PFSELFTEST", "+OK\r\n"),
    ]);
}
