//! The store's users whose passwords are derived, and what they may do.

use super::Secret;

/// What messaging (MUF), jobs and status send, and no more. Patterns of subscriptions are compared with those of an ACL
/// letter by letter, hence all channels. SELECT is for URLs with a database other than 0, WAIT for URLs with `replicas=`.
///
/// CONFIG is not among them: CONFIG GET shows `requirepass` and `masterauth`. The store's own node switches keyspace events
/// on, MUF tries out whether they arrive, and jobs do without their check of `maxmemory-policy`.
pub(super) const NODE_RULES: &str = "\
    resetkeys resetchannels -@all ~MUF/* ~kumi:* &* \
    +auth +ping +select +client|setname +client|setinfo +cluster|slots +info \
    +psubscribe +punsubscribe +scan +exists +expire +pexpire +pttl +time +wait \
    +eval +evalsha +del +get +getrange +incr +incrby +mget +set \
    +hdel +hexists +hget +hgetall +hincrby +hkeys +hlen +hmget +hscan +hset +hstrlen \
    +blpop +lindex +llen +lpop +lpush +lrange +lrem +lset +rpush \
    +sadd +smembers +xadd +xread \
    +zadd +zcard +zcount +zrange +zrangebyscore +zrem +zscore";

/// For programs of the team: all data, and no command that administers the server or can stop it for others.
pub(super) const APP_RULES: &str = "allkeys allchannels +@all -@admin -@dangerous";

/// A user of the store: name, passwords of one or two keys, and rules.
#[derive(Clone, Debug)]
pub struct AclUser {
    name: &'static str,
    passwords: Vec<Secret>,
    rules: &'static str,
}

impl AclUser {
    pub(super) fn new(name: &'static str, passwords: Vec<Secret>, rules: &'static str) -> AclUser {
        AclUser {
            name,
            passwords,
            rules,
        }
    }

    /// The user's name, `kumi-node` or `kumi-app`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The password to log in with: the first key's.
    pub fn password(&self) -> &Secret {
        &self.passwords[0]
    }

    /// The words after `ACL SETUSER name`, or after `user name` in a configuration. They replace what the user was before
    /// and contain hashes of the passwords, not the passwords.
    pub fn rules(&self) -> Vec<String> {
        let hashes = self
            .passwords
            .iter()
            .map(|one| format!("#{}", one.sha256_hex()));
        let rules = self.rules.split_whitespace().map(str::to_owned);
        let begin = ["reset".to_owned(), "on".to_owned()];
        begin.into_iter().chain(hashes).chain(rules).collect()
    }
}
