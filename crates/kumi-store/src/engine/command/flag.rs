//! Command flags, as COMMAND INFO names them.

pub(crate) const WRITE: u32 = 1 << 0;
pub(crate) const READONLY: u32 = 1 << 1;
pub(crate) const DENYOOM: u32 = 1 << 2;
pub(crate) const ADMIN: u32 = 1 << 3;
pub(crate) const PUBSUB: u32 = 1 << 4;
pub(crate) const NOSCRIPT: u32 = 1 << 5;
pub(crate) const BLOCKING: u32 = 1 << 6;
pub(crate) const LOADING: u32 = 1 << 7;
pub(crate) const STALE: u32 = 1 << 8;
pub(crate) const SKIP_MONITOR: u32 = 1 << 9;
pub(crate) const SKIP_SLOWLOG: u32 = 1 << 10;
pub(crate) const FAST: u32 = 1 << 11;
pub(crate) const NO_AUTH: u32 = 1 << 12;
/// Not shown by COMMAND INFO: the command may write on behalf of another.
pub(crate) const MAY_REPLICATE: u32 = 1 << 13;
pub(crate) const NO_MULTI: u32 = 1 << 14;
pub(crate) const ALLOW_BUSY: u32 = 1 << 15;
pub(crate) const NO_ASYNC_LOADING: u32 = 1 << 16;
pub(crate) const MOVABLE_KEYS: u32 = 1 << 17;
/// Not shown: acts on a transaction instead of being queued in it.
pub(crate) const UNQUEUED: u32 = 1 << 18;
/// Not shown: ends a transaction, so it is let through even when memory is short.
pub(crate) const ENDS_TRANSACTION: u32 = 1 << 20;
/// Not shown: a RESP2 client may send it while subscribed.
pub(crate) const WHILE_SUBSCRIBED: u32 = 1 << 19;

/// Not shown: decides how the requests behind it are decoded, so they are not decoded ahead.
pub(crate) const CHANGES_INPUT: u32 = 1 << 21;

/// Not shown: takes the same time whatever the data, as FAST commands do, though Redis does not call it fast.
pub(crate) const CONSTANT_TIME: u32 = 1 << 24;
/// Commands that may share a reading of the clock.
pub(crate) const BRIEF: u32 = FAST | CONSTANT_TIME;

/// The command is answered while a hash slot is imported.
pub(crate) const ASKING: u32 = 1 << 22;
/// It has keys, but a request may have none.
pub(crate) const NO_MANDATORY_KEYS: u32 = 1 << 23;

/// Not shown: runs the commands of a transaction, and is refused, held or counted for what they do.
pub(crate) const RUNS_QUEUED: u32 = 1 << 25;
/// Not shown: refused like a write while the disk fails, so that a health check notices.
pub(crate) const REFUSED_WITH_WRITES: u32 = 1 << 26;
/// Not shown: of a container after whose subcommands CLIENT CACHING still counts.
pub(crate) const KEEPS_CACHING: u32 = 1 << 27;

/// Wire names, in the order COMMAND INFO prints them.
pub(crate) const NAMES: [(u32, &str); 19] = [
    (WRITE, "write"),
    (READONLY, "readonly"),
    (DENYOOM, "denyoom"),
    (ADMIN, "admin"),
    (PUBSUB, "pubsub"),
    (NOSCRIPT, "noscript"),
    (BLOCKING, "blocking"),
    (LOADING, "loading"),
    (STALE, "stale"),
    (SKIP_MONITOR, "skip_monitor"),
    (SKIP_SLOWLOG, "skip_slowlog"),
    (ASKING, "asking"),
    (FAST, "fast"),
    (NO_AUTH, "no_auth"),
    (NO_MANDATORY_KEYS, "no_mandatory_keys"),
    (NO_MULTI, "no_multi"),
    (ALLOW_BUSY, "allow_busy"),
    (NO_ASYNC_LOADING, "no_async_loading"),
    (MOVABLE_KEYS, "movablekeys"),
];
