//! ACL: users, their rules, and what was denied.

use crate::base::error::{CommandError, CommandResult};
use crate::base::number;
use crate::commands::help;
use crate::engine::acl::{CATEGORIES, Selector, User, held_name};
use crate::engine::command::{Command, Hides, Indexed, flag};
use crate::engine::reply::Reply;
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

const ADMIN: u32 = flag::ADMIN | flag::NOSCRIPT | flag::LOADING | flag::STALE;
const OPEN: u32 = flag::NOSCRIPT | flag::LOADING | flag::STALE;

/// Names of users and their rules are kept from logs.
const HIDES_USER: Option<Hides> = Some(|_, position| position >= 2);

pub(in crate::commands) const COMMANDS: &[Command] = &[Command {
    name: "acl",
    arity: -2,
    since: "6.0.0",
    complexity: "Depends on subcommand.",
    summary: "Manages users and their permissions.",
    subcommands: ACL,
    ..Command::BASE
}];

const BASE: Command = Command {
    flags: ADMIN,
    since: "6.0.0",
    ..Command::BASE
};

const ACL: &[Command] = &[
    Command {
        name: "cat",
        arity: -2,
        flags: OPEN,
        complexity: "O(1) since the categories and commands are a fixed set.",
        summary: "Lists the categories, or the commands of one.",
        usage: "[category]",
        run: cat,
        ..BASE
    },
    Command {
        name: "deluser",
        arity: -3,
        hides: HIDES_USER,
        complexity: "O(1) amortized time considering the typical user.",
        summary: "Deletes users, and closes their connections.",
        usage: "username [username ...]",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        run: deluser,
        ..BASE
    },
    Command {
        name: "dryrun",
        arity: -4,
        since: "7.0.0",
        complexity: "O(1).",
        summary: "Says whether a user may run a command, without running it.",
        usage: "username command [arg [arg ...]]",
        run: dryrun,
        ..BASE
    },
    Command {
        name: "genpass",
        arity: -2,
        flags: OPEN,
        complexity: "O(1)",
        summary: "Makes a password.",
        usage: "[bits]",
        run: genpass,
        ..BASE
    },
    Command {
        name: "getuser",
        arity: 3,
        hides: HIDES_USER,
        complexity: "O(N). Where N is the number of password, command and pattern rules that the user has.",
        summary: "Shows a user's rules.",
        usage: "username",
        run: getuser,
        ..BASE
    },
    Command {
        name: "list",
        arity: 2,
        complexity: "O(N). Where N is the number of configured users.",
        summary: "Lists the users with their rules.",
        run: list,
        ..BASE
    },
    Command {
        name: "load",
        arity: 2,
        complexity: "O(N). Where N is the number of configured users.",
        summary: "Reads the users from the ACL file again.",
        run: load,
        ..BASE
    },
    Command {
        name: "log",
        arity: -2,
        complexity: "O(N) with N being the number of entries shown.",
        summary: "Shows what was denied lately.",
        usage: "[count|RESET]",
        run: log,
        ..BASE
    },
    Command {
        name: "save",
        arity: 2,
        complexity: "O(N). Where N is the number of configured users.",
        summary: "Writes the users to the ACL file.",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        run: save,
        ..BASE
    },
    Command {
        name: "setuser",
        arity: -3,
        hides: HIDES_USER,
        complexity: "O(N). Where N is the number of rules provided.",
        summary: "Creates or changes a user.",
        usage: "username [rule [rule ...]]",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        run: setuser,
        ..BASE
    },
    Command {
        name: "users",
        arity: 2,
        complexity: "O(N). Where N is the number of configured users.",
        summary: "Lists the names of the users.",
        run: users,
        ..BASE
    },
    Command {
        name: "whoami",
        arity: 2,
        flags: OPEN,
        complexity: "O(1)",
        summary: "Says which user the connection is.",
        run: whoami,
        ..BASE
    },
    Command {
        name: "help",
        arity: 2,
        flags: flag::LOADING | flag::STALE,
        summary: "Describes the subcommands.",
        run: help::from_rows,
        ..BASE
    },
];

fn cat(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.len() > 3 {
        return Err(help::wrong_subcommand_arity(args));
    }
    let Some(name) = args.get(2) else {
        ctx.reply.array(CATEGORIES.len());
        for name in CATEGORIES {
            ctx.reply.bulk(name);
        }
        return Ok(());
    };
    let known = CATEGORIES
        .iter()
        .find(|known| known.as_bytes().eq_ignore_ascii_case(name));
    let Some(known) = known else {
        let text = [b"ERR Unknown category '", name, b"'"].concat();
        return Err(CommandError::new(text));
    };
    let parts = ctx.parts();
    let members: Vec<&Indexed> = parts
        .index
        .iter()
        .map(|(_, indexed)| indexed)
        .filter(|indexed| indexed.row.acl_categories().contains(known))
        .collect();
    parts.reply.array(members.len());
    for indexed in members {
        parts.reply.bulk(&*indexed.full_name);
    }
    Ok(())
}

fn deluser(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.iter().skip(2).any(|name| name == b"default") {
        return Err(CommandError::fixed(
            "ERR The 'default' user cannot be removed",
        ));
    }
    for name in args.iter().skip(2) {
        refuse_hosts(ctx, name)?;
    }
    let mut deleted = 0;
    for name in args.iter().skip(2) {
        if let Some(id) = ctx.acl().remove(name) {
            deleted += 1;
            ctx.close_sessions_of(id, |_| true);
        }
    }
    ctx.reply.integer(deleted);
    Ok(())
}

/// Refuses to change a user that the program around the server has installed.
fn refuse_hosts(ctx: &mut Ctx<'_>, name: &[u8]) -> CommandResult {
    match ctx.acl().is_hosts(name) {
        true => Err(CommandError::new(format!("ERR {}", held_name(name)))),
        false => Ok(()),
    }
}

fn dryrun(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let request = args.tail(3);
    let Some(user) = ctx.acl().find(&args[2]) else {
        let text = [b"ERR User '", &args[2], b"' not found"].concat();
        return Err(CommandError::new(text));
    };
    let id = match ctx.index().resolve(request) {
        Ok(id) => id,
        Err((Some(_), error)) => return Err(error),
        Err((None, _)) => {
            let text = [b"ERR Command '", &args[3], b"' not found"].concat();
            return Err(CommandError::new(text));
        }
    };
    match ctx.permission(user, id, request) {
        Ok(()) => ctx.reply.ok(),
        Err(denied) => {
            let name = ctx.index().get(id).full_name.clone();
            let text = denied.text(&args[2], &name, request, true);
            ctx.reply.bulk(text);
        }
    }
    Ok(())
}

fn genpass(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    const MAX_BITS: i64 = 4096;
    if args.len() > 3 {
        return Err(help::wrong_subcommand_arity(args));
    }
    let bits = match args.get(2) {
        None => 256,
        Some(bits) => number::parse_i64(bits).ok_or(CommandError::NOT_INTEGER)?,
    };
    if !(1..=MAX_BITS).contains(&bits) {
        return Err(CommandError::fixed(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096",
        ));
    }
    let digits = usize::try_from(bits).unwrap_or(0).div_ceil(4);
    let mut bytes = vec![0; digits.div_ceil(2)];
    if !ctx.host.fill_random(&mut bytes) {
        return Err(CommandError::fixed(
            "ERR there is no source of random bytes",
        ));
    }
    let mut password: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    password.truncate(digits);
    ctx.reply.bulk(password);
    Ok(())
}

fn getuser(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (acl, reply) = ctx.acl_and_reply();
    let Some(user) = acl.find(&args[2]).and_then(|id| acl.get(id)) else {
        reply.null();
        return Ok(());
    };
    reply.map(6);
    reply.bulk("flags");
    let flags = user.flags();
    reply.set(flags.len());
    for flag in flags {
        reply.bulk(flag);
    }
    reply.bulk("passwords");
    reply.array(user.passwords.len());
    for password in &user.passwords {
        reply.bulk(crate::engine::acl::hex(password));
    }
    describe(reply, &user.root);
    reply.bulk("selectors");
    reply.array(user.selectors.len());
    for selector in &user.selectors {
        reply.map(3);
        describe(reply, selector);
    }
    Ok(())
}

fn describe(reply: &mut Reply<'_>, selector: &Selector) {
    reply.bulk("commands");
    reply.bulk(selector.describe_commands());
    reply.bulk("keys");
    reply.bulk(selector.describe_keys());
    reply.bulk("channels");
    reply.bulk(selector.describe_channels());
}

fn list(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let (acl, reply) = ctx.acl_and_reply();
    let lines: Vec<Vec<u8>> = acl
        .iter()
        .map(|user| [b"user ".as_slice(), &user.describe()].concat())
        .collect();
    reply.array(lines.len());
    for line in lines {
        reply.bulk(line);
    }
    Ok(())
}

fn file(ctx: &Ctx<'_>) -> Result<Vec<u8>, CommandError> {
    ctx.settings().aclfile.clone().ok_or(CommandError::fixed(
        "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration.",
    ))
}

fn load(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let path = file(ctx)?;
    ctx.load_acl_file(&path).map_err(|reason| {
        CommandError::new(format!(
            "ERR {reason}WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
        ))
    })?;
    ctx.reply.ok();
    Ok(())
}

fn save(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let path = file(ctx)?;
    let text = ctx.acl().file_text();
    if let Err(reason) = ctx.host.write_file(&path, &text) {
        tracing::warn!(reason, "the ACL file could not be written");
        return Err(CommandError::fixed(
            "ERR There was an error trying to save the ACLs. Please check the server logs for more information",
        ));
    }
    ctx.reply.ok();
    Ok(())
}

fn log(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    const DEFAULT_COUNT: usize = 10;
    if args.len() > 3 {
        return Err(help::wrong_subcommand_arity(args));
    }
    let count = match args.get(2) {
        None => DEFAULT_COUNT,
        Some(word) if word.eq_ignore_ascii_case(b"RESET") => {
            ctx.acl().log.clear();
            ctx.reply.ok();
            return Ok(());
        }
        Some(count) => {
            let count = number::parse_i64(count).ok_or(CommandError::NOT_INTEGER)?;
            usize::try_from(count).unwrap_or(0)
        }
    };
    let now_ms = ctx.now.unix_ms();
    let (acl, reply) = ctx.acl_and_reply();
    reply.array(acl.log.iter().len().min(count));
    for entry in acl.log.iter().take(count) {
        reply.map(10);
        reply.bulk("count");
        reply.integer(entry.count.cast_signed());
        reply.bulk("reason");
        reply.bulk(entry.reason.name());
        reply.bulk("context");
        reply.bulk(entry.context.name());
        reply.bulk("object");
        reply.bulk(&entry.object);
        reply.bulk("username");
        reply.bulk(&entry.username);
        reply.bulk("age-seconds");
        let age_ms = now_ms.saturating_sub(entry.updated_ms);
        reply.double(age_ms as f64 / 1000.0);
        reply.bulk("client-info");
        reply.bulk(&entry.client);
        reply.bulk("entry-id");
        reply.integer(entry.id.cast_signed());
        reply.bulk("timestamp-created");
        reply.integer(entry.created_ms.cast_signed());
        reply.bulk("timestamp-last-updated");
        reply.integer(entry.updated_ms.cast_signed());
    }
    Ok(())
}

fn setuser(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let name = &args[2];
    if name
        .iter()
        .any(|&byte| byte == 0 || byte.is_ascii_whitespace())
    {
        return Err(CommandError::fixed(
            "ERR Usernames can't contain spaces or null characters",
        ));
    }
    refuse_hosts(ctx, name)?;
    let words: Vec<&[u8]> = args.iter().skip(3).collect();
    let rules = crate::engine::acl::merge_selectors(&words).map_err(CommandError::new)?;
    let all_channels = ctx.settings().acl_pubsub_all_channels;
    let (acl, index) = ctx.acl_and_index();
    // A copy is changed, so that a wrong rule changes nothing.
    let known = acl.find(name).and_then(|id| acl.get(id));
    let mut user = match known {
        Some(user) => user.clone(),
        None => User::new(name.into(), index, all_channels),
    };
    for rule in &rules {
        user.apply(rule, index, all_channels).map_err(|reason| {
            let text = [
                b"ERR Error in ACL SETUSER modifier '",
                rule.as_slice(),
                b"': ",
                reason.as_bytes(),
            ];
            CommandError::new(text.concat())
        })?;
    }
    let id = acl.put(user);
    ctx.user_changed(id);
    ctx.reply.ok();
    Ok(())
}

fn users(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let (acl, reply) = ctx.acl_and_reply();
    reply.array(acl.iter().count());
    for user in acl.iter() {
        reply.bulk(&user.name);
    }
    Ok(())
}

fn whoami(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let name = ctx.session().login.user_name.clone();
    ctx.reply.bulk(name);
    Ok(())
}
