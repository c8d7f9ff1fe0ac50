//! Keyspace events of a server: whether it sends those that are needed, and how they are switched on.

use redis::{RedisResult, Value, cmd};

use super::exchange::Exchange;

/// Names for a probe that are tried until a node of a cluster takes one: it refuses most of them if it has few slots.
const PROBE_NAMES: u32 = 1_000;

/// What came of looking at a node's flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Events {
    /// All that is needed was on.
    On,
    /// Something was missing, and is on now.
    Mended,
    /// We may not look, or not set.
    Unknown,
}

/// Adds what is missing to `notify-keyspace-events`, and keeps what is on.
pub(super) async fn ensure_events(commands: &mut impl Exchange, need: &str) -> Events {
    const NAME: &str = "notify-keyspace-events";
    let asked: RedisResult<Vec<String>> = commands.query(cmd("CONFIG").arg("GET").arg(NAME)).await;
    let Some(present) = asked.ok().and_then(|pair| pair.into_iter().nth(1)) else {
        return Events::Unknown;
    };
    let missing: String = need
        .chars()
        .filter(|&flag| !is_on(&present, flag))
        .collect();
    if missing.is_empty() {
        return Events::On;
    }
    let wanted = format!("{present}{missing}");
    let mut set = cmd("CONFIG");
    set.arg("SET").arg(NAME).arg(wanted);
    match commands.query(&set).await {
        Ok(()) => Events::Mended,
        Err(_) => Events::Unknown,
    }
}

/// `A` stands for all classes of events, but not for the two kinds of channels, nor for misses and new keys.
fn is_on(present: &str, flag: char) -> bool {
    present.contains(flag) || (present.contains('A') && "g$lshzxetd".contains(flag))
}

/// Sets a key on the node that is asked, and lets it expire at once. Its name, or none if the node wants none: on a
/// cluster each node has some slots, and a name that falls into one of them has to be found.
pub(super) async fn set_probe(
    commands: &mut impl Exchange,
    probe: &str,
) -> RedisResult<Option<String>> {
    for number in 0..PROBE_NAMES {
        let key = match number {
            0 => probe.to_owned(),
            number => format!("{probe}.{number}"),
        };
        let mut set = cmd("SET");
        set.arg(&key).arg("1").arg("PX").arg(1_000);
        match commands.query::<Value>(&set).await {
            Ok(_) => {
                commands
                    .query::<Value>(cmd("PEXPIRE").arg(&key).arg(1))
                    .await?;
                return Ok(Some(key));
            }
            Err(error) if error.code() == Some("MOVED") => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_classes_include_ours_but_not_the_channel() {
        assert!(is_on("AKE", '$') && is_on("AKE", 'x') && is_on("AKE", 'K'));
        assert!(!is_on("AE", 'K'));
        assert!(!is_on("Kx", '$'));
    }
}
