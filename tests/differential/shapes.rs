//! The rules for replies that cannot be equal byte for byte: they tell the time, a size, an identity, an order nobody
//! promised, or are a text in the server's own words.
//!
//! A rule gets two answers that are no errors. It compares everything that does not depend on the moment.

mod streams;

use std::collections::{BTreeMap, BTreeSet};

use crate::command::Request;
use crate::grammar::has_command;
use crate::known_differences as known;
use crate::support::frame::Frame;
use crate::tables;

pub(crate) type Rule = fn(&Request, &[&Frame], &[&Frame]) -> Result<(), String>;

/// The rule for a request's answer; `None` where bytes decide.
pub(crate) fn rule(request: &Request) -> Option<Rule> {
    let (name, sub) = (request.word(0), request.word(1));
    let rule: Rule = match (name.as_str(), sub.as_str()) {
        (_, "help") if request.args.len() == 2 => help,
        ("ttl" | "expiretime", _) => |_, reference, tested| near(reference, tested, 3),
        ("pttl" | "pexpiretime", _) => |_, reference, tested| near(reference, tested, 3000),
        ("time", _) => time,
        ("object", "idletime") => idle,
        ("object", "refcount") => refcount,
        ("object", "encoding") => encoding,
        ("randomkey", _) => both_or_neither_null,
        ("memory", "usage") => size,
        ("function", "list") => unordered_elements,
        ("keys", _) | ("pubsub", "channels" | "shardchannels") => unordered,
        ("hkeys" | "hvals" | "smembers" | "sinter" | "sunion" | "sdiff" | "spop", _) => unordered,
        ("hgetall", _) => unordered_pairs,
        ("hrandfield" | "srandmember" | "zrandmember", _) => random_elements,
        ("scan" | "hscan" | "sscan" | "zscan", _) => scan,
        ("unsubscribe" | "punsubscribe" | "sunsubscribe", _) if request.args.len() == 1 => {
            left_everything
        }
        ("client", "id")
        | ("lastsave", _)
        | ("command", "count")
        | ("slowlog", "len")
        | ("latency", "reset") => number,
        ("client", "info" | "list") => client_lines,
        ("client", "getredir" | "trackinginfo") => redirection,
        ("hello", _) => hello,
        ("xpending", _) => streams::pending,
        ("xinfo", "consumers") => streams::consumers,
        ("xinfo", "stream") => streams::full,
        ("info", _) => tables::info,
        ("config", "get") => tables::config,
        ("memory", "stats") => contained_names,
        ("memory", "doctor" | "malloc-stats") | ("latency", "doctor" | "graph") => string,
        ("latency", "latest" | "history") => arrays,
        ("latency", "histogram") => histogram,
        ("slowlog", "get") => slowlog,
        ("debug", "object") => debug_object,
        ("dump", _) => payload,
        ("sort" | "sort_ro", _) if is_unsorted(request) => unordered,
        ("command", "") => tables::command_rows,
        ("command", "info") => tables::command_info,
        ("command", "docs") => same_names,
        ("command", "list") => command_list,
        _ => return None,
    };
    Some(rule)
}

fn one<'a>(
    reference: &[&'a Frame],
    tested: &[&'a Frame],
) -> Result<(&'a Frame, &'a Frame), String> {
    match (reference, tested) {
        ([reference], [tested]) => Ok((reference, tested)),
        _ => Err("one of them is several replies".into()),
    }
}

fn near(reference: &[&Frame], tested: &[&Frame], tolerance: u64) -> Result<(), String> {
    match one(reference, tested)? {
        (Frame::Integer(expected), Frame::Integer(found))
            if *expected >= 0 && *found >= 0 && expected.abs_diff(*found) <= tolerance =>
        {
            Ok(())
        }
        _ => Err(format!("not within {tolerance} of each other")),
    }
}

fn number(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    match one(reference, tested)? {
        (Frame::Integer(expected), Frame::Integer(found)) if *expected >= 0 && *found >= 0 => {
            Ok(())
        }
        _ => Err("not both a number".into()),
    }
}

/// A sequence takes no three seconds, so nothing is idle for longer; Redis's shared integers are, since they are old.
fn idle(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    match one(reference, tested)? {
        (Frame::Integer(0..), Frame::Integer(0..=3)) => Ok(()),
        _ => Err("not both a short time".into()),
    }
}

fn encoding(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    match one(reference, tested)? {
        (Frame::Bulk(expected), Frame::Bulk(found))
            if known::encoding_may_differ(
                &String::from_utf8_lossy(expected),
                &String::from_utf8_lossy(found),
            ) =>
        {
            Ok(())
        }
        _ => Err("not the same encoding".into()),
    }
}

/// How many share a value is each server's own affair; here nobody does, and a small integer says what Redis's say.
fn refcount(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    match one(reference, tested)? {
        (Frame::Integer(1..), Frame::Integer(1 | 2_147_483_647)) => Ok(()),
        _ => Err("not a count of one, or of shared values".into()),
    }
}

/// The bytes a key takes: the engines differ, but neither is empty nor wasteful beyond measure.
fn size(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    match one(reference, tested)? {
        (Frame::Integer(expected), Frame::Integer(found))
            if *found > 0 && *found < 4 * expected + 200 =>
        {
            Ok(())
        }
        _ => Err("not both a plausible size".into()),
    }
}

fn time(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let seconds = |frame: &Frame| -> Option<(i64, i64)> {
        let [Frame::Bulk(seconds), Frame::Bulk(micros)] = frame.items()? else {
            return None;
        };
        Some((parse(seconds)?, parse(micros)?))
    };
    let (expected, found) = one(reference, tested)?;
    match (seconds(expected), seconds(found)) {
        (Some((expected, _)), Some((found, micros)))
            if expected.abs_diff(found) <= 3 && (0..1_000_000).contains(&micros) =>
        {
            Ok(())
        }
        _ => Err("not both the time".into()),
    }
}

fn both_or_neither_null(
    _: &Request,
    reference: &[&Frame],
    tested: &[&Frame],
) -> Result<(), String> {
    match one(reference, tested)? {
        (Frame::Bulk(_), Frame::Bulk(_)) => Ok(()),
        _ => Err("not both a key or both none".into()),
    }
}

fn string(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    match one(reference, tested)? {
        (Frame::Bulk(_), Frame::Bulk(_)) | (Frame::Verbatim(_), Frame::Verbatim(_)) => Ok(()),
        _ => Err("not both a text of one kind".into()),
    }
}

/// Help is in the server's own words: lines of status text, and the first names the command.
fn help(request: &Request, _: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let lines = match tested {
        [Frame::Array(lines)] => lines,
        _ => return Err("help is an array".into()),
    };
    let first = lines
        .first()
        .and_then(Frame::text)
        .unwrap_or_default()
        .to_ascii_lowercase();
    let name = request.word(0);
    if lines.len() < 3 || lines.iter().any(|line| !matches!(line, Frame::Simple(_))) {
        return Err("help is several lines of status text".into());
    }
    if !first.starts_with(name.as_bytes()) {
        return Err("the first line of help names the command".into());
    }
    Ok(())
}

fn unordered(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let (expected, found) = one(reference, tested)?;
    let same_type = std::mem::discriminant(expected) == std::mem::discriminant(found);
    match (sorted(expected), sorted(found)) {
        (Some(expected), Some(found)) if same_type && expected == found => Ok(()),
        _ => Err("not the same elements".into()),
    }
}

fn sorted(frame: &Frame) -> Option<Vec<&[u8]>> {
    let mut texts: Vec<&[u8]> = frame.items()?.iter().filter_map(Frame::text).collect();
    texts.sort_unstable();
    Some(texts)
}

/// Elements of any form that have no order.
fn unordered_elements(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let (expected, found) = one(reference, tested)?;
    let sorted = |frame: &Frame| -> Option<Vec<String>> {
        let mut elements: Vec<String> = frame
            .items()?
            .iter()
            .map(|item| format!("{item:?}"))
            .collect();
        elements.sort_unstable();
        Some(elements)
    };
    match (sorted(expected), sorted(found)) {
        (Some(expected), Some(found)) if expected == found => Ok(()),
        _ => Err("not the same elements".into()),
    }
}

/// The fields of a hash table have no order; each has its value.
fn unordered_pairs(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let (expected, found) = one(reference, tested)?;
    let same_type = std::mem::discriminant(expected) == std::mem::discriminant(found);
    let sorted = |frame: &Frame| -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut pairs = frame
            .pairs()?
            .into_iter()
            .map(|(field, value)| Some((field.text()?.to_vec(), value.text()?.to_vec())))
            .collect::<Option<Vec<_>>>()?;
        pairs.sort_unstable();
        Some(pairs)
    };
    match (sorted(expected), sorted(found)) {
        (Some(expected), Some(found)) if same_type && expected == found => Ok(()),
        _ => Err("not the same pairs".into()),
    }
}

/// Random elements: as many and of the same form, different ones if the count is positive, and all of them if there are
/// fewer than the count.
fn random_elements(
    request: &Request,
    reference: &[&Frame],
    tested: &[&Frame],
) -> Result<(), String> {
    let (expected, found) = one(reference, tested)?;
    if std::mem::discriminant(expected) != std::mem::discriminant(found) {
        return Err("not the same type".into());
    }
    let (Some(items), Some(found_items)) = (expected.items(), found.items()) else {
        return match expected {
            Frame::Bulk(_) => Ok(()),
            _ => Err("not both an element".into()),
        };
    };
    if items.len() != found_items.len() {
        return Err("not as many elements".into());
    }
    let forms = |items: &[Frame]| items.iter().map(std::mem::discriminant).collect::<Vec<_>>();
    if forms(items) != forms(found_items) {
        return Err("not elements of the same form".into());
    }
    let nested = items.iter().any(|item| item.items().is_some());
    let width = if request.args.len() > 3 && !nested {
        2
    } else {
        1
    };
    let sorted = |items: &[Frame]| {
        let mut elements: Vec<String> = items
            .chunks(width)
            .map(|element| format!("{element:?}"))
            .collect();
        elements.sort_unstable();
        elements
    };
    let (elements, found_elements) = (sorted(items), sorted(found_items));
    let asked = request.word(2).parse::<i64>().unwrap_or(0);
    if asked > 0 && found_elements.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("an element is there twice".into());
    }
    if asked > elements.len() as i64 && elements != found_elements {
        return Err("not the same collection".into());
    }
    Ok(())
}

/// The position of the cursor in a request that iterates.
pub(crate) fn cursor_position(request: &Request) -> Option<usize> {
    match request.word(0).as_str() {
        "scan" => Some(1),
        "hscan" | "sscan" | "zscan" => Some(2),
        _ => None,
    }
}

/// Whole iterations return the same elements; a single page has only a form.
fn scan(request: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    // A field comes with its value, a member of a sorted set with its score.
    let width = match request.word(0).as_str() {
        "hscan" | "zscan" => 2,
        _ => 1,
    };
    let (expected, expected_whole) = scanned(reference, width)?;
    let (found, found_whole) = scanned(tested, width)?;
    let begins = cursor_position(request).is_some_and(|index| request.word(index) == "0");
    if begins && expected_whole && found_whole && expected != found {
        return Err("the iterations do not return the same elements".into());
    }
    Ok(())
}

/// The strings of each element.
type Elements<'a> = BTreeSet<Vec<&'a [u8]>>;

/// The elements of all pages, each of so many strings, and whether the iteration came to its end.
fn scanned<'a>(pages: &[&'a Frame], width: usize) -> Result<(Elements<'a>, bool), String> {
    let mut elements = BTreeSet::new();
    let mut whole = false;
    for page in pages {
        let Some([Frame::Bulk(cursor), Frame::Array(strings)]) = page.items() else {
            return Err("a page is a cursor and an array".into());
        };
        if parse(cursor).is_none()
            && std::str::from_utf8(cursor)
                .ok()
                .and_then(|text| text.parse::<u64>().ok())
                .is_none()
        {
            return Err("a cursor is a number".into());
        }
        if !strings.len().is_multiple_of(width) || strings.iter().any(|s| s.text().is_none()) {
            return Err(format!("an element is {width} strings"));
        }
        for element in strings.chunks(width) {
            elements.insert(element.iter().filter_map(Frame::text).collect());
        }
        whole = cursor == b"0";
    }
    Ok((elements, whole))
}

/// Leaving every channel at once confirms them in no particular order, counting down.
fn left_everything(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let read = |frames: &[&Frame]| {
        let mut names: Vec<_> = frames
            .iter()
            .map(|frame| {
                frame
                    .confirmation()
                    .map(|(_, name)| name.map(<[u8]>::to_vec))
            })
            .collect();
        names.sort();
        let counts: Vec<_> = frames
            .iter()
            .map(|frame| frame.items().and_then(|items| items.last()).cloned())
            .collect();
        let kinds: Vec<_> = frames
            .iter()
            .map(|frame| {
                (
                    std::mem::discriminant(*frame),
                    frame.items().and_then(|items| items.first()).cloned(),
                )
            })
            .collect();
        (names, counts, kinds)
    };
    if read(reference) == read(tested) {
        Ok(())
    } else {
        Err("not the same farewells".into())
    }
}

/// How a client tracks: equal but for the id of the client it redirects to.
fn redirection(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let without_ids = |frames: &[&Frame]| {
        let text = format!("{frames:?}");
        let mut parts = text.split("Integer(");
        let mut shown = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (number, rest) = part.split_once(')').unwrap_or((part, ""));
            let is_id = number.parse::<i64>().is_ok_and(|id| id > 0);
            shown.push_str(if is_id { "id" } else { number });
            shown.push_str(rest);
        }
        shown
    };
    let (expected, found) = (without_ids(reference), without_ids(tested));
    if expected == found {
        Ok(())
    } else {
        Err(format!("{expected} against {found}"))
    }
}

/// Fields of a client's line whose values do not depend on the moment.
const CLIENT_FIELDS: &[&str] = &[
    "name", "db", "sub", "psub", "ssub", "multi", "flags", "events", "cmd", "user", "redir", "resp",
];

fn client_lines(request: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let (expected, found) = one(reference, tested)?;
    if std::mem::discriminant(expected) != std::mem::discriminant(found) {
        return Err("not the same type".into());
    }
    let (expected, found) = (lines(expected)?, lines(found)?);
    let chosen = request.word(1) == "info" || request.word(2) == "id";
    if chosen && expected.len() != found.len() {
        return Err("not the same number of clients".into());
    }
    // Without ids the list also has the test's own connections, and some that are just closing.
    let names = |line: &BTreeMap<String, String>| line.keys().cloned().collect::<BTreeSet<_>>();
    if let (Some(expected), Some(found)) = (expected.first(), found.first()) {
        let missing: Vec<_> = names(expected).difference(&names(found)).cloned().collect();
        if !missing.is_empty() {
            return Err(format!("fields {missing:?} are missing"));
        }
    } else if expected.is_empty() != found.is_empty() {
        return Err("only one list is empty".into());
    }
    if chosen {
        for (expected_line, found_line) in expected.iter().zip(&found) {
            for field in CLIENT_FIELDS {
                let text =
                    |line: &BTreeMap<String, String>| line.get(*field).cloned().unwrap_or_default();
                let (expected, found) = (text(expected_line), text(found_line));
                if *field == "events" && waits_as_it_says(expected_line, found_line) {
                    continue;
                }
                if expected != found && !known::client_field_may_differ(field, &expected, &found) {
                    return Err(format!("{field}: {expected:?} against {found:?}"));
                }
            }
        }
    }
    Ok(())
}

/// Whether a server waits to write depends on how much the socket took of the last reply, so the two may differ there;
/// but whoever says `w` must have output that waits.
fn waits_as_it_says(expected: &BTreeMap<String, String>, found: &BTreeMap<String, String>) -> bool {
    [expected, found].into_iter().all(|line| {
        let has = |field: &str| line.get(field).is_some_and(|value| value != "0");
        match line.get("events").map(String::as_str) {
            Some("r") => true,
            Some("rw") => has("obl") || has("oll") || has("omem"),
            _ => false,
        }
    })
}

fn lines(frame: &Frame) -> Result<Vec<BTreeMap<String, String>>, String> {
    let text = String::from_utf8_lossy(frame.text().ok_or("not a text")?).into_owned();
    text.lines()
        .map(|line| {
            line.split(' ')
                .map(|field| {
                    field
                        .split_once('=')
                        .map(|(name, value)| (name.to_string(), value.to_string()))
                        .ok_or_else(|| format!("{field:?} is no field"))
                })
                .collect()
        })
        .collect()
}

fn hello(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let (expected, found) = one(reference, tested)?;
    if std::mem::discriminant(expected) != std::mem::discriminant(found) {
        return Err("not the same type".into());
    }
    let (Some(expected), Some(found)) = (expected.pairs(), found.pairs()) else {
        return Err("not both pairs".into());
    };
    for ((name, value), (found_name, found_value)) in expected.iter().zip(&found) {
        let varies = matches!(name.text(), Some(b"version" | b"id"));
        let same_kind = std::mem::discriminant(*value) == std::mem::discriminant(*found_value);
        if name != found_name || (!varies && value != found_value) || !same_kind {
            return Err(format!(
                "{name:?}: {value:?} against {found_name:?}: {found_value:?}"
            ));
        }
    }
    if expected.len() == found.len() {
        Ok(())
    } else {
        Err("not as many fields".into())
    }
}

fn names_of(frame: &Frame) -> Option<BTreeSet<Vec<u8>>> {
    frame
        .pairs()?
        .iter()
        .map(|(name, _)| Some(name.text()?.to_vec()))
        .collect()
}

/// Every name of the reference is there, and there may be more.
fn contained_names(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let (expected, found) = one(reference, tested)?;
    let (Some(expected), Some(found)) = (names_of(expected), names_of(found)) else {
        return Err("not both pairs".into());
    };
    let missing: Vec<_> = expected
        .difference(&found)
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .filter(|name| !known::ABSENT_MEMORY_STATS.contains(&name.as_str()))
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("{missing:?} are missing"))
    }
}

fn same_names(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let (expected, found) = one(reference, tested)?;
    match (names_of(expected), names_of(found)) {
        (Some(expected), Some(found)) if expected == found => Ok(()),
        _ => Err("not the same names".into()),
    }
}

fn arrays(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    match one(reference, tested)? {
        (Frame::Array(_), Frame::Array(_)) => Ok(()),
        _ => Err("not both an array".into()),
    }
}

fn histogram(request: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let (expected, found) = one(reference, tested)?;
    let (Some(expected), Some(found)) = (expected.pairs(), found.pairs()) else {
        return Err("not both pairs".into());
    };
    let inner = |pairs: &[(&Frame, &Frame)]| -> BTreeMap<Vec<u8>, Option<BTreeSet<Vec<u8>>>> {
        pairs
            .iter()
            .filter_map(|(name, value)| Some((name.text()?.to_vec(), names_of(value))))
            .collect()
    };
    // The test's own control connection does not send the same commands to both when no name is given.
    if request.args.len() > 2 && inner(&expected) != inner(&found) {
        return Err("not the same commands".into());
    }
    Ok(())
}

/// Rows of six: id, time, duration, arguments, address, name.
fn slowlog(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let (_, found) = one(reference, tested)?;
    let Frame::Array(rows) = found else {
        return Err("not an array".into());
    };
    for row in rows {
        let Some(
            [
                Frame::Integer(_),
                Frame::Integer(_),
                Frame::Integer(_),
                Frame::Array(_),
                Frame::Bulk(_),
                Frame::Bulk(_),
            ],
        ) = row.items()
        else {
            return Err("a row is three numbers, the arguments, the address and the name".into());
        };
    }
    Ok(())
}

/// Whether SORT leaves a set in the order it has, which is not promised; or sorts by texts that may be missing, which has
/// no promised order either.
fn is_unsorted(request: &Request) -> bool {
    let has = |token: &str| (2..request.args.len()).any(|index| request.word(index) == token);
    let unsorted = (3..request.args.len())
        .any(|index| request.word(index - 1) == "by" && !request.word(index).contains('*'));
    unsorted || (has("by") && has("alpha"))
}

/// A DUMP payload. Values whose elements have no order, or whose scores 7.0 writes with more digits, are compared by their
/// type byte alone; DEBUG DIGEST tells whether they hold the same. Compressed ones may differ by a few bytes: Redis does
/// not clear its compressor's table, and an entry that an earlier text left there gives it a reference on rare occasions.
/// A stream's payload tells the times of its consumers and pending entries, eight bytes each.
fn payload(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    const SET: u8 = 2;
    const HASH: u8 = 4;
    const PACKED_SORTED_SET: u8 = 17;
    const STREAM: u8 = 19;
    const COMPRESSED: u8 = 0xc3;
    const A_FEW: usize = 16;
    let text = |frames: &[&Frame]| frames.first()?.text().map(<[u8]>::to_vec);
    let (Some(expected), Some(found)) = (text(reference), text(tested)) else {
        return Err("only one is a payload".into());
    };
    let compressed = expected.contains(&COMPRESSED) && found.contains(&COMPRESSED);
    let timed = found.first() == Some(&STREAM) && expected.len() == found.len();
    let alike = timed || compressed && expected.len().abs_diff(found.len()) <= A_FEW;
    if expected.first() == found.first()
        && (alike || matches!(found.first(), Some(&(SET | HASH | PACKED_SORTED_SET))))
    {
        return Ok(());
    }
    Err("the payloads differ".into())
}

fn debug_object(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let read = |frame: &Frame| -> Option<Vec<(String, String)>> {
        let Frame::Simple(text) = frame else {
            return None;
        };
        let text = String::from_utf8_lossy(text).into_owned();
        text.strip_prefix("Value ")?
            .split(' ')
            .map(|field| {
                field
                    .split_once(':')
                    .map(|(name, value)| (name.to_string(), value.to_string()))
            })
            .collect()
    };
    let (expected, found) = one(reference, tested)?;
    let (Some(expected), Some(found)) = (read(expected), read(found)) else {
        return Err("not both a description".into());
    };
    let encoding = |fields: &[(String, String)]| {
        let found = fields.iter().find(|(name, _)| name == "encoding");
        found.map_or(String::new(), |(_, value)| value.clone())
    };
    let (expected_encoding, found_encoding) = (encoding(&expected), encoding(&found));
    let other = known::encoding_may_differ(&expected_encoding, &found_encoding);
    // Only a quicklist has the fields that tell of its nodes.
    let names = |fields: &[(String, String)]| {
        fields
            .iter()
            .map(|(name, _)| name.clone())
            .filter(|name| !other || !name.starts_with("ql_"))
            .collect::<Vec<_>>()
    };
    if names(&expected) == names(&found) && (other || expected_encoding == found_encoding) {
        Ok(())
    } else {
        Err("not the same fields, or not the same encoding".into())
    }
}

/// The reference lists commands that do not exist here yet; of those that do, both list the same.
fn command_list(_: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    let (expected, found) = one(reference, tested)?;
    let shared = |frame: &Frame| -> Option<BTreeSet<String>> {
        Some(
            frame
                .items()?
                .iter()
                .filter_map(|item| Some(String::from_utf8_lossy(item.text()?).into_owned()))
                .filter(|name| has_command(name))
                .collect(),
        )
    };
    match (shared(expected), shared(found)) {
        (Some(expected), Some(found)) if expected == found => Ok(()),
        (Some(expected), Some(found)) => Err(format!(
            "missing {:?}, more {:?}",
            expected.difference(&found).collect::<Vec<_>>(),
            found.difference(&expected).collect::<Vec<_>>()
        )),
        _ => Err("not both a list".into()),
    }
}

pub(crate) fn parse(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
