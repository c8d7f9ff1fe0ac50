//! The table of commands as documents: what `docs/commands.md` and shell completions are made of.

use crate::commands::FAMILIES;
use crate::engine::command::{Command, Group, flag};
use std::fmt::Write;

/// The text of `docs/commands.md`.
#[must_use]
pub fn commands_markdown() -> String {
    let mut text = String::from(
        "# Commands\n\n\
         Generated from the table of commands; change a row there, not a line here. \
         `KUMI_UPDATE_DOCS=1 cargo test -p kumi-store docs` writes this file anew.\n\n\
         Answers, errors and options are those of Redis 7.2. *Since* is the Redis version that \
         introduced a command. A command that is not listed does not exist yet.\n",
    );
    for group in Group::ALL {
        let rows: Vec<(String, &Command)> = every_row()
            .filter(|(_, row)| row.group == group && row.subcommands.is_empty())
            .collect();
        if !rows.is_empty() {
            add_group(&mut text, group, &rows);
        }
    }
    text
}

/// Every command as a user types it, containers and their subcommands included: `GET`, `CONFIG`,
/// `CONFIG GET`.
///
/// ```
/// assert!(kumi_store::command_names().contains(&"CONFIG GET".to_owned()));
/// ```
#[must_use]
pub fn command_names() -> Vec<String> {
    let mut names: Vec<String> = every_row().map(|(name, _)| name).collect();
    names.sort();
    names
}

fn every_row() -> impl Iterator<Item = (String, &'static Command)> {
    FAMILIES.iter().copied().flatten().flat_map(|row| {
        let name = row.name.to_ascii_uppercase();
        let subcommands = row.subcommands.iter();
        let under = name.clone();
        let subcommands =
            subcommands.map(move |sub| (format!("{under} {}", sub.name.to_ascii_uppercase()), sub));
        std::iter::once((name, row)).chain(subcommands)
    })
}

fn add_group(text: &mut String, group: Group, rows: &[(String, &Command)]) {
    let mut title = group.name().to_owned();
    title[..1].make_ascii_uppercase();
    let _ = write!(
        text,
        "\n## {title}\n\n\
         | Command | Does | Since | Complexity | Flags | Categories |\n\
         | --- | --- | --- | --- | --- | --- |\n"
    );
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by(|left, right| left.0.cmp(&right.0));
    for (name, row) in rows {
        let call = format!("{name} {}", row.usage);
        let flags: Vec<&str> = flag::NAMES
            .iter()
            .filter(|(bit, _)| row.has(*bit))
            .map(|&(_, name)| name)
            .collect();
        let mut does = cell(row.summary);
        if let Some((since, replacement)) = row.deprecated {
            let _ = write!(does, " Deprecated since {since}: use {replacement}.");
        }
        let _ = writeln!(
            text,
            "| `{}` | {does} | {} | {} | {} | {} |",
            cell(call.trim_end()),
            row.since,
            cell(row.complexity),
            flags.join(" "),
            row.acl_categories().join(" "),
        );
    }
}

/// Bars end a cell even inside of code.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn the_document_follows_the_table() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
        let expected = commands_markdown();
        if std::env::var_os("KUMI_UPDATE_DOCS").is_some() {
            std::fs::write(&path, &expected).expect("docs/commands.md can be written");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == expected,
            "docs/commands.md is out of date: run KUMI_UPDATE_DOCS=1 cargo test -p kumi-store docs"
        );
    }

    #[test]
    fn every_row_tells_what_it_does() {
        for (name, row) in every_row() {
            assert!(row.summary.ends_with('.'), "{name}: {}", row.summary);
            assert!(!row.since.is_empty(), "{name}");
            assert_eq!(row.name, row.name.to_ascii_lowercase(), "{name}");
            assert_eq!(row.usage, row.usage.trim(), "{name}");
        }
    }

    #[test]
    fn names_are_sorted_and_unique() {
        let names = command_names();
        assert!(names.is_sorted());
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        for name in ["GET", "CONFIG", "CONFIG GET", "SLOWLOG LEN"] {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
    }
}
