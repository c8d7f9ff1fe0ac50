//! What the bitmap commands answer and leave behind, as a real server was seen to.

use crate::testing::Lab;

#[test]
fn single_bits() {
    Lab::new().check(&[
        ("SETBIT k 7 1", ":0\r\n"),
        ("SETBIT k 7 1", ":1\r\n"),
        ("GETBIT k 7", ":1\r\n"),
        ("GETBIT k 100", ":0\r\n"),
        ("STRLEN k", ":1\r\n"),
        ("SETBIT k 100 0", ":0\r\n"),
        ("STRLEN k", ":13\r\n"),
        ("GETBIT missing 5", ":0\r\n"),
        ("EXISTS missing", ":0\r\n"),
        ("SET n 12", "+OK\r\n"),
        ("SETBIT n 0 1", ":0\r\n"),
        ("STRLEN n", ":2\r\n"),
        (
            "SETBIT k x 1",
            "-ERR bit offset is not an integer or out of range\r\n",
        ),
        (
            "SETBIT k -1 1",
            "-ERR bit offset is not an integer or out of range\r\n",
        ),
        (
            "SETBIT k 4294967296 1",
            "-ERR bit offset is not an integer or out of range\r\n",
        ),
        (
            "SETBIT k #1 1",
            "-ERR bit offset is not an integer or out of range\r\n",
        ),
        (
            "SETBIT k 1 2",
            "-ERR bit is not an integer or out of range\r\n",
        ),
        (
            "SETBIT k 1 x",
            "-ERR bit is not an integer or out of range\r\n",
        ),
    ]);
}

#[test]
fn counts_and_positions() {
    Lab::new().check(&[
        ("SET k foobar", "+OK\r\n"),
        ("BITCOUNT k", ":26\r\n"),
        ("BITCOUNT k 0 0", ":4\r\n"),
        ("BITCOUNT k 5 30 BIT", ":17\r\n"),
        ("BITCOUNT k 1 1 byte", ":6\r\n"),
        ("BITCOUNT k 1", "-ERR syntax error\r\n"),
        ("BITCOUNT k 1 1 word", "-ERR syntax error\r\n"),
        ("BITCOUNT k 1 1 BIT BIT", "-ERR syntax error\r\n"),
        (
            "BITCOUNT k a 1",
            "-ERR value is not an integer or out of range\r\n",
        ),
        ("BITCOUNT missing", ":0\r\n"),
        ("BITCOUNT missing a 1", ":0\r\n"),
        ("BITPOS missing 1 a", ":-1\r\n"),
        ("BITPOS k 1", ":1\r\n"),
        ("BITPOS k 0 1", ":8\r\n"),
        ("BITPOS k 1 2 -1 BIT", ":2\r\n"),
        ("BITPOS missing 0", ":0\r\n"),
        ("BITPOS missing 1", ":-1\r\n"),
        ("BITPOS k 2", "-ERR The bit argument must be 1 or 0.\r\n"),
        (
            "BITPOS k x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        ("BITPOS k 1 0 -1 X", "-ERR syntax error\r\n"),
        ("SETBIT ones 7 1", ":0\r\n"),
        ("BITOP NOT ones ones", ":1\r\n"),
        ("BITCOUNT ones", ":7\r\n"),
    ]);
}

#[test]
fn combinations() {
    Lab::new().check(&[
        ("SET a foof", "+OK\r\n"),
        ("SET b foobar", "+OK\r\n"),
        ("BITOP AND d a b", ":6\r\n"),
        ("GET d", "$6\r\nfoob\0\0\r\n"),
        ("BITOP xor d a a", ":4\r\n"),
        ("BITCOUNT d", ":0\r\n"),
        ("OBJECT ENCODING d", "$3\r\nraw\r\n"),
        ("EXPIRE d 100", ":1\r\n"),
        ("BITOP OR d a b", ":6\r\n"),
        ("TTL d", ":-1\r\n"),
        ("BITOP OR d missing", ":0\r\n"),
        ("EXISTS d", ":0\r\n"),
        (
            "BITOP NOT d a b",
            "-ERR BITOP NOT must be called with a single source key.\r\n",
        ),
        ("BITOP NAND d a b", "-ERR syntax error\r\n"),
    ]);
}

#[test]
fn fields() {
    Lab::new().check(&[
        ("BITFIELD k", "*0\r\n"),
        ("BITFIELD k GET u8 0", "*1\r\n:0\r\n"),
        ("EXISTS k", ":0\r\n"),
        ("BITFIELD k SET u8 #1 255 GET u8 8 INCRBY u8 8 1", "*3\r\n:0\r\n:255\r\n:0\r\n"),
        ("STRLEN k", ":2\r\n"),
        ("BITFIELD k OVERFLOW SAT INCRBY i5 100 99 OVERFLOW FAIL INCRBY i5 100 1", "*2\r\n:15\r\n$-1\r\n"),
        ("BITFIELD_RO k GET i5 100", "*1\r\n:15\r\n"),
        ("BITFIELD_RO k SET i5 100 1", "-ERR BITFIELD_RO only supports the GET subcommand\r\n"),
        ("BITFIELD k GET u64 0", "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.\r\n"),
        ("BITFIELD k GET u8 -1", "-ERR bit offset is not an integer or out of range\r\n"),
        ("BITFIELD k SET u8 0 x", "-ERR value is not an integer or out of range\r\n"),
        ("BITFIELD k OVERFLOW BIG", "-ERR Invalid OVERFLOW type specified\r\n"),
        ("BITFIELD k GET u8", "-ERR syntax error\r\n"),
        ("BITFIELD k PUT u8 0", "-ERR syntax error\r\n"),
    ]);
}
