//! Users as lines: of an ACL file, and of `redis.conf`.

use super::user::User;
use super::{Acl, merge_selectors};
use crate::command::CommandIndex;
use crate::config::split_words;

/// The users of an ACL file's text.
///
/// # Errors
/// Every wrong line with its number.
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
            Some(rest) => user_line(rest, index, all_channels),
            None => Err("line should start with user keyword".to_owned()),
        };
        let user = user.and_then(|user| {
            if users.iter().any(|known| known.name == user.name) {
                let name = String::from_utf8_lossy(&user.name).into_owned();
                return Err(format!("Duplicate user '{name}' found"));
            }
            Ok(user)
        });
        match user {
            Ok(user) => users.push(user),
            Err(reason) => errors.push_str(&format!("{path}:{}: {reason}. ", number + 1)),
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
/// Which rule is wrong, and why.
pub(crate) fn user_line(
    line: &[u8],
    index: &CommandIndex,
    all_channels: bool,
) -> Result<User, String> {
    let words = split_words(line).ok_or("unbalanced quotes")?;
    let Some((name, rules)) = words.split_first() else {
        return Err("a user needs a name".to_owned());
    };
    let rules: Vec<&[u8]> = rules.iter().map(Vec::as_slice).collect();
    let rules = merge_selectors(&rules).map_err(|text| {
        let text = String::from_utf8_lossy(&text).into_owned();
        text.trim_start_matches("ERR ").to_owned()
    })?;
    let mut user = User::new(name.as_slice().into(), index, all_channels);
    for rule in &rules {
        user.apply(rule, index, all_channels).map_err(|reason| {
            let rule = String::from_utf8_lossy(rule);
            format!("Error in applying operation '{rule}': {reason}")
        })?;
    }
    Ok(user)
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
