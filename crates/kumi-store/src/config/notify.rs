//! The classes of keyspace events, as the letters of `notify-keyspace-events`.
//!
//! This file holds the set and its text. The keyspace calls [`NotifyFlags::contains`] before it builds a channel name.

/// A set of event classes and of the two kinds of channel they may go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NotifyFlags(u16);

/// Classes in the order the canonical text names them.
const CLASSES: [(u8, NotifyFlags); 11] = [
    (b'g', NotifyFlags::GENERIC),
    (b'$', NotifyFlags::STRING),
    (b'l', NotifyFlags::LIST),
    (b's', NotifyFlags::SET),
    (b'h', NotifyFlags::HASH),
    (b'z', NotifyFlags::ZSET),
    (b'x', NotifyFlags::EXPIRED),
    (b'e', NotifyFlags::EVICTED),
    (b't', NotifyFlags::STREAM),
    (b'd', NotifyFlags::MODULE),
    (b'n', NotifyFlags::NEW),
];

/// The letters that follow the classes, after `A` too.
const BESIDES: [(u8, NotifyFlags); 3] = [
    (b'K', NotifyFlags::KEYSPACE),
    (b'E', NotifyFlags::KEYEVENT),
    (b'm', NotifyFlags::KEY_MISS),
];

impl NotifyFlags {
    /// No events at all.
    pub const NONE: Self = Self(0);
    /// `K`: publish on `__keyspace@<db>__:<key>`.
    pub const KEYSPACE: Self = Self(1 << 0);
    /// `E`: publish on `__keyevent@<db>__:<event>`.
    pub const KEYEVENT: Self = Self(1 << 1);
    /// `g`: commands of no particular type, such as DEL and EXPIRE.
    pub const GENERIC: Self = Self(1 << 2);
    /// `$`: string commands.
    pub const STRING: Self = Self(1 << 3);
    /// `l`: list commands.
    pub const LIST: Self = Self(1 << 4);
    /// `s`: set commands.
    pub const SET: Self = Self(1 << 5);
    /// `h`: hash commands.
    pub const HASH: Self = Self(1 << 6);
    /// `z`: sorted set commands.
    pub const ZSET: Self = Self(1 << 7);
    /// `x`: a key reached its deadline.
    pub const EXPIRED: Self = Self(1 << 8);
    /// `e`: a key was evicted to stay below maxmemory.
    pub const EVICTED: Self = Self(1 << 9);
    /// `t`: stream commands.
    pub const STREAM: Self = Self(1 << 10);
    /// `m`: a read found no key. Not part of `A`.
    pub const KEY_MISS: Self = Self(1 << 11);
    /// `d`: key types of modules.
    pub const MODULE: Self = Self(1 << 13);
    /// `n`: a key was created. Not part of `A`.
    pub const NEW: Self = Self(1 << 14);
    /// `A`: every class but `m` and `n`.
    pub const ALL: Self = Self(
        Self::GENERIC.0
            | Self::STRING.0
            | Self::LIST.0
            | Self::SET.0
            | Self::HASH.0
            | Self::ZSET.0
            | Self::EXPIRED.0
            | Self::EVICTED.0
            | Self::STREAM.0
            | Self::MODULE.0,
    );

    /// Whether all of `other` is in this set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether this set and `other` have a class in common.
    #[inline]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Both sets together.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether an event of `class` is published: the class and at least one kind of channel are on.
    #[inline]
    pub const fn publishes(self, class: Self) -> bool {
        self.intersects(class) && self.intersects(Self(Self::KEYSPACE.0 | Self::KEYEVENT.0))
    }

    /// Parses the letters in any order; `None` if one of them is unknown.
    pub fn parse(letters: &[u8]) -> Option<Self> {
        letters.iter().try_fold(Self::NONE, |flags, &letter| {
            let one = if letter == b'A' {
                Self::ALL
            } else {
                CLASSES
                    .iter()
                    .chain(&BESIDES)
                    .find(|(known, _)| *known == letter)?
                    .1
            };
            Some(flags.union(one))
        })
    }

    /// The letters in Redis's order. With every class of `A` on, `n` is not shown, because Redis does not show it.
    pub fn letters(self) -> String {
        let mut letters = String::new();
        if self.contains(Self::ALL) {
            letters.push('A');
        } else {
            letters.extend(self.named(&CLASSES));
        }
        letters.extend(self.named(&BESIDES));
        letters
    }

    /// The letters with `n` behind `A` too: what CONFIG REWRITE writes, so that no event is lost at the next start.
    pub(super) fn letters_in_full(self) -> String {
        let hides_new = self.contains(Self::ALL) && self.contains(Self::NEW);
        if hides_new {
            self.letters().replacen('A', "An", 1)
        } else {
            self.letters()
        }
    }

    fn named(self, table: &[(u8, Self)]) -> impl Iterator<Item = char> {
        table
            .iter()
            .filter(move |(_, flag)| self.contains(*flag))
            .map(|&(letter, _)| char::from(letter))
    }
}

#[cfg(test)]
mod tests {
    use super::NotifyFlags;

    #[test]
    fn letters_come_back_in_the_order_redis_prints() {
        // Pairs seen on a redis-server 7.0.15.
        for (given, shown) in [
            ("", ""),
            ("KEA", "AKE"),
            ("KEg$lshzxetdmn", "AKEm"),
            ("g$lshzxetd", "A"),
            ("g$lshzxet", "g$lshzxet"),
            ("An", "A"),
            ("Amn", "Am"),
            ("Emn", "nEm"),
            ("Kg", "gK"),
            ("dA", "A"),
            ("d", "d"),
        ] {
            let flags = NotifyFlags::parse(given.as_bytes());
            assert_eq!(
                flags.map(NotifyFlags::letters).as_deref(),
                Some(shown),
                "{given}"
            );
        }
    }

    #[test]
    fn an_unknown_letter_is_refused() {
        assert_eq!(NotifyFlags::parse(b"KEq"), None);
        assert_eq!(NotifyFlags::parse(b"K E"), None);
    }

    #[test]
    fn events_without_a_channel_go_nowhere() {
        let flags = NotifyFlags::ALL;
        assert!(!flags.publishes(NotifyFlags::GENERIC));
        assert!(
            flags
                .union(NotifyFlags::KEYEVENT)
                .publishes(NotifyFlags::GENERIC)
        );
        assert!(
            !flags
                .union(NotifyFlags::KEYEVENT)
                .publishes(NotifyFlags::NEW)
        );
    }

    #[test]
    fn new_stays_on_although_it_is_not_shown_behind_all() {
        assert_eq!(
            NotifyFlags::parse(b"An").map(|flags| flags.contains(NotifyFlags::NEW)),
            Some(true)
        );
    }
}
