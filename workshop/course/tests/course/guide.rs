//! The guide's pages: both languages say the same, links lead somewhere, and every block is of a kind that is checked.
//!
//! Blocks are `rust` (compiled and run as documentation tests of this crate), `console` and `bytes` (replayed, see
//! `replay.rs`), and `picture`, which is a drawing.

use std::fs;

use course::files;
use course::lang::Lang;

/// Every page, in order. The page of step N is number N + 1.
pub const PAGES: [&str; 10] = [
    "index.md",
    "00-setup.md",
    "01-tcp.md",
    "02-resp.md",
    "03-keys.md",
    "04-expire.md",
    "05-active.md",
    "06-pubsub.md",
    "07-muf.md",
    "teacher.md",
];

/// A page, and what is in it.
pub struct Page {
    pub name: &'static str,
    pub text: String,
    /// Kind and text of each fenced block.
    pub blocks: Vec<(String, String)>,
    /// Everything outside of blocks.
    pub prose: String,
}

impl Page {
    pub fn read(lang: Lang, name: &'static str) -> Page {
        let path = files::workshop().join("guide").join(lang.code()).join(name);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (mut blocks, mut prose, mut block) = (Vec::new(), String::new(), None::<(String, String)>);
        for line in text.lines() {
            match (line.strip_prefix("```"), &mut block) {
                (Some(_), Some(_)) => blocks.extend(block.take()),
                (Some(kind), None) => block = Some((kind.to_string(), String::new())),
                (None, Some((_, inside))) => *inside += &format!("{line}\n"),
                (None, None) => prose += &format!("{line}\n"),
            }
        }
        assert!(block.is_none(), "{name}: a block has no end");
        Page { name, text, blocks, prose }
    }

    /// The targets of all links.
    fn links(&self) -> Vec<String> {
        let mut links: Vec<String> =
            self.prose.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_string())).collect();
        links.sort();
        links
    }

    /// Code in the prose that is a command, a file or an identifier; the learner's language is left out of commands.
    fn inline_code(&self) -> Vec<String> {
        let mut code: Vec<String> =
            self.prose.split('`').skip(1).step_by(2).map(|code| code.replace(" --lang ja", "")).collect();
        code.sort();
        code.dedup();
        code
    }

    /// English words, or the Japanese characters that take as long to read.
    pub fn words(&self, lang: Lang) -> usize {
        match lang {
            Lang::En => self.prose.split_whitespace().count(),
            Lang::Ja => {
                let wide = self.prose.chars().filter(|character| !character.is_ascii()).count();
                let narrow = self.prose.split_whitespace().filter(|word| word.is_ascii()).count();
                wide / 3 + narrow
            }
        }
    }
}

#[test]
fn both_languages_have_the_same_pages_and_nothing_else() {
    for lang in Lang::ALL {
        let names = files::entries(&files::workshop().join("guide").join(lang.code())).unwrap();
        let names: Vec<String> =
            names.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
        let mut expected = PAGES;
        expected.sort();
        assert_eq!(names, expected);
    }
}

#[test]
fn both_languages_have_the_same_code_commands_and_links() {
    for name in PAGES {
        let [en, ja] = Lang::ALL.map(|lang| Page::read(lang, name));
        let kinds = |page: &Page| page.blocks.iter().map(|(kind, _)| kind.clone()).collect::<Vec<_>>();
        assert_eq!(kinds(&en), kinds(&ja), "{name}: other blocks");
        for ((kind, en), (_, ja)) in en.blocks.iter().zip(&ja.blocks) {
            match kind.as_str() {
                "bytes" => assert_eq!(en, ja, "{name}"),
                "rust" => assert_eq!(without_comments(en), without_comments(ja), "{name}"),
                "console" => {
                    let commands = |text: &str| -> Vec<String> {
                        text.lines()
                            .filter(|line| line.starts_with("$ "))
                            .map(|line| line.replace(" --lang ja", ""))
                            .collect()
                    };
                    assert_eq!(commands(en), commands(ja), "{name}");
                    if !en.contains("cargo mini") {
                        assert_eq!(en, ja, "{name}");
                    }
                }
                "picture" => assert_eq!(en.lines().count(), ja.lines().count(), "{name}"),
                other => panic!("{name}: a block of kind {other:?} is not checked"),
            }
        }
        assert_eq!(en.links(), ja.links(), "{name}");
        assert_eq!(en.inline_code(), ja.inline_code(), "{name}");
        let headings = |page: &Page| page.prose.lines().filter(|line| line.starts_with('#')).count();
        assert_eq!(headings(&en), headings(&ja), "{name}");
    }
}

/// Code with its comments left out, but for where they stand.
fn without_comments(code: &str) -> String {
    code.lines()
        .map(|line| line.split_once("//").map_or(line.to_string(), |(code, _)| format!("{code}//")) + "\n")
        .collect()
}

#[test]
fn comments_in_the_code_of_japanese_pages_are_japanese() {
    for name in PAGES {
        for (_, code) in Page::read(Lang::Ja, name).blocks.iter().filter(|(kind, _)| kind == "rust") {
            for comment in code.lines().filter_map(|line| Some(line.split_once("//")?.1)) {
                assert!(comment.chars().any(|character| character > '\u{3000}'), "{name}: {comment}");
            }
        }
    }
}

/// The character of each column; a wide one takes two.
fn columns(line: &str) -> Vec<char> {
    line.chars().flat_map(|character| vec![character; if character > '\u{2e80}' { 2 } else { 1 }]).collect()
}

#[test]
fn lines_of_pictures_meet() {
    for (lang, name) in Lang::ALL.into_iter().flat_map(|lang| PAGES.map(|name| (lang, name))) {
        for (_, picture) in Page::read(lang, name).blocks.iter().filter(|(kind, _)| kind == "picture") {
            let rows: Vec<Vec<char>> = picture.lines().map(columns).collect();
            let is_drawn = |row: Option<&Vec<char>>, column: usize| {
                row.and_then(|row| row.get(column)).is_some_and(|character| *character != ' ')
            };
            for (number, row) in rows.iter().enumerate() {
                for (column, character) in row.iter().enumerate() {
                    let above = is_drawn(number.checked_sub(1).and_then(|number| rows.get(number)), column);
                    let below = is_drawn(rows.get(number + 1), column);
                    let meets = match character {
                        '│' | '┤' | '├' | '┼' => above && below,
                        '┌' | '┐' | '▲' => below,
                        '└' | '┘' | '▼' => above,
                        _ => true,
                    };
                    assert!(meets, "{} {name}: {character} in column {column} of\n{picture}", lang.code());
                }
            }
        }
    }
}

#[test]
fn every_link_leads_to_a_file() {
    for (lang, name) in Lang::ALL.into_iter().flat_map(|lang| PAGES.map(|name| (lang, name))) {
        for link in Page::read(lang, name).links() {
            let path = files::workshop().join("guide").join(lang.code()).join(&link);
            assert!(path.is_file(), "{} {name}: {link}", lang.code());
        }
    }
}

#[test]
fn every_page_with_rust_is_compiled_by_the_documentation_tests() {
    let library = fs::read_to_string(files::workshop().join("course/src/lib.rs")).unwrap();
    for name in PAGES {
        let has_rust = Page::read(Lang::En, name).blocks.iter().any(|(kind, _)| kind == "rust");
        let included = library.contains(&format!("include_str!(\"../../guide/en/{name}\")"));
        assert_eq!(has_rust, included, "{name}");
    }
}

#[test]
fn every_comment_of_the_solution_is_in_both_languages() {
    for (name, text) in files::annotated().unwrap() {
        let count = |code: &str| {
            text.lines()
                .filter(|line| line.trim_start().trim_start_matches(['/', '!', '|']).trim_start().starts_with(code))
                .count()
        };
        assert_eq!(count("en:") > 0, count("ja:") > 0, "{name}");
        // Every English block is followed by a Japanese one.
        let mut waiting = None;
        for line in text.lines() {
            let words = line.trim_start().trim_start_matches(['/', '!', '|']).trim_start();
            if words.starts_with("en:") {
                waiting = Some(line);
            } else if words.starts_with("ja:") {
                waiting = None;
            } else {
                assert_eq!(waiting, None, "{name}: no Japanese after it");
            }
        }
    }
}
