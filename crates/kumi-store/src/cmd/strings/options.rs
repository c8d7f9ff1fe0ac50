//! The options SET and GETEX take, read the way Redis reads them: in any order and case, the last of
//! equal ones wins, and those that contradict each other are a syntax error.

use crate::cmd::expire::invalid_expire_time;
use crate::cmd::parse::integer;
use crate::error::CommandError;
use crate::keyspace::When;
use kumi_resp::Args;

/// What a time on the wire counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
}

/// A time to live as it was sent. It is read only when the command needs it, because its errors come
/// after others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time<'a> {
    pub(super) text: &'a [u8],
    pub(super) unit: Unit,
    /// Since the Unix epoch instead of from now on.
    pub(super) absolute: bool,
}

impl Time<'_> {
    /// The moment it means, in Unix milliseconds.
    pub(super) fn deadline(&self, command: &str, now_ms: u64) -> Result<u64, CommandError> {
        let time = integer(self.text)?;
        let scale = match self.unit {
            Unit::Seconds => 1000,
            Unit::Milliseconds => 1,
        };
        let base = if self.absolute { 0 } else { now_ms };
        u64::try_from(time)
            .ok()
            .filter(|&time| time > 0)
            .and_then(|time| time.checked_mul(scale)?.checked_add(base))
            .filter(|&deadline| i64::try_from(deadline).is_ok())
            .ok_or_else(|| invalid_expire_time(command))
    }
}

#[derive(Debug, Default)]
pub(super) struct Options<'a> {
    pub(super) when: When,
    pub(super) get: bool,
    pub(super) keep_ttl: bool,
    pub(super) persist: bool,
    pub(super) time: Option<Time<'a>>,
}

impl<'a> Options<'a> {
    /// Reads what follows SET's key and value.
    pub(super) fn for_set(args: Args<'a>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut words = args.iter();
        while let Some(word) = words.next() {
            let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
            if is(b"nx") && options.when != When::Present {
                options.when = When::Absent;
            } else if is(b"xx") && options.when != When::Absent {
                options.when = When::Present;
            } else if is(b"get") {
                options.get = true;
            } else if is(b"keepttl") && options.time.is_none() {
                options.keep_ttl = true;
            } else {
                options.read_time(word, words.next())?;
            }
        }
        Ok(options)
    }

    /// Reads what follows GETEX's key.
    pub(super) fn for_getex(args: Args<'a>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut words = args.iter();
        while let Some(word) = words.next() {
            if word.eq_ignore_ascii_case(b"persist") && options.time.is_none() {
                options.persist = true;
            } else {
                options.read_time(word, words.next())?;
            }
        }
        Ok(options)
    }

    fn read_time(&mut self, word: &[u8], text: Option<&'a [u8]>) -> Result<(), CommandError> {
        let (unit, absolute) = match word.to_ascii_lowercase().as_slice() {
            b"ex" => (Unit::Seconds, false),
            b"px" => (Unit::Milliseconds, false),
            b"exat" => (Unit::Seconds, true),
            b"pxat" => (Unit::Milliseconds, true),
            _ => return Err(CommandError::SYNTAX),
        };
        let same = |old: &Time<'_>| (old.unit, old.absolute) == (unit, absolute);
        if self.keep_ttl || self.persist || !self.time.as_ref().is_none_or(same) {
            return Err(CommandError::SYNTAX);
        }
        let text = text.ok_or(CommandError::SYNTAX)?;
        self.time = Some(Time {
            text,
            unit,
            absolute,
        });
        Ok(())
    }
}
