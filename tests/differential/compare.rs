//! Decides whether two servers said the same.
//!
//! Replies are compared byte for byte. Where that cannot be, because a reply tells the time, an identity, a size, or a
//! random choice, [`crate::shapes`] has the rule for that command; the known differences of the reference's version
//! are in [`crate::known_differences`]. An error is never excused by a shape.

use crate::command::Request;
use crate::grammar::row_of;
use crate::known_differences;
use crate::session::Item;
use crate::shapes;
use crate::support::frame::{Frame, Reply};

/// What two servers disagree about.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    pub(crate) place: String,
    /// Why it is one, where the two texts do not say it.
    pub(crate) reason: String,
    pub(crate) reference: String,
    pub(crate) tested: String,
    /// Equal for differences that are probably one bug.
    pub(crate) signature: String,
}

/// The first difference between what two connections saw.
///
/// With `scanning`, some command of the step met keys in the order of a hash table.
pub(crate) fn compare(reference: &[Item], tested: &[Item], scanning: bool) -> Option<Difference> {
    let (reference, tested) = (
        &in_fixed_order(reference, scanning),
        &in_fixed_order(tested, scanning),
    );
    let length = reference.len().max(tested.len());
    (0..length).find_map(|index| compare_items(reference.get(index), tested.get(index)))
}

/// Whether an answer is to a command that meets keys, and expires those past their deadline, in no promised order.
pub(crate) fn is_scanning(item: &Item) -> bool {
    let scans = |request: &Request| {
        matches!(
            request.word(0).as_str(),
            "scan" | "randomkey" | "sort" | "sort_ro"
        )
    };
    match item {
        Item::Answer {
            request, queued, ..
        } => scans(request) || queued.iter().any(scans),
        _ => false,
    }
}

/// Puts messages that have no promised order into a fixed one.
///
/// A publication that matches several patterns of a client arrives once for each, in the order of a hash table.
fn in_fixed_order(items: &[Item], scanning: bool) -> Vec<Item> {
    let mut items = items.to_vec();
    let mut from = 0;
    while from < items.len() {
        let kind = unordered_kind(&items[from], scanning);
        let length = items[from..]
            .iter()
            .take_while(|item| kind.is_some() && unordered_kind(item, scanning) == kind)
            .count();
        let to = from + length.max(1);
        items[from..to].sort_by_key(|item| match item {
            Item::Message(reply) => reply.raw.clone(),
            _ => Vec::new(),
        });
        from = to;
    }
    items
}

/// Neighbours of one kind have no order.
fn unordered_kind(item: &Item, scanning: bool) -> Option<Vec<u8>> {
    let Item::Message(reply) = item else {
        return None;
    };
    let kind = reply.frame.items()?.first()?.text();
    if scanning && kind == Some(b"invalidate") {
        return Some(b"met by scanning".to_vec());
    }
    let [kind, _, channel, payload] = reply.frame.items()? else {
        return None;
    };
    if kind.text() != Some(b"pmessage") {
        return None;
    }
    let event = message_kind(&reply.frame);
    let is_met_by_scanning = event.ends_with(" expired") || event.ends_with(" keymiss");
    if scanning && is_met_by_scanning {
        return Some(b"met by scanning".to_vec());
    }
    Some([channel.text()?, b"\0", payload.text()?].concat())
}

fn compare_items(reference: Option<&Item>, tested: Option<&Item>) -> Option<Difference> {
    let verdict = match (reference, tested) {
        (
            Some(Item::Answer {
                request,
                replies,
                queued,
            }),
            Some(Item::Answer { replies: found, .. }),
        ) => judge(request, replies, found, queued),
        (Some(Item::Message(reply)), Some(Item::Message(found)))
        | (Some(Item::Stray(reply)), Some(Item::Stray(found))) => exact(reply, found),
        (Some(Item::Closed), Some(Item::Closed)) => Ok(()),
        _ => Err("one saw what the other did not".into()),
    };
    let reason = verdict.err()?;
    let place = match (reference, tested) {
        (Some(Item::Answer { request, .. }), _) | (None, Some(Item::Answer { request, .. })) => {
            request.line()
        }
        _ => "outside an answer".into(),
    };
    let mut signature = signature(reference, tested);
    // An element of EXEC is a bug of its own command.
    if let Some((_, rest)) = reason
        .strip_prefix("element ")
        .and_then(|rest| rest.split_once('('))
    {
        let words = rest.split([' ', ')']).take(2);
        signature = format!("{} in EXEC", name_of(&Request::new(words)));
    }
    Some(Difference {
        place,
        reason,
        reference: show(reference),
        tested: show(tested),
        signature,
    })
}

/// Compares the answers to one request.
fn judge(
    request: &Request,
    reference: &[Reply],
    tested: &[Reply],
    queued: &[Request],
) -> Result<(), String> {
    let raw = |replies: &[Reply]| {
        replies
            .iter()
            .flat_map(|reply| reply.raw.clone())
            .collect::<Vec<u8>>()
    };
    if raw(reference) == raw(tested) {
        return Ok(());
    }
    if let [
        Reply {
            frame: Frame::Array(expected),
            ..
        },
    ] = reference
        && let [
            Reply {
                frame: Frame::Array(found),
                ..
            },
        ] = tested
        && request.word(0) == "exec"
        && expected.len() == queued.len()
        && found.len() == queued.len()
    {
        for (index, request) in queued.iter().enumerate() {
            judge_frames(request, &[&expected[index]], &[&found[index]]).map_err(|reason| {
                format!("element {} ({}): {reason}", index + 1, request.line())
            })?;
        }
        return Ok(());
    }
    let frames = |replies: &'_ [Reply]| {
        replies
            .iter()
            .map(|reply| reply.frame.clone())
            .collect::<Vec<_>>()
    };
    let (expected, found) = (frames(reference), frames(tested));
    judge_frames(
        request,
        &expected.iter().collect::<Vec<_>>(),
        &found.iter().collect::<Vec<_>>(),
    )
}

fn judge_frames(request: &Request, reference: &[&Frame], tested: &[&Frame]) -> Result<(), String> {
    if reference == tested {
        return Ok(());
    }
    if known_differences::excuses(request, reference, tested) {
        return Ok(());
    }
    let fails = |frames: &[&Frame]| frames.iter().any(|frame| frame.error().is_some());
    if fails(reference) || fails(tested) {
        return Err("the bytes differ".into());
    }
    // Pages may differ, so all of them are looked at.
    let is_skiplist = known_differences::is_scan_of_skiplist(request, reference);
    let alike = |frames: &[&Frame]| -> Vec<Frame> {
        frames
            .iter()
            .map(|frame| known_differences::with_scores_alike(request, frame, is_skiplist))
            .collect()
    };
    let (reference, tested) = (alike(reference), alike(tested));
    if reference == tested {
        return Ok(());
    }
    match shapes::rule(request) {
        Some(rule) => rule(
            request,
            &reference.iter().collect::<Vec<_>>(),
            &tested.iter().collect::<Vec<_>>(),
        ),
        None => Err("the bytes differ".into()),
    }
}

fn exact(reference: &Reply, tested: &Reply) -> Result<(), String> {
    // It names the id of a client, which the servers number each for itself.
    let broken = |reply: &Reply| {
        let kind = reply.frame.items().and_then(<[Frame]>::first);
        kind.and_then(Frame::text) == Some(b"tracking-redir-broken")
    };
    if reference.raw == tested.raw || broken(reference) && broken(tested) {
        Ok(())
    } else {
        Err("the bytes differ".into())
    }
}

fn show(item: Option<&Item>) -> String {
    let bytes = |replies: &[&Reply]| {
        let raw: Vec<u8> = replies.iter().flat_map(|reply| reply.raw.clone()).collect();
        let text = raw.escape_ascii().to_string();
        if text.len() > 3000 {
            format!("{}... ({} bytes)", &text[..3000], raw.len())
        } else {
            text
        }
    };
    match item {
        None => "(nothing)".into(),
        Some(Item::Answer { replies, .. }) => bytes(&replies.iter().collect::<Vec<_>>()),
        Some(Item::Message(reply)) => format!("message {}", bytes(&[reply])),
        Some(Item::Stray(reply)) => format!("unasked {}", bytes(&[reply])),
        Some(Item::Closed) => "(connection closed)".into(),
        Some(Item::Broken(reason)) => format!("({reason})"),
    }
}

/// The command and the kinds of the two answers; numbers and names left out.
fn signature(reference: Option<&Item>, tested: Option<&Item>) -> String {
    let command = match (reference, tested) {
        (Some(Item::Answer { request, .. }), _) | (None, Some(Item::Answer { request, .. })) => {
            name_of(request)
        }
        _ => "event".into(),
    };
    format!("{command}: {} / {}", kind(reference), kind(tested))
}

fn name_of(request: &Request) -> String {
    row_of(request).map_or_else(|| request.word(0), |row| row.name.to_ascii_lowercase())
}

fn kind(item: Option<&Item>) -> String {
    match item {
        None => "nothing".into(),
        Some(Item::Answer { replies, .. }) => replies
            .first()
            .map_or_else(String::new, |reply| frame_kind(&reply.frame)),
        Some(Item::Message(reply)) => message_kind(&reply.frame),
        Some(Item::Stray(_)) => "unasked".into(),
        Some(Item::Closed) => "closed".into(),
        Some(Item::Broken(_)) => "broken".into(),
    }
}

fn frame_kind(frame: &Frame) -> String {
    match frame {
        Frame::Error(text) => crate::coverage::normalise(text),
        Frame::Simple(text) => {
            let text = String::from_utf8_lossy(text).into_owned();
            text.split(' ').next().unwrap_or_default().to_string()
        }
        Frame::Array(items) => {
            let error = items.iter().find(|item| item.error().is_some());
            error.map_or_else(
                || "array".into(),
                |error| format!("array with {}", frame_kind(error)),
            )
        }
        Frame::Map(_) => "map".into(),
        Frame::Push(_) => "push".into(),
        Frame::Set(_) => "set".into(),
        Frame::Integer(_) => "integer".into(),
        Frame::Bulk(_) => "bulk".into(),
        other if other.is_null() => "null".into(),
        _ => "other".into(),
    }
}

/// A keyspace event's name, or just that it is a message.
fn message_kind(frame: &Frame) -> String {
    let Some([.., channel, payload]) = frame.items() else {
        return "message".into();
    };
    let (channel, payload) = (
        channel.text().unwrap_or_default(),
        payload.text().unwrap_or_default(),
    );
    if channel.starts_with(b"__keyspace@") {
        format!("keyspace {}", payload.escape_ascii())
    } else if channel.starts_with(b"__keyevent@") {
        let name = channel
            .splitn(2, |&byte| byte == b':')
            .nth(1)
            .unwrap_or_default();
        format!("keyevent {}", name.escape_ascii())
    } else {
        "message".into()
    }
}
