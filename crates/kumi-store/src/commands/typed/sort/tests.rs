//! SORT on its own; the differential test compares it with a redis-server.

use std::cell::Cell;

use super::{Ties, Weight, order};
use crate::testing::Lab;

fn array(items: &[&str]) -> String {
    let mut reply = format!("*{}\r\n", items.len());
    for item in items {
        reply += &format!("${}\r\n{item}\r\n", item.len());
    }
    reply
}

#[test]
fn elements_are_sorted_by_themselves_or_by_other_keys() {
    let mut lab = Lab::new();
    for line in [
        "RPUSH l 3 1 10 2",
        "MSET w1 5 w2 1 w3 4 o1 one o2 two",
        "HSET h1 f 7 g x",
        "HSET h2 f 3",
    ] {
        lab.run(line);
    }
    lab.check(&[
        ("SORT l", &array(&["1", "2", "3", "10"])),
        ("SORT l DESC", &array(&["10", "3", "2", "1"])),
        ("SORT l ALPHA", &array(&["1", "10", "2", "3"])),
        ("SORT l LIMIT 1 2", &array(&["2", "3"])),
        ("SORT l BY w*", &array(&["10", "2", "3", "1"])),
        ("SORT l BY h*->f", &array(&["10", "3", "2", "1"])),
        ("SORT l BY nosort", &array(&["3", "1", "10", "2"])),
        ("SORT l BY nosort DESC LIMIT 0 2", &array(&["2", "10"])),
        (
            "SORT l LIMIT 0 2 GET # GET o* GET h*->g GET const",
            "*8\r\n$1\r\n1\r\n$3\r\none\r\n$1\r\nx\r\n$-1\r\n$1\r\n2\r\n$3\r\ntwo\r\n$-1\r\n$-1\r\n",
        ),
        ("SORT l STORE d LIMIT 0 2", ":2\r\n"),
        ("LRANGE d 0 -1", &array(&["1", "2"])),
        ("SORT missing STORE d", ":0\r\n"),
        ("EXISTS d", ":0\r\n"),
        ("SORT l BY o*", "-ERR One or more scores can't be converted into double\r\n"),
        ("SORT w1", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"),
        ("SORT_RO l STORE d", "-ERR syntax error\r\n"),
        ("SORT l LIMIT 1", "-ERR syntax error\r\n"),
        ("SORT l LIMIT a 1", "-ERR value is not an integer or out of range\r\n"),
        ("SORT l LIMIT -5 9223372036854775807", &array(&["1", "2", "3", "10"])),
        ("SORT l LIMIT 9223372036854775807 9223372036854775807", "*0\r\n"),
        ("COMMAND GETKEYS SORT l BY w* STORE d", &array(&["l", "d"])),
    ]);
}

#[test]
fn sets_and_sorted_sets_are_sorted_too() {
    let mut lab = Lab::new();
    lab.run("ZADD z 3 a 1 b 2 c");
    lab.run("SADD s z y x");
    lab.check(&[
        ("SORT z ALPHA", &array(&["a", "b", "c"])),
        ("OBJECT ENCODING z", "$8\r\nskiplist\r\n"),
        ("SORT z BY nosort", &array(&["b", "c", "a"])),
        ("SORT z BY nosort DESC LIMIT 1 1", &array(&["c"])),
        ("SORT s BY nosort STORE d", ":3\r\n"),
        ("LRANGE d 0 -1", &array(&["x", "y", "z"])),
        (
            "SORT s",
            "-ERR One or more scores can't be converted into double\r\n",
        ),
    ]);
}

#[test]
fn a_stored_result_is_announced_and_recorded() {
    let mut lab = Lab::new();
    lab.run("RPUSH l 2 1");
    lab.check_events(&[
        ("SORT l STORE d", &["new d", "sortstore d"]),
        ("SORT none STORE d", &["keymiss none", "del d"]),
    ]);
    lab.check_writes(&[("SORT l STORE d", &["SORT l STORE d"]), ("SORT l", &[])]);
}

#[test]
fn alpha_ignores_what_follows_a_zero_byte_unless_stored() {
    let mut lab = Lab::new();
    let client = lab.client;
    lab.send(
        client,
        &[b"RPUSH", b"l", b"b", b"a\0z", b"a\0", b"a", b"a\x01"],
    );
    lab.check(&[
        ("SORT l ALPHA", &array(&["a\0z", "a\0", "a", "a\x01", "b"])),
        (
            "SORT l ALPHA DESC",
            &array(&["b", "a\x01", "a\0z", "a\0", "a"]),
        ),
        ("SORT l ALPHA STORE d", ":5\r\n"),
        ("LRANGE d 0 -1", &array(&["a", "a\0", "a\0z", "a\x01", "b"])),
    ]);
}

#[test]
fn texts_of_other_keys_are_compared_up_to_a_zero_byte() {
    let mut lab = Lab::new();
    let client = lab.client;
    lab.run("RPUSH l 1 2 3 4");
    lab.send(
        client,
        &[
            b"MSET", b"w1", b"b", b"w2", b"a\0z", b"w3", b"a\0b", b"w4", b"a",
        ],
    );
    lab.check(&[
        ("SORT l BY w* ALPHA", &array(&["2", "3", "4", "1"])),
        ("SORT l BY w* ALPHA STORE d", ":4\r\n"),
        ("LRANGE d 0 -1", &array(&["4", "3", "2", "1"])),
    ]);
}

#[test]
fn each_text_is_cut_once() {
    thread_local!(static CUT: Cell<usize> = const { Cell::new(0) });
    fn counted(text: &[u8]) -> &[u8] {
        CUT.set(CUT.get() + 1);
        text
    }
    let texts: Vec<Vec<u8>> = (0..100u8).map(|at| vec![at.wrapping_mul(37)]).collect();
    let mut sorted = texts.clone();
    sorted.sort();
    let elements = texts.iter().map(|text| (Weight::Missing, text.clone()));
    let found = order(elements.collect(), counted, Ties::ByText(counted), false);
    assert_eq!(found, sorted);
    assert_eq!(CUT.replace(0), 100);
    let weights = texts
        .iter()
        .map(|text| (Weight::Text(text.clone()), text.clone()));
    let found = order(weights.collect(), counted, Ties::Keep, false);
    assert_eq!(found, sorted);
    assert_eq!(CUT.get(), 100);
}
