//! XADD, XDEL, XTRIM and XSETID.

use super::{INVALID_ID, strict_id};
use crate::base::error::{CommandError, CommandResult};
use crate::base::number::format_u64;
use crate::commands::options::OptionReader;
use crate::commands::parse::integer;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Edit, Missing};
use crate::engine::store::ctx::Ctx;
use crate::types::stream::{AppendError, NodeLimits, Stream, StreamId, Trim, TrimTo};
use kumi_resp::Args;

/// Up to so many fields and values of an entry are collected without an allocation.
const FEW: usize = 32;

/// The id that XADD is asked for.
#[derive(Clone, Copy, Debug)]
enum NewId {
    /// `*`
    Any,
    /// `ms-*`
    AnySeq(u64),
    Given(StreamId),
}

/// The options of XADD and XTRIM.
#[derive(Debug, Default)]
struct Options {
    no_create: bool,
    trim: Option<Trim>,
    /// The position of the trim's threshold.
    threshold_at: usize,
    /// The positions of LIMIT.
    limits_at: Vec<usize>,
    /// The position of the id, and the id. XTRIM has none.
    id: Option<(usize, NewId)>,
}

pub(super) fn xadd(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let options = Options::parse(args, true, ctx)?;
    let (id_at, new_id) = options.id.unwrap_or((args.len(), NewId::Any));
    let values = args.len().saturating_sub(id_at + 1);
    if values < 2 || values % 2 == 1 {
        return Err(CommandError::arity("xadd"));
    }
    if matches!(new_id, NewId::Given(StreamId::MIN)) {
        return Err(CommandError::fixed(
            "ERR The ID specified in XADD must be greater than 0-0",
        ));
    }
    let missing = match options.no_create {
        true => Missing::Skip,
        false => Missing::Create,
    };
    let (limits, now_ms) = (limits(ctx), ctx.now.unix_ms());
    let (mut few, many);
    let fields: &[&[u8]] = if values <= FEW {
        few = [&[][..]; FEW];
        for (place, arg) in few.iter_mut().zip(args.tail(id_at + 1).iter()) {
            *place = arg;
        }
        &few[..values]
    } else {
        many = args.iter().skip(id_at + 1).collect::<Vec<_>>();
        &many
    };
    let (mut keys, reply) = ctx.keys_and_reply();
    let edited = keys.edit(&args[1], missing, |stream: &mut Box<Stream>| {
        let id = append(stream, new_id, now_ms, fields, limits)?;
        let trimmed = options.trim.map_or(0, |trim| stream.trim(trim));
        Ok(Edit::Changed((
            id,
            trimmed,
            threshold(stream, options.trim),
        )))
    })?;
    let Some(edited) = edited else {
        reply.null();
        return Ok(());
    };
    let (id, trimmed, threshold) = edited.result;
    reply.bulk(id.text());
    keys.notify(NotifyFlags::STREAM, "xadd", &args[1]);
    if trimmed > 0 {
        keys.notify(NotifyFlags::STREAM, "xtrim", &args[1]);
    }
    ctx.dirty(1);
    if ctx.propagates() {
        propagate(ctx, args, &options, threshold, Some(id));
    }
    Ok(())
}

fn append(
    stream: &mut Stream,
    id: NewId,
    now_ms: u64,
    fields: &[&[u8]],
    limits: NodeLimits,
) -> Result<StreamId, CommandError> {
    const TOO_SMALL: CommandError = CommandError::fixed(
        "ERR The ID specified in XADD is equal or smaller than the target stream top item",
    );
    if stream.last_id() == StreamId::MAX {
        return Err(CommandError::fixed(
            "ERR The stream has exhausted the last possible ID, unable to add more items",
        ));
    }
    let id = match id {
        NewId::Any => stream.next_id(now_ms),
        NewId::AnySeq(ms) => stream.next_id_in(ms),
        NewId::Given(id) => Some(id),
    };
    let id = id.ok_or(TOO_SMALL)?;
    stream
        .append(id, fields, limits)
        .map_err(|error| match error {
            AppendError::IdTooSmall => TOO_SMALL,
            AppendError::TooLarge => CommandError::fixed("ERR Elements are too large to be stored"),
        })?;
    Ok(id)
}

pub(super) fn xdel(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = &args[1];
    let mut keys = ctx.keys();
    let edited = keys.edit(key, Missing::Skip, |stream: &mut Box<Stream>| {
        let ids = args.iter().skip(2).map(strict_id);
        let ids: Vec<StreamId> = ids.collect::<Result<_, _>>()?;
        Ok(match stream.delete(&ids) {
            0 => Edit::Unchanged(0),
            deleted => Edit::Trimmed(deleted),
        })
    })?;
    let deleted = edited.map_or(0, |edited| edited.result);
    if deleted > 0 {
        keys.notify(NotifyFlags::STREAM, "xdel", key);
        ctx.dirty(deleted as usize);
    }
    ctx.reply.integer(deleted as i64);
    Ok(())
}

pub(super) fn xtrim(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let options = Options::parse(args, false, ctx)?;
    let key = &args[1];
    let mut keys = ctx.keys();
    let edited = keys.edit(key, Missing::Skip, |stream: &mut Box<Stream>| {
        let trimmed = options.trim.map_or(0, |trim| stream.trim(trim));
        let result = (trimmed, threshold(stream, options.trim));
        Ok(match trimmed {
            0 => Edit::Unchanged(result),
            _ => Edit::Trimmed(result),
        })
    })?;
    let (trimmed, threshold) = edited.map_or((0, None), |edited| edited.result);
    if trimmed > 0 {
        keys.notify(NotifyFlags::STREAM, "xtrim", key);
        ctx.dirty(trimmed as usize);
        if ctx.propagates() {
            propagate(ctx, args, &options, threshold, None);
        }
    }
    ctx.reply.integer(trimmed as i64);
    Ok(())
}

pub(super) fn xsetid(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = &args[1];
    let last_id = strict_id(&args[2])?;
    let (mut entries_added, mut max_deleted_id) = (None, None);
    let mut options = OptionReader::new(args, 3);
    while let Some(word) = options.word() {
        match &*word {
            b"entriesadded" => {
                let number = u64::try_from(integer(options.value()?)?);
                entries_added = Some(
                    number
                        .map_err(|_| CommandError::fixed("ERR entries_added must be positive"))?,
                );
            }
            b"maxdeletedid" => {
                let id = strict_id(options.value()?)?;
                if last_id < id {
                    return Err(CommandError::fixed(
                        "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
                    ));
                }
                max_deleted_id = Some(id);
            }
            _ => return Err(CommandError::SYNTAX),
        }
    }
    let mut keys = ctx.keys();
    let edited = keys.edit(key, Missing::Skip, |stream: &mut Box<Stream>| {
        let smaller = |than: &str| {
            Err(CommandError::new(format!(
                "ERR The ID specified in XSETID is smaller than {than}"
            )))
        };
        if last_id < stream.max_deleted_id() {
            return smaller("current max_deleted_entry_id");
        }
        if stream.last().is_some_and(|last| last_id < last.id()) {
            return smaller("the target stream top item");
        }
        if !stream.is_empty() && entries_added.is_some_and(|added| stream.len() > added) {
            return Err(CommandError::fixed(
                "ERR The entries_added specified in XSETID is smaller than the target stream length",
            ));
        }
        stream.set_id(last_id, entries_added, max_deleted_id);
        Ok(Edit::Unwatched(()))
    })?;
    if edited.is_none() {
        return Err(CommandError::NO_SUCH_KEY);
    }
    keys.notify(NotifyFlags::STREAM, "xsetid", key);
    ctx.dirty(1);
    ctx.reply.ok();
    Ok(())
}

impl Options {
    /// Reads the options up to the id of XADD, or to the end of XTRIM.
    fn parse(args: Args<'_>, adds: bool, ctx: &Ctx<'_>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut limit = None;
        let mut reader = OptionReader::new(args, 2);
        while let Some(word) = reader.word() {
            let at = reader.position() - 1;
            match (&*word, reader.left()) {
                (b"*", _) if adds => {
                    options.id = Some((at, NewId::Any));
                    break;
                }
                (b"maxlen" | b"minid", 1..) => {
                    let threshold = options.read_trim(args, at)?;
                    reader.go_to(threshold + 1);
                }
                (b"limit", 1..) => {
                    let number = integer(reader.value()?)?;
                    let number = u64::try_from(number)
                        .map_err(|_| CommandError::fixed("ERR The LIMIT argument must be >= 0."))?;
                    limit = Some(number);
                    options.limits_at.push(at);
                }
                (b"nomkstream", _) if adds => options.no_create = true,
                _ if adds => {
                    let id = match StreamId::parse_any_seq(word.sent) {
                        Some(ms) => NewId::AnySeq(ms),
                        None => NewId::Given(StreamId::parse(word.sent, 0).ok_or(INVALID_ID)?),
                    };
                    options.id = Some((at, id));
                    break;
                }
                _ => return Err(CommandError::SYNTAX),
            }
        }
        options.settle_limit(limit, adds, ctx)?;
        Ok(options)
    }

    /// Reads MAXLEN or MINID at a position; returns that of the threshold.
    fn read_trim(&mut self, args: Args<'_>, at: usize) -> Result<usize, CommandError> {
        if self.trim.is_some() {
            return Err(CommandError::fixed(
                "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
            ));
        }
        let by_length = args[at].eq_ignore_ascii_case(b"maxlen");
        let sign = (args.len() - 1 - at >= 2).then(|| &args[at + 1]);
        let approximate = sign == Some(b"~");
        let at = at + 1 + usize::from(approximate || sign == Some(b"="));
        let word = &args[at];
        let to = if by_length {
            let length = u64::try_from(integer(word)?)
                .map_err(|_| CommandError::fixed("ERR The MAXLEN argument must be >= 0."))?;
            TrimTo::MaxLen(length)
        } else {
            TrimTo::MinId(strict_id(word)?)
        };
        self.trim = Some(Trim {
            to,
            approximate,
            limit: 0,
        });
        self.threshold_at = at;
        Ok(at)
    }

    /// Checks LIMIT against the trim, and gives an approximate trim without one its default.
    fn settle_limit(
        &mut self,
        limit: Option<u64>,
        adds: bool,
        ctx: &Ctx<'_>,
    ) -> Result<(), CommandError> {
        let Some(trim) = &mut self.trim else {
            // A limit of zero is not noticed here, nor below.
            if limit.is_some_and(|limit| limit > 0) {
                return Err(CommandError::fixed(
                    "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
                ));
            }
            if !adds {
                return Err(CommandError::fixed(
                    "ERR syntax error, XTRIM must be called with a trimming strategy",
                ));
            }
            return match limit {
                Some(_) => Err(LIMIT_WITHOUT_TILDE),
                None => Ok(()),
            };
        };
        trim.limit = match (limit, trim.approximate) {
            (Some(limit), true) => limit,
            (Some(_), false) => return Err(LIMIT_WITHOUT_TILDE),
            (None, false) => 0,
            (None, true) => {
                // A hundred nodes, within bounds.
                let entries = ctx.settings().stream_node_max_entries;
                match entries.checked_mul(100) {
                    Some(0) => 10_000,
                    limit => limit.unwrap_or(u64::MAX).min(1_000_000),
                }
            }
        };
        Ok(())
    }
}

const LIMIT_WITHOUT_TILDE: CommandError =
    CommandError::fixed("ERR syntax error, LIMIT cannot be used without the special ~ option");

/// The exact threshold that leaves what an approximate trim left.
fn threshold(stream: &Stream, trim: Option<Trim>) -> Option<TrimTo> {
    let trim = trim.filter(|trim| trim.approximate)?;
    Some(match trim.to {
        TrimTo::MaxLen(_) => TrimTo::MaxLen(stream.len()),
        TrimTo::MinId(_) => TrimTo::MinId(stream.first_node_id().unwrap_or(StreamId::MAX)),
    })
}

/// Records XADD or XTRIM with the id that was given and, in place of an approximate trim, the exact one to the same
/// effect. Its LIMIT is left out: Redis leaves it there, and has its replicas overlook it.
fn propagate(
    ctx: &mut Ctx<'_>,
    args: Args<'_>,
    options: &Options,
    threshold: Option<TrimTo>,
    id: Option<StreamId>,
) {
    // An id that was given stands in the request as it is.
    let id_at = options.id.filter(|(_, id)| !matches!(id, NewId::Given(_)));
    let id = id.map(StreamId::text);
    let id = id.as_deref().zip(id_at);
    let exact = threshold.map(|threshold| match threshold {
        TrimTo::MaxLen(length) => format_u64(length).to_vec(),
        TrimTo::MinId(id) => id.text().to_vec(),
    });
    let limits_at = &options.limits_at;
    let words = args.iter().enumerate().filter_map(|(at, arg)| {
        if limits_at
            .iter()
            .any(|&limit| at == limit || at == limit + 1)
        {
            return None;
        }
        match (&exact, id) {
            (Some(_), _) if at + 1 == options.threshold_at => Some(&b"="[..]),
            (Some(exact), _) if at == options.threshold_at => Some(exact),
            (_, Some((text, (id_at, _)))) if at == id_at => Some(text),
            _ => Some(arg),
        }
    });
    ctx.propagate_as(words);
}

fn limits(ctx: &Ctx<'_>) -> NodeLimits {
    let settings = ctx.settings();
    NodeLimits {
        max_bytes: settings.stream_node_max_bytes,
        max_entries: settings.stream_node_max_entries,
    }
}
