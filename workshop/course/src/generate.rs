//! Turns the annotated solution into what a learner has at some stage, in one language.
//!
//! A region of a source file has one body per step; only the last one is code, the others are comments:
//!
//! ```text
//! //@ before             optional: what stands there before the first step (else a todo! that names step and file)
//! //| let old = 1;
//! //@ step 3             from step 3 on
//! //| let older = 2;
//! //@ step 4 lines 1     from step 4 on; of this body the learner types 1 line anew
//! let newest = 3;
//! //@ end
//! ```
//!
//! `given60` after a step: given in the 60-minute course. Comment lines that begin with `en:` or `ja:` are kept in that
//! language only.

use crate::lang::Lang;

/// What to generate.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// The last step that is filled in; 0 is the skeleton.
    pub step: u8,
    /// The language of comments.
    pub lang: Lang,
    /// The 60-minute course: more is given.
    pub short: bool,
}

/// One body of a region.
#[derive(Debug, Default)]
struct Body {
    step: u8,
    given_in_short: bool,
    /// The number of lines that the learner types, where it is not all of the body.
    typed: Option<usize>,
    lines: Vec<String>,
}

enum Piece {
    Text(String),
    Region { indent: String, bodies: Vec<Body> },
}

/// The text of `source` at a stage. `name` is the file's name, for the `todo!`.
pub fn render(name: &str, source: &str, stage: Stage) -> Result<String, String> {
    let mut lines = Vec::new();
    for piece in parse(source).map_err(|error| format!("{name}: {error}"))? {
        match piece {
            Piece::Text(line) => lines.push(line),
            Piece::Region { indent, bodies } => {
                let reached = |body: &&Body| body.step <= stage.step || (stage.short && body.given_in_short);
                match bodies.iter().rev().find(reached) {
                    Some(body) => lines.extend(body.lines.iter().cloned()),
                    None => lines.push(format!("{indent}todo!(\"step {}: {name}\")", bodies[0].step)),
                }
            }
        }
    }
    let mut text = String::new();
    for line in lines {
        if let Some(line) = in_language(&line, stage.lang) {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    Ok(text)
}

/// How many lines of code the learner types in `step`.
pub fn typed_lines(source: &str, step: u8, short: bool) -> Result<usize, String> {
    let mut count = 0;
    for piece in parse(source)? {
        if let Piece::Region { bodies, .. } = piece {
            for body in bodies.iter().filter(|body| body.step == step && !(short && body.given_in_short)) {
                let code = |line: &&String| !line.trim().is_empty() && !line.trim().starts_with("//");
                count += body.typed.unwrap_or_else(|| body.lines.iter().filter(code).count());
            }
        }
    }
    Ok(count)
}

fn parse(source: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut region: Option<(String, Vec<Body>)> = None;
    for (number, line) in source.lines().enumerate() {
        let trimmed = line.trim_start();
        let at = |what: &str| format!("line {}: {what}", number + 1);
        if let Some(marker) = trimmed.strip_prefix("//@ ") {
            let indent = line[..line.len() - trimmed.len()].to_string();
            if marker == "end" {
                let (indent, bodies) = region.take().ok_or_else(|| at("an end without a region"))?;
                pieces.push(Piece::Region { indent, bodies });
            } else {
                let body = parse_marker(marker).ok_or_else(|| at("a marker that makes no sense"))?;
                region.get_or_insert_with(|| (indent, Vec::new())).1.push(body);
            }
        } else if let Some((indent, bodies)) = &mut region {
            let line = match trimmed.strip_prefix("//|") {
                Some(rest) => format!("{indent}{}", rest.strip_prefix(' ').unwrap_or(rest)),
                None => line.to_string(),
            };
            bodies.last_mut().ok_or_else(|| at("no body"))?.lines.push(line);
        } else {
            pieces.push(Piece::Text(line.to_string()));
        }
    }
    match region {
        Some(_) => Err("a region has no end".to_string()),
        None => Ok(pieces),
    }
}

fn parse_marker(marker: &str) -> Option<Body> {
    let mut words = marker.split_whitespace();
    let mut body = Body::default();
    match words.next()? {
        "before" => {}
        "step" => body.step = words.next()?.parse().ok()?,
        _ => return None,
    }
    while let Some(word) = words.next() {
        match word {
            "given60" => body.given_in_short = true,
            "lines" => body.typed = Some(words.next()?.parse().ok()?),
            _ => return None,
        }
    }
    Some(body)
}

/// The line in one language, or nothing if it belongs to the other one.
fn in_language(line: &str, lang: Lang) -> Option<String> {
    for opening in ["//! ", "/// ", "// "] {
        let Some((indent, rest)) = line.split_once(opening) else { continue };
        if !indent.trim().is_empty() {
            continue;
        }
        for each in Lang::ALL {
            if let Some(text) = rest.strip_prefix(each.code()).and_then(|rest| rest.strip_prefix(':')) {
                return (each == lang).then(|| format!("{indent}{}{text}", opening.trim_end()));
            }
        }
    }
    Some(line.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "/// en: Hello.\n/// ja: こんにちは。\nfn f() -> u8 {\n    //@ step 2\n    //| 1\n    //@ step 4 lines 1\n    let one = 1;\n    one + 1\n    //@ end\n}\n";

    fn at(step: u8, lang: Lang) -> String {
        render("f.rs", SOURCE, Stage { step, lang, short: false }).expect("well formed")
    }

    #[test]
    fn a_body_that_is_not_reached_is_a_todo_with_its_step_and_file() {
        assert_eq!(at(1, Lang::En), "/// Hello.\nfn f() -> u8 {\n    todo!(\"step 2: f.rs\")\n}\n");
    }

    #[test]
    fn a_later_body_replaces_an_earlier_one() {
        assert_eq!(at(3, Lang::Ja), "/// こんにちは。\nfn f() -> u8 {\n    1\n}\n");
        assert_eq!(at(7, Lang::En), "/// Hello.\nfn f() -> u8 {\n    let one = 1;\n    one + 1\n}\n");
    }

    #[test]
    fn typed_lines_are_the_new_ones() {
        assert_eq!(typed_lines(SOURCE, 2, false), Ok(1));
        assert_eq!(typed_lines(SOURCE, 4, false), Ok(1));
        assert_eq!(typed_lines("//@ step 2 given60\na\nb\n//@ end\n", 2, false), Ok(2));
        assert_eq!(typed_lines("//@ step 2 given60\na\nb\n//@ end\n", 2, true), Ok(0));
    }

    #[test]
    fn broken_markers_are_errors() {
        for source in ["//@ end\n", "//@ step x\n//@ end\n", "//@ step 1\n", "//@ what\n//@ end\n"] {
            assert!(parse(source).is_err(), "{source}");
        }
    }
}
