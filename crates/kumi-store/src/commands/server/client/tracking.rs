//! CLIENT TRACKING, CACHING, TRACKINGINFO, GETREDIR: client-side caching.

use crate::base::error::{CommandError, CommandResult};
use crate::commands::options::OptionReader;
use crate::commands::parse;
use crate::engine::session::{CacheTracking, Session};
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

pub(super) fn tracking(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (wanted, prefixes) = options(ctx, args)?;
    if args[2].eq_ignore_ascii_case(b"off") {
        ctx.stop_tracking();
    } else if args[2].eq_ignore_ascii_case(b"on") {
        check(ctx.session().tracking.as_deref(), &wanted, &prefixes)?;
        ctx.track(wanted, &prefixes);
    } else {
        return Err(CommandError::SYNTAX);
    }
    ctx.reply.ok();
    Ok(())
}

/// The options of CLIENT TRACKING, and the prefixes among them.
fn options<'a>(
    ctx: &mut Ctx<'_>,
    args: Args<'a>,
) -> Result<(CacheTracking, Vec<&'a [u8]>), CommandError> {
    let (mut wanted, mut prefixes) = (CacheTracking::default(), Vec::new());
    let mut options = OptionReader::new(args, 3);
    while let Some(word) = options.word() {
        match &*word {
            b"bcast" => wanted.bcast = true,
            b"optin" => wanted.optin = true,
            b"optout" => wanted.optout = true,
            b"noloop" => wanted.noloop = true,
            b"prefix" => prefixes.push(options.value()?),
            b"redirect" => {
                let id = options.value()?;
                if wanted.redirect.is_some() {
                    return Err(CommandError::fixed(
                        "ERR A client can only redirect to a single other client",
                    ));
                }
                let id = u64::try_from(parse::integer(id)?).ok();
                let target = id.and_then(|id| ctx.clients().sessions.by_id(id));
                let target = target.ok_or(CommandError::fixed(
                    "ERR The client ID you want redirect to does not exist",
                ))?;
                wanted.redirect = Some((target.id, target.key));
            }
            _ => return Err(CommandError::SYNTAX),
        }
    }
    Ok((wanted, prefixes))
}

/// Checks options against each other, and against how the session tracks now.
fn check(old: Option<&CacheTracking>, wanted: &CacheTracking, prefixes: &[&[u8]]) -> CommandResult {
    if !wanted.bcast && !prefixes.is_empty() {
        return Err(CommandError::fixed(
            "ERR PREFIX option requires BCAST mode to be enabled",
        ));
    }
    if old.is_some_and(|old| old.bcast != wanted.bcast) {
        return Err(CommandError::fixed(
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.",
        ));
    }
    if wanted.bcast && (wanted.optin || wanted.optout) {
        return Err(CommandError::fixed(
            "ERR OPTIN and OPTOUT are not compatible with BCAST",
        ));
    }
    if wanted.optin && wanted.optout {
        return Err(CommandError::fixed(
            "ERR You can't specify both OPTIN mode and OPTOUT mode",
        ));
    }
    if old.is_some_and(|old| old.optin && wanted.optout || old.optout && wanted.optin) {
        return Err(CommandError::fixed(
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.",
        ));
    }
    if wanted.bcast {
        check_prefixes(old, prefixes)?;
    }
    Ok(())
}

/// A key must not match two prefixes of one session: it would be sent twice.
fn check_prefixes(old: Option<&CacheTracking>, prefixes: &[&[u8]]) -> CommandResult {
    let overlap = |a: &[u8], b: &[u8]| a.starts_with(b) || b.starts_with(a);
    let error = |prefix: &[u8], which: &str, other: &[u8]| {
        let middle = format!("' overlaps with {which} prefix '");
        let text = [
            b"ERR Prefix '".as_slice(),
            prefix,
            middle.as_bytes(),
            other,
            b"'. Prefixes for a single client must not overlap.",
        ];
        Err(CommandError::new(text.concat()))
    };
    for (index, prefix) in prefixes.iter().enumerate() {
        let mut existing = old.into_iter().flat_map(|old| &old.prefixes);
        if let Some(other) = existing.find(|other| overlap(other, prefix)) {
            return error(prefix, "an existing", other);
        }
        let mut others = prefixes[index + 1..].iter();
        if let Some(other) = others.find(|other| overlap(other, prefix)) {
            return error(prefix, "another provided", other);
        }
    }
    Ok(())
}

pub(super) fn caching(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let Some(tracking) = &mut ctx.session().tracking else {
        return Err(CommandError::fixed(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ));
    };
    let (allowed, error) = match args[2].to_ascii_lowercase().as_slice() {
        b"yes" => (
            tracking.optin,
            "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
        ),
        b"no" => (
            tracking.optout,
            "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
        ),
        _ => return Err(CommandError::SYNTAX),
    };
    if !allowed {
        return Err(CommandError::fixed(error));
    }
    tracking.caching = true;
    ctx.reply.ok();
    Ok(())
}

pub(super) fn trackinginfo(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let redirection = redirection(ctx.session());
    let (mut flags, mut prefixes) = (vec!["off"], Vec::new());
    if let Some(tracking) = &ctx.session().tracking {
        let all = [
            (true, "on"),
            (tracking.bcast, "bcast"),
            (tracking.optin, "optin"),
            (tracking.optin && tracking.caching, "caching-yes"),
            (tracking.optout, "optout"),
            (tracking.optout && tracking.caching, "caching-no"),
            (tracking.noloop, "noloop"),
            (tracking.broken_redirect, "broken_redirect"),
        ];
        let set = all.into_iter().filter(|(on, _)| *on);
        flags = set.map(|(_, name)| name).collect();
        prefixes.extend(tracking.prefixes.iter().cloned());
    }
    let reply = &mut ctx.reply;
    reply.map(3);
    reply.bulk("flags");
    reply.set(flags.len());
    for flag in flags {
        reply.bulk(flag);
    }
    reply.bulk("redirect");
    reply.integer(redirection);
    reply.bulk("prefixes");
    reply.array(prefixes.len());
    for prefix in prefixes {
        reply.bulk(prefix);
    }
    Ok(())
}

pub(super) fn getredir(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let redirection = redirection(ctx.session());
    ctx.reply.integer(redirection);
    Ok(())
}

/// The id of the session that invalidations are redirected to: 0 for none, -1 if the session does not track.
pub(super) fn redirection(session: &Session) -> i64 {
    match &session.tracking {
        None => -1,
        Some(tracking) => tracking.redirect.map_or(0, |(id, _)| id.cast_signed()),
    }
}
