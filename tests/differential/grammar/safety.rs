//! Keeps requests away that would hurt the test rather than test: ending the reference, stopping the test's own
//! connections, or leaving the run to the clock.

use super::sorted_sets::ONE_SCORE;
use crate::command::{Arg, Request};

/// Deadlines nearer than this could pass in the middle of a sequence.
const NEAREST_DEADLINE: i64 = 60_000;

/// Whether a request, however it came about, may be sent.
pub(crate) fn is_safe(request: &Request) -> bool {
    let words: Vec<String> = (0..request.args.len())
        .map(|index| request.word(index))
        .collect();
    let word = |index: usize| words.get(index).map_or("", String::as_str);
    let rest = words.get(1..).unwrap_or_default();
    match word(0) {
        "shutdown" => {
            let known = ["nosave", "save", "now", "force", "abort"];
            let has = |token: &str| rest.iter().any(|word| word == token);
            rest.iter().any(|word| !known.contains(&word.as_str()))
                || has("abort")
                || (has("save") && has("nosave"))
        }
        "debug" => match word(1) {
            "sleep" => words.len() != 3 || word(2) == "0",
            "set-active-expire" => words.len() != 3 || word(2) == "0",
            "object" | "jmap" | "help" | "digest" | "digest-value" | "" | "foo" => true,
            _ => false,
        },
        "replicaof" | "slaveof" => words.len() != 3 || (word(1) == "no" && word(2) == "one"),
        "wait" => {
            let replicas = word(1).parse::<i64>();
            let timeout = word(2).parse::<i64>();
            words.len() != 3
                || replicas.is_err()
                || timeout.is_err()
                || replicas.is_ok_and(|replicas| replicas <= 0)
                || timeout.is_ok_and(|timeout| (1..50).contains(&timeout) || timeout < 0)
        }
        "client" => client_is_safe(request, &words),
        "monitor" => words.len() != 1,
        // A bare COMMAND DOCS or COMMAND INFO lists everything the server has, which is compared apart.
        "command" => !(matches!(word(1), "docs" | "info") && words.len() == 2),
        // One page from somewhere in the middle is whatever the hash function makes of it.
        "scan" => is_whole_iteration(word(1)),
        "hscan" | "sscan" | "zscan" => is_whole_iteration(word(2)),
        // With repetition, a count is the length of the reply.
        "hrandfield" | "srandmember" | "zrandmember" => !word(2)
            .parse::<i64>()
            .is_ok_and(|count| (i64::MIN + 1..-1000).contains(&count)),
        // Where scores differ, Redis does not say what a range of members is.
        "zrangebylex" | "zrevrangebylex" | "zlexcount" | "zremrangebylex" => {
            words.len() < 2 || word(1) == ONE_SCORE
        }
        "zrange" if rest.iter().any(|word| word == "bylex") => word(1) == ONE_SCORE,
        "zadd" if word(1) == ONE_SCORE => words.iter().skip(2).step_by(2).all(|score| score == "0"),
        "zrangestore" if rest.iter().any(|word| word == "bylex") => {
            word(2) == ONE_SCORE && word(1) != ONE_SCORE
        }
        "zincrby" | "zrangestore" | "zunionstore" | "zinterstore" | "zdiffstore" => {
            word(1) != ONE_SCORE
        }
        // Elements whose texts are equal or missing have no promised order, and LIMIT would show some of them.
        "sort" | "sort_ro" => {
            let has = |token: &str| rest.iter().any(|word| word == token);
            !(has("by") && has("alpha") && has("limit"))
        }
        // Which members leave is random, unless all or none do.
        "spop" => {
            words.len() > 2
                && !word(2)
                    .parse::<i64>()
                    .is_ok_and(|count| (1..1000).contains(&count))
        }
        // The clocks of the servers differ, and so would the ids.
        "xadd" => !rest.iter().any(|word| word == "*"),
        // Waiting for a moment is as good as waiting for ever, and ends.
        "xread" | "xreadgroup" => words.windows(2).all(|pair| {
            let waits = pair[0] == "block" && pair[1].parse::<i64>().is_ok();
            !waits || pair[1].starts_with('-') || matches!(pair[1].as_str(), "1" | "2" | "3")
        }),
        "blpop" | "brpop" | "blmove" | "brpoplpush" | "bzpopmin" | "bzpopmax" => {
            words.len() < 3 || is_short_timeout(words.last().map_or("", String::as_str))
        }
        "blmpop" | "bzmpop" => is_short_timeout(word(1)),
        // How long something has been idle depends on the machine, unless it is nothing or very long.
        "xclaim" | "xautoclaim" => idle_is_certain(word(4)),
        "xpending" => word(3) != "idle" || idle_is_certain(word(4)),
        "config" if word(1) == "set" => config_is_safe(rest),
        "restore" | "restore-asking" => word(2) == "0" || no_near_deadline(request, 2),
        "set" => no_near_deadline(request, 3),
        "setex" | "psetex" | "getex" | "expire" | "pexpire" => no_near_deadline(request, 2),
        "setrange" => {
            // Half a gigabyte of zeros on two servers is too much to ask.
            let offset = word(2).parse::<i64>().unwrap_or(0);
            let length = match request.args.get(3) {
                Some(Arg::Bytes(bytes)) => bytes.len() as i64,
                _ => 0,
            };
            !(1_000_000..=536_870_912).contains(&offset)
                || (length > 0 && offset + length > 536_870_912)
        }
        // The same for bits: what is too far is refused, what is near is small.
        "setbit" => bit_is_near(word(2)),
        "bitfield" => words
            .iter()
            .all(|word| bit_is_near(word.trim_start_matches('#'))),
        _ => true,
    }
}

/// Whether waiting so many seconds is over in a moment, or the number is refused.
fn is_short_timeout(seconds: &str) -> bool {
    let seconds = seconds.parse::<f64>();
    seconds.map_or(true, |seconds| {
        seconds < 0.0 || (0.0005..0.005).contains(&seconds) || seconds.is_nan()
    })
}

fn idle_is_certain(millis: &str) -> bool {
    let millis = millis.parse::<i64>();
    millis.map_or(true, |millis| millis <= 0 || millis >= 100_000_000)
}

/// Whether a cursor begins an iteration, or is none.
fn is_whole_iteration(cursor: &str) -> bool {
    let digits = cursor.trim_start_matches(['-', '+']);
    cursor == "0"
        || digits.is_empty()
        || !digits.bytes().all(|byte| byte.is_ascii_digit())
        || digits.len() > 20
}

fn bit_is_near(offset: &str) -> bool {
    let offset = offset.parse::<i64>().unwrap_or(0);
    !(100_000..=4_294_967_296).contains(&offset)
}

fn client_is_safe(request: &Request, words: &[String]) -> bool {
    let word = |index: usize| words.get(index).map_or("", String::as_str);
    match word(1) {
        "pause" => words.len() < 3 || !word(2).parse::<i64>().is_ok_and(|millis| millis > 1),
        "reply" => !matches!(word(2), "off" | "skip"),
        "kill" if words.len() > 3 => {
            // Filters are joined by AND: one that names a client of the sequence keeps all others alive. So does one
            // that can match nobody.
            let names_a_client = request.args[2..]
                .chunks(2)
                .enumerate()
                .any(|(index, pair)| {
                    word(2 + 2 * index) == "id" && matches!(pair.get(1), Some(Arg::ClientId(_)))
                });
            let harmless = [
                "foo",
                "master",
                "replica",
                "slave",
                "nobody",
                "",
                "127.0.0.1:1",
                "maybe",
                "999999999",
            ];
            names_a_client
                || (words.len() == 4 && word(2) != "skipme" && harmless.contains(&word(3)))
                || (words.len() == 4 && word(2) == "skipme" && word(3) != "yes" && word(3) != "no")
                || (words.len() == 4 && word(2) == "id")
        }
        "kill" => !matches!(request.args.get(2), Some(Arg::SocketAddress)),
        _ => true,
    }
}

fn config_is_safe(rest: &[String]) -> bool {
    rest.get(1..).unwrap_or_default().chunks(2).all(|pair| {
        let value = pair.get(1).map_or("", String::as_str);
        match pair[0].as_str() {
            // Too little for anything, or enough for everything: in between, the servers' sizes would decide.
            "maxmemory" => value
                .parse::<i64>()
                .map_or(true, |limit| !(2..=1_000_000_000).contains(&limit)),
            // Limits so tight that the test's own connections would fall to them.
            "maxclients" => !value
                .parse::<i64>()
                .is_ok_and(|limit| (1..1000).contains(&limit)),
            "timeout" => !value
                .parse::<i64>()
                .is_ok_and(|seconds| (1..600).contains(&seconds)),
            "client-query-buffer-limit"
            | "client-output-buffer-limit"
            | "databases"
            | "port"
            | "bind" => {
                value.parse::<i64>().is_err() || value == "1" || value == "16" || value == "8"
            }
            // With more allowed, SETRANGE would really allocate it.
            "proto-max-bulk-len" => value
                .parse::<i64>()
                .map_or(!value.ends_with("gb"), |limit| limit <= 536_870_912),
            _ => true,
        }
    })
}

fn no_near_deadline(request: &Request, from: usize) -> bool {
    request.args.iter().skip(from).all(|arg| match arg {
        Arg::Bytes(bytes) => !std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| text.parse::<i64>().ok())
            .is_some_and(|number| (1..NEAREST_DEADLINE).contains(&number)),
        _ => true,
    })
}
