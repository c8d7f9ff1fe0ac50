//! CONFIG: reading and changing directives while the server runs.
//!
//! `config/` defines the directives and their values. This file applies a change, all of it or
//! nothing.

use crate::base::error::{CommandError, CommandResult};
use crate::commands::help;
use crate::config::{Config, ConfigError, Origin};
use crate::engine::command::{Command, flag};
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

pub(in crate::commands) const COMMANDS: &[Command] = &[Command {
    name: "config",
    arity: -2,
    since: "2.0.0",
    complexity: "Depends on subcommand.",
    summary: "Reads and changes the configuration.",
    subcommands: SUBCOMMANDS,
    ..Command::BASE
}];

const SUB: Command = Command {
    arity: 2,
    flags: flag::ADMIN | flag::NOSCRIPT | flag::LOADING | flag::STALE,
    since: "2.0.0",
    ..Command::BASE
};

const SUBCOMMANDS: &[Command] = &[
    Command {
        name: "get",
        arity: -3,
        complexity: "O(N) when N is the number of configuration parameters provided",
        summary: "Returns the directives that match any of the glob patterns, with their values.",
        usage: "parameter [parameter ...]",
        run: get,
        ..SUB
    },
    Command {
        name: "set",
        arity: -4,
        hides: Some(is_sensitive_value),
        complexity: "O(N) when N is the number of configuration parameters provided",
        summary: "Sets directives, all of them or none.",
        flags: SUB.flags | flag::CHANGES_INPUT,
        usage: "parameter value [parameter value ...]",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        run: set,
        ..SUB
    },
    Command {
        name: "resetstat",
        summary: "Sets the statistics of INFO back to zero.",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        run: resetstat,
        ..SUB
    },
    Command {
        name: "rewrite",
        since: "2.8.0",
        summary: "Writes the configuration in force to the file it came from.",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        run: rewrite,
        ..SUB
    },
    Command {
        name: "help",
        flags: flag::LOADING | flag::STALE,
        since: "5.0.0",
        summary: "Describes the subcommands.",
        run: help::from_rows,
        ..SUB
    },
];

fn get(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let found = ctx.config().get(args.iter().skip(2));
    ctx.reply.map(found.len());
    for (name, value) in &found {
        ctx.reply.bulk(name);
        ctx.reply.bulk(value);
    }
    Ok(())
}

/// Directives that say where the data is that is being loaded.
const NOT_WHILE_LOADING: [&[u8]; 2] = [b"appendonly", b"dir"];

/// Whether an argument is the value of a directive that holds a secret.
fn is_sensitive_value(args: Args<'_>, position: usize) -> bool {
    position > 2 && position % 2 == 1 && args.get(position - 1).is_some_and(Config::is_sensitive)
}

fn set(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let words: Vec<&[u8]> = args.iter().skip(2).collect();
    let (pairs, []) = words.as_chunks::<2>() else {
        return Err(CommandError::SYNTAX);
    };
    let pairs: Vec<(&[u8], &[u8])> = pairs.iter().map(|&[name, value]| (name, value)).collect();
    let local = ctx.session().peer.is_local();
    let waits = |(name, _): &(&[u8], &[u8])| {
        let mut names = NOT_WHILE_LOADING.iter();
        names.any(|known| name.eq_ignore_ascii_case(known))
    };
    if ctx.is_loading() && pairs.iter().any(waits) {
        return Err(CommandError::LOADING);
    }
    let refused = |error: ConfigError| match error {
        ConfigError::Unknown(shown) => unknown_option(&pairs, &shown),
        error => CommandError::new(format!("ERR {error}")),
    };
    ctx.change_config(|config, host| {
        // A name relative to the working directory would mean another place once that is changed.
        let is_dir = |(name, _): &(&[u8], &[u8])| name.eq_ignore_ascii_case(b"dir");
        let directory = pairs.iter().copied().find(is_dir);
        let directory = directory.map(|(_, path)| host.absolute(path));
        let mut pairs = pairs.clone();
        for pair in pairs.iter_mut().filter(|pair| is_dir(pair)) {
            pair.1 = directory.as_deref().unwrap_or(pair.1);
        }
        let changes = config
            .set_many(&pairs, Origin::Client { local })
            .map_err(refused)?;
        let names: Vec<&'static str> = changes.names().collect();
        host.apply_config(config, &names).map_err(|error| {
            config.revert(changes);
            refused(ConfigError::failed(&error.directive, error.message))
        })
    })?;
    ctx.reply.ok();
    Ok(())
}

/// The error about a name that is no directive's, with the bytes that were sent.
fn unknown_option(pairs: &[(&[u8], &[u8])], shown: &str) -> CommandError {
    let mut names = pairs.iter().map(|(name, _)| *name);
    let name = names.find(|name| String::from_utf8_lossy(name) == shown);
    let beginning: &[u8] = b"ERR Unknown option or number of arguments for CONFIG SET - '";
    CommandError::new([beginning, name.unwrap_or(shown.as_bytes()), b"'"].concat())
}

fn resetstat(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let rejected_connections = ctx.host.facts().rejected_connections;
    ctx.telemetry().stats.reset(rejected_connections);
    ctx.reset_keyspace_stats();
    ctx.reset_eviction_stats();
    ctx.reply.ok();
    Ok(())
}

pub(super) fn rewrite(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    ctx.note_users_for_rewrite();
    let parts = ctx.parts();
    let written = parts.host.rewrite_config(parts.config);
    written.map_err(|text| CommandError::new(format!("ERR {text}")))?;
    ctx.reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::config::NotifyFlags;
    use crate::engine::session::Peer;
    use crate::testing::Lab;

    #[test]
    fn get_answers_each_match_of_several_patterns_once() {
        let mut lab = Lab::new();
        lab.check(&[
            (
                "CONFIG GET hz MAXMEMORY maxm*samples hz",
                "*6\r\n$2\r\nhz\r\n$2\r\n10\r\n$9\r\nMAXMEMORY\r\n$1\r\n0\r\n$17\r\nmaxmemory-samples\r\n$1\r\n5\r\n",
            ),
            ("CONFIG GET nothing", "*0\r\n"),
            (
                "CONFIG GET",
                "-ERR wrong number of arguments for 'config|get' command\r\n",
            ),
        ]);
        lab.run("HELLO 3");
        lab.check(&[("CONFIG GET hz", "%1\r\n$2\r\nhz\r\n$2\r\n10\r\n")]);
    }

    #[test]
    fn set_changes_all_or_nothing() {
        let mut lab = Lab::new();
        lab.check(&[
            ("CONFIG SET hz 20 maxmemory 1kb", "+OK\r\n"),
            (
                "CONFIG GET hz maxmemory",
                "*4\r\n$2\r\nhz\r\n$2\r\n20\r\n$9\r\nmaxmemory\r\n$4\r\n1024\r\n",
            ),
            (
                "CONFIG SET hz 30 maxmemory x",
                "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value\r\n",
            ),
            (
                "CONFIG SET hz 30 nope 1",
                "-ERR Unknown option or number of arguments for CONFIG SET - 'nope'\r\n",
            ),
            ("CONFIG SET hz 30 maxmemory", "-ERR syntax error\r\n"),
            (
                "CONFIG SET databases 3",
                "-ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config\r\n",
            ),
            ("CONFIG GET hz", "*2\r\n$2\r\nhz\r\n$2\r\n20\r\n"),
        ]);
        let words: [&[u8]; 4] = [b"CONFIG", b"SET", b"no\xff", b"1"];
        assert_eq!(
            lab.send_raw(lab.client, &words),
            b"-ERR Unknown option or number of arguments for CONFIG SET - 'no\xff'\r\n"
        );
    }

    #[test]
    fn what_the_host_cannot_apply_is_taken_back() {
        let mut lab = Lab::new();
        lab.host.refuses = Some("port");
        lab.check(&[
            (
                "CONFIG SET hz 30 port 7000",
                "-ERR CONFIG SET failed (possibly related to argument 'port') - the lab refuses\r\n",
            ),
            (
                "CONFIG GET hz port",
                "*4\r\n$2\r\nhz\r\n$2\r\n10\r\n$4\r\nport\r\n$4\r\n6379\r\n",
            ),
        ]);
    }

    #[test]
    fn a_change_acts_at_once() {
        let mut lab = Lab::new();
        lab.check(&[
            ("CONFIG SET notify-keyspace-events KEA", "+OK\r\n"),
            ("CONFIG SET max-keys 1", "+OK\r\n"),
            ("SET a 1", "+OK\r\n"),
        ]);
        assert!(lab.run("SET b 1").starts_with("-OOM"));
        assert_ne!(lab.store.keyspace.notify, NotifyFlags::NONE);
    }

    #[test]
    fn protected_directives_follow_the_peer() {
        let mut lab = Lab::new();
        lab.configure("enable-protected-configs", "local");
        assert!(lab.run("CONFIG SET dir /tmp").starts_with("-ERR CONFIG"));
        let now = lab.host.now;
        for (addr, unix) in [("127.0.0.1:4000", false), ("[::1]:4000", false), ("", true)] {
            let peer = Peer {
                addr: addr.into(),
                unix,
                ..Peer::default()
            };
            let local = lab.store.connect(peer, now);
            assert_eq!(lab.run_as(local, "CONFIG SET dir /tmp"), "+OK\r\n");
        }
    }

    #[test]
    fn resetstat_forgets_what_was_counted() {
        let mut lab = Lab::new();
        lab.check(&[
            ("GET a", "$-1\r\n"),
            (
                "NOPE",
                "-ERR unknown command 'NOPE', with args beginning with: \r\n",
            ),
        ]);
        assert!(lab.run("INFO stats").contains("keyspace_misses:1\r\n"));
        lab.check(&[("CONFIG RESETSTAT", "+OK\r\n")]);
        let info = lab.run("INFO everything");
        for line in [
            "keyspace_misses:0",
            "total_error_replies:0",
            "total_commands_processed:1",
            "cmdstat_config|resetstat:calls=1",
        ] {
            assert!(info.contains(line), "{line} in {info}");
        }
        assert!(!info.contains("cmdstat_get"), "{info}");
        assert!(!info.contains("errorstat_"), "{info}");
    }

    #[test]
    fn rewrite_says_what_the_host_says() {
        Lab::new().check(&[(
            "CONFIG REWRITE",
            "-ERR The server is running without a config file\r\n",
        )]);
    }
}
