//! The directives with a syntax of their own: `bind`, `save`, `client-output-buffer-limit`, `oom-score-adj-values`,
//! `notify-keyspace-events`, `latency-tracking-info-percentiles`, `replicaof`, and the checks of particular texts.
//!
//! It parses and prints them, and does not resolve host names or read files.

use super::value::{Reason, Value, memory_text, parse_decimal, parse_memory};
use super::{NotifyFlags, words};
use crate::base::ids::Class;

/// How many addresses `bind` takes.
pub(super) const MAX_BIND_ADDRESSES: usize = 16;

/// A directive with a syntax of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// Addresses to listen on; `-` before one makes it optional.
    Bind,
    /// Pairs of seconds and changes.
    Save,
    /// Class, hard limit, soft limit, soft seconds.
    OutputLimits,
    /// Three scores.
    OomScores,
    /// Letters.
    Notify,
    /// Numbers from 0 to 100.
    Percentiles,
    /// Host and port, or `no one`.
    ReplicaOf,
}

/// When a client that does not read its replies is closed. Zero means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLimit {
    /// Closed at once above this many bytes.
    pub hard_bytes: u64,
    /// Closed after `soft_seconds` above this many bytes.
    pub soft_bytes: u64,
    /// How long the soft limit may be exceeded continuously.
    pub soft_seconds: u64,
}

/// The output limits of each class of client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLimits {
    /// Ordinary clients, MONITOR included.
    pub normal: OutputLimit,
    /// Replicas.
    pub replica: OutputLimit,
    /// Clients with a subscription.
    pub pubsub: OutputLimit,
}

/// The server a replica follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaOf {
    /// Host name or address.
    pub host: Vec<u8>,
    /// TCP port.
    pub port: u16,
}

impl OutputLimits {
    #[inline]
    pub(crate) fn of(&self, class: Class) -> OutputLimit {
        match class {
            Class::Normal => self.normal,
            Class::Pubsub => self.pubsub,
        }
    }

    fn class_mut(&mut self, name: &[u8]) -> Option<&mut OutputLimit> {
        match name.to_ascii_lowercase().as_slice() {
            b"normal" => Some(&mut self.normal),
            b"slave" | b"replica" => Some(&mut self.replica),
            b"pubsub" => Some(&mut self.pubsub),
            _ => None,
        }
    }
}

impl Special {
    pub(super) fn takes_many_words(self) -> bool {
        self != Special::Notify
    }

    pub(super) fn parse(self, words: &[&[u8]], current: &Value) -> Result<Value, Reason> {
        match self {
            Special::Bind => parse_bind(words),
            Special::Save => parse_save(words),
            Special::OutputLimits => parse_output_limits(words, current),
            Special::OomScores => parse_oom_scores(words),
            Special::Notify => parse_notify(words),
            Special::Percentiles => parse_percentiles(words),
            Special::ReplicaOf => parse_replica_of(words),
        }
    }
}

fn parse_bind(words: &[&[u8]]) -> Result<Value, Reason> {
    if words.len() > MAX_BIND_ADDRESSES {
        return Err("Too many bind addresses specified.".into());
    }
    // A single empty word means no address, as `bind ""` in a file.
    let words = if words == [b""] { &[] } else { words };
    Ok(Value::Addresses(
        words.iter().map(|word| word.to_vec()).collect(),
    ))
}

fn parse_save(words: &[&[u8]]) -> Result<Value, Reason> {
    const INVALID: &str = "Invalid save parameters";
    let words = if words == [b""] { &[] } else { words };
    let (pairs, []) = words.as_chunks() else {
        return Err(INVALID.into());
    };
    let points = pairs.iter().map(|[seconds, changes]| {
        let point = (parse_decimal(seconds)?, parse_decimal(changes)?);
        (point.0 >= 1 && point.1 >= 0).then_some(point)
    });
    points
        .collect::<Option<_>>()
        .map(Value::SavePoints)
        .ok_or(INVALID.into())
}

fn parse_output_limits(words: &[&[u8]], current: &Value) -> Result<Value, Reason> {
    let mut limits = if let Value::OutputLimits(limits) = current {
        *limits
    } else {
        OutputLimits::default()
    };
    let (groups, []) = words.as_chunks() else {
        return Err("Wrong number of arguments in buffer limit configuration.".into());
    };
    for [class, hard, soft, seconds] in groups {
        let class = limits
            .class_mut(class)
            .ok_or("Invalid client class specified in buffer limit configuration.")?;
        let seconds = parse_decimal(seconds).and_then(|seconds| u64::try_from(seconds).ok());
        let (Some(hard_bytes), Some(soft_bytes), Some(soft_seconds)) =
            (parse_memory(hard), parse_memory(soft), seconds)
        else {
            return Err(
                "Error in hard, soft or soft_seconds setting in buffer limit configuration.".into(),
            );
        };
        *class = OutputLimit {
            hard_bytes,
            soft_bytes,
            soft_seconds,
        };
    }
    Ok(Value::OutputLimits(limits))
}

fn parse_oom_scores(words: &[&[u8]]) -> Result<Value, Reason> {
    let words: [&[u8]; 3] = words.try_into().map_err(|_| "wrong number of arguments")?;
    let mut scores = [0; 3];
    for (score, word) in scores.iter_mut().zip(words) {
        *score = parse_decimal(word)
            .and_then(|score| i32::try_from(score).ok())
            .filter(|score| (-2000..=2000).contains(score))
            .ok_or("Invalid oom-score-adj-values, elements must be between -2000 and 2000.")?;
    }
    Ok(Value::OomScores(scores))
}

fn parse_notify(words: &[&[u8]]) -> Result<Value, Reason> {
    let &[letters] = words else {
        return Err("wrong number of arguments".into());
    };
    NotifyFlags::parse(letters)
        .map(Value::Notify)
        .ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".into())
}

fn parse_percentiles(words: &[&[u8]]) -> Result<Value, Reason> {
    let words = if words == [b""] { &[] } else { words };
    let mut percentiles = Vec::with_capacity(words.len());
    for word in words {
        let percentile = std::str::from_utf8(word)
            .ok()
            .and_then(|word| word.parse::<f64>().ok())
            .filter(|percentile| !percentile.is_nan())
            .ok_or("Invalid latency-tracking-info-percentiles parameters")?;
        if !(0.0..=100.0).contains(&percentile) {
            return Err(
                "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"
                    .into(),
            );
        }
        percentiles.push(percentile);
    }
    Ok(Value::Percentiles(percentiles))
}

fn parse_replica_of(words: &[&[u8]]) -> Result<Value, Reason> {
    let &[host, port] = words else {
        return Err("wrong number of arguments".into());
    };
    if host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one") {
        return Ok(Value::ReplicaOf(None));
    }
    let port = parse_decimal(port)
        .and_then(|port| u16::try_from(port).ok())
        .ok_or("Invalid master port")?;
    Ok(Value::ReplicaOf(Some(ReplicaOf {
        host: host.to_vec(),
        port,
    })))
}

/// The canonical text of the values that only this file makes.
pub(super) fn text(value: &Value) -> Vec<u8> {
    match value {
        Value::Addresses(addresses) => addresses.join(&b' '),
        Value::SavePoints(points) => {
            let points: Vec<String> = points
                .iter()
                .map(|(seconds, changes)| format!("{seconds} {changes}"))
                .collect();
            points.join(" ").into_bytes()
        }
        Value::OutputLimits(limits) => {
            let classes = [
                ("normal", limits.normal),
                ("slave", limits.replica),
                ("pubsub", limits.pubsub),
            ];
            let classes = classes.map(|(name, limit)| {
                format!(
                    "{name} {} {} {}",
                    limit.hard_bytes, limit.soft_bytes, limit.soft_seconds
                )
            });
            classes.join(" ").into_bytes()
        }
        Value::OomScores(scores) => scores.map(|score| score.to_string()).join(" ").into_bytes(),
        Value::Notify(flags) => flags.letters().into_bytes(),
        Value::Percentiles(percentiles) => {
            let percentiles: Vec<String> = percentiles
                .iter()
                .map(|&number| percentile_text(number))
                .collect();
            percentiles.join(" ").into_bytes()
        }
        Value::ReplicaOf(Some(master)) => {
            [&master.host, master.port.to_string().as_bytes()].join(&b' ')
        }
        _ => Vec::new(),
    }
}

/// What CONFIG REWRITE writes for them, one text per line.
pub(super) fn lines(value: &Value) -> Vec<Vec<u8>> {
    match value {
        Value::OutputLimits(limits) => [
            ("normal", limits.normal),
            ("replica", limits.replica),
            ("pubsub", limits.pubsub),
        ]
        .map(|(name, limit)| {
            let [hard, soft] =
                [limit.hard_bytes, limit.soft_bytes].map(|bytes| memory_text(bytes.into()));
            format!("{name} {hard} {soft} {}", limit.soft_seconds).into_bytes()
        })
        .into(),
        Value::SavePoints(points) if !points.is_empty() => points
            .iter()
            .map(|(seconds, changes)| format!("{seconds} {changes}").into_bytes())
            .collect(),
        Value::ReplicaOf(None) => vec![b"no one".to_vec()],
        Value::Notify(flags) => vec![words::quoted(flags.letters_in_full().as_bytes())],
        // In full, where CONFIG GET rounds to six decimals.
        Value::Percentiles(percentiles) if !percentiles.is_empty() => {
            let percentiles: Vec<String> = percentiles.iter().map(f64::to_string).collect();
            vec![percentiles.join(" ").into_bytes()]
        }
        other => {
            let text = text(other);
            vec![if text.is_empty() {
                b"\"\"".to_vec()
            } else {
                text
            }]
        }
    }
}

/// A percentile with at most six decimals and no zeros at the end: `50`, `99.9`.
fn percentile_text(percentile: f64) -> String {
    let text = format!("{percentile:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Accepts any text.
pub(super) fn any_text(_: &[u8]) -> Result<(), &'static str> {
    Ok(())
}

pub(super) fn database_file(name: &[u8]) -> Result<(), &'static str> {
    if name.contains(&b'/') {
        Err("dbfilename can't be a path, just a filename")
    } else {
        Ok(())
    }
}

pub(super) fn append_file(name: &[u8]) -> Result<(), &'static str> {
    if name.is_empty() {
        Err("appendfilename can't be empty")
    } else if name.contains(&b'/') {
        Err("appendfilename can't be a path, just a filename")
    } else {
        Ok(())
    }
}

pub(super) fn append_directory(name: &[u8]) -> Result<(), &'static str> {
    if name.is_empty() {
        Err("appenddirname can't be empty")
    } else if name.contains(&b'/') {
        Err("appenddirname can't be a path, just a dirname")
    } else {
        Ok(())
    }
}

pub(super) fn announced_hostname(name: &[u8]) -> Result<(), &'static str> {
    if name.len() >= 256 {
        Err("Hostnames must be less than 256 characters")
    } else if !name
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(byte))
    {
        Err("Hostnames may only contain alphanumeric characters, hyphens or dots")
    } else {
        Ok(())
    }
}

pub(super) fn announced_node_name(name: &[u8]) -> Result<(), &'static str> {
    if name
        .iter()
        .any(|byte| b"!#$%&()*+:;<>?@[]^{|}~".contains(byte))
    {
        Err("Announced human node name contained invalid character")
    } else {
        Ok(())
    }
}

/// The process title may name these between braces; `{{` is a brace. As in Redis, a template that expands to nothing but
/// spaces while the title is empty is refused.
pub(super) fn title_template(template: &[u8]) -> Result<(), &'static str> {
    const KNOWN: [&[u8]; 7] = [
        b"title",
        b"listen-addr",
        b"server-mode",
        b"port",
        b"tls-port",
        b"unixsocket",
        b"config-file",
    ];
    /// The title is empty for this check, and outside a Redis Cluster the mode always is.
    const EMPTY: [&[u8]; 2] = [b"title", b"server-mode"];
    const INVALID: &str = "template format is invalid or contains unknown variables";
    let has_text = |text: &[u8]| text.iter().any(|&byte| byte != b' ');
    let mut rest = template;
    let mut expands = false;
    while let Some(open) = rest.iter().position(|&byte| byte == b'{') {
        expands |= has_text(&rest[..open]);
        rest = &rest[open + 1..];
        if let Some(after) = rest.strip_prefix(b"{") {
            rest = after;
            expands = true;
            continue;
        }
        let close = rest.iter().position(|&byte| byte == b'}');
        match close {
            Some(close) if KNOWN.contains(&&rest[..close]) => {
                expands |= !EMPTY.contains(&&rest[..close]);
                rest = &rest[close + 1..];
            }
            _ => return Err(INVALID),
        }
    }
    if expands || has_text(rest) {
        Ok(())
    } else {
        Err(INVALID)
    }
}
