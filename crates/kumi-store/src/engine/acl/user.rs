//! A user: its state, its passwords and its selectors, and their description as rules.

use crate::base::glob;
use crate::base::ids::CommandId;
use crate::engine::command::CommandIndex;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a key pattern allows.
pub(crate) const READ: u8 = 1;
pub(crate) const WRITE: u8 = 2;

/// A pattern of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyPattern {
    /// [`READ`], [`WRITE`] or both.
    pub(crate) access: u8,
    /// The pattern is its literal prefix and a star, as most patterns are.
    is_prefix: bool,
    /// Length of the literal prefix: the bytes before the first special character.
    literal: usize,
    /// The first bytes of the literal prefix as [`head`] gives them, and ones over those bytes.
    head: u64,
    mask: u64,
    pub(crate) pattern: Box<[u8]>,
}

/// The first eight bytes of a name as a number; a shorter name is filled up with zeros.
#[inline]
pub(super) fn head(name: &[u8]) -> u64 {
    match name.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => {
            let mut bytes = [0; 8];
            bytes[..name.len()].copy_from_slice(name);
            u64::from_le_bytes(bytes)
        }
    }
}

impl KeyPattern {
    pub(super) fn new(access: u8, pattern: &[u8]) -> Self {
        let literal = glob::literal_prefix(pattern);
        let bytes = literal.min(8);
        Self {
            access,
            is_prefix: pattern[literal..] == *b"*",
            literal,
            head: head(&pattern[..bytes]),
            mask: head(&[0xff; 8][..bytes]),
            pattern: pattern.into(),
        }
    }

    /// Whether the pattern matches a name, whose [`head`] the caller computes once for all patterns.
    #[inline]
    pub(super) fn matches(&self, name: &[u8], head: u64) -> bool {
        head & self.mask == self.head && self.matches_whole(name)
    }

    #[inline]
    fn matches_whole(&self, name: &[u8]) -> bool {
        if self.is_prefix && self.literal <= 8 {
            // The heads are equal; a name shorter than the prefix may have been filled up to it.
            return name.len() >= self.literal.max(1);
        }
        glob::matches_from(&self.pattern, self.literal, name)
    }
}

/// Prefix patterns that [`Prefixes`] holds.
const PREFIXES: usize = 4;

/// The first short prefix patterns of a selector, in one place: the check of a key that begins with one of them reads no
/// other memory. [`Selector::keys`] has all patterns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prefixes {
    known: [Prefix; PREFIXES],
    count: usize,
}

/// A pattern of up to eight bytes and a star.
#[derive(Clone, Copy, Debug, Default)]
struct Prefix {
    head: u64,
    mask: u64,
    len: u8,
    access: u8,
}

impl Prefixes {
    pub(super) fn of(patterns: &[KeyPattern]) -> Self {
        let mut prefixes = Self::default();
        let short = patterns
            .iter()
            .filter(|known| known.is_prefix && known.literal <= 8);
        for (place, known) in prefixes.known.iter_mut().zip(short) {
            *place = Prefix {
                head: known.head,
                mask: known.mask,
                len: known.literal.max(1) as u8,
                access: known.access,
            };
            prefixes.count += 1;
        }
        prefixes
    }

    #[inline]
    pub(super) fn allow(&self, name: &[u8], head: u64, wanted: u8) -> bool {
        self.known.iter().take(self.count).any(|prefix| {
            head & prefix.mask == prefix.head
                && prefix.access & wanted == wanted
                && name.len() >= usize::from(prefix.len)
        })
    }
}

/// Words of 64 bits over the command table.
pub(super) const COMMAND_WORDS: usize = 8;

/// One set of permissions. A request is allowed if any selector of its user allows all of it.
#[derive(Clone, Debug)]
pub(crate) struct Selector {
    /// A bit per row of the command table.
    commands: [u64; COMMAND_WORDS],
    /// What [`Selector::keys`] has, for a quick check.
    pub(super) prefixes: Prefixes,
    /// Every bit is set.
    pub(crate) all_commands: bool,
    /// The rules begin with `+@all`.
    pub(super) from_all: bool,
    /// Rules after that, as they were given: allowed or not, and the name in small letters.
    pub(super) command_rules: Vec<(bool, String)>,
    /// Commands that are allowed with these first arguments only.
    pub(super) first_args: BTreeMap<CommandId, Vec<Vec<u8>>>,
    pub(crate) keys: Vec<KeyPattern>,
    pub(crate) all_keys: bool,
    pub(crate) channels: Vec<Box<[u8]>>,
    pub(crate) all_channels: bool,
}

impl Selector {
    /// Allows nothing.
    pub(crate) fn empty(index: &CommandIndex, all_channels: bool) -> Self {
        debug_assert!(index.len() <= 64 * COMMAND_WORDS, "each row has a bit");
        Self {
            commands: [0; COMMAND_WORDS],
            prefixes: Prefixes::default(),
            all_commands: false,
            from_all: false,
            command_rules: Vec::new(),
            first_args: BTreeMap::new(),
            keys: Vec::new(),
            all_keys: false,
            channels: Vec::new(),
            all_channels,
        }
    }

    #[inline]
    pub(crate) fn allows(&self, id: CommandId) -> bool {
        let id = usize::from(id.0);
        let word = self.commands.get(id / 64).copied().unwrap_or(0);
        word & 1 << (id % 64) != 0
    }

    pub(super) fn set_command(&mut self, id: CommandId, allowed: bool) {
        let at = usize::from(id.0);
        let bit = 1 << (at % 64);
        if allowed {
            self.commands[at / 64] |= bit;
        } else {
            self.commands[at / 64] &= !bit;
            self.all_commands = false;
        }
        self.first_args.remove(&id);
    }

    pub(super) fn set_all_commands(&mut self, allowed: bool) {
        self.commands.fill(if allowed { u64::MAX } else { 0 });
        self.all_commands = allowed;
        self.from_all = allowed;
        self.command_rules.clear();
        self.first_args.clear();
    }

    #[inline]
    pub(crate) fn is_unrestricted(&self) -> bool {
        self.all_commands && self.all_keys && self.all_channels
    }

    pub(crate) fn describe_commands(&self) -> Vec<u8> {
        let mut text = if self.from_all { "+@all" } else { "-@all" }.to_owned();
        for (allowed, rule) in &self.command_rules {
            text.push_str(if *allowed { " +" } else { " -" });
            text.push_str(rule);
        }
        text.into_bytes()
    }

    pub(crate) fn describe_keys(&self) -> Vec<u8> {
        if self.all_keys {
            return b"~*".to_vec();
        }
        let patterns = self.keys.iter().map(|key| {
            let prefix: &[u8] = match key.access {
                READ => b"%R~",
                WRITE => b"%W~",
                _ => b"~",
            };
            [prefix, &key.pattern].concat()
        });
        patterns.collect::<Vec<_>>().join(&b' ')
    }

    pub(crate) fn describe_channels(&self) -> Vec<u8> {
        if self.all_channels {
            return b"&*".to_vec();
        }
        let patterns = self
            .channels
            .iter()
            .map(|pattern| [b"&", &**pattern].concat());
        patterns.collect::<Vec<_>>().join(&b' ')
    }

    /// The rules that make this selector out of an empty one.
    pub(crate) fn describe(&self) -> Vec<u8> {
        let mut words = Vec::new();
        let keys = self.describe_keys();
        if !keys.is_empty() {
            words.push(keys);
        }
        if !self.all_channels {
            words.push(b"resetchannels".to_vec());
        }
        let channels = self.describe_channels();
        if !channels.is_empty() {
            words.push(channels);
        }
        words.push(self.describe_commands());
        words.join(&b' ')
    }
}

/// A password as it is kept.
pub(crate) type Hash = [u8; 32];

#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) name: Arc<[u8]>,
    pub(crate) enabled: bool,
    /// Any password is right.
    pub(crate) nopass: bool,
    /// `sanitize-payload`, as at first, or `skip-sanitize-payload`. Payloads are always checked.
    pub(crate) sanitize: bool,
    pub(crate) passwords: Vec<Hash>,
    pub(crate) root: Selector,
    pub(crate) selectors: Vec<Selector>,
    /// The program around the server has installed it: commands do not change it, and no file has it.
    pub(crate) is_hosts: bool,
}

impl User {
    /// A new user without permissions.
    pub(crate) fn new(name: Arc<[u8]>, index: &CommandIndex, all_channels: bool) -> Self {
        Self {
            name,
            enabled: false,
            nopass: false,
            sanitize: true,
            passwords: Vec::new(),
            root: Selector::empty(index, all_channels),
            selectors: Vec::new(),
            is_hosts: false,
        }
    }

    /// The default user as it is at first.
    pub(super) fn unrestricted(name: Arc<[u8]>, index: &CommandIndex) -> Self {
        let mut user = Self::new(name, index, true);
        user.enabled = true;
        user.nopass = true;
        user.root.all_keys = true;
        user.root.set_all_commands(true);
        user
    }

    #[inline]
    pub(crate) fn is_unrestricted(&self) -> bool {
        self.root.is_unrestricted()
    }

    pub(crate) fn all_selectors(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.root).chain(&self.selectors)
    }

    /// Compares hashes, and all of them, so that the time it takes says nothing about the password.
    pub(crate) fn has_password(&self, password: &[u8]) -> bool {
        let given = hash(password);
        let mut found = false;
        for known in &self.passwords {
            let mut difference = 0;
            for (known, given) in known.iter().zip(given) {
                difference |= std::hint::black_box(known ^ given);
            }
            found |= difference == 0;
        }
        found
    }

    pub(crate) fn add_password(&mut self, password: &[u8]) {
        self.add_hash(hash(password));
    }

    pub(super) fn add_hash(&mut self, hash: Hash) {
        if !self.passwords.contains(&hash) {
            self.passwords.push(hash);
        }
        self.nopass = false;
    }

    pub(super) fn reset_passwords(&mut self) {
        self.passwords.clear();
        self.nopass = false;
    }

    /// The flags ACL GETUSER shows.
    pub(crate) fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.enabled { "on" } else { "off" }];
        if self.nopass {
            flags.push("nopass");
        }
        flags.push(if self.sanitize {
            "sanitize-payload"
        } else {
            "skip-sanitize-payload"
        });
        flags
    }

    /// The user as a line of `redis.conf` or of an ACL file, without the word `user`.
    pub(crate) fn describe(&self) -> Vec<u8> {
        let mut words = vec![self.name.to_vec()];
        words.extend(
            self.flags()
                .into_iter()
                .map(|flag| flag.as_bytes().to_vec()),
        );
        for password in &self.passwords {
            words.push([b"#", hex(password).as_bytes()].concat());
        }
        words.push(self.root.describe());
        for selector in &self.selectors {
            words.push([b"(", &*selector.describe(), b")"].concat());
        }
        words.join(&b' ')
    }
}

pub(super) fn hash(password: &[u8]) -> Hash {
    Sha256::digest(password).into()
}

pub(crate) fn hex(hash: &Hash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
