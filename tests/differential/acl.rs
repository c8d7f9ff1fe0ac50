//! ACL rules drawn at random: both servers take or refuse the same rules, and then allow the same requests.
//!
//! The texts of denials, and how a user's commands are written down, changed with 7.2; so of a denial only that it is one
//! is compared, and of a user everything but its commands.

use std::time::Duration;

use crate::rng::Rng;
use crate::run::Side;
use crate::support::client::Client;
use crate::{reference_binary, tested_binary};

const SEEDS: std::ops::Range<u64> = 1..401;
const USER: &str = "drawn";

const COMMAND_RULES: &[&str] = &[
    "+@all",
    "-@all",
    "allcommands",
    "nocommands",
    "+@read",
    "-@read",
    "+@write",
    "-@write",
    "+@string",
    "-@string",
    "+@hash",
    "+@list",
    "-@list",
    "+@keyspace",
    "-@keyspace",
    "+@dangerous",
    "-@dangerous",
    "+@admin",
    "-@admin",
    "+@fast",
    "-@fast",
    "+@slow",
    "+@pubsub",
    "-@pubsub",
    "+@connection",
    "-@connection",
    "+@scripting",
    "-@scripting",
    "+@transaction",
    "+@blocking",
    "+@sortedset",
    "+@stream",
    "+get",
    "-get",
    "+set",
    "-set",
    "+mget",
    "-mget",
    "+config|get",
    "-config|get",
    "-config|set",
    "+config",
    "-config",
    "+client",
    "-client|kill",
    "+client|id",
    "+eval",
    "-eval",
    "+sort",
    "+publish",
    "+subscribe",
    "+hset",
    "-hset",
    "+acl|whoami",
    // What is refused.
    "+nonsense",
    "+@nonsense",
    "+config|nonsense",
    "-get|x",
    "+get|x",
    "+",
    "-",
    "+@",
    "-config|",
];

const KEY_RULES: &[&str] = &[
    "~*",
    "allkeys",
    "resetkeys",
    "~app:*",
    "~a?c",
    "~[ab]:*",
    "%R~read:*",
    "%W~write:*",
    "%RW~both:*",
    "%R~app:*",
    "~exact",
    "~",
    "%~x",
    "%X~x",
    "%RR~x",
];

const CHANNEL_RULES: &[&str] = &[
    "&*",
    "allchannels",
    "resetchannels",
    "&news:*",
    "&exact",
    "&",
];

const OTHER_RULES: &[&str] = &[
    "on",
    "off",
    "nopass",
    "resetpass",
    ">secret",
    "<secret",
    "<absent",
    "reset",
    "clearselectors",
    "(+get ~selected:*)",
    "(%R~ro:* +@read)",
    "(-@all +set ~s:*)",
    "(+nonsense)",
    "(",
    "()",
    "nonsense",
    "#0000",
    "!0000",
    "skip-sanitize-payload",
    "sanitize-payload",
];

const REQUESTS: &[&str] = &[
    "GET app:1",
    "GET other",
    "SET app:1 x",
    "SET other x",
    "SET app:1 x GET",
    "GET read:1",
    "SET read:1 x",
    "GET write:1",
    "SET write:1 x",
    "GETSET both:1 x",
    "GETSET read:1 x",
    "MGET app:1 app:2",
    "MGET app:1 other",
    "MSET app:1 x write:1 y",
    "COPY read:1 write:1",
    "COPY write:1 read:1",
    "RENAME app:1 app:2",
    "GET selected:1",
    "SET s:1 x",
    "GET ro:1",
    "HSET a:1 f v",
    "LPUSH b:1 x",
    "DEL exact",
    "SORT app:1",
    "SORT app:1 BY other:*",
    "SORT app:1 STORE app:2",
    "ZUNIONSTORE app:1 2 app:2 other",
    "EVAL script 1 app:1",
    "EVAL script 1 other",
    "EVAL script 0",
    "PUBLISH news:1 x",
    "PUBLISH other x",
    "SUBSCRIBE news:1",
    "PSUBSCRIBE news:*",
    "PSUBSCRIBE *",
    "SPUBLISH exact x",
    "CONFIG GET maxmemory",
    "CONFIG SET maxmemory 0",
    "CLIENT ID",
    "CLIENT KILL addr",
    "CLIENT TRACKING ON",
    "ACL WHOAMI",
    "ACL LIST",
    "PING",
    "MULTI",
    "FLUSHALL",
    "KEYS *",
    "OBJECT ENCODING read:1",
    "BLPOP app:1 0",
    "XADD app:1 * f v",
    "XREAD STREAMS app:1 0",
    "SCAN 0",
    "DBSIZE",
    "LOLWUT",
    "AUTH x",
    "HELLO",
];

#[test]
fn drawn_rules_allow_the_same() {
    let [mut reference, mut tested] = [reference_binary(), tested_binary()].map(|binary| {
        let side = Side::start("server", &binary).expect("it starts");
        let client = side.server.connect(Duration::from_secs(8));
        (side, client.expect("it takes connections"))
    });
    let (mut allowed, mut denied, mut refused) = (0, 0, 0);
    for seed in SEEDS {
        let mut rng = Rng::new(seed);
        let rules: Vec<&str> = (0..rng.between(1, 7))
            .map(|_| match rng.below(10) {
                0..5 => rng.pick(COMMAND_RULES),
                5..8 => rng.pick(KEY_RULES),
                8 => rng.pick(CHANNEL_RULES),
                _ => rng.pick(OTHER_RULES),
            })
            .collect();
        let shown = format!("seed {seed}: {}", rules.join(" "));
        for client in [&mut reference.1, &mut tested.1] {
            ask(client, &["ACL", "DELUSER", USER]);
        }
        let words = [&["ACL", "SETUSER", USER], &rules[..]].concat();
        let [expected, found] = [&mut reference.1, &mut tested.1].map(|client| ask(client, &words));
        assert_eq!(found, expected, "{shown}");
        if expected != "+OK\r\n" {
            refused += 1;
            continue;
        }
        let [expected, found] = [&mut reference.1, &mut tested.1].map(described);
        assert_eq!(found, expected, "{shown}");
        for request in REQUESTS {
            let words: Vec<&str> = ["ACL", "DRYRUN", USER]
                .into_iter()
                .chain(request.split(' '))
                .collect();
            let [expected, found] =
                [&mut reference.1, &mut tested.1].map(|client| ask(client, &words) == "+OK\r\n");
            assert_eq!(found, expected, "{shown}: {request}");
            if expected {
                allowed += 1;
            } else {
                denied += 1;
            }
        }
    }
    assert!(
        allowed > 1000 && denied > 1000 && refused > 30,
        "{allowed} allowed, {denied} denied, {refused} refused"
    );
}

fn ask(client: &mut Client, words: &[&str]) -> String {
    let reply = client.call(words).expect("it answers");
    String::from_utf8_lossy(&reply.raw).into_owned()
}

/// What ACL GETUSER shows, without the description of commands, and without the flag `sanitize-payload`, which is shown
/// since 7.2.
fn described(client: &mut Client) -> String {
    let reply = client.call(&["ACL", "GETUSER", USER]).expect("it answers");
    let items = reply.frame.items().unwrap_or_default();
    let shown = items.chunks(2).map(|pair| match pair[0].text() {
        Some(b"commands") => String::new(),
        Some(b"flags") => {
            let flags = pair[1].items().unwrap_or_default().iter();
            let flags = flags.filter(|flag| flag.text() != Some(b"sanitize-payload"));
            format!("{:?}\n", flags.collect::<Vec<_>>())
        }
        _ => format!("{pair:?}\n"),
    });
    shown.collect()
}
