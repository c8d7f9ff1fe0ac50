//! Every difference between the reference, Redis 7.0.15, and what this server follows, Redis 7.2; with the reason and
//! the rule by which the comparison treats it.
//!
//! This file is to be reviewed: a difference that is not listed here fails the test, and an entry here hides one. An
//! entry therefore names exactly what may differ. What is absent because its room is not built yet is listed apart,
//! and goes when the room is built.

use crate::command::{Arg, Request};
use crate::session::Item;
use crate::support::frame::Frame;

/// An error in other words.
struct OtherWords {
    /// The command, with its subcommand if it has one.
    command: &'static str,
    /// How the reference's text begins, and how the rest of it goes on.
    reference: (&'static str, &'static str),
    /// The same for the server under test; what is between the two parts must be equal.
    tested: (&'static str, &'static str),
}

/// Error texts that are different, each for the reason above it.
const OTHER_WORDS: &[OtherWords] = &[
    // 7.2 corrected the syntax that the text proposes: the protocol comes before AUTH.
    OtherWords {
        command: "hello",
        reference: (
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO",
            "",
        ),
        tested: (
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto>",
            "",
        ),
    },
    // 7.2 knows one more level.
    OtherWords {
        command: "config set",
        reference: (
            "ERR CONFIG SET failed (possibly related to argument 'loglevel') - argument",
            ", warning",
        ),
        tested: (
            "ERR CONFIG SET failed (possibly related to argument 'loglevel') - argument",
            ", warning, nothing",
        ),
    },
    // 7.2 names the command, and the sign that stands for new entries.
    OtherWords {
        command: "xread",
        reference: ("ERR Unbalanced XREAD list of streams: for each", ""),
        tested: ("ERR Unbalanced 'xread' list of streams: for each", ""),
    },
    OtherWords {
        command: "xreadgroup",
        reference: (
            "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$'",
            "",
        ),
        tested: (
            "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>'",
            "",
        ),
    },
    // 7.2 limits the number of samples.
    OtherWords {
        command: "config set",
        reference: (
            "ERR CONFIG SET failed (possibly related to argument 'maxmemory-samples') - argument",
            " 2147483647 inclusive",
        ),
        tested: (
            "ERR CONFIG SET failed (possibly related to argument 'maxmemory-samples') - argument",
            " 64 inclusive",
        ),
    },
    // 7.0 does not say why there is no id behind `ms-18446744073709551615`, and the last reason that anything gave is shown.
    OtherWords {
        command: "xadd",
        reference: ("ERR Elements are too large to be stored", ""),
        tested: (
            "ERR The ID specified in XADD is equal or smaller than the target stream top item",
            "",
        ),
    },
];

/// Commands that are refused in the server's own words, by how those begin: what they would look into is not there.
const REFUSED_IN_OWN_WORDS: &[(&str, &str)] = &[("debug jmap", "ERR DEBUG JMAP ")];

/// Requests that exist since 7.2. The reference would call them unknown, so only the server under test gets them, and
/// its answer must be exactly this.
pub(crate) const SINCE_7_2: &[(&[&str], &[u8])] = &[
    (&["CLIENT", "SETINFO", "LIB-NAME", "kumi"], b"+OK\r\n"),
    (&["client", "setinfo", "lib-ver", "1.2.3"], b"+OK\r\n"),
    (&["CLIENT", "SETINFO", "LIB-NAME", ""], b"+OK\r\n"),
    (
        &["CLIENT", "SETINFO", "LIB-NAME", "two words"],
        b"-ERR LIB-NAME cannot contain spaces, newlines or special characters.\r\n",
    ),
    (
        &["CLIENT", "SETINFO", "lib-ver", "new\nline"],
        b"-ERR lib-ver cannot contain spaces, newlines or special characters.\r\n",
    ),
    (
        &["CLIENT", "SETINFO", "FOO", "x"],
        b"-ERR Unrecognized option 'FOO'\r\n",
    ),
    (
        &["CLIENT", "SETINFO", "LIB-NAME"],
        b"-ERR wrong number of arguments for 'client|setinfo' command\r\n",
    ),
    (&["CLIENT", "NO-TOUCH", "ON"], b"+OK\r\n"),
    (&["CLIENT", "NO-TOUCH", "off"], b"+OK\r\n"),
    (&["CLIENT", "NO-TOUCH", "MAYBE"], b"-ERR syntax error\r\n"),
    (
        &["CLIENT", "NO-TOUCH"],
        b"-ERR wrong number of arguments for 'client|no-touch' command\r\n",
    ),
    // WITHSCORE came with 7.2.
    (
        &["ZRANK", "missing", "member", "FOO"],
        b"-ERR syntax error\r\n",
    ),
    (
        &["ZREVRANK", "missing", "member", "WITHSCORE", "FOO"],
        b"-ERR wrong number of arguments for 'zrevrank' command\r\n",
    ),
    // 7.0 adds the time of day to a timeout without looking whether the sum is a number still.
    (
        &["BLPOP", "missing", "inf"],
        b"-ERR timeout is out of range\r\n",
    ),
    (
        &["BLMPOP", "1e16", "1", "missing", "LEFT"],
        b"-ERR timeout is out of range\r\n",
    ),
    (
        &[
            "XREAD",
            "BLOCK",
            "9223372036854775807",
            "STREAMS",
            "missing",
            "0",
        ],
        b"-ERR timeout is out of range\r\n",
    ),
    (
        &["WAITAOF", "x", "0", "0"],
        b"-ERR value is not an integer or out of range\r\n",
    ),
    (
        &["WAITAOF", "0", "x", "0"],
        b"-ERR value is out of range, must be positive\r\n",
    ),
    (
        &["WAITAOF", "0", "0", "x"],
        b"-ERR timeout is not an integer or out of range\r\n",
    ),
    // Since 7.2 a command's name alone is enough for COMMAND GETKEYS; 7.0 wants an argument with it.
    (
        &["COMMAND", "GETKEYS", "PING"],
        b"-ERR The command has no key arguments\r\n",
    ),
    (
        &["COMMAND", "GETKEYS", "NOSUCH"],
        b"-ERR Invalid command specified\r\n",
    ),
    (
        &["COMMAND", "GETKEYSANDFLAGS", "GET"],
        b"-ERR Invalid number of arguments specified for command\r\n",
    ),
];

/// Whether a field of a client's line may differ like this. Since 7.2, RESET also turns NO-EVICT off, so a client that
/// sent it may lack the letter. kumi-store's own tests show that the letter is there until then.
pub(crate) fn client_field_may_differ(field: &str, reference: &str, tested: &str) -> bool {
    // The id of the client that invalidations are redirected to is the server's own.
    let is_id = |text: &str| text.parse::<i64>().is_ok_and(|id| id > 0);
    if field == "redir" && is_id(reference) && is_id(tested) {
        return true;
    }
    let without = |flags: &str| flags.replace('e', "");
    let plain = |flags: String| {
        if flags.is_empty() {
            "N".to_string()
        } else {
            flags
        }
    };
    field == "flags" && reference.contains('e') && plain(without(reference)) == tested
}

/// Encodings that 7.2 changed: the reference's, and the one of the server under test. The request does not tell the type
/// of the value; that small hashes and sorted sets have the encoding of 7.0 is shown by kumi-store's own tests.
const OTHER_ENCODINGS: &[(&str, &str)] = &[
    // Since 7.2 a small set of other members than integers is a listpack.
    ("hashtable", "listpack"),
    // Since 7.2 a small list is a listpack; before, every list was a quicklist.
    ("quicklist", "listpack"),
];

/// Whether OBJECT ENCODING may differ like this.
pub(crate) fn encoding_may_differ(reference: &str, tested: &str) -> bool {
    OTHER_ENCODINGS.contains(&(reference, tested))
}

/// Fields that CLIENT INFO and CLIENT LIST have since 7.2.
pub(crate) const CLIENT_FIELDS_SINCE_7_2: &[&str] = &["lib-name", "lib-ver"];

/// Commands in COMMAND's table since 7.2 that are no 7.0 commands. QUIT was handled before the table until then.
pub(crate) const NEW_COMMANDS: &[&str] = &["client|setinfo", "client|no-touch", "quit", "waitaof"];

/// Commands that 7.2 has and 7.0 has not.
pub(crate) const ADDED_BY_7_2: &[&str] = &[
    "client|setinfo",
    "client|no-touch",
    "cluster|myshardid",
    "quit",
    "waitaof",
];

/// Commands of 7.2 that are not built, each with its reason; a container stands for its subcommands.
pub(crate) const NOT_BUILT: &[(&str, &str)] = &[
    ("asking", "cluster mode"),
    ("cluster", "cluster mode"),
    ("readonly", "cluster mode"),
    ("readwrite", "cluster mode"),
    (
        "migrate",
        "connects to another server, which the engine cannot",
    ),
    ("failover", "replication"),
    ("psync", "replication"),
    ("replconf", "replication"),
    ("sync", "replication"),
];

/// Commands of 7.0 that exist although no row of the grammar sends them.
pub(crate) const BUILT_BEYOND_THE_GRAMMAR: &[&str] = &[
    // Redis takes seconds for it, and answers OK.
    "pfselftest",
    // Write a file, and take the time that takes.
    "save",
    "bgsave",
    // Writes files, and says in which state it is by a moment's chance.
    "bgrewriteaof",
    // Shows the version.
    "lolwut",
    // Users: the texts of 7.2 are others, and kumi-store's own tests check them.
    "acl",
    "acl|cat",
    "acl|deluser",
    "acl|dryrun",
    "acl|genpass",
    "acl|getuser",
    "acl|help",
    "acl|list",
    "acl|load",
    "acl|log",
    "acl|save",
    "acl|setuser",
    "acl|users",
    "acl|whoami",
    // Is refused: there is no debugger.
    "script|debug",
    // Libraries are in no particular order in it.
    "function|dump",
    // Are refused: modules are C libraries of Redis's own.
    "module|load",
    "module|loadex",
    "module|unload",
];

/// Columns of COMMAND's rows that 7.2 changed: the command, the column, and what is there now.
pub(crate) const CHANGED_COLUMNS: &[(&str, &str, &str)] = &[
    (
        "acl|deluser",
        "tips",
        "[request_policy:all_nodes response_policy:all_succeeded]",
    ),
    (
        "acl|save",
        "tips",
        "[request_policy:all_nodes response_policy:all_succeeded]",
    ),
    (
        "acl|setuser",
        "tips",
        "[request_policy:all_nodes response_policy:all_succeeded]",
    ),
    (
        "client|setname",
        "tips",
        "[request_policy:all_nodes response_policy:all_succeeded]",
    ),
    // They are allowed in scripts, and do not wait there.
    ("blmove", "flags", "[write denyoom blocking]"),
    ("blpop", "flags", "[write blocking]"),
    ("brpop", "flags", "[write blocking]"),
    ("brpoplpush", "flags", "[write denyoom blocking]"),
    ("bzpopmax", "flags", "[write blocking fast]"),
    ("bzpopmin", "flags", "[write blocking fast]"),
    ("command|getkeys", "arity", "-3"),
    ("command|getkeysandflags", "arity", "-3"),
    (
        "config|resetstat",
        "tips",
        "[request_policy:all_nodes response_policy:all_succeeded]",
    ),
    (
        "config|rewrite",
        "tips",
        "[request_policy:all_nodes response_policy:all_succeeded]",
    ),
    (
        "randomkey",
        "tips",
        "[request_policy:all_shards response_policy:special nondeterministic_output]",
    ),
    (
        "scan",
        "tips",
        "[nondeterministic_output request_policy:special response_policy:special]",
    ),
    ("wait", "flags", "[]"),
    ("zrank", "arity", "-3"),
    ("zrevrank", "arity", "-3"),
];

/// INFO fields of 7.0 that are not there.
pub(crate) const ABSENT_INFO_FIELDS: &[&str] = &[];

/// INFO sections that are there besides Redis's.
pub(crate) const MORE_INFO_SECTIONS: &[&str] = &[];

/// Entries of MEMORY STATS that are not there.
pub(crate) const ABSENT_MEMORY_STATS: &[&str] = &[];

/// Directives of 7.0 that are not there.
pub(crate) const ABSENT_DIRECTIVES: &[&str] = &[];

/// Directives that 7.0 does not know: those of 7.2, and the server's own.
pub(crate) const NEW_DIRECTIVES: &[&str] = &[
    // New in 7.2.
    "cluster-announce-human-nodename",
    "locale-collate",
    "set-max-listpack-entries",
    "set-max-listpack-value",
    // The limits of kumi's own.
    "max-keys",
    "max-message-size",
    "max-value-size",
    "snapshot-max-memory",
];

/// Directives whose default is another, with both defaults.
pub(crate) const CHANGED_DIRECTIVES: &[(&str, &str, &str)] = &[
    // kumi listens on the loopback unless told otherwise.
    ("bind", "* -::*", "127.0.0.1 -::1"),
];

/// Directives whose values are the machine's or the process's own.
pub(crate) const MACHINE_DIRECTIVES: &[&str] = &[
    "dir",
    "unixsocket",
    "logfile",
    "pidfile",
    "oom-score-adj",
    "bio_cpulist",
];

/// Directives that, set even to the value they have, make the reference open files or sockets anew.
pub(crate) const UNSETTABLE_IN_TESTS: &[&str] = &[
    "port",
    "tls-port",
    "bind",
    "dir",
    "logfile",
    "oom-score-adj",
];

/// What is refused because accepting it would be a lie while there is nothing on disk: the directive and a value.
/// Checked against the server under test alone.
pub(crate) const REFUSED_DIRECTIVES: &[(&str, &str)] = &[("cluster-enabled", "yes")];

/// Replies in which scores are written alike, for the commands of sorted sets.
///
/// 7.0 writes a score with 17 digits, `0.10000000000000001` and `1e+17`; 7.2 writes whole numbers as integers and others
/// with as few digits as tell them apart, `0.1` and `100000000000000000`. What is read from both is the same number.
/// The digits of 7.2 are tested with the encoder of replies. `is_skiplist` is [`is_scan_of_skiplist`] of the answer.
pub(crate) fn with_scores_alike(request: &Request, frame: &Frame, is_skiplist: bool) -> Frame {
    if !request.word(0).starts_with('z') && !request.word(0).starts_with("bz") {
        return frame.clone();
    }
    let again = |text: &[u8]| -> Option<Vec<u8>> {
        let text = std::str::from_utf8(text).ok()?;
        // Both versions write 17 digits. The negative zero may have lost its sign in a listpack before.
        if is_skiplist {
            return (text == "-0").then(|| b"0".to_vec());
        }
        // The negative zero is an integer in a listpack of 7.2, and "-0" in one of 7.0.
        let number: f64 = text.parse::<f64>().ok()? + 0.0;
        number.is_finite().then(|| number.to_string().into_bytes())
    };
    match frame {
        Frame::Double(text) => Frame::Double(again(text).unwrap_or_else(|| text.clone())),
        Frame::Bulk(text) => Frame::Bulk(again(text).unwrap_or_else(|| text.clone())),
        Frame::Array(items) => Frame::Array(
            items
                .iter()
                .map(|item| with_scores_alike(request, item, is_skiplist))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// Whether these pages of ZSCAN are of a skiplist, whose scores both versions write alike. A member that is longer than
/// the limit of a listpack, which no test raises, tells; other skiplists are taken for listpacks.
pub(crate) fn is_scan_of_skiplist(request: &Request, pages: &[&Frame]) -> bool {
    const LONGEST_IN_LISTPACK: usize = 64;
    let has_long_member = |page: &&Frame| match page.items() {
        Some([_, Frame::Array(strings)]) => strings
            .chunks(2)
            .filter_map(|element| element[0].text())
            .any(|member| member.len() > LONGEST_IN_LISTPACK),
        _ => false,
    };
    request.word(0) == "zscan" && pages.iter().any(has_long_member)
}

/// Whether the servers part ways here for a listed reason: what follows in the sequence says nothing.
///
/// Since 7.2, XSETID does not take an id below the largest deleted one; 7.0 takes it. The id a stream was given by
/// MAXDELETEDID is not known when the request is generated.
pub(crate) fn parts_ways(reference: &Item, tested: &Item) -> bool {
    const SINCE_7_2: &[u8] =
        b"ERR The ID specified in XSETID is smaller than current max_deleted_entry_id";
    let has = |item: &Item| match item {
        Item::Answer { replies, .. } => replies.iter().any(|reply| {
            reply
                .raw
                .windows(SINCE_7_2.len())
                .any(|text| text == SINCE_7_2)
        }),
        _ => false,
    };
    has(tested) && !has(reference)
}

/// Whether a listed difference explains two answers.
pub(crate) fn excuses(request: &Request, reference: &[&Frame], tested: &[&Frame]) -> bool {
    let ([reference], [tested]) = (reference, tested) else {
        return false;
    };
    let (Some(expected), Some(found)) = (reference.error(), tested.error()) else {
        let is_script = request.word(0).starts_with("eval") || request.word(0).starts_with("fcall");
        return is_script && scripts_reply_alike(reference, tested);
    };
    let (expected, found) = (
        String::from_utf8_lossy(expected),
        String::from_utf8_lossy(found),
    );
    let name = request.word(0);
    let long_name = format!("{name} {}", request.word(1));
    let between = |text: &str, parts: (&str, &str)| -> Option<String> {
        Some(
            text.strip_prefix(parts.0)?
                .strip_suffix(parts.1)?
                .to_string(),
        )
    };
    OTHER_WORDS.iter().any(|entry| {
        let (expected, found) = (
            between(&expected, entry.reference),
            between(&found, entry.tested),
        );
        (entry.command == name || entry.command == long_name)
            && expected.is_some()
            && expected == found
    }) || REFUSED_IN_OWN_WORDS
        .iter()
        .any(|(command, beginning)| *command == long_name && found.starts_with(beginning))
        || is_the_same_up_to_nul(&expected, &found)
}

/// Redis puts what a client sent into its errors as a C string, which ends at a NUL byte; here the whole of it is shown.
fn is_the_same_up_to_nul(reference: &str, tested: &str) -> bool {
    tested.find('\0').is_some_and(|nul| {
        reference.starts_with(&tested[..nul])
            && reference
                .get(nul..)
                .is_some_and(|rest| tested.ends_with(rest))
    })
}

/// The same for errors that a script returns inside a table. Since 7.2 a double that is no number has no sign, and others
/// are written with as few digits as tell them apart. Whatever else the two replies hold is equal.
fn scripts_reply_alike(reference: &Frame, tested: &Frame) -> bool {
    let all = |expected: &[Frame], found: &[Frame]| {
        expected.len() == found.len()
            && expected
                .iter()
                .zip(found)
                .all(|(expected, found)| scripts_reply_alike(expected, found))
    };
    match (reference, tested) {
        (Frame::Error(expected), Frame::Error(found)) => {
            expected == found
                || is_the_same_up_to_nul(
                    &String::from_utf8_lossy(expected),
                    &String::from_utf8_lossy(found),
                )
        }
        (Frame::Double(expected), Frame::Double(found))
        | (Frame::Bulk(expected), Frame::Bulk(found)) => {
            expected == found
                || expected == b"-nan" && found == b"nan"
                || is_written_with_fewer_digits(expected, found)
        }
        (Frame::Array(expected), Frame::Array(found)) => all(expected, found),
        (Frame::Set(expected), Frame::Set(found)) => all(expected, found),
        (Frame::Map(expected), Frame::Map(found)) => {
            expected.len() == found.len()
                && expected.iter().zip(found).all(|(expected, found)| {
                    scripts_reply_alike(&expected.0, &found.0)
                        && scripts_reply_alike(&expected.1, &found.1)
                })
        }
        _ => reference == tested,
    }
}

/// Whether one text is a number with 17 digits, and the other the same number with fewer.
fn is_written_with_fewer_digits(reference: &[u8], tested: &[u8]) -> bool {
    let number = |text| std::str::from_utf8(text).ok()?.parse::<f64>().ok();
    let digits = |text: &[u8]| text.iter().filter(|byte| byte.is_ascii_digit()).count();
    digits(reference) >= 17 && number(reference).is_some() && number(reference) == number(tested)
}

/// Requests that 7.0 and 7.2 carry out differently; they are never sent.
pub(crate) fn is_bound_to_a_version(request: &Request) -> bool {
    let count = request.args.len();
    match (request.word(0).as_str(), request.word(1).as_str()) {
        ("hello", _) => hello_leaves_a_client_half_changed(request),
        // 7.0 wants more than the command's name.
        ("command", "getkeys" | "getkeysandflags") => count == 3,
        // 7.2 added WITHSCORE; to 7.0 it is an argument too many.
        ("zrank" | "zrevrank", _) => count > 3,
        // 7.2 takes no such rank; 7.0 looks for the key first.
        ("lpos", _) => (2..count).any(|index| request.word(index) == "-9223372036854775808"),
        // 7.2 takes no count whose absolute value is no number of 64 bits.
        ("lrem", _) => request.word(2) == "-9223372036854775808",
        // Of an overlap behind the first prefix Redis writes both an error and OK.
        ("client", "tracking") => {
            let words = (2..count).map(|index| request.word(index));
            words.filter(|word| word == "prefix").count() > 2
        }
        // 7.2 takes 64 samples at most.
        ("config", "set") => (2..count).any(|index| {
            request.word(index) == "maxmemory-samples"
                && request
                    .word(index + 1)
                    .parse::<i64>()
                    .is_ok_and(|samples| samples > 64)
        }),
        _ => false,
    }
}

/// Whether a request has a number that is out of range for Redis's C library, which notes that. SORT looks at the note
/// without clearing it first, and then takes numbers that are right for wrong ones; it is not sent from then on.
pub(crate) fn leaves_a_range_error(request: &Request) -> bool {
    const LARGEST: f64 = 9.2e18;
    (1..request.args.len()).any(|index| {
        let word = request.word(index);
        let number = word.parse::<f64>().ok();
        number.is_some_and(|number| {
            number.abs() >= LARGEST
                || number == 0.0 && word.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
        })
    })
}

/// Whether a request may give a member a score that 7.0 and 7.2 write differently: with 17 digits, or with as few as
/// needed and with an exponent. DEBUG DIGEST is computed from that text, so it is not compared from then on.
pub(crate) fn may_store_odd_scores(request: &Request) -> bool {
    /// Whole numbers below this are written alike.
    const PLAIN: f64 = 1e7;
    let name = request.word(0);
    name.starts_with("geo")
        || name.starts_with('z')
            && (1..request.args.len()).any(|index| {
                let word = request.word(index);
                let number = word.parse::<f64>().ok();
                number.is_some_and(|number| number.fract() != 0.0 || number.abs() >= PLAIN)
                    || word.starts_with("0x")
                    || word == "-0.0"
            })
}

/// HELLO obeys its options one by one as it reads them in 7.0, so that a mistake behind AUTH or SETNAME leaves the
/// client half changed; 7.2 reads all of them first, then authenticates, then sets the name. Only requests in which
/// that makes no difference remain: nothing wrong behind the first option, and no SETNAME before AUTH.
fn hello_leaves_a_client_half_changed(request: &Request) -> bool {
    let count = request.args.len();
    let (mut index, mut options, mut named) = (2, 0, false);
    while index < count {
        match request.word(index).as_str() {
            "auth" if index + 2 < count => {
                if named {
                    return true;
                }
                index += 3;
            }
            "setname" if index + 1 < count => {
                let name = request.word(index + 1);
                if options > 0 && !name.bytes().all(|byte| (b'!'..=b'~').contains(&byte)) {
                    return true;
                }
                named = true;
                index += 2;
            }
            _ => return options > 0,
        }
        options += 1;
    }
    false
}

/// Requests whose effect on keys past their deadline is Redis's accident rather than its promise; not sent while there
/// may be such keys.
///
/// RANDOMKEY removes those it happens upon. DEBUG OBJECT and MEMORY USAGE look past the door of the keyspace and show
/// what every other command says is gone. SCAN with TYPE looks each key up to learn its type, announces a miss for what
/// it has just expired, and counts that as being of type none. BITOP and the STORE forms of sets and sorted sets with an
/// empty result delete their destination without looking at the deadline, and announce `del` for what has expired. So does
/// RESTORE with REPLACE. DEBUG DIGEST counts what has expired.
pub(crate) fn is_odd_about_expired_keys(request: &Request) -> bool {
    match (request.word(0).as_str(), request.word(1).as_str()) {
        (
            "randomkey" | "bitop" | "sinterstore" | "sunionstore" | "sdiffstore" | "zrangestore"
            | "zunionstore" | "zinterstore" | "zdiffstore" | "restore" | "restore-asking" | "sort"
            | "geosearchstore" | "georadius" | "georadiusbymember",
            _,
        )
        | ("debug", "digest" | "digest-value")
        | ("debug", "object")
        | ("memory", "usage") => true,
        ("scan", _) => (2..request.args.len()).any(|index| request.word(index) == "type"),
        _ => false,
    }
}

/// Requests that Redis answers inside a transaction with something other than an element of EXEC's reply; not sent
/// there.
///
/// A subscription of several channels is one element that is several replies. A client that kills itself loses the rest
/// of EXEC's reply, which ends in the middle.
pub(crate) fn breaks_the_frame_of_exec(request: &Request) -> bool {
    let name = request.word(0);
    (name.ends_with("subscribe") && request.args.len() != 2)
        || (name == "client" && request.word(1) == "kill")
}

/// CONFIG SET that may fail while it has `notify-keyspace-events` among its names; not sent while new-key events are on.
///
/// Redis undoes a failed CONFIG SET by setting the old values again as CONFIG GET shows them, and that form has no `n`
/// beside `A`: the failure switches new-key events off.
pub(crate) fn may_lose_new_key_events(request: &Request) -> bool {
    let is_config_set = request.word(0) == "config" && request.word(1) == "set";
    let position =
        (2..request.args.len()).find(|index| request.word(*index) == "notify-keyspace-events");
    let Some(position) = position.filter(|_| is_config_set) else {
        return false;
    };
    let alone = request.args.len() == 4;
    let valid = request.args.get(position + 1).is_some_and(|arg| match arg {
        Arg::Bytes(flags) => flags.iter().all(|flag| b"Ag$lshzxeKEtmdn".contains(flag)),
        _ => false,
    });
    !alone || !valid
}

/// Puts what a client sent to itself behind the answer to the command that sent it.
///
/// Redis 7.2 writes a client's own messages after the reply of the command that caused them, and after EXEC's whole
/// reply inside a transaction; 7.0 writes them wherever the command publishes, before its reply or after, or into the
/// middle of EXEC's. The order among the messages is the same in both. Applied to the reference's answer to a single
/// request, so that the server under test must do as 7.2 does.
pub(crate) fn self_messages_behind_the_answer(items: Vec<Item>) -> Vec<Item> {
    let (messages, mut rest): (Vec<Item>, Vec<Item>) = items
        .into_iter()
        .partition(|item| matches!(item, Item::Message(_)));
    rest.extend(messages);
    rest
}
