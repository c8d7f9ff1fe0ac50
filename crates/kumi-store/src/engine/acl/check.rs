//! Whether a user may run a request: its command, its keys, its channels.

use super::user::{READ, Selector, User, WRITE, head};
use crate::base::glob;
use crate::base::ids::CommandId;
use crate::engine::command::{Channels, Command, flag};
use crate::engine::key_spec::key;
use kumi_resp::Args;

/// The access a command needs to its key, if argument 1 is that key and no request names others: what
/// [`User::allows_single_key`] takes.
pub(crate) fn single_key_access(row: &Command) -> Option<u8> {
    let [spec] = row.keys else {
        return None;
    };
    // No command of constant time names keys in its options.
    let is_single = row.has(flag::BRIEF) && !row.has(flag::PUBSUB);
    if !is_single || !spec.names_keys() || spec.only_position() != Some(1) {
        return None;
    }
    // The options of SET decide; the flags of its spec are those of the most demanding ones.
    Some(access(spec.flags))
}

/// The access to a key that the flags of a spec imply.
fn access(flags: u16) -> u8 {
    let mut access = 0;
    if flags & key::ACCESS != 0 {
        access |= READ;
    }
    if flags & (key::INSERT | key::DELETE | key::UPDATE) != 0 {
        access |= WRITE;
    }
    access
}

/// What a user lacks, with the position of the argument at fault. A later variant comes from a selector that allows
/// more of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Denied {
    Command,
    Key(usize),
    Channel(usize),
}

impl Denied {
    /// The text of the error reply. `verbose` names the key or the channel, for ACL DRYRUN.
    pub(crate) fn text(self, user: &[u8], command: &str, args: Args<'_>, verbose: bool) -> Vec<u8> {
        let (what, position) = match self {
            Self::Command => {
                let command = format!(" has no permissions to run the '{command}' command");
                return [b"User ", user, command.as_bytes()].concat();
            }
            Self::Key(position) => ("key", position),
            Self::Channel(position) => ("channel", position),
        };
        if !verbose {
            return format!("No permissions to access a {what}").into_bytes();
        }
        let name = args.get(position).unwrap_or_default();
        let end = format!("' {what}");
        let text = b" has no permissions to access the '".as_slice();
        [b"User ", user, text, name, end.as_bytes()].concat()
    }
}

impl User {
    /// Whether the root selector allows a command with a single key. `wanted` is the row's [`single_key_access`]. If this
    /// is false, [`User::check`] decides.
    #[inline]
    pub(crate) fn allows_single_key(&self, id: CommandId, wanted: u8, args: Args<'_>) -> bool {
        let root = &self.root;
        let allows = |name: &[u8]| root.all_keys || root.allows_key(name, wanted);
        root.allows(id) && args.get(1).is_some_and(allows)
    }

    /// Checks a request against all selectors.
    ///
    /// # Errors
    /// What is missing according to the selector that allows most.
    pub(crate) fn check(&self, id: CommandId, row: &Command, args: Args<'_>) -> Result<(), Denied> {
        let mut nearest = match self.root.check(id, row, args) {
            Ok(()) => return Ok(()),
            Err(denied) => denied,
        };
        for selector in &self.selectors {
            match selector.check(id, row, args) {
                Ok(()) => return Ok(()),
                Err(denied) => nearest = nearest.max(denied),
            }
        }
        Err(nearest)
    }

    /// Whether a selector that allows the request also allows to read every key.
    pub(crate) fn reads_all_keys(&self, id: CommandId, row: &Command, args: Args<'_>) -> bool {
        self.all_selectors().any(|selector| {
            let mut patterns = selector.keys.iter();
            let all = selector.all_keys
                || patterns.any(|known| *known.pattern == *b"*" && known.access & READ != 0);
            all && selector.check(id, row, args).is_ok()
        })
    }

    /// Whether messages of a channel may be received; a pattern has to be allowed literally.
    pub(crate) fn may_subscribe(&self, name: &[u8], is_pattern: bool) -> bool {
        self.all_selectors()
            .any(|selector| selector.allows_channel(name, is_pattern))
    }
}

impl Selector {
    fn check(&self, id: CommandId, row: &Command, args: Args<'_>) -> Result<(), Denied> {
        if !self.allows(id) && !row.has(flag::NO_AUTH) && !self.allows_first_arg(id, args) {
            return Err(Denied::Command);
        }
        if !self.all_keys {
            self.check_keys(row, args)?;
        }
        if !self.all_channels && row.has(flag::PUBSUB) {
            self.check_channels(row, args)?;
        }
        Ok(())
    }

    fn allows_first_arg(&self, id: CommandId, args: Args<'_>) -> bool {
        let Some(allowed) = self.first_args.get(&id) else {
            return false;
        };
        args.get(1)
            .is_some_and(|arg| allowed.iter().any(|known| arg.eq_ignore_ascii_case(known)))
    }

    fn check_keys(&self, row: &Command, args: Args<'_>) -> Result<(), Denied> {
        for spec in row.keys.iter().filter(|spec| spec.names_keys()) {
            let wanted = access(spec.flags_in(args));
            // A request that contradicts its spec fails before it touches a key.
            let positions = spec.positions(args).into_iter().flatten();
            for position in positions {
                let name = args.get(position).unwrap_or_default();
                if !self.allows_key(name, wanted) {
                    return Err(Denied::Key(position));
                }
            }
        }
        self.check_options(row, args)
    }

    /// Keys that no spec finds: the destinations of GEORADIUS. The patterns of SORT may read any key; the command itself
    /// asks [`User::reads_all_keys`].
    fn check_options(&self, row: &Command, args: Args<'_>) -> Result<(), Denied> {
        // Behind the arguments that are no options: a member may be called `store`.
        let Some(first) = row.destinations else {
            return Ok(());
        };
        for position in first..args.len().saturating_sub(1) {
            let (word, name) = (&args[position], &args[position + 1]);
            let is = |option: &str| word.eq_ignore_ascii_case(option.as_bytes());
            let stores = is("STORE") || is("STOREDIST");
            if stores && !self.allows_key(name, WRITE) {
                return Err(Denied::Key(position + 1));
            }
        }
        Ok(())
    }

    #[inline]
    fn allows_key(&self, name: &[u8], wanted: u8) -> bool {
        let head = head(name);
        self.prefixes.allow(name, head, wanted) || self.any_pattern_allows(name, head, wanted)
    }

    #[inline(never)]
    fn any_pattern_allows(&self, name: &[u8], head: u64, wanted: u8) -> bool {
        self.keys
            .iter()
            .any(|known| known.access & wanted == wanted && known.matches(name, head))
    }

    fn check_channels(&self, row: &Command, args: Args<'_>) -> Result<(), Denied> {
        let (names, is_pattern) = match row.channels {
            Channels::None => return Ok(()),
            Channels::First => (1..2, false),
            Channels::All => (1..args.len(), false),
            Channels::Patterns => (1..args.len(), true),
        };
        for position in names {
            let name = args.get(position).unwrap_or_default();
            if !self.allows_channel(name, is_pattern) {
                return Err(Denied::Channel(position));
            }
        }
        Ok(())
    }

    fn allows_channel(&self, name: &[u8], is_pattern: bool) -> bool {
        self.all_channels
            || self.channels.iter().any(|known| {
                if is_pattern {
                    **known == *name
                } else {
                    glob::matches(known, name, false)
                }
            })
    }
}
