//! Values that come by RESTORE: whatever is taken can be read and changed by the commands of its type, and its DUMP
//! restores to the same value.

use crate::World;
use kumi_resp::Frame;

const KEY: &[u8] = b"k";
const COPY: &[u8] = b"copy";

/// Commands that read a value of any type; `k` is the key.
const ANY: &[&str] = &[
    "OBJECT ENCODING k",
    "MEMORY USAGE k SAMPLES 0",
    "DEBUG OBJECT k",
];

/// Commands that read a value, by its type. An error is an answer too: a string need not be a HyperLogLog.
const BY_TYPE: &[(&str, &[&str])] = &[
    (
        "string",
        &[
            "GET k",
            "STRLEN k",
            "GETRANGE k 1 -2",
            "BITCOUNT k 1 -2 BIT",
            "BITPOS k 1",
            "GETBIT k 100",
            "BITFIELD_RO k GET i17 3",
            "PFCOUNT k",
        ],
    ),
    (
        "list",
        &[
            "LLEN k",
            "LRANGE k 0 -1",
            "LINDEX k 3",
            "LINDEX k -2",
            "LPOS k a RANK -1",
            "LPOS k 1 COUNT 0",
            "SORT_RO k ALPHA DESC",
        ],
    ),
    (
        "hash",
        &[
            "HLEN k",
            "HGETALL k",
            "HKEYS k",
            "HVALS k",
            "HGET k a",
            "HRANDFIELD k 3 WITHVALUES",
            "HRANDFIELD k -3",
            "HSCAN k 0 COUNT 1000",
        ],
    ),
    (
        "set",
        &[
            "SCARD k",
            "SMEMBERS k",
            "SMISMEMBER k a 1",
            "SRANDMEMBER k 3",
            "SINTER k k",
            "SDIFF k missing",
            "SSCAN k 0 COUNT 1000",
        ],
    ),
    (
        "zset",
        &[
            "ZCARD k",
            "ZRANGE k 0 -1 WITHSCORES",
            "ZREVRANGE k 1 3",
            "ZRANGEBYSCORE k -inf (5 WITHSCORES",
            "ZRANGEBYLEX k [a +",
            "ZCOUNT k 1 inf",
            "ZLEXCOUNT k - (b",
            "ZRANK k a",
            "ZRANDMEMBER k 3 WITHSCORES",
            "ZSCAN k 0 COUNT 1000",
            "ZUNION 2 k k WITHSCORES",
            "GEOSEARCH k FROMLONLAT 0 0 BYRADIUS 9000 km WITHDIST",
        ],
    ),
    (
        "stream",
        &[
            "XLEN k",
            "XRANGE k - +",
            "XREVRANGE k + - COUNT 3",
            "XREAD COUNT 2 STREAMS k 0",
            "XINFO STREAM k FULL COUNT 0",
            "XINFO STREAM k",
            "XINFO GROUPS k",
        ],
    ),
];

/// Commands that change a value, by its type; the value is read again after them.
const WRITES: &[(&str, &[&str])] = &[
    (
        "string",
        &[
            "APPEND k abc",
            "SETRANGE k 3 xyz",
            "SETBIT k 7 1",
            "PFADD k a",
        ],
    ),
    (
        "list",
        &[
            "LPUSH k a 1",
            "RPUSH k b 2",
            "LINSERT k BEFORE a c",
            "LSET k 1 d",
            "LREM k 1 a",
            "LTRIM k 0 20",
            "RPOP k 2",
        ],
    ),
    (
        "hash",
        &["HSET k a 1 b 2", "HINCRBY k c 3", "HDEL k b missing"],
    ),
    ("set", &["SADD k a 1 300 x", "SREM k 1 missing", "SPOP k 1"]),
    (
        "zset",
        &[
            "ZADD k 1 a 2.5 b -inf c",
            "ZINCRBY k 3 a",
            "ZREM k b",
            "ZREMRANGEBYRANK k 5 7",
            "ZPOPMIN k 1",
        ],
    ),
    (
        "stream",
        &[
            "XADD k * a b",
            "XADD k * c d e f",
            "XGROUP CREATE k new 0",
            "XREADGROUP GROUP new consumer COUNT 3 STREAMS k >",
            "XACK k new 1-1",
            "XDEL k 1-1",
            "XTRIM k MAXLEN ~ 100",
            "XTRIM k MAXLEN 5",
            "XADD k * a b",
        ],
    ),
];

/// Entries that are added to a restored stream: more than a node holds.
const MANY_ENTRIES: usize = 120;

/// Restores a payload, and reads and changes the value; `false` if it was refused.
///
/// # Panics
///
/// When a command answers nothing, or the value's own DUMP restores to another value.
pub fn read_restored(payload: &[u8]) -> bool {
    let mut world = World::new();
    if !restore(&mut world, KEY, payload) {
        return false;
    }
    let kind = match world.ask(&[b"TYPE", KEY]) {
        Some(Frame::Simple(kind)) => String::from_utf8_lossy(&kind).into_owned(),
        other => panic!("TYPE answered {other:?}"),
    };
    let of_type = |table: &'static [(&str, &[&str])]| {
        let row = table.iter().find(|(name, _)| *name == kind);
        row.expect("a restored value has a type").1
    };
    let reads = || ANY.iter().chain(of_type(BY_TYPE));
    ask_all(&mut world, reads());
    let Some(Frame::Bulk(dump)) = world.ask(&[b"DUMP", KEY]) else {
        panic!("a value cannot be dumped");
    };
    assert!(restore(&mut world, COPY, &dump), "a dump is refused");
    let digests = world.ask(&[b"DEBUG", b"DIGEST-VALUE", KEY, COPY]);
    match &digests {
        Some(Frame::Array(digests)) => assert_eq!(digests[0], digests[1]),
        other => panic!("DEBUG DIGEST-VALUE answered {other:?}"),
    }
    if kind == "stream" {
        ask_all(
            &mut world,
            std::iter::repeat_n(&"XADD k * a b", MANY_ENTRIES),
        );
        ask_all(&mut world, reads());
    }
    ask_all(&mut world, of_type(WRITES));
    ask_all(&mut world, reads());
    world.finish();
    true
}

fn ask_all<'a>(world: &mut World, commands: impl IntoIterator<Item = &'a &'a str>) {
    for command in commands {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        assert!(world.ask(&words).is_some(), "{command} answered nothing");
    }
}

fn restore(world: &mut World, key: &[u8], payload: &[u8]) -> bool {
    let answer = world.ask(&[b"RESTORE", key, b"0", payload]);
    answer == Some(Frame::Simple(b"OK".to_vec()))
}

/// A payload, without its footer, around the inside of a packed format: the first bytes of the input say which one and
/// what its header claims, so that the elements are what is judged.
///
/// ```text
/// format | claimed count | elements ..
/// ```
pub fn packed_payload(input: &[u8]) -> Option<Vec<u8>> {
    let (&[format, claimed], elements) = input.split_first_chunk()?;
    let count = u16::from(claimed);
    let packed = match format % 12 {
        0 => one(16, &listpack(count, elements)),
        1 => one(17, &listpack(count, elements)),
        2 => one(20, &listpack(count, elements)),
        3 => one(11, &intset(claimed, elements)),
        4 => one(10, &ziplist(count, elements)),
        5 => one(12, &ziplist(count, elements)),
        6 => one(13, &ziplist(count, elements)),
        7 => one(9, &zipmap(claimed, elements)),
        8 => [&[14, 1][..], &string(&ziplist(count, elements))].concat(),
        9 => [&[18, 1, 2][..], &string(&listpack(count, elements))].concat(),
        10 => [&[18, 1, 1][..], &string(elements)].concat(),
        _ => stream(count, elements),
    };
    Some(packed)
}

fn one(kind: u8, packed: &[u8]) -> Vec<u8> {
    [&[kind][..], &string(packed)].concat()
}

/// A string of the serialisation, with its length in 32 bits.
fn string(bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u32).to_be_bytes();
    [&[0x80][..], &length, bytes].concat()
}

fn listpack(count: u16, elements: &[u8]) -> Vec<u8> {
    let total = (elements.len() as u32 + 7).to_le_bytes();
    [&total[..], &count.to_le_bytes(), elements, &[0xff]].concat()
}

fn intset(width: u8, elements: &[u8]) -> Vec<u8> {
    let width = 2 << (width % 3);
    let count = elements.len() as u32 / width;
    let numbers = &elements[..(count * width) as usize];
    [&width.to_le_bytes()[..], &count.to_le_bytes(), numbers].concat()
}

/// The last element's offset is taken from the claimed count, too.
fn ziplist(count: u16, elements: &[u8]) -> Vec<u8> {
    let total = (elements.len() as u32 + 11).to_le_bytes();
    let tail = u32::from(elements.last().copied().unwrap_or(0)).min(elements.len() as u32) + 10;
    let (tail, count) = (tail.to_le_bytes(), count.to_le_bytes());
    [&total[..], &tail, &count, elements, &[0xff]].concat()
}

fn zipmap(count: u8, elements: &[u8]) -> Vec<u8> {
    [&[count][..], elements, &[0xff]].concat()
}

/// A stream of one node, with counters and without groups.
fn stream(count: u16, elements: &[u8]) -> Vec<u8> {
    let mut id = [0; 16];
    id[7] = 1;
    let node = string(&listpack(count, elements));
    let live = elements.first().copied().unwrap_or(0) & 0x3f;
    // Length, last id, first id, largest deleted id, entries added, groups.
    let counters = [live, 9, 9, 1, 0, 0, 0, live, 0];
    [&[19, 1][..], &string(&id), &node, &counters].concat()
}
