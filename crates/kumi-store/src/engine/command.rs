//! What a command is: one const row, from which dispatch, COMMAND, ACL categories, the generated
//! documentation and completions all come.
//!
//! Rows live beside their functions in `commands/`. This file only defines their shape and
//! the case-insensitive index over them.

pub(crate) mod category;
pub(crate) mod flag;

use crate::base::error::{CommandError, CommandResult};
use crate::base::ids::CommandId;
use crate::engine::acl;
use crate::engine::key_spec::KeySpec;
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

/// The part of COMMAND DOCS a command is filed under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Bitmap,
    Connection,
    Generic,
    Geo,
    Hash,
    Hyperloglog,
    List,
    Pubsub,
    Scripting,
    Server,
    Set,
    SortedSet,
    Stream,
    String,
    Transactions,
}

impl Group {
    pub(crate) const ALL: [Self; 15] = [
        Self::Bitmap,
        Self::Connection,
        Self::Generic,
        Self::Geo,
        Self::Hash,
        Self::Hyperloglog,
        Self::List,
        Self::Pubsub,
        Self::Scripting,
        Self::Server,
        Self::Set,
        Self::SortedSet,
        Self::Stream,
        Self::String,
        Self::Transactions,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bitmap => "bitmap",
            Self::Connection => "connection",
            Self::Generic => "generic",
            Self::Geo => "geo",
            Self::Hash => "hash",
            Self::Hyperloglog => "hyperloglog",
            Self::List => "list",
            Self::Pubsub => "pubsub",
            Self::Scripting => "scripting",
            Self::Server => "server",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::Stream => "stream",
            Self::String => "string",
            Self::Transactions => "transactions",
        }
    }
}

pub(crate) type Run = fn(&mut Ctx<'_>, Args<'_>) -> CommandResult;

/// Whether the argument at a position is kept from MONITOR and SLOWLOG.
pub(crate) type Hides = fn(Args<'_>, usize) -> bool;

/// What argument 1 of a command that runs a script is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    Source,
    Sha,
    Function,
}

/// Which arguments are channels that the ACL has to allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channels {
    None,
    First,
    All,
    /// All, as patterns.
    Patterns,
}

/// One row of the command table.
#[derive(Debug)]
pub(crate) struct Command {
    /// Lower case; a subcommand's own word only.
    pub(crate) name: &'static str,
    /// As Redis counts: the command word included, negative for "at least".
    pub(crate) arity: i32,
    pub(crate) flags: u32,
    pub(crate) categories: u32,
    pub(crate) keys: &'static [KeySpec],
    /// The position from which on STORE and STOREDIST name destinations, each of which the ACL has to allow. A spec finds
    /// the first of them only.
    pub(crate) destinations: Option<usize>,
    pub(crate) channels: Channels,
    /// Of a command that runs a script, whose declared flags count in the place of the row's.
    pub(crate) script: Option<Script>,
    pub(crate) hides: Option<Hides>,
    pub(crate) group: Group,
    pub(crate) since: &'static str,
    pub(crate) complexity: &'static str,
    pub(crate) summary: &'static str,
    /// Arguments as a usage line shows them, after the name.
    pub(crate) usage: &'static str,
    pub(crate) tips: &'static [&'static str],
    /// Since which version not to use it, and what to use in its place.
    pub(crate) deprecated: Option<(&'static str, &'static str)>,
    /// A container runs only if its arity lets it stand without a subcommand, as COMMAND does.
    pub(crate) run: Run,
    pub(crate) subcommands: &'static [Command],
}

impl Command {
    /// Defaults for the fields a row leaves out.
    pub(crate) const BASE: Self = Self {
        name: "",
        arity: 1,
        flags: 0,
        categories: 0,
        keys: &[],
        destinations: None,
        channels: Channels::None,
        script: None,
        hides: None,
        group: Group::Server,
        since: "1.0.0",
        complexity: "O(1)",
        summary: "",
        usage: "",
        tips: &[],
        deprecated: None,
        run: container,
        subcommands: &[],
    };

    pub(crate) const fn has(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    pub(crate) fn accepts(&self, len: usize) -> bool {
        let len = i64::try_from(len).unwrap_or(i64::MAX);
        let arity = i64::from(self.arity);
        if arity >= 0 {
            len == arity
        } else {
            len >= -arity
        }
    }

    /// Names of the ACL categories, in Redis's order.
    pub(crate) fn acl_categories(&self) -> Vec<&'static str> {
        let admin = self.has(flag::ADMIN) || self.categories & category::ADMIN != 0;
        let fast = self.has(flag::FAST);
        let dangerous = admin || self.categories & category::DANGEROUS != 0;
        let all = [
            (self.categories & category::KEYSPACE != 0, "keyspace"),
            (
                self.has(flag::READONLY) && self.categories & category::SCRIPTING == 0,
                "read",
            ),
            (self.has(flag::WRITE), "write"),
            (self.categories & category::SET != 0, "set"),
            (self.categories & category::SORTED_SET != 0, "sortedset"),
            (self.categories & category::GEO != 0, "geo"),
            (self.categories & category::LIST != 0, "list"),
            (self.categories & category::HASH != 0, "hash"),
            (self.categories & category::STRING != 0, "string"),
            (self.categories & category::BITMAP != 0, "bitmap"),
            (self.categories & category::HYPERLOGLOG != 0, "hyperloglog"),
            (self.categories & category::STREAM != 0, "stream"),
            (self.has(flag::PUBSUB), "pubsub"),
            (admin, "admin"),
            (fast, "fast"),
            (!fast, "slow"),
            (self.has(flag::BLOCKING), "blocking"),
            (dangerous, "dangerous"),
            (self.categories & category::CONNECTION != 0, "connection"),
            (self.categories & category::TRANSACTION != 0, "transaction"),
            (self.categories & category::SCRIPTING != 0, "scripting"),
        ];
        all.into_iter()
            .filter_map(|(on, name)| on.then_some(name))
            .collect()
    }
}

/// A container has no behaviour of its own: dispatch answers before this could run.
fn container(_: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    Err(CommandError::SYNTAX)
}

/// A row with its place in the index.
#[derive(Debug)]
pub(crate) struct Indexed {
    pub(crate) row: &'static Command,
    /// `get`, or `client|id` for a subcommand.
    pub(crate) full_name: Box<str>,
    pub(crate) parent: Option<CommandId>,
    pub(crate) subcommands: Vec<CommandId>,
    /// The access to argument 1 that the ACL has to allow, for a command with that key and no other.
    pub(crate) single_key: Option<u8>,
}

/// Case-insensitive lookup over all rows.
///
/// Open addressing on a cheap hash of the folded name: the commands are fixed, so the table is
/// built once and collisions are few.
#[derive(Debug)]
pub(crate) struct CommandIndex {
    rows: Vec<Indexed>,
    buckets: Vec<Option<CommandId>>,
}

const LONGEST_NAME: usize = 32;

impl CommandIndex {
    pub(crate) fn new(families: &[&'static [Command]]) -> Self {
        let mut rows = Vec::new();
        for row in families.iter().copied().flatten() {
            let parent = CommandId(rows.len() as u16);
            rows.push(Indexed {
                row,
                full_name: row.name.into(),
                parent: None,
                subcommands: Vec::new(),
                single_key: acl::single_key_access(row),
            });
            for sub in row.subcommands {
                let id = CommandId(rows.len() as u16);
                let full_name = format!("{}|{}", row.name, sub.name).into();
                rows.push(Indexed {
                    row: sub,
                    full_name,
                    parent: Some(parent),
                    subcommands: Vec::new(),
                    single_key: acl::single_key_access(sub),
                });
                rows[usize::from(parent.0)].subcommands.push(id);
            }
        }
        let mut index = Self {
            buckets: vec![None; (rows.len() * 4).next_power_of_two()],
            rows,
        };
        for (position, indexed) in index.rows.iter().enumerate() {
            if indexed.parent.is_none() {
                let mask = index.buckets.len() - 1;
                let mut bucket = name_hash(indexed.row.name.as_bytes()) & mask;
                while index.buckets[bucket].is_some() {
                    bucket = (bucket + 1) & mask;
                }
                index.buckets[bucket] = Some(CommandId(position as u16));
            }
        }
        index
    }

    pub(crate) fn get(&self, id: CommandId) -> &Indexed {
        &self.rows[usize::from(id.0)]
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Every row, subcommands right after their container.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (CommandId, &Indexed)> {
        self.rows
            .iter()
            .enumerate()
            .map(|(position, row)| (CommandId(position as u16), row))
    }

    /// A top-level command by name.
    pub(crate) fn find(&self, name: &[u8]) -> Option<CommandId> {
        if name.len() > LONGEST_NAME {
            return None;
        }
        let mask = self.buckets.len() - 1;
        let mut bucket = name_hash(name) & mask;
        while let Some(id) = self.buckets[bucket] {
            if self.get(id).row.name.as_bytes().eq_ignore_ascii_case(name) {
                return Some(id);
            }
            bucket = (bucket + 1) & mask;
        }
        None
    }

    /// A subcommand of `container` by name.
    pub(crate) fn find_subcommand(&self, container: CommandId, name: &[u8]) -> Option<CommandId> {
        let subcommands = &self.get(container).subcommands;
        subcommands
            .iter()
            .copied()
            .find(|&id| self.get(id).row.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// A command by its full name, `config|get` for a subcommand.
    pub(crate) fn find_full(&self, name: &[u8]) -> Option<CommandId> {
        let mut words = name.splitn(2, |&byte| byte == b'|');
        let id = self.find(words.next()?)?;
        match words.next() {
            None => Some(id),
            Some(subcommand) => self.find_subcommand(id, subcommand),
        }
    }

    /// The row of a request, whatever the number of its arguments.
    pub(crate) fn find_request(&self, args: Args<'_>) -> Option<CommandId> {
        let id = self.find(args.get(0)?)?;
        match args.get(1) {
            Some(name) if !self.get(id).subcommands.is_empty() => self.find_subcommand(id, name),
            _ => Some(id),
        }
    }

    /// The row a request runs, with its arity checked.
    ///
    /// # Errors
    /// What is wrong, and the row that was found if only its arity is.
    pub(crate) fn resolve(
        &self,
        args: Args<'_>,
    ) -> Result<CommandId, (Option<CommandId>, CommandError)> {
        let container = self.find(&args[0]);
        let mut id = container.ok_or_else(|| (None, unknown_command(args)))?;
        if !self.get(id).subcommands.is_empty() && args.len() > 1 {
            let name = self.get(id).row.name;
            id = self
                .find_subcommand(id, &args[1])
                .ok_or_else(|| (None, unknown_subcommand(name, &args[1])))?;
        }
        let found = self.get(id);
        if !found.row.accepts(args.len()) {
            return Err((Some(id), CommandError::arity(&found.full_name)));
        }
        Ok(id)
    }
}

/// Folds case by setting bit 5, which also merges a few punctuation marks: harmless in a hash.
fn name_hash(name: &[u8]) -> usize {
    let mut word = [0u8; 8];
    let head = name.len().min(8);
    word[..head].copy_from_slice(&name[..head]);
    let last = name.last().copied().unwrap_or(0) | 0x20;
    let folded = u64::from_le_bytes(word) | 0x2020_2020_2020_2020;
    let mixed = (folded ^ ((name.len() as u64) << 59) ^ (u64::from(last) << 50))
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 40) as usize
}

fn clip(bytes: &[u8], limit: usize) -> &[u8] {
    let shown = &bytes[..bytes.len().min(limit)];
    shown.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Redis shows the name and the first arguments, 128 bytes of them in all.
fn unknown_command(args: Args<'_>) -> CommandError {
    let mut shown = Vec::new();
    for arg in args.iter().skip(1) {
        if shown.len() >= 128 {
            break;
        }
        shown.push(b'\'');
        shown.extend_from_slice(clip(arg, 128 - (shown.len() - 1)));
        shown.extend_from_slice(b"' ");
    }
    let mut text = b"ERR unknown command '".to_vec();
    text.extend_from_slice(clip(&args[0], 128));
    text.extend_from_slice(b"', with args beginning with: ");
    text.extend_from_slice(&shown);
    CommandError::new(text)
}

fn unknown_subcommand(container: &str, name: &[u8]) -> CommandError {
    let mut text = b"ERR unknown subcommand '".to_vec();
    text.extend_from_slice(clip(name, 128));
    text.extend_from_slice(format!("'. Try {} HELP.", container.to_ascii_uppercase()).as_bytes());
    CommandError::new(text)
}
