//! Finds the shell blocks of a Markdown page, and what has to be known to run them.
//!
//! A page is one story: its blocks run one after another in one shell.
//!
//!     ```sh                     is run, and has to succeed
//!     ```sh background          runs until the page ends; the `text` block behind it says when to go on
//!     ```text                   right behind a shell block: what the block prints
//!     ```redis                  a session of redis-cli, with its prompts; words behind `redis` are options of redis-cli
//!     ```kdl file=chat.kdl      in any language: the file is there from then on, and can be executed
//!     <!-- sh                   lines up to `-->`: commands that a reader has carried out already; `$KUMI_CHECKOUT` is
//!                               the reader's checkout
//!     <!-- sh not run: REASON -->   right before a block that is not run
//!
//! In a `text` block behind a shell block, `...` stands for anything on the line, and a line `...` for any lines. How many
//! spaces there are between words does not matter.

/// One step of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The line of the page on which it begins, from 1.
    pub(crate) line: usize,
    pub(crate) code: String,
    pub(crate) kind: Kind,
    /// What it prints, if the page shows it.
    pub(crate) expected: Option<String>,
}

/// How a block is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It runs to its end.
    Foreground,
    /// It runs until the page ends.
    Background,
    /// It is not run, for this reason.
    NotRun(String),
    /// What the reader has done before; hidden on the page.
    Hidden,
    /// It is the content of this file.
    File(String),
}

/// The shell blocks of a page in order, or what is wrong with the page and where.
pub(crate) fn shell_blocks(page: &str) -> Result<Vec<Block>, String> {
    let mut blocks: Vec<Block> = Vec::new();
    // The reason of a mark, which has to be followed by its block.
    let mut not_run: Option<String> = None;
    // Whether only blank lines stand between the last shell block and here.
    let mut right_behind = false;
    let mut after_blank = true;
    let mut in_list = false;
    let mut lines = page
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line));
    while let Some((line, text)) = lines.next() {
        let wrong = |what: &str| Err(format!("line {line}: {what}"));
        let blank = text.trim().is_empty();
        if let Some(reason) = text.strip_prefix("<!-- sh not run: ") {
            let reason = reason.strip_suffix(" -->").unwrap_or_default().trim();
            if reason.is_empty() {
                return wrong("a mark without a reason");
            }
            not_run = Some(reason.to_owned());
            continue;
        }
        if let Some(info) = text.strip_prefix("```") {
            let Some(code) = until(&mut lines, "```") else {
                return wrong("a block without an end");
            };
            let (language, attribute) = info.split_once(' ').unwrap_or((info, ""));
            if let Some(name) = attribute.strip_prefix("file=") {
                let (kind, expected) = (Kind::File(name.to_owned()), None);
                blocks.push(Block {
                    line,
                    code,
                    kind,
                    expected,
                });
                right_behind = false;
                after_blank = false;
                continue;
            }
            match language {
                "" => return wrong("a block without a language"),
                "text" if right_behind => {
                    if let Some(block) = blocks.last_mut() {
                        block.expected = Some(code);
                    }
                    right_behind = false;
                }
                "sh" => {
                    if code.lines().any(|line| line.starts_with("$ ")) {
                        return wrong("a prompt, which cannot be pasted");
                    }
                    let kind = match (not_run.take(), attribute) {
                        (Some(reason), _) => Kind::NotRun(reason),
                        (None, "background") => Kind::Background,
                        (None, "") => Kind::Foreground,
                        (None, _) => return wrong("an unknown attribute"),
                    };
                    right_behind = !matches!(kind, Kind::NotRun(_));
                    let expected = None;
                    blocks.push(Block {
                        line,
                        code,
                        kind,
                        expected,
                    });
                }
                "redis" => {
                    let (code, expected) = redis_session(attribute, &code);
                    let (kind, expected) = (Kind::Foreground, Some(expected));
                    blocks.push(Block {
                        line,
                        code,
                        kind,
                        expected,
                    });
                    right_behind = false;
                }
                "console" | "bash" | "shell" => {
                    return wrong("a shell block that is not called sh");
                }
                _ => right_behind = false,
            }
        } else if text == "<!-- sh" {
            let Some(code) = until(&mut lines, "-->") else {
                return wrong("a comment without an end");
            };
            let (kind, expected) = (Kind::Hidden, None);
            blocks.push(Block {
                line,
                code,
                kind,
                expected,
            });
            right_behind = false;
        } else if !blank {
            if after_blank && !in_list && text.starts_with("    ") {
                return wrong("an indented block; blocks are fenced and have a language");
            }
            right_behind = false;
        }
        if not_run.is_some() && !blank {
            return wrong("a mark that stands before no shell block");
        }
        in_list = match text.trim_start() {
            _ if blank => in_list,
            trimmed if is_item(trimmed) => true,
            _ => in_list && text.starts_with(' '),
        };
        after_blank = blank;
    }
    if let Some(block) = blocks
        .iter()
        .find(|block| block.kind == Kind::Background && block.expected.is_none())
    {
        return Err(format!(
            "line {}: nothing tells when this background block is ready; show what it prints",
            block.line
        ));
    }
    Ok(blocks)
}

/// What a shell runs for a session of redis-cli, and what that prints.
fn redis_session(options: &str, session: &str) -> (String, String) {
    let (mut requests, mut replies) = (String::new(), String::new());
    for line in session.lines() {
        let (text, line) = match line.strip_prefix("127.0.0.1:6379> ") {
            Some(request) => (&mut requests, request),
            None => (&mut replies, line),
        };
        text.push_str(line);
        text.push('\n');
    }
    let code = format!("redis-cli {options} <<'END-OF-SESSION'\n{requests}END-OF-SESSION\n");
    (code, replies)
}

/// Whether a line without its indentation begins an item of a list.
fn is_item(trimmed: &str) -> bool {
    let digits = trimmed.trim_start_matches(|c: char| c.is_ascii_digit());
    ["- ", "* "]
        .iter()
        .any(|bullet| trimmed.starts_with(bullet))
        || (digits.len() < trimmed.len() && digits.starts_with(". "))
}

/// The lines up to one that is `end`, which is taken too; none if there is no such line.
fn until<'a>(lines: &mut impl Iterator<Item = (usize, &'a str)>, end: &str) -> Option<String> {
    let mut taken = String::new();
    for (_, line) in lines {
        if line == end {
            return Some(taken);
        }
        taken.push_str(line);
        taken.push('\n');
    }
    None
}

/// Whether `printed` is what `expected` says.
pub(crate) fn matches(expected: &str, printed: &str) -> bool {
    let expected: Vec<&str> = expected.trim_end().lines().collect();
    let printed: Vec<&str> = printed.trim_end().lines().collect();
    lines_match(&expected, &printed, false)
}

/// Whether `printed` begins with what `expected` says.
pub(crate) fn begins(expected: &str, printed: &str) -> bool {
    let expected: Vec<&str> = expected.trim_end().lines().collect();
    let printed: Vec<&str> = printed.lines().collect();
    lines_match(&expected, &printed, true)
}

fn lines_match(expected: &[&str], printed: &[&str], beginning: bool) -> bool {
    let Some((first, rest)) = expected.split_first() else {
        return beginning || printed.is_empty();
    };
    if first.trim() == "..." {
        return (0..=printed.len())
            .any(|skipped| lines_match(rest, &printed[skipped..], beginning));
    }
    let Some((line, others)) = printed.split_first() else {
        return false;
    };
    line_matches(&spaced(first), &spaced(line)) && lines_match(rest, others, beginning)
}

/// The words of a line with one space between them: the columns of a table are as wide as what they hold.
fn spaced(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.join(" ")
}

fn line_matches(expected: &str, line: &str) -> bool {
    let Some((before, after)) = expected.split_once("...") else {
        return expected == line;
    };
    let Some(rest) = line.strip_prefix(before) else {
        return false;
    };
    let places = rest
        .char_indices()
        .map(|(place, _)| place)
        .chain([rest.len()]);
    places
        .into_iter()
        .any(|place| line_matches(after, &rest[place..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(page: &str, expected: &[(Kind, &str, Option<&str>)]) {
        let blocks = shell_blocks(page).unwrap_or_else(|error| panic!("{page}: {error}"));
        let blocks: Vec<_> = blocks
            .iter()
            .map(|block| {
                (
                    block.kind.clone(),
                    block.code.as_str(),
                    block.expected.as_deref(),
                )
            })
            .collect();
        assert_eq!(blocks, expected, "{page}");
    }

    #[test]
    fn blocks_marks_and_outputs_are_found() {
        check("text\n\n```rust\nlet a = 1;\n```\n", &[]);
        check("```sh\na\n```\n", &[(Kind::Foreground, "a\n", None)]);
        check(
            "<!-- sh\nb\n-->\n```sh background\na\n```\n\n```text\nready\n```\n",
            &[
                (Kind::Hidden, "b\n", None),
                (Kind::Background, "a\n", Some("ready\n")),
            ],
        );
        check(
            "```sh\na\n```\nprose\n```text\nno output\n```\n",
            &[(Kind::Foreground, "a\n", None)],
        );
        check(
            "<!-- sh not run: it takes an hour -->\n```sh\na\n```\n",
            &[(Kind::NotRun("it takes an hour".to_owned()), "a\n", None)],
        );
        check(
            "```redis -3\n127.0.0.1:6379> PING\nPONG\n```\n",
            &[(
                Kind::Foreground,
                "redis-cli -3 <<'END-OF-SESSION'\nPING\nEND-OF-SESSION\n",
                Some("PONG\n"),
            )],
        );
        check(
            "```kdl file=a.kdl\na\n```\n",
            &[(Kind::File("a.kdl".to_owned()), "a\n", None)],
        );
        check("- an item\n\n    goes on\n", &[]);
    }

    #[test]
    fn a_page_that_hides_a_block_from_the_test_is_refused() {
        let refused = |page: &str, part: &str| {
            let error = shell_blocks(page).expect_err(page);
            assert!(error.contains(part), "{page}: {error}");
        };
        refused("text\n\n    kumi up\n", "line 3: an indented block");
        refused("```\nkumi up\n```\n", "without a language");
        refused("```console\nkumi up\n```\n", "not called sh");
        refused("```sh\n$ kumi up\n```\n", "a prompt");
        refused("```sh\nkumi up\n", "without an end");
        refused("```sh background\nkumi up\n```\n", "nothing tells");
        refused("```sh foreground\nkumi up\n```\n", "unknown attribute");
        refused("<!-- sh not run:  -->\n```sh\na\n```\n", "without a reason");
        refused(
            "<!-- sh not run: long -->\nprose\n",
            "before no shell block",
        );
    }

    #[test]
    fn outputs_are_compared_line_by_line_with_gaps() {
        for (expected, printed, both) in [
            ("a\n", "a\n", true),
            ("a", "b", false),
            ("a", "a\nb", false),
            ("a ... c", "a b b c", true),
            ("a ... c", "a b b d", false),
            ("a  b", "a b", true),
            ("ab", "a b", false),
            ("...\nz", "a\nb\nz\n", true),
            ("a\n...", "a", true),
            ("...ms, ...us", "12ms, 3us", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(expected, printed), both, "{expected:?} {printed:?}");
        }
        assert!(begins("a\n", "a\nb\n"));
        assert!(!begins("a\nb\n", "a\n"));
    }
}
