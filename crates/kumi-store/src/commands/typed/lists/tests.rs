//! What the list commands answer, as a real server was seen to, with 7.2's names of encodings.

mod waiting;

use crate::testing::Lab;

#[test]
fn both_ends() {
    Lab::new().check(&[
        ("RPUSH l a b", ":2\r\n"),
        ("LPUSH l 1 2", ":4\r\n"),
        (
            "LRANGE l 0 -1",
            "*4\r\n$1\r\n2\r\n$1\r\n1\r\n$1\r\na\r\n$1\r\nb\r\n",
        ),
        ("LPUSHX missing a", ":0\r\n"),
        ("RPUSHX l c", ":5\r\n"),
        ("EXISTS missing", ":0\r\n"),
        ("LLEN l", ":5\r\n"),
        ("LPOP l", "$1\r\n2\r\n"),
        ("RPOP l 2", "*2\r\n$1\r\nc\r\n$1\r\nb\r\n"),
        ("LPOP l 0", "*0\r\n"),
        (
            "LPOP l -1",
            "-ERR value is out of range, must be positive\r\n",
        ),
        (
            "LPOP l x",
            "-ERR value is out of range, must be positive\r\n",
        ),
        (
            "LPOP l 1 2",
            "-ERR wrong number of arguments for 'lpop' command\r\n",
        ),
        ("LPOP missing", "$-1\r\n"),
        ("LPOP missing 1", "*-1\r\n"),
        ("LPOP l 9", "*2\r\n$1\r\n1\r\n$1\r\na\r\n"),
        ("EXISTS l", ":0\r\n"),
        ("TYPE l", "+none\r\n"),
    ]);
}

#[test]
fn places_inside() {
    Lab::new().check(&[
        ("RPUSH l a b c b", ":4\r\n"),
        ("LINDEX l 1", "$1\r\nb\r\n"),
        ("LINDEX l -4", "$1\r\na\r\n"),
        ("LINDEX l -5", "$-1\r\n"),
        ("LINDEX l 9", "$-1\r\n"),
        (
            "LINDEX l x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        ("LSET l 0 A", "+OK\r\n"),
        ("LSET l -5 x", "-ERR index out of range\r\n"),
        ("LSET l 4 x", "-ERR index out of range\r\n"),
        ("LSET missing 0 x", "-ERR no such key\r\n"),
        ("LINSERT l BEFORE c x", ":5\r\n"),
        ("LINSERT l after b y", ":6\r\n"),
        ("LINSERT l AFTER nothing y", ":-1\r\n"),
        ("LINSERT missing AFTER a y", ":0\r\n"),
        ("LINSERT l AT a y", "-ERR syntax error\r\n"),
        (
            "LRANGE l 0 -1",
            "*6\r\n$1\r\nA\r\n$1\r\nb\r\n$1\r\ny\r\n$1\r\nx\r\n$1\r\nc\r\n$1\r\nb\r\n",
        ),
        ("LRANGE l -2 100", "*2\r\n$1\r\nc\r\n$1\r\nb\r\n"),
        ("LRANGE l 5 2", "*0\r\n"),
        ("LREM l -1 b", ":1\r\n"),
        ("LREM l 0 nothing", ":0\r\n"),
        ("LTRIM l 1 2", "+OK\r\n"),
        ("LRANGE l 0 -1", "*2\r\n$1\r\nb\r\n$1\r\ny\r\n"),
        ("LTRIM l 5 9", "+OK\r\n"),
        ("EXISTS l", ":0\r\n"),
    ]);
}

#[test]
fn searching() {
    let zero = "-ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list\r\n";
    Lab::new().check(&[
        ("RPUSH l a b c 1 2 3 c c", ":8\r\n"),
        ("LPOS l c", ":2\r\n"),
        ("LPOS l c RANK 2", ":6\r\n"),
        ("LPOS l c RANK -1", ":7\r\n"),
        ("LPOS l c COUNT 2", "*2\r\n:2\r\n:6\r\n"),
        ("LPOS l c COUNT 0 RANK -2", "*2\r\n:6\r\n:2\r\n"),
        ("LPOS l c COUNT 0 MAXLEN 7", "*2\r\n:2\r\n:6\r\n"),
        ("LPOS l x", "$-1\r\n"),
        ("LPOS l x COUNT 0", "*0\r\n"),
        ("LPOS missing x", "$-1\r\n"),
        ("LPOS missing x COUNT 1", "*0\r\n"),
        ("LPOS l c RANK 0", zero),
        ("LPOS l c RANK -9223372036854775808", "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807\r\n"),
        ("LPOS l c COUNT -1", "-ERR COUNT can't be negative\r\n"),
        ("LPOS l c MAXLEN x", "-ERR MAXLEN can't be negative\r\n"),
        ("LPOS l c FIRST 1", "-ERR syntax error\r\n"),
        ("LPOS l c RANK", "-ERR syntax error\r\n"),
    ]);
}

#[test]
fn moving() {
    Lab::new().check(&[
        ("RPUSH a 1 2 3", ":3\r\n"),
        ("LMOVE a b LEFT RIGHT", "$1\r\n1\r\n"),
        ("RPOPLPUSH a b", "$1\r\n3\r\n"),
        ("LRANGE b 0 -1", "*2\r\n$1\r\n3\r\n$1\r\n1\r\n"),
        ("LMOVE b b RIGHT LEFT", "$1\r\n1\r\n"),
        ("LRANGE b 0 -1", "*2\r\n$1\r\n1\r\n$1\r\n3\r\n"),
        ("LMOVE a b UP LEFT", "-ERR syntax error\r\n"),
        ("LMOVE missing b LEFT LEFT", "$-1\r\n"),
        ("SET s x", "+OK\r\n"),
        (
            "LMOVE a s LEFT LEFT",
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        ),
        ("LMOVE missing s LEFT LEFT", "$-1\r\n"),
        ("LLEN a", ":1\r\n"),
        (
            "LMPOP 2 missing b RIGHT COUNT 5",
            "*2\r\n$1\r\nb\r\n*2\r\n$1\r\n3\r\n$1\r\n1\r\n",
        ),
        ("LMPOP 1 missing LEFT", "*-1\r\n"),
        (
            "LMPOP 0 a LEFT",
            "-ERR numkeys should be greater than 0\r\n",
        ),
        (
            "LMPOP 1 a LEFT COUNT 0",
            "-ERR count should be greater than 0\r\n",
        ),
        ("LMPOP 1 a LEFT COUNT", "-ERR syntax error\r\n"),
        ("LMPOP 2 a LEFT", "-ERR syntax error\r\n"),
        ("LMOVE a c LEFT LEFT", "$1\r\n2\r\n"),
        ("EXISTS a", ":0\r\n"),
    ]);
}

#[test]
fn names_of_encodings() {
    let long = "x".repeat(9000);
    let mut lab = Lab::new();
    lab.check(&[
        ("RPUSH l a", ":1\r\n"),
        ("OBJECT ENCODING l", "$8\r\nlistpack\r\n"),
        ("TYPE l", "+list\r\n"),
    ]);
    lab.check(&[(&format!("RPUSH l {long}"), ":2\r\n")]);
    lab.check(&[
        ("OBJECT ENCODING l", "$9\r\nquicklist\r\n"),
        ("LTRIM l 0 0", "+OK\r\n"),
        ("OBJECT ENCODING l", "$8\r\nlistpack\r\n"),
    ]);
}

#[test]
fn an_element_without_a_place_converts_too() {
    let mut lab = Lab::new();
    let element = "x".repeat(9000);
    lab.check(&[
        ("RPUSH s a", ":1\r\n"),
        (
            &format!("LSET s x {element}"),
            "-ERR value is not an integer or out of range\r\n",
        ),
        ("OBJECT ENCODING s", "$8\r\nlistpack\r\n"),
        (
            &format!("LSET s 7 {element}"),
            "-ERR index out of range\r\n",
        ),
        ("OBJECT ENCODING s", "$9\r\nquicklist\r\n"),
        ("RPUSH l a", ":1\r\n"),
        (&format!("LINSERT l BEFORE none {element}"), ":-1\r\n"),
        ("OBJECT ENCODING l", "$9\r\nquicklist\r\n"),
        ("LRANGE l 0 -1", "*1\r\n$1\r\na\r\n"),
    ]);
}
