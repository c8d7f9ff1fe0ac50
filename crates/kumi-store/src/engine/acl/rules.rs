//! The modifiers of ACL SETUSER, `user` lines and ACL files.

use super::CATEGORIES;
use super::user::{Hash, KeyPattern, Prefixes, READ, Selector, User, WRITE, hash};
use crate::base::ids::CommandId;
use crate::engine::command::CommandIndex;

/// The reason that may be shown with its rule: no such rule holds a password.
pub(super) const UNKNOWN: &str = "Unknown command or category name in ACL";
const SYNTAX: &str = "Syntax error";
const FIRST_ARG_OF_SUBCOMMAND: &str = "Allowing first-arg of a subcommand is not supported";

/// Commands of Redis 7.2 that are not built, with their subcommands. Rules may name them, so that users of a Redis can be
/// taken over; such a rule allows and denies nothing.
const NOT_BUILT: &[(&str, &[&str])] = &[
    ("asking", &[]),
    (
        "cluster",
        &[
            "addslots",
            "addslotsrange",
            "bumpepoch",
            "count-failure-reports",
            "countkeysinslot",
            "delslots",
            "delslotsrange",
            "failover",
            "flushslots",
            "forget",
            "getkeysinslot",
            "help",
            "info",
            "keyslot",
            "links",
            "meet",
            "myid",
            "myshardid",
            "nodes",
            "replicas",
            "replicate",
            "reset",
            "saveconfig",
            "set-config-epoch",
            "setslot",
            "shards",
            "slaves",
            "slots",
        ],
    ),
    ("failover", &[]),
    ("migrate", &[]),
    ("psync", &[]),
    ("readonly", &[]),
    ("readwrite", &[]),
    ("replconf", &[]),
    ("sync", &[]),
];

/// Joins the words of selectors in parentheses.
///
/// # Errors
/// A parenthesis is not closed; the text ACL SETUSER answers.
pub(crate) fn merge_selectors(words: &[&[u8]]) -> Result<Vec<Vec<u8>>, Vec<u8>> {
    let mut merged: Vec<Vec<u8>> = Vec::new();
    let mut open: Option<Vec<u8>> = None;
    let mut first: &[u8] = b"";
    for word in words {
        let begins = word.first() == Some(&b'(');
        let mut selector = match open.take() {
            Some(before) => [&before, b" ".as_slice(), word].concat(),
            None if begins => {
                first = word;
                word.to_vec()
            }
            None => {
                merged.push(word.to_vec());
                continue;
            }
        };
        if word.last() == Some(&b')') {
            merged.push(std::mem::take(&mut selector));
        } else {
            open = Some(selector);
        }
    }
    match open {
        None => Ok(merged),
        Some(_) => Err([
            b"ERR Unmatched parenthesis in acl selector starting at '".as_slice(),
            first,
            b"'.",
        ]
        .concat()),
    }
}

impl User {
    /// Applies one modifier.
    ///
    /// # Errors
    /// Why it is not valid. The user may have been changed: apply modifiers to a copy.
    pub(crate) fn apply(
        &mut self,
        rule: &[u8],
        index: &CommandIndex,
        all_channels: bool,
    ) -> Result<(), &'static str> {
        let lower = rule.to_ascii_lowercase();
        match lower.as_slice() {
            b"" => {}
            b"on" => self.enabled = true,
            b"off" => self.enabled = false,
            b"nopass" => {
                self.reset_passwords();
                self.nopass = true;
            }
            b"resetpass" => self.reset_passwords(),
            b"sanitize-payload" => self.sanitize = true,
            b"skip-sanitize-payload" => self.sanitize = false,
            b"clearselectors" => self.selectors.clear(),
            b"reset" => *self = Self::new(self.name.clone(), index, all_channels),
            _ => match rule.first() {
                Some(b'>') => self.add_password(&rule[1..]),
                Some(b'#') => self.add_hash(parse_hash(&rule[1..])?),
                Some(b'<') => self.remove_hash(hash(&rule[1..]))?,
                Some(b'!') => self.remove_hash(parse_hash(&rule[1..])?)?,
                Some(b'(') if rule.last() == Some(&b')') => {
                    let mut selector = Selector::empty(index, all_channels);
                    let inner = &rule[1..rule.len() - 1];
                    for word in inner
                        .split(|&byte| byte == b' ')
                        .filter(|word| !word.is_empty())
                    {
                        selector.apply(word, index)?;
                    }
                    self.selectors.push(selector);
                }
                _ => self.root.apply(rule, index)?,
            },
        }
        Ok(())
    }

    fn remove_hash(&mut self, hash: Hash) -> Result<(), &'static str> {
        let at = self.passwords.iter().position(|known| *known == hash);
        let at = at.ok_or("The password you are trying to remove from the user does not exist")?;
        self.passwords.remove(at);
        Ok(())
    }
}

impl Selector {
    /// Applies one modifier of keys, channels or commands.
    pub(super) fn apply(&mut self, rule: &[u8], index: &CommandIndex) -> Result<(), &'static str> {
        self.change(rule, index)?;
        self.prefixes = Prefixes::of(&self.keys);
        Ok(())
    }

    fn change(&mut self, rule: &[u8], index: &CommandIndex) -> Result<(), &'static str> {
        match rule.to_ascii_lowercase().as_slice() {
            b"" => {}
            b"allkeys" | b"~*" => {
                self.all_keys = true;
                self.keys.clear();
            }
            b"resetkeys" => {
                self.all_keys = false;
                self.keys.clear();
            }
            b"allchannels" | b"&*" => {
                self.all_channels = true;
                self.channels.clear();
            }
            b"resetchannels" => {
                self.all_channels = false;
                self.channels.clear();
            }
            b"allcommands" | b"+@all" => self.set_all_commands(true),
            b"nocommands" | b"-@all" => self.set_all_commands(false),
            lower => match rule.first() {
                Some(b'~' | b'%') => self.add_keys(rule)?,
                Some(b'&') => self.add_channels(&rule[1..])?,
                Some(sign @ (b'+' | b'-')) => {
                    let name = std::str::from_utf8(&lower[1..]).map_err(|_| UNKNOWN)?;
                    self.change_commands(*sign == b'+', name, index)?;
                }
                _ => return Err(SYNTAX),
            },
        }
        Ok(())
    }

    fn add_keys(&mut self, rule: &[u8]) -> Result<(), &'static str> {
        if self.all_keys && rule != b"~*" {
            return Err(
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns",
            );
        }
        let (mut access, mut pattern) = (READ | WRITE, &rule[1..]);
        if rule[0] == b'%' {
            let tilde = pattern.iter().position(|&byte| byte == b'~');
            let letters = &pattern[..tilde.unwrap_or(pattern.len())];
            access = 0;
            for letter in letters {
                let bit = match letter.to_ascii_uppercase() {
                    b'R' => READ,
                    b'W' => WRITE,
                    _ => return Err(SYNTAX),
                };
                if access & bit != 0 {
                    return Err(SYNTAX);
                }
                access |= bit;
            }
            if access == 0 {
                return Err(SYNTAX);
            }
            // Without a tilde the pattern is empty, as in Redis.
            pattern = tilde.map_or(b"", |tilde| &pattern[tilde + 1..]);
        }
        if !is_word(pattern) {
            return Err(SYNTAX);
        }
        if pattern == b"*" && access == READ | WRITE {
            self.all_keys = true;
            self.keys.clear();
            return Ok(());
        }
        match self
            .keys
            .iter_mut()
            .find(|known| *known.pattern == *pattern)
        {
            Some(known) => known.access |= access,
            None => self.keys.push(KeyPattern::new(access, pattern)),
        }
        Ok(())
    }

    fn add_channels(&mut self, pattern: &[u8]) -> Result<(), &'static str> {
        if !is_word(pattern) {
            return Err(SYNTAX);
        }
        if self.all_channels {
            return Err(
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels",
            );
        }
        if !self.channels.iter().any(|known| **known == *pattern) {
            self.channels.push(pattern.into());
        }
        Ok(())
    }

    fn change_commands(
        &mut self,
        allowed: bool,
        name: &str,
        index: &CommandIndex,
    ) -> Result<(), &'static str> {
        if let Some(category) = name.strip_prefix('@') {
            if !CATEGORIES.contains(&category) {
                return Err(UNKNOWN);
            }
            let members = index
                .iter()
                .filter(|(_, indexed)| indexed.row.acl_categories().contains(&category));
            for (id, _) in members.collect::<Vec<_>>() {
                self.set_command(id, allowed);
            }
        } else if let Some(rule) = check_not_built(allowed, name) {
            rule?;
        } else if let Some((container, sub)) = name.split_once('|') {
            let parent = index.find(container.as_bytes()).ok_or(UNKNOWN)?;
            match index.find_subcommand(parent, sub.as_bytes()) {
                Some(id) => self.set_command(id, allowed),
                None if allowed
                    && sub.rsplit_once('|').is_some_and(|(sub, _)| {
                        index.find_subcommand(parent, sub.as_bytes()).is_some()
                    }) =>
                {
                    return Err(FIRST_ARG_OF_SUBCOMMAND);
                }
                None if allowed && sub.is_empty() => return Err("Syntax error"),
                None if !index.get(parent).subcommands.is_empty() || sub.contains('|') => {
                    let inner = sub.rsplit_once('|').map(|(inner, _)| inner.as_bytes());
                    let known = inner.and_then(|inner| index.find_subcommand(parent, inner));
                    return Err(match known {
                        Some(_) if allowed => FIRST_ARG_OF_SUBCOMMAND,
                        _ => UNKNOWN,
                    });
                }
                // A first argument of a command without subcommands, as before there were any.
                None if !allowed => return Err(UNKNOWN),
                None => self.allow_first_arg(parent, sub),
            }
        } else {
            let id = index.find(name.as_bytes()).ok_or(UNKNOWN)?;
            self.set_command(id, allowed);
            for &sub in &index.get(id).subcommands {
                self.set_command(sub, allowed);
            }
        }
        // A later rule replaces the one of the same name, and those of its subcommands.
        let inside = format!("{name}|");
        self.command_rules
            .retain(|(_, rule)| rule != name && !rule.starts_with(&inside));
        self.command_rules.push((allowed, name.to_owned()));
        Ok(())
    }

    fn allow_first_arg(&mut self, id: CommandId, arg: &str) {
        if self.allows(id) {
            return;
        }
        let args = self.first_args.entry(id).or_default();
        if !args.iter().any(|known| known == arg.as_bytes()) {
            args.push(arg.as_bytes().to_vec());
        }
    }
}

/// Whether a rule of a command that is not built is valid; none for any other command.
fn check_not_built(allowed: bool, name: &str) -> Option<Result<(), &'static str>> {
    let (command, arg) = match name.split_once('|') {
        Some((command, arg)) => (command, Some(arg)),
        None => (name, None),
    };
    let (_, subcommands) = NOT_BUILT.iter().find(|(known, _)| *known == command)?;
    let Some(arg) = arg else {
        return Some(Ok(()));
    };
    let (first, more) = match arg.split_once('|') {
        Some((first, _)) => (first, true),
        None => (arg, false),
    };
    Some(if subcommands.contains(&arg) {
        Ok(())
    } else if allowed && more && subcommands.contains(&first) {
        Err(FIRST_ARG_OF_SUBCOMMAND)
    } else if allowed && arg.is_empty() {
        Err(SYNTAX)
    } else if allowed && !more && subcommands.is_empty() {
        // A first argument of a command without subcommands.
        Ok(())
    } else {
        Err(UNKNOWN)
    })
}

/// A pattern or name without blanks and zero bytes.
pub(super) fn is_word(text: &[u8]) -> bool {
    !text
        .iter()
        .any(|&byte| byte.is_ascii_whitespace() || byte == 0)
}

fn parse_hash(text: &[u8]) -> Result<Hash, &'static str> {
    const MALFORMED: &str = "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters";
    let text: &[u8; 64] = text.try_into().map_err(|_| MALFORMED)?;
    let mut hash = [0; 32];
    for (byte, digits) in hash.iter_mut().zip(text.chunks_exact(2)) {
        let digit = |digit: u8| match digit {
            b'0'..=b'9' => Ok(digit - b'0'),
            b'a'..=b'f' => Ok(digit - b'a' + 10),
            _ => Err(MALFORMED),
        };
        *byte = digit(digits[0])? << 4 | digit(digits[1])?;
    }
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Lab;

    #[test]
    fn commands_that_are_not_built_are_in_no_row() {
        let lab = Lab::new();
        for (name, _) in NOT_BUILT {
            assert!(lab.store.index.find(name.as_bytes()).is_none(), "{name}");
        }
    }
}
