//! Users as lines: of an ACL file, and of `redis.conf`.

use super::rules::UNKNOWN;
use super::user::User;
use super::{Acl, merge_selectors};
use crate::command::CommandIndex;

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
    for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let user = match line.strip_prefix(b"user ") {
            Some(rest) => parse_user(rest, index, all_channels),
            None => Err(vec!["line should start with user keyword".to_owned()]),
        };
        let user = user.and_then(|user| {
            if users.iter().any(|known| known.name == user.name) {
                let name = String::from_utf8_lossy(&user.name).into_owned();
                return Err(vec![format!("Duplicate user '{name}' found")]);
            }
            Ok(user)
        });
        match user {
            Ok(user) => users.push(user),
            Err(reasons) => {
                for reason in reasons {
                    errors.push_str(&format!("{path}:{}: {reason}. ", number + 1));
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
    parse_user(line, index, all_channels).map_err(|reasons| {
        let name = line.split(|&byte| byte == b' ').next().unwrap_or_default();
        let name = String::from_utf8_lossy(name);
        format!("user '{name}': {}", reasons.join("; "))
    })
}

/// The user of a line behind the word `user`.
///
/// # Errors
/// As in Redis, every rule with an unknown command or category, and why the first of the other wrong rules is wrong.
fn parse_user(line: &[u8], index: &CommandIndex, all_channels: bool) -> Result<User, Vec<String>> {
    let one = |reason: &str| vec![reason.to_owned()];
    // Quotes have no meaning here: a pattern may hold one, and ACL SAVE writes it as it is.
    let words = line.split(|&byte| byte == b' ');
    let words: Vec<&[u8]> = words.filter(|word| !word.is_empty()).collect();
    let Some((name, rules)) = words.split_first() else {
        return Err(one("a user needs a name"));
    };
    let rules =
        merge_selectors(rules).map_err(|_| one("Unmatched parenthesis in selector definition"))?;
    let mut user = User::new((*name).into(), index, all_channels);
    let (mut reasons, mut has_other) = (Vec::new(), false);
    for rule in &rules {
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
    /// The users as lines, each behind the word `user`.
    pub(crate) fn lines(&self) -> Vec<Vec<u8>> {
        self.iter().map(User::describe).collect()
    }

    /// The lines `redis.conf` needs; none if there is only the default user, with the password of `requirepass`.
    pub(crate) fn config_lines(&self) -> Vec<Vec<u8>> {
        let mut users = self.iter();
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
