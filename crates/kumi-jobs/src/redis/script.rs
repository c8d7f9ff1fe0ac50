//! The scripts: one text each, sent by its hash and, where the server does not know it, in full.

use ::redis::{Cmd, cmd};
use std::sync::LazyLock;

/// A script and its hash.
pub(super) struct Script {
    code: String,
    hash: String,
}

impl Script {
    fn new(body: &str) -> Self {
        Self::alone(format!("{}{body}", include_str!("lua/lib.lua")))
    }

    /// A script without lib.lua.
    fn alone(code: String) -> Self {
        let hash = ::redis::Script::new(&code).get_hash().to_owned();
        Self { code, hash }
    }

    /// The call by hash, or with the whole text.
    pub(super) fn command(&self, in_full: bool, prefix: &str, args: &[Vec<u8>]) -> Cmd {
        let mut command = match in_full {
            true => cmd("EVAL"),
            false => cmd("EVALSHA"),
        };
        command
            .arg(if in_full { &self.code } else { &self.hash })
            .arg(1)
            .arg(prefix);
        for arg in args {
            command.arg(arg.as_slice());
        }
        command
    }
}

macro_rules! script {
    ($name:ident, $file:literal) => {
        pub(super) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(include_str!(concat!("lua/", $file))));
    };
}

script!(ENQUEUE, "enqueue.lua");
script!(TURN, "turn.lua");
script!(REAP, "reap.lua");
script!(RELEASE, "release.lua");
script!(CANCEL, "cancel.lua");
script!(ADMIN, "admin.lua");
script!(BROWSE, "browse.lua");

pub(super) static UPGRADE: LazyLock<Script> =
    LazyLock::new(|| Script::alone(include_str!("lua/upgrade.lua").to_owned()));

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The commands that the scripts call. All of them, with the options used, are in Redis 6.2.
    const COMMANDS: [&str; 37] = [
        "DEL",
        "EXISTS",
        "EXPIRE",
        "GET",
        "HDEL",
        "HEXISTS",
        "HGET",
        "HGETALL",
        "HINCRBY",
        "HKEYS",
        "HLEN",
        "HMGET",
        "HSCAN",
        "HSET",
        "HSTRLEN",
        "INCR",
        "LINDEX",
        "LLEN",
        "LPOP",
        "LPUSH",
        "LRANGE",
        "LREM",
        "LSET",
        "MGET",
        "RPUSH",
        "SADD",
        "SET",
        "SMEMBERS",
        "TIME",
        "XADD",
        "ZADD",
        "ZCARD",
        "ZCOUNT",
        "ZRANGE",
        "ZRANGEBYSCORE",
        "ZREM",
        "ZSCORE",
    ];

    #[test]
    fn scripts_call_only_what_redis_6_2_has() {
        let scripts = [
            &*ENQUEUE, &*TURN, &*REAP, &*RELEASE, &*CANCEL, &*ADMIN, &*BROWSE, &*UPGRADE,
        ];
        let mut called = BTreeSet::new();
        for script in scripts {
            for part in script.code.split("call('").skip(1) {
                let name = part.split('\'').next().unwrap();
                assert!(COMMANDS.contains(&name), "{name}");
                called.insert(name);
            }
            // A command under a computed name would escape this test.
            let calls = script.code.matches("call(").count();
            let named = script.code.matches("call('").count();
            assert_eq!(calls, named, "call( without a literal name");
        }
        assert_eq!(called.len(), COMMANDS.len(), "{called:?}");
        // The subcommands and options that came after 6.2.
        for newer in [
            "NOVALUES",
            "LMPOP",
            "ZMPOP",
            "GETEX",
            "FUNCTION",
            "redis.REDIS_VERSION",
        ] {
            assert!(
                !scripts.iter().any(|script| script.code.contains(newer)),
                "{newer}"
            );
        }
    }

    #[test]
    fn scripts_have_the_format_of_this_version() {
        let expected = format!("local FORMAT = '{}'\n", super::super::connect::FORMAT);
        let scripts = [
            &*ENQUEUE, &*TURN, &*REAP, &*RELEASE, &*CANCEL, &*ADMIN, &*UPGRADE,
        ];
        for script in scripts {
            assert!(script.code.contains(&expected), "{expected}");
        }
    }
}
