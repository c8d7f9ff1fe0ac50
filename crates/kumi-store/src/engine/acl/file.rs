//! Users as lines: of an ACL file, and of `redis.conf`.

use super::rules::{UNKNOWN, is_word};
use super::user::User;
use super::{Acl, merge_selectors};
use crate::engine::command::CommandIndex;
use std::collections::HashSet;

/// The users of an ACL file's text.
///
/// # Errors
/// What is wrong, each with the number of its line. Rules are not shown, because they hold passwords; except those with
/// an unknown command or category.
pub(crate) fn parse(
    path: &[u8],
    text: &[u8],
    index: &CommandIndex,
    all_channels: bool,
) -> Result<Vec<User>, String> {
    let path = String::from_utf8_lossy(path);
    let (mut users, mut errors) = (Vec::<User>::new(), String::new());
    let mut names = HashSet::new();
    for (number, line) in (1_usize..).zip(text.split(|&byte| byte == b'\n')) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let Some(line) = line.strip_prefix(b"user ") else {
            let reason = "should start with user keyword followed by the username";
            errors.push_str(&format!("{path}:{number} {reason}. "));
            continue;
        };
        let (name, rules) = split(line);
        if !is_word(name) {
            // What stands behind the blank may be a password.
            let shown = name.split(|byte| !is_word(&[*byte])).next();
            let shown = String::from_utf8_lossy(shown.unwrap_or_default());
            // The first quote has no second one, as in Redis.
            errors.push_str(&format!(
                "'{path}:{number}: username '{shown}' contains invalid characters. "
            ));
            continue;
        }
        if !names.insert(name) {
            let name = String::from_utf8_lossy(name);
            errors.push_str(&format!(
                "WARNING: Duplicate user '{name}' found on line {number}. "
            ));
            continue;
        }
        let user = merge(&rules).and_then(|rules| {
            let rules = rules.iter().map(|rule| rule.trim_ascii());
            user_of(name, rules, index, all_channels)
        });
        match user {
            Ok(user) => users.push(user),
            Err(reasons) => {
                for reason in reasons {
                    errors.push_str(&format!("{path}:{number}: {reason}. "));
                }
            }
        }
    }
    if errors.is_empty() {
        return Ok(users);
    }
    Err(errors)
}

/// The user of a line behind the word `user`.
///
/// # Errors
/// The name of the user, and what is wrong with the rules. Passwords are not shown.
pub(crate) fn user_line(
    line: &[u8],
    index: &CommandIndex,
    all_channels: bool,
) -> Result<User, String> {
    let (name, rules) = split(line);
    let user = merge(&rules).and_then(|rules| {
        let rules = rules.iter().map(Vec::as_slice);
        user_of(name, rules, index, all_channels)
    });
    user.map_err(|reasons| {
        let name = String::from_utf8_lossy(name);
        format!("user '{name}': {}", reasons.join("; "))
    })
}

/// The name and the rules of a line behind the word `user`.
fn split(line: &[u8]) -> (&[u8], Vec<&[u8]>) {
    // Quotes have no meaning here: a pattern may hold one, and ACL SAVE writes it as it is.
    let mut words = line
        .split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty());
    let name = words.next().unwrap_or_default();
    (name, words.collect())
}

/// The rules, each selector as one.
fn merge(rules: &[&[u8]]) -> Result<Vec<Vec<u8>>, Vec<String>> {
    merge_selectors(rules)
        .map_err(|_| vec!["Unmatched parenthesis in selector definition".to_owned()])
}

/// The user of these rules.
///
/// # Errors
/// As in Redis, every rule with an unknown command or category, and why the first of the other wrong rules is wrong.
fn user_of<'r>(
    name: &[u8],
    rules: impl Iterator<Item = &'r [u8]>,
    index: &CommandIndex,
    all_channels: bool,
) -> Result<User, Vec<String>> {
    let mut user = User::new(name.into(), index, all_channels);
    let (mut reasons, mut has_other) = (Vec::new(), false);
    for rule in rules {
        match user.apply(rule, index, all_channels) {
            Ok(()) => {}
            Err(UNKNOWN) => {
                // A selector may hold passwords besides.
                let is_selector = rule.first() == Some(&b'(');
                let shown: &[u8] = if is_selector { b"(...)" } else { rule };
                let rule = String::from_utf8_lossy(shown);
                reasons.push(format!("Error in applying operation '{rule}': {UNKNOWN}"));
            }
            Err(reason) => {
                if !has_other {
                    reasons.push(reason.to_owned());
                }
                has_other = true;
            }
        }
    }
    if reasons.is_empty() {
        Ok(user)
    } else {
        Err(reasons)
    }
}

impl Acl {
    /// The users that files have: all but those that the program around the server has installed.
    fn kept(&self) -> impl Iterator<Item = &User> {
        self.iter().filter(|user| !user.is_hosts)
    }

    /// The users as lines, each behind the word `user`.
    pub(crate) fn lines(&self) -> Vec<Vec<u8>> {
        self.kept().map(User::describe).collect()
    }

    /// The lines `redis.conf` needs; none if there is only the default user, with the password of `requirepass`.
    pub(crate) fn config_lines(&self) -> Vec<Vec<u8>> {
        let mut users = self.kept();
        let plain = match (users.next(), users.next()) {
            (Some(user), None) => {
                let passwords = usize::from(self.requirepass.is_some());
                user.enabled
                    && user.is_unrestricted()
                    && user.selectors.is_empty()
                    && user.passwords.len() == passwords
            }
            _ => false,
        };
        if plain { Vec::new() } else { self.lines() }
    }

    /// The users as the text of an ACL file.
    pub(crate) fn file_text(&self) -> Vec<u8> {
        let lines = self.lines().into_iter();
        lines
            .flat_map(|line| [b"user ".as_slice(), &line, b"\n"].concat())
            .collect()
    }
}
