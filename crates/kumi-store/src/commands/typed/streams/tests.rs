//! Streams by command: what the differential test cannot show, because Redis 7.2 does otherwise than 7.0, and the
//! records for replicas.

mod waiting;

use crate::testing::Lab;

/// The time of a new [`Lab`].
const NOW: &str = "1700000000000";
const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

fn entry(id: &str) -> String {
    format!(
        "*2\r\n${}\r\n{id}\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n",
        id.len()
    )
}

#[test]
fn entries_are_added_read_and_removed() {
    let mut lab = Lab::new();
    lab.check(&[
        ("XADD s * f v", "$15\r\n1700000000000-0\r\n"),
        ("XADD s * f v", "$15\r\n1700000000000-1\r\n"),
        ("XADD s 1700000000001-* f v", "$15\r\n1700000000001-0\r\n"),
        ("XLEN s", ":3\r\n"),
        ("TYPE s", "+stream\r\n"),
        ("OBJECT ENCODING s", "$6\r\nstream\r\n"),
        ("XDEL s 1700000000000-1 5-5", ":1\r\n"),
        ("XTRIM s MAXLEN 1", ":1\r\n"),
        ("XADD t NOMKSTREAM * f v", "$-1\r\n"),
        ("EXISTS t", ":0\r\n"),
        ("XDEL s 1700000000001", ":1\r\n"),
        ("XLEN s", ":0\r\n"),
        ("EXISTS s", ":1\r\n"),
        ("SET x 1", "+OK\r\n"),
        ("XADD x * f v", WRONG_TYPE),
        ("XLEN x", WRONG_TYPE),
    ]);
    assert_eq!(
        lab.run("XRANGE s - +"),
        "*0\r\n",
        "an empty stream is no missing key"
    );
    lab.run("XADD s 1700000000002-5 f v");
    let expected = format!("*1\r\n{}", entry("1700000000002-5"));
    assert_eq!(lab.run("XRANGE s - +"), expected);
    assert_eq!(lab.run("XREVRANGE s + - COUNT 7"), expected);
}

#[test]
fn an_entry_of_many_fields_is_added_whole() {
    let mut lab = Lab::new();
    let fields: Vec<String> = (0..100)
        .map(|number| format!("f{number} v{number}"))
        .collect();
    lab.run(&format!("XADD s 1-1 {}", fields.join(" ")));
    let words: Vec<String> = fields
        .join(" ")
        .split(' ')
        .map(|word| format!("${}\r\n{word}\r\n", word.len()))
        .collect();
    assert_eq!(
        lab.run("XRANGE s - +"),
        format!("*1\r\n*2\r\n$3\r\n1-1\r\n*200\r\n{}", words.concat())
    );
}

#[test]
fn the_sizes_of_nodes_follow_the_configuration() {
    let mut lab = Lab::new();
    let nodes = |lab: &mut Lab| {
        let info = lab.run("XINFO STREAM s");
        let (_, rest) = info.split_once("radix-tree-keys\r\n:").unwrap();
        rest.split_once("\r\n").unwrap().0.to_owned()
    };
    lab.run("CONFIG SET stream-node-max-entries 2");
    for _ in 0..5 {
        lab.run("XADD s * f v");
    }
    assert_eq!(nodes(&mut lab), "3");
    lab.check(&[("XTRIM s MAXLEN ~ 2", ":2\r\n")]);
    assert_eq!(nodes(&mut lab), "2");
    lab.run("DEL s");
    lab.run("CONFIG SET stream-node-max-entries 0 stream-node-max-bytes 100");
    for _ in 0..5 {
        lab.run("XADD s * f 12345678901234567890abcdefghijklmnopqrst");
    }
    assert_eq!(nodes(&mut lab), "5");
}

#[test]
fn a_consumer_exists_once_it_is_named() {
    let mut lab = Lab::new();
    lab.run("XGROUP CREATE s g 0 MKSTREAM");
    lab.check(&[
        ("XREADGROUP GROUP g alice STREAMS s >", "*-1\r\n"),
        ("XCLAIM s g bob 0 1-1", "*0\r\n"),
        (
            "XAUTOCLAIM s g carol 0 0",
            "*3\r\n$3\r\n0-0\r\n*0\r\n*0\r\n",
        ),
    ]);
    let consumer = |name: &str, idle: &str, inactive: &str| {
        format!(
            "*8\r\n$4\r\nname\r\n${}\r\n{name}\r\n$7\r\npending\r\n:0\r\n$4\r\nidle\r\n:{idle}\r\n$8\r\ninactive\r\n:{inactive}\r\n",
            name.len()
        )
    };
    let expected = ["alice", "bob", "carol"].map(|name| consumer(name, "0", "-1"));
    assert_eq!(
        lab.run("XINFO CONSUMERS s g"),
        format!("*3\r\n{}", expected.concat())
    );
    lab.advance_ms(100);
    lab.run("XADD s 1-1 f v");
    lab.run("XREADGROUP GROUP g alice STREAMS s >");
    lab.run("XACK s g 1-1");
    lab.advance_ms(50);
    let expected = [
        consumer("alice", "50", "50"),
        consumer("bob", "150", "-1"),
        consumer("carol", "150", "-1"),
    ];
    assert_eq!(
        lab.run("XINFO CONSUMERS s g"),
        format!("*3\r\n{}", expected.concat())
    );
}

#[test]
fn the_full_report_tells_of_everything() {
    let mut lab = Lab::new();
    for line in [
        "XADD s 1-1 f v",
        "XADD s 2-2 f v",
        "XGROUP CREATE s g 0",
        "XREADGROUP GROUP g alice COUNT 1 STREAMS s >",
    ] {
        lab.run(line);
    }
    let counters = "$6\r\nlength\r\n:2\r\n$15\r\nradix-tree-keys\r\n:1\r\n$16\r\nradix-tree-nodes\r\n:2\r\n\
        $17\r\nlast-generated-id\r\n$3\r\n2-2\r\n$20\r\nmax-deleted-entry-id\r\n$3\r\n0-0\r\n\
        $13\r\nentries-added\r\n:2\r\n$23\r\nrecorded-first-entry-id\r\n$3\r\n1-1\r\n";
    let (first, last) = (entry("1-1"), entry("2-2"));
    assert_eq!(
        lab.run("XINFO STREAM s"),
        format!(
            "*20\r\n{counters}$6\r\ngroups\r\n:1\r\n$11\r\nfirst-entry\r\n{first}$10\r\nlast-entry\r\n{last}"
        )
    );
    let group = format!(
        "*14\r\n$4\r\nname\r\n$1\r\ng\r\n$17\r\nlast-delivered-id\r\n$3\r\n1-1\r\n$12\r\nentries-read\r\n:1\r\n\
        $3\r\nlag\r\n:1\r\n$9\r\npel-count\r\n:1\r\n$7\r\npending\r\n\
        *1\r\n*4\r\n$3\r\n1-1\r\n$5\r\nalice\r\n:{NOW}\r\n:1\r\n$9\r\nconsumers\r\n\
        *1\r\n*10\r\n$4\r\nname\r\n$5\r\nalice\r\n$9\r\nseen-time\r\n:{NOW}\r\n$11\r\nactive-time\r\n:{NOW}\r\n\
        $9\r\npel-count\r\n:1\r\n$7\r\npending\r\n*1\r\n*3\r\n$3\r\n1-1\r\n:{NOW}\r\n:1\r\n"
    );
    assert_eq!(
        lab.run("XINFO STREAM s FULL COUNT 1"),
        format!("*18\r\n{counters}$7\r\nentries\r\n*1\r\n{first}$6\r\ngroups\r\n*1\r\n{group}")
    );
    lab.run("HELLO 3");
    let full = lab.run("XINFO STREAM s FULL");
    assert!(full.starts_with("%9\r\n"), "{full}");
    assert!(full.contains("*2\r\n*2\r\n$3\r\n1-1\r\n"), "{full}");
}

#[test]
fn history_shows_what_is_pending_and_counts_deliveries() {
    let mut lab = Lab::new();
    for line in [
        "XADD s 1-1 f v",
        "XADD s 2-2 f v",
        "XADD s 3-3 f v",
        "XGROUP CREATE s g 0",
        "XREADGROUP GROUP g a STREAMS s >",
        "XDEL s 2-2",
    ] {
        lab.run(line);
    }
    lab.advance_ms(10);
    assert_eq!(
        lab.run("XREADGROUP GROUP g a COUNT 2 STREAMS s 0"),
        format!(
            "*1\r\n*2\r\n$1\r\ns\r\n*2\r\n{}*2\r\n$3\r\n2-2\r\n*-1\r\n",
            entry("1-1")
        )
    );
    lab.check(&[
        (
            "XPENDING s g - + 9",
            "*3\r\n*4\r\n$3\r\n1-1\r\n$1\r\na\r\n:0\r\n:2\r\n\
             *4\r\n$3\r\n2-2\r\n$1\r\na\r\n:10\r\n:1\r\n*4\r\n$3\r\n3-3\r\n$1\r\na\r\n:10\r\n:1\r\n",
        ),
        (
            "XPENDING s g IDLE 5 (2-2 + 9 a",
            "*1\r\n*4\r\n$3\r\n3-3\r\n$1\r\na\r\n:10\r\n:1\r\n",
        ),
        (
            "XPENDING s g",
            "*4\r\n:3\r\n$3\r\n1-1\r\n$3\r\n3-3\r\n*1\r\n*2\r\n$1\r\na\r\n$1\r\n3\r\n",
        ),
        // The deleted one is in a list of its own, and is not pending any more.
        (
            "XAUTOCLAIM s g b 0 1-2 JUSTID",
            "*3\r\n$3\r\n0-0\r\n*1\r\n$3\r\n3-3\r\n*1\r\n$3\r\n2-2\r\n",
        ),
        (
            "XPENDING s g",
            "*4\r\n:2\r\n$3\r\n1-1\r\n$3\r\n3-3\r\n*2\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n*2\r\n$1\r\nb\r\n$1\r\n1\r\n",
        ),
    ]);
}

#[test]
fn watchers_see_entries_and_not_groups() {
    for (line, broken) in [
        ("XADD s * f v", true),
        ("XDEL s 1-1", true),
        ("XTRIM s MAXLEN 1", true),
        ("XTRIM s MAXLEN 9", false),
        ("XGROUP CREATE s h 0", false),
        ("XGROUP CREATE t h 0 MKSTREAM", true),
        ("XGROUP SETID s g 0", false),
        ("XGROUP DESTROY s g", false),
        ("XGROUP CREATECONSUMER s g c", false),
        ("XREADGROUP GROUP g c STREAMS s >", false),
        ("XACK s g 1-1", false),
        ("XCLAIM s g c 0 1-1", false),
        ("XSETID s 9-9", false),
    ] {
        let mut lab = Lab::new();
        for line in ["XADD s 1-1 f v", "XADD s 2-2 f v", "XGROUP CREATE s g 0"] {
            lab.run(line);
        }
        let other = lab.connect();
        lab.run("WATCH s t");
        lab.run_as(other, line);
        lab.run("MULTI");
        let expected = if broken { "*-1\r\n" } else { "*0\r\n" };
        assert_eq!(lab.run("EXEC"), expected, "{line}");
    }
}

#[test]
fn the_accounts_follow_groups_and_pending_entries() {
    let mut lab = Lab::new();
    // The table stays when it has become empty.
    lab.run("SET s x");
    lab.run("DEL s");
    let empty = lab.store.keyspace.memory_bytes();
    lab.run("XGROUP CREATE s g 0 MKSTREAM");
    for _ in 0..300 {
        lab.run("XADD s * field value");
        lab.run("XREADGROUP GROUP g consumer STREAMS s >");
    }
    let full = lab.store.keyspace.memory_bytes();
    assert!(full > empty + 300 * 16, "{empty} {full}");
    lab.run("XGROUP DELCONSUMER s g consumer");
    assert!(lab.store.keyspace.memory_bytes() + 300 * 16 < full);
    lab.run("DEL s");
    assert_eq!(lab.store.keyspace.memory_bytes(), empty);
}

#[test]
fn streams_are_copied_with_their_groups() {
    let mut lab = Lab::new();
    for line in [
        "XADD s 1-1 f v",
        "XGROUP CREATE s g 0",
        "XREADGROUP GROUP g a STREAMS s >",
        "COPY s t",
    ] {
        lab.run(line);
    }
    lab.check(&[
        ("XACK s g 1-1", ":1\r\n"),
        (
            "XPENDING t g",
            "*4\r\n:1\r\n$3\r\n1-1\r\n$3\r\n1-1\r\n*1\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n",
        ),
        (
            "SCAN 0 TYPE stream COUNT 100 MATCH s",
            "*2\r\n$1\r\n0\r\n*1\r\n$1\r\ns\r\n",
        ),
    ]);
    assert!(lab.run("MEMORY USAGE s").starts_with(':'));
}

#[test]
fn events_of_streams() {
    Lab::new().check_events(&[
        ("XADD s 1-1 f v", &["new s", "xadd s"]),
        ("XADD s MAXLEN 1 2-2 f v", &["xadd s", "xtrim s"]),
        ("XDEL s 2-2", &["xdel s"]),
        ("XDEL s 2-2", &[]),
        ("XTRIM s MAXLEN 0", &[]),
        ("XSETID s 5-5", &["xsetid s"]),
        ("XGROUP CREATE s g 0", &["xgroup-create s"]),
        (
            "XGROUP CREATE t g 0 MKSTREAM",
            &["new t", "xgroup-create t"],
        ),
        ("XGROUP SETID s g 0", &["xgroup-setid s"]),
        ("XGROUP CREATECONSUMER s g c", &["xgroup-createconsumer s"]),
        ("XGROUP CREATECONSUMER s g c", &[]),
        ("XGROUP DELCONSUMER s g c", &["xgroup-delconsumer s"]),
        ("XGROUP DELCONSUMER s g c", &[]),
        (
            "XREADGROUP GROUP g d STREAMS s >",
            &["xgroup-createconsumer s"],
        ),
        ("XCLAIM s g e 0 1-1", &["xgroup-createconsumer s"]),
        ("XAUTOCLAIM s g f 0 1-1", &["xgroup-createconsumer s"]),
        ("XGROUP DESTROY s g", &["xgroup-destroy s"]),
        ("XGROUP DESTROY s g", &[]),
        ("XREAD STREAMS none 0", &["keymiss none", "keymiss none"]),
        ("XACK none g 1-1", &["keymiss none"]),
    ]);
}

#[test]
fn records_replay_to_the_same_stream() {
    let claim = |consumer: &str, id: &str, count: u32, last: &str| {
        format!(
            "XCLAIM s g {consumer} 0 {id} TIME {NOW} RETRYCOUNT {count} FORCE JUSTID LASTID {last}"
        )
    };
    let read = [
        "MULTI".to_owned(),
        claim("a", "1-1", 1, "1-1"),
        claim("a", "2-2", 1, "2-2"),
        "XGROUP SETID s g 2-2 ENTRIESREAD 2".to_owned(),
        "EXEC".to_owned(),
    ];
    let read: Vec<&str> = read.iter().map(String::as_str).collect();
    let (taken, again) = (claim("b", "1-1", 3, "9-9"), claim("b", "1-1", 7, "9-9"));
    let gone = claim("a", "2-2", 2, "9-9");
    Lab::new().check_writes(&[
        ("XADD s 1-1 f v", &["XADD s 1-1 f v"]),
        ("XADD s 2-2 f v", &["XADD s 2-2 f v"]),
        ("XGROUP CREATE s g 0", &["XGROUP CREATE s g 0"]),
        ("XREADGROUP GROUP g a STREAMS s >", &read),
        ("XREADGROUP GROUP g a STREAMS s >", &[]),
        ("XREADGROUP GROUP g a STREAMS s 0", &[]),
        (
            "XREADGROUP GROUP g z STREAMS s 0",
            &["XGROUP CREATECONSUMER s g z"],
        ),
        ("XADD s 1700000000000 f v", &["XADD s 1700000000000 f v"]),
        (
            "XREADGROUP GROUP g n NOACK STREAMS s >",
            &[
                "MULTI",
                "XGROUP CREATECONSUMER s g n",
                "XGROUP SETID s g 1700000000000-0 ENTRIESREAD 3",
                "EXEC",
            ],
        ),
        ("XGROUP SETID s g 9-9", &["XGROUP SETID s g 9-9"]),
        ("XCLAIM s g b 0 1-1", &[&taken]),
        (
            "XCLAIM s g b 0 1-1 JUSTID RETRYCOUNT 7 LASTID 1-1",
            &[&again],
        ),
        ("XCLAIM s g c 0 7-7", &["XGROUP CREATECONSUMER s g c"]),
        (
            "XCLAIM s g c 0 7-7 LASTID 10-0",
            &["XGROUP SETID s g 10-0 ENTRIESREAD -1"],
        ),
        ("XGROUP SETID s g 9-9", &["XGROUP SETID s g 9-9"]),
        ("XDEL s 2-2", &["XDEL s 2-2"]),
        ("XAUTOCLAIM s g b 0 2-2", &[&gone]),
        ("XACK s g 1-1 5-5", &["XACK s g 1-1 5-5"]),
        ("XACK s g 1-1", &[]),
        ("XADD s * f v", &["XADD s 1700000000000-1 f v"]),
        (
            "XADD s 1700000000000-* f v",
            &["XADD s 1700000000000-2 f v"],
        ),
        (
            "XADD s MAXLEN ~ 1 LIMIT 3 * f v",
            &["XADD s MAXLEN = 5 1700000000000-3 f v"],
        ),
        (
            "XADD s MINID = 3 * f v",
            &["XADD s MINID = 3 1700000000000-4 f v"],
        ),
        ("XTRIM s MAXLEN ~ 0", &["XTRIM s MAXLEN = 0"]),
        ("XTRIM s MAXLEN ~ 0", &[]),
        (
            "XADD s MINID ~ 3 * f v",
            &["XADD s MINID = 1700000000000-5 1700000000000-5 f v"],
        ),
        ("XGROUP DESTROY s g", &["XGROUP DESTROY s g"]),
    ]);
}
