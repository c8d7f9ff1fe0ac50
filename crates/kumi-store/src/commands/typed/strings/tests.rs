//! What the string commands answer, as a real server was seen to answer, and what else they leave behind.

mod effects;

use crate::testing::Lab;

#[test]
fn set_obeys_its_conditions() {
    Lab::new().check(&[
        ("SET a 1 XX", "$-1\r\n"),
        ("GET a", "$-1\r\n"),
        ("SET a 1 NX", "+OK\r\n"),
        ("SET a 2 NX", "$-1\r\n"),
        ("SET a 3 xx", "+OK\r\n"),
        ("GET a", "$1\r\n3\r\n"),
        ("SET a 4 NX XX", "-ERR syntax error\r\n"),
        ("SET a 4 XX NX", "-ERR syntax error\r\n"),
        ("SET a 4 foo", "-ERR syntax error\r\n"),
        (
            "SET a",
            "-ERR wrong number of arguments for 'set' command\r\n",
        ),
        ("SETNX a 5", ":0\r\n"),
        ("SETNX b 5", ":1\r\n"),
        (
            "SETNX b 5 6",
            "-ERR wrong number of arguments for 'setnx' command\r\n",
        ),
        ("GET b", "$1\r\n5\r\n"),
    ]);
}

#[test]
fn set_with_get_answers_with_the_old_value() {
    Lab::new().check(&[
        ("SET a 1 GET", "$-1\r\n"),
        ("SET a two get", "$1\r\n1\r\n"),
        ("SET a 3 NX GET", "$3\r\ntwo\r\n"),
        ("GET a", "$3\r\ntwo\r\n"),
        ("SET b 3 NX GET", "$-1\r\n"),
        ("GET b", "$1\r\n3\r\n"),
        ("SET c 3 XX GET", "$-1\r\n"),
        ("EXISTS c", ":0\r\n"),
        ("SET a 4 EX 100 GET", "$3\r\ntwo\r\n"),
        ("TTL a", ":100\r\n"),
        ("SET a 5 KEEPTTL GET", "$1\r\n4\r\n"),
        ("TTL a", ":100\r\n"),
    ]);
}

#[test]
fn set_takes_every_form_of_time() {
    Lab::new().check(&[
        ("SET a 1 EX 100", "+OK\r\n"),
        ("TTL a", ":100\r\n"),
        ("SET a 1 px 100000", "+OK\r\n"),
        ("TTL a", ":100\r\n"),
        ("SET a 1 EX 10 EX 200", "+OK\r\n"),
        ("TTL a", ":200\r\n"),
        ("SET a 1 KEEPTTL", "+OK\r\n"),
        ("TTL a", ":200\r\n"),
        ("SET a 1 KEEPTTL KEEPTTL", "+OK\r\n"),
        ("SET a 1", "+OK\r\n"),
        ("TTL a", ":-1\r\n"),
        ("SET a 1 EXAT 9223372036854775", "+OK\r\n"),
        ("PEXPIRETIME a", ":9223372036854775000\r\n"),
        ("SET a 1 PXAT 9223372036854775807", "+OK\r\n"),
        ("PEXPIRETIME a", ":9223372036854775807\r\n"),
        ("EXPIRETIME a", ":9223372036854776\r\n"),
        ("SETEX a 100 v", "+OK\r\n"),
        ("TTL a", ":100\r\n"),
        ("PSETEX a 100000 v", "+OK\r\n"),
        ("TTL a", ":100\r\n"),
        ("GET a", "$1\r\nv\r\n"),
    ]);
}

#[test]
fn set_refuses_times_that_make_no_sense() {
    Lab::new().check(&[
        ("SET a 1", "+OK\r\n"),
        ("SET a 2 EX", "-ERR syntax error\r\n"),
        (
            "SET a 2 EX 0",
            "-ERR invalid expire time in 'set' command\r\n",
        ),
        (
            "SET a 2 PX -1",
            "-ERR invalid expire time in 'set' command\r\n",
        ),
        (
            "SET a 2 EXAT 0",
            "-ERR invalid expire time in 'set' command\r\n",
        ),
        (
            "SET a 2 PXAT -5",
            "-ERR invalid expire time in 'set' command\r\n",
        ),
        (
            "SET a 2 EX ten",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "SET a 2 EX 1.5",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "SET a 2 EX 9223372036854775807",
            "-ERR invalid expire time in 'set' command\r\n",
        ),
        (
            "SET a 2 EX 9223372036854775",
            "-ERR invalid expire time in 'set' command\r\n",
        ),
        (
            "SET a 2 PX 9223372036854775807",
            "-ERR invalid expire time in 'set' command\r\n",
        ),
        (
            "SET a 2 EXAT 9223372036854776",
            "-ERR invalid expire time in 'set' command\r\n",
        ),
        ("SET a 2 EX 10 PX 10", "-ERR syntax error\r\n"),
        ("SET a 2 PXAT 10 EXAT 10", "-ERR syntax error\r\n"),
        ("SET a 2 KEEPTTL EX 10", "-ERR syntax error\r\n"),
        ("SET a 2 EX 10 KEEPTTL", "-ERR syntax error\r\n"),
        ("SET a 2 PERSIST", "-ERR syntax error\r\n"),
        (
            "SET a 2 NX EX 0",
            "-ERR invalid expire time in 'set' command\r\n",
        ),
        (
            "SETEX a 0 2",
            "-ERR invalid expire time in 'setex' command\r\n",
        ),
        (
            "SETEX a -1 2",
            "-ERR invalid expire time in 'setex' command\r\n",
        ),
        (
            "SETEX a ten 2",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "SETEX a 9223372036854775 2",
            "-ERR invalid expire time in 'setex' command\r\n",
        ),
        (
            "SETEX a 10",
            "-ERR wrong number of arguments for 'setex' command\r\n",
        ),
        (
            "PSETEX a 0 2",
            "-ERR invalid expire time in 'psetex' command\r\n",
        ),
        (
            "PSETEX a 9223372036854775807 2",
            "-ERR invalid expire time in 'psetex' command\r\n",
        ),
        ("GET a", "$1\r\n1\r\n"),
        ("TTL a", ":-1\r\n"),
    ]);
}

#[test]
fn getex_changes_the_deadline_of_what_it_reads() {
    Lab::new().check(&[
        ("SET a v", "+OK\r\n"),
        ("GETEX a", "$1\r\nv\r\n"),
        ("TTL a", ":-1\r\n"),
        ("GETEX a EX 100", "$1\r\nv\r\n"),
        ("TTL a", ":100\r\n"),
        ("GETEX a PX 200000", "$1\r\nv\r\n"),
        ("TTL a", ":200\r\n"),
        ("GETEX a PXAT 9223372036854775807", "$1\r\nv\r\n"),
        ("PEXPIRETIME a", ":9223372036854775807\r\n"),
        ("GETEX a", "$1\r\nv\r\n"),
        ("PEXPIRETIME a", ":9223372036854775807\r\n"),
        ("GETEX a PERSIST", "$1\r\nv\r\n"),
        ("GETEX a persist", "$1\r\nv\r\n"),
        ("TTL a", ":-1\r\n"),
        ("GETEX a EXAT 1", "$1\r\nv\r\n"),
        ("EXISTS a", ":0\r\n"),
        ("GETEX a EXAT 1", "$-1\r\n"),
    ]);
}

#[test]
fn getex_refuses_what_set_refuses() {
    Lab::new().check(&[
        ("SET a v EX 100", "+OK\r\n"),
        ("GETEX a EX", "-ERR syntax error\r\n"),
        (
            "GETEX a EX 0",
            "-ERR invalid expire time in 'getex' command\r\n",
        ),
        (
            "GETEX a EX ten",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "GETEX a EX 9223372036854775",
            "-ERR invalid expire time in 'getex' command\r\n",
        ),
        ("GETEX a PERSIST EX 10", "-ERR syntax error\r\n"),
        ("GETEX a EX 10 PERSIST", "-ERR syntax error\r\n"),
        ("GETEX a EX 10 PX 10", "-ERR syntax error\r\n"),
        ("GETEX a KEEPTTL", "-ERR syntax error\r\n"),
        ("GETEX a NX", "-ERR syntax error\r\n"),
        ("GETEX a GET", "-ERR syntax error\r\n"),
        ("GETEX none EX 0", "$-1\r\n"),
        ("GETEX none EX 0 FOO", "-ERR syntax error\r\n"),
        ("TTL a", ":100\r\n"),
    ]);
}

#[test]
fn getdel_and_getset_answer_with_what_was_there() {
    Lab::new().check(&[
        ("GETDEL a", "$-1\r\n"),
        ("SET a 1", "+OK\r\n"),
        ("GETDEL a", "$1\r\n1\r\n"),
        ("EXISTS a", ":0\r\n"),
        ("GETSET a 2", "$-1\r\n"),
        ("GETSET a three", "$1\r\n2\r\n"),
        ("EXPIRE a 100", ":1\r\n"),
        ("GETSET a 4", "$5\r\nthree\r\n"),
        ("TTL a", ":-1\r\n"),
        ("GET a", "$1\r\n4\r\n"),
        (
            "GETDEL",
            "-ERR wrong number of arguments for 'getdel' command\r\n",
        ),
        (
            "GETSET a",
            "-ERR wrong number of arguments for 'getset' command\r\n",
        ),
    ]);
}

#[test]
fn several_keys_are_read_and_written_at_once() {
    Lab::new().check(&[
        ("MSET a 1 b two", "+OK\r\n"),
        (
            "MGET a none b a",
            "*4\r\n$1\r\n1\r\n$-1\r\n$3\r\ntwo\r\n$1\r\n1\r\n",
        ),
        ("MSET a 1 a 2", "+OK\r\n"),
        ("GET a", "$1\r\n2\r\n"),
        (
            "MSET a",
            "-ERR wrong number of arguments for 'mset' command\r\n",
        ),
        (
            "MSET a 1 b",
            "-ERR wrong number of arguments for 'mset' command\r\n",
        ),
        ("MSETNX a 3 c 3", ":0\r\n"),
        ("EXISTS c", ":0\r\n"),
        ("MSETNX c 3 d 4", ":1\r\n"),
        ("MSETNX e 1 e 2", ":1\r\n"),
        ("GET e", "$1\r\n2\r\n"),
        (
            "MSETNX e 1 f",
            "-ERR wrong number of arguments for 'msetnx' command\r\n",
        ),
        ("EXPIRE a 100", ":1\r\n"),
        ("MSET a 1", "+OK\r\n"),
        ("TTL a", ":-1\r\n"),
        (
            "MGET",
            "-ERR wrong number of arguments for 'mget' command\r\n",
        ),
    ]);
}

#[test]
fn append_makes_or_lengthens_a_string() {
    Lab::new().check(&[
        ("APPEND a 12", ":2\r\n"),
        ("OBJECT ENCODING a", "$3\r\nint\r\n"),
        ("APPEND a 3", ":3\r\n"),
        ("GET a", "$3\r\n123\r\n"),
        ("OBJECT ENCODING a", "$3\r\nraw\r\n"),
        ("INCR a", ":124\r\n"),
        ("OBJECT ENCODING a", "$3\r\nint\r\n"),
        ("APPEND a foo", ":6\r\n"),
        ("GET a", "$6\r\n124foo\r\n"),
        ("APPEND a \"\"", ":6\r\n"),
        ("STRLEN a", ":6\r\n"),
        ("APPEND b \"\"", ":0\r\n"),
        ("EXISTS b", ":1\r\n"),
        ("STRLEN b", ":0\r\n"),
        ("STRLEN none", ":0\r\n"),
        ("EXPIRE a 100", ":1\r\n"),
        ("APPEND a bar", ":9\r\n"),
        ("TTL a", ":100\r\n"),
        (
            "APPEND a",
            "-ERR wrong number of arguments for 'append' command\r\n",
        ),
        ("SET n -9223372036854775808", "+OK\r\n"),
        ("STRLEN n", ":20\r\n"),
    ]);
}

#[test]
fn getrange_clamps_its_positions() {
    Lab::new().check(&[
        ("SET a 12345", "+OK\r\n"),
        ("GETRANGE a 1 2", "$2\r\n23\r\n"),
        ("GETRANGE a -3 -1", "$3\r\n345\r\n"),
        ("GETRANGE a -1 -3", "$0\r\n\r\n"),
        ("GETRANGE a 0 -1", "$5\r\n12345\r\n"),
        ("GETRANGE a 0 100", "$5\r\n12345\r\n"),
        ("GETRANGE a 4 100", "$1\r\n5\r\n"),
        ("GETRANGE a 5 100", "$0\r\n\r\n"),
        ("GETRANGE a -100 2", "$3\r\n123\r\n"),
        ("GETRANGE a -100 -50", "$1\r\n1\r\n"),
        ("GETRANGE a -5 -5", "$1\r\n1\r\n"),
        ("GETRANGE a 3 1", "$0\r\n\r\n"),
        (
            "GETRANGE a 9223372036854775807 9223372036854775807",
            "$0\r\n\r\n",
        ),
        (
            "GETRANGE a -9223372036854775808 9223372036854775807",
            "$5\r\n12345\r\n",
        ),
        (
            "GETRANGE a -9223372036854775808 -9223372036854775808",
            "$1\r\n1\r\n",
        ),
        (
            "GETRANGE a x 1",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "GETRANGE a 1 x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        ("GETRANGE none 0 -1", "$0\r\n\r\n"),
        (
            "GETRANGE none x -1",
            "-ERR value is not an integer or out of range\r\n",
        ),
        ("SET b \"\"", "+OK\r\n"),
        ("GETRANGE b 0 -1", "$0\r\n\r\n"),
        ("GETRANGE b 0 0", "$0\r\n\r\n"),
        ("GETRANGE b -1 -1", "$0\r\n\r\n"),
        ("SUBSTR a 0 1", "$2\r\n12\r\n"),
        (
            "SUBSTR a 0",
            "-ERR wrong number of arguments for 'substr' command\r\n",
        ),
    ]);
}

#[test]
fn setrange_writes_over_and_past_the_end() {
    Lab::new().check(&[
        ("SETRANGE a 3 \"\"", ":0\r\n"),
        ("EXISTS a", ":0\r\n"),
        ("SETRANGE a 0 hello", ":5\r\n"),
        ("SETRANGE a 1 ipp", ":5\r\n"),
        ("GET a", "$5\r\nhippo\r\n"),
        ("SETRANGE a 4 ies!", ":8\r\n"),
        ("GET a", "$8\r\nhippies!\r\n"),
        ("SETRANGE a 0 \"\"", ":8\r\n"),
        ("SETRANGE a -1 x", "-ERR offset is out of range\r\n"),
        (
            "SETRANGE a x x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "SETRANGE a 536870912 x",
            "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n",
        ),
        ("SETRANGE a 536870912 \"\"", ":8\r\n"),
        (
            "SETRANGE a 9223372036854775807 x",
            "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n",
        ),
        (
            "SETRANGE a 9223372036854775808 x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "SETRANGE none 536870912 x",
            "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n",
        ),
        ("EXISTS none", ":0\r\n"),
        ("SET n 123", "+OK\r\n"),
        ("SETRANGE n 1 9", ":3\r\n"),
        ("GET n", "$3\r\n193\r\n"),
        ("OBJECT ENCODING n", "$3\r\nraw\r\n"),
        ("EXPIRE n 100", ":1\r\n"),
        ("SETRANGE n 0 5", ":3\r\n"),
        ("TTL n", ":100\r\n"),
        (
            "SETRANGE n 0",
            "-ERR wrong number of arguments for 'setrange' command\r\n",
        ),
    ]);
}

#[test]
fn integers_count_up_and_down() {
    Lab::new().check(&[
        ("INCR a", ":1\r\n"),
        ("INCRBY a 10", ":11\r\n"),
        ("DECR a", ":10\r\n"),
        ("DECRBY a 3", ":7\r\n"),
        ("GET a", "$1\r\n7\r\n"),
        ("OBJECT ENCODING a", "$3\r\nint\r\n"),
        ("EXPIRE a 100", ":1\r\n"),
        ("INCR a", ":8\r\n"),
        ("TTL a", ":100\r\n"),
        (
            "INCRBY a x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "INCRBY a 1.5",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "DECRBY a \"\"",
            "-ERR value is not an integer or out of range\r\n",
        ),
        ("SET a 9223372036854775807", "+OK\r\n"),
        ("INCR a", "-ERR increment or decrement would overflow\r\n"),
        (
            "INCRBY a 1",
            "-ERR increment or decrement would overflow\r\n",
        ),
        (
            "DECRBY a -1",
            "-ERR increment or decrement would overflow\r\n",
        ),
        (
            "DECRBY a -9223372036854775808",
            "-ERR decrement would overflow\r\n",
        ),
        ("GET a", "$19\r\n9223372036854775807\r\n"),
        ("SET a -9223372036854775808", "+OK\r\n"),
        ("DECR a", "-ERR increment or decrement would overflow\r\n"),
        (
            "INCRBY a -1",
            "-ERR increment or decrement would overflow\r\n",
        ),
        ("INCRBY a 9223372036854775807", ":-1\r\n"),
        ("SET s foo", "+OK\r\n"),
        ("INCR s", "-ERR value is not an integer or out of range\r\n"),
        ("SET s 007", "+OK\r\n"),
        ("INCR s", "-ERR value is not an integer or out of range\r\n"),
        ("SET s \"\"", "+OK\r\n"),
        ("DECR s", "-ERR value is not an integer or out of range\r\n"),
        ("SET s 18446744073709551616", "+OK\r\n"),
        ("INCR s", "-ERR value is not an integer or out of range\r\n"),
        (
            "INCR",
            "-ERR wrong number of arguments for 'incr' command\r\n",
        ),
        (
            "INCRBY s",
            "-ERR wrong number of arguments for 'incrby' command\r\n",
        ),
    ]);
}

#[test]
fn floats_add_up_as_long_doubles() {
    Lab::new().check(&[
        ("INCRBYFLOAT a 10.50", "$4\r\n10.5\r\n"),
        ("INCRBYFLOAT a 0.1", "$4\r\n10.6\r\n"),
        ("INCRBYFLOAT a -5", "$3\r\n5.6\r\n"),
        ("OBJECT ENCODING a", "$6\r\nembstr\r\n"),
        ("SET a 5.0e3", "+OK\r\n"),
        ("INCRBYFLOAT a 2.0e2", "$4\r\n5200\r\n"),
        ("OBJECT ENCODING a", "$6\r\nembstr\r\n"),
        ("INCR a", ":5201\r\n"),
        ("OBJECT ENCODING a", "$3\r\nint\r\n"),
        ("EXPIRE a 100", ":1\r\n"),
        ("INCRBYFLOAT a 0.25", "$7\r\n5201.25\r\n"),
        ("TTL a", ":100\r\n"),
        ("INCRBYFLOAT a foo", "-ERR value is not a valid float\r\n"),
        (
            "INCRBYFLOAT a inf",
            "-ERR increment would produce NaN or Infinity\r\n",
        ),
        (
            "INCRBYFLOAT a -inf",
            "-ERR increment would produce NaN or Infinity\r\n",
        ),
        ("INCRBYFLOAT a nan", "-ERR value is not a valid float\r\n"),
        (
            "INCRBYFLOAT a 1e5000",
            "-ERR value is not a valid float\r\n",
        ),
        ("INCRBYFLOAT a \"\"", "-ERR value is not a valid float\r\n"),
        ("SET a foo", "+OK\r\n"),
        ("INCRBYFLOAT a 1", "-ERR value is not a valid float\r\n"),
        ("SET a inf", "+OK\r\n"),
        (
            "INCRBYFLOAT a 1",
            "-ERR increment would produce NaN or Infinity\r\n",
        ),
        (
            "INCRBYFLOAT a",
            "-ERR wrong number of arguments for 'incrbyfloat' command\r\n",
        ),
    ]);
}

#[test]
fn lcs_finds_what_two_strings_share() {
    Lab::new().check(&[
        ("MSET a ohmytext b mynewtext", "+OK\r\n"),
        ("LCS a b", "$6\r\nmytext\r\n"),
        ("LCS a b LEN", ":6\r\n"),
        ("LCS a b IDX", "*4\r\n$7\r\nmatches\r\n*2\r\n*2\r\n*2\r\n:4\r\n:7\r\n*2\r\n:5\r\n:8\r\n*2\r\n*2\r\n:2\r\n:3\r\n*2\r\n:0\r\n:1\r\n$3\r\nlen\r\n:6\r\n"),
        ("LCS a b IDX MINMATCHLEN 4", "*4\r\n$7\r\nmatches\r\n*1\r\n*2\r\n*2\r\n:4\r\n:7\r\n*2\r\n:5\r\n:8\r\n$3\r\nlen\r\n:6\r\n"),
        ("LCS a b IDX MINMATCHLEN 5", "*4\r\n$7\r\nmatches\r\n*0\r\n$3\r\nlen\r\n:6\r\n"),
        ("LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN", "*4\r\n$7\r\nmatches\r\n*1\r\n*3\r\n*2\r\n:4\r\n:7\r\n*2\r\n:5\r\n:8\r\n:4\r\n$3\r\nlen\r\n:6\r\n"),
        ("LCS a b idx withmatchlen", "*4\r\n$7\r\nmatches\r\n*2\r\n*3\r\n*2\r\n:4\r\n:7\r\n*2\r\n:5\r\n:8\r\n:4\r\n*3\r\n*2\r\n:2\r\n:3\r\n*2\r\n:0\r\n:1\r\n:2\r\n$3\r\nlen\r\n:6\r\n"),
        ("LCS a b IDX MINMATCHLEN -4", "*4\r\n$7\r\nmatches\r\n*2\r\n*2\r\n*2\r\n:4\r\n:7\r\n*2\r\n:5\r\n:8\r\n*2\r\n*2\r\n:2\r\n:3\r\n*2\r\n:0\r\n:1\r\n$3\r\nlen\r\n:6\r\n"),
        ("LCS a b MINMATCHLEN 4", "$6\r\nmytext\r\n"),
        ("LCS a b WITHMATCHLEN", "$6\r\nmytext\r\n"),
        ("LCS a a IDX", "*4\r\n$7\r\nmatches\r\n*1\r\n*2\r\n*2\r\n:0\r\n:7\r\n*2\r\n:0\r\n:7\r\n$3\r\nlen\r\n:8\r\n"),
        ("LCS a none", "$0\r\n\r\n"),
        ("LCS a none LEN", ":0\r\n"),
        ("LCS a none IDX", "*4\r\n$7\r\nmatches\r\n*0\r\n$3\r\nlen\r\n:0\r\n"),
        ("LCS none none", "$0\r\n\r\n"),
        ("SET n 12345", "+OK\r\n"),
        ("SET m 2045", "+OK\r\n"),
        ("LCS n m", "$3\r\n245\r\n"),
        ("LCS n m IDX", "*4\r\n$7\r\nmatches\r\n*2\r\n*2\r\n*2\r\n:3\r\n:4\r\n*2\r\n:2\r\n:3\r\n*2\r\n*2\r\n:1\r\n:1\r\n*2\r\n:0\r\n:0\r\n$3\r\nlen\r\n:3\r\n"),
    ]);
}

#[test]
fn lcs_refuses_options_that_do_not_fit() {
    Lab::new().check(&[
        ("MSET a x b y", "+OK\r\n"),
        (
            "LCS a b IDX LEN",
            "-ERR If you want both the length and indexes, please just use IDX.\r\n",
        ),
        ("LCS a b MINMATCHLEN", "-ERR syntax error\r\n"),
        (
            "LCS a b MINMATCHLEN x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        ("LCS a b FOO", "-ERR syntax error\r\n"),
        (
            "LCS a",
            "-ERR wrong number of arguments for 'lcs' command\r\n",
        ),
    ]);
}

#[test]
fn encodings_are_those_redis_shows() {
    Lab::new().check(&[
        ("SET a 12", "+OK\r\n"),
        ("OBJECT ENCODING a", "$3\r\nint\r\n"),
        ("SET a -9223372036854775808", "+OK\r\n"),
        ("OBJECT ENCODING a", "$3\r\nint\r\n"),
        ("SET a 9223372036854775808", "+OK\r\n"),
        ("OBJECT ENCODING a", "$6\r\nembstr\r\n"),
        ("SET a 012", "+OK\r\n"),
        ("OBJECT ENCODING a", "$6\r\nembstr\r\n"),
        ("SET a \"\"", "+OK\r\n"),
        ("OBJECT ENCODING a", "$6\r\nembstr\r\n"),
        (
            "SET a aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "+OK\r\n",
        ),
        ("OBJECT ENCODING a", "$6\r\nembstr\r\n"),
        (
            "SET a aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "+OK\r\n",
        ),
        ("OBJECT ENCODING a", "$3\r\nraw\r\n"),
    ]);
}
