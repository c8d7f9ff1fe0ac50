//! `diff N`: the learner's files beside the model answer, line by line, where they differ.

use std::fs::File;
use std::io::IsTerminal;
use std::process::Command;

use super::arguments::Arguments;
use super::{Mini, step_argument};
use crate::files;
use crate::generate::Stage;

/// Columns of one side if nothing is known of the terminal.
const WIDTH: usize = 58;
/// The fewest columns of one side.
const NARROWEST: usize = 24;
/// Columns between the two sides.
const BETWEEN: usize = 3;

/// How wide the two sides are.
#[derive(Clone, Copy)]
struct Widths {
    left: usize,
    /// None: lines are not cut.
    right: Option<usize>,
}

impl Widths {
    fn of(columns: Option<usize>) -> Widths {
        match columns.map(|columns| (columns.saturating_sub(BETWEEN) / 2).max(NARROWEST)) {
            Some(side) => Widths { left: side, right: Some(side) },
            None => Widths { left: WIDTH, right: None },
        }
    }

    fn row(self, left: &str, mark: &str, right: &str) -> String {
        let right = self.right.map_or(right.to_string(), |width| fit(right, width).0);
        format!("{} {mark} {right}", pad(left, self.left))
    }
}

/// The columns of the terminal that is written to: `COLUMNS`, or what the terminal says.
fn terminal_columns() -> Option<usize> {
    let given = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    if given.is_some() {
        return given;
    }
    let terminal = std::io::stdout().is_terminal().then(|| File::open("/dev/tty").ok()).flatten()?;
    let size = Command::new("stty").arg("size").stdin(terminal).output().ok()?;
    let size = String::from_utf8_lossy(&size.stdout).into_owned();
    size.split_whitespace().nth(1)?.parse().ok().filter(|columns| *columns > 0)
}

pub(super) fn diff(mini: &Mini, arguments: &mut Arguments) -> Result<bool, String> {
    let word = arguments.word().ok_or(super::arguments::USAGE)?;
    let step = step_argument(&word, mini.lang)?;
    arguments.end()?;
    mini.started()?;
    let stage = Stage { step, lang: mini.lang, short: mini.state.short() };
    let widths = Widths::of(terminal_columns());
    let mut differs = false;
    for (name, model) in files::sources(stage)?.into_iter().filter(|(name, _)| name.starts_with("src/")) {
        let theirs = std::fs::read_to_string(mini.folder.join(&name)).unwrap_or_default();
        let rows = side_by_side(&code(&theirs), &code(&model));
        if rows.iter().all(|row| row.0 == row.1) {
            continue;
        }
        differs = true;
        let (left, right) = (mini.lang.pick("yours", "自分のコード"), mini.lang.pick("model answer", "模範解答"));
        println!("\n{name}\n{}", widths.row(left, "│", right));
        for index in shown(&rows) {
            match index {
                Some(index) => {
                    let (left, right) = &rows[index];
                    let mark = if left == right { "│" } else { "┃" };
                    println!(
                        "{}",
                        widths.row(left.as_deref().unwrap_or(""), mark, right.as_deref().unwrap_or("")).trim_end()
                    );
                }
                None => println!("{} ┆", pad("  ...", widths.left)),
            }
        }
    }
    if !differs {
        println!("{}", mini.lang.pick("No difference.", "違いはありません。"));
    }
    Ok(true)
}

/// The lines that are code: comments are the same anyway, or the learner's own.
fn code(text: &str) -> Vec<String> {
    let kept = text.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with("//"));
    kept.map(str::to_string).collect()
}

type Row = (Option<String>, Option<String>);

/// Pairs equal lines by the longest common subsequence; the others stand alone.
fn side_by_side(left: &[String], right: &[String]) -> Vec<Row> {
    let mut lengths = vec![vec![0u32; right.len() + 1]; left.len() + 1];
    for l in (0..left.len()).rev() {
        for r in (0..right.len()).rev() {
            lengths[l][r] = match left[l] == right[r] {
                true => lengths[l + 1][r + 1] + 1,
                false => lengths[l + 1][r].max(lengths[l][r + 1]),
            };
        }
    }
    let (mut l, mut r, mut rows) = (0, 0, Vec::new());
    while l < left.len() || r < right.len() {
        if l < left.len() && r < right.len() && left[l] == right[r] {
            rows.push((Some(left[l].clone()), Some(right[r].clone())));
            (l, r) = (l + 1, r + 1);
        } else if r == right.len() || (l < left.len() && lengths[l + 1][r] >= lengths[l][r + 1]) {
            rows.push((Some(left[l].clone()), None));
            l += 1;
        } else {
            rows.push((None, Some(right[r].clone())));
            r += 1;
        }
    }
    beside(rows)
}

/// What stands alone on the left and right at one place is put side by side.
fn beside(rows: Vec<Row>) -> Vec<Row> {
    let (mut paired, mut left, mut right) = (Vec::new(), Vec::new(), Vec::new());
    let flush = |left: &mut Vec<String>, right: &mut Vec<String>, paired: &mut Vec<Row>| {
        let (mut lefts, mut rights) = (left.drain(..), right.drain(..));
        loop {
            match (lefts.next(), rights.next()) {
                (None, None) => break,
                row => paired.push(row),
            }
        }
    };
    for row in rows {
        match row {
            (Some(line), None) => left.push(line),
            (None, Some(line)) => right.push(line),
            same => {
                flush(&mut left, &mut right, &mut paired);
                paired.push(same);
            }
        }
    }
    flush(&mut left, &mut right, &mut paired);
    paired
}

/// Which rows to show: those that differ and two around them; `None` stands for a gap.
fn shown(rows: &[Row]) -> Vec<Option<usize>> {
    let near = |index: usize| {
        let from = index.saturating_sub(2);
        rows[from..rows.len().min(index + 3)].iter().any(|row| row.0 != row.1)
    };
    let mut shown: Vec<Option<usize>> = Vec::new();
    for index in 0..rows.len() {
        if near(index) {
            shown.push(Some(index));
        } else if shown.last().is_some_and(Option::is_some) {
            shown.push(None);
        }
    }
    shown
}

/// The text, cut with `…` at the cut if it is wider than this, and how many columns it takes. Wide characters count as two.
fn fit(text: &str, width: usize) -> (String, usize) {
    let width_of = |character: char| if character > '\u{2e80}' { 2 } else { 1 };
    let fits = text.chars().map(width_of).sum::<usize>() <= width;
    let (mut fitted, mut columns) = (String::new(), 0);
    for character in text.chars() {
        let character_width = width_of(character);
        if !fits && columns + character_width >= width {
            fitted.push('…');
            columns += 1;
            break;
        }
        fitted.push(character);
        columns += character_width;
    }
    (fitted, columns)
}

/// Cut or filled to this many columns.
fn pad(text: &str, width: usize) -> String {
    let (fitted, columns) = fit(text, width);
    fitted + &" ".repeat(width - columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_string).collect()
    }

    #[test]
    fn equal_lines_stand_side_by_side() {
        let rows = side_by_side(&lines("a b c"), &lines("a x c d"));
        let flat: Vec<(&str, &str)> =
            rows.iter().map(|(l, r)| (l.as_deref().unwrap_or("-"), r.as_deref().unwrap_or("-"))).collect();
        assert_eq!(flat, [("a", "a"), ("b", "x"), ("c", "c"), ("-", "d")]);
    }

    #[test]
    fn far_equal_lines_are_left_out() {
        let rows = side_by_side(&lines("a b c d e f g"), &lines("a b c d e f h"));
        assert_eq!(shown(&rows).first(), Some(&Some(4)));
    }

    #[test]
    fn a_side_is_cut_or_filled_to_its_width() {
        for width in [30, WIDTH] {
            assert_eq!(pad("あ", width).chars().count(), width - 1);
            assert_eq!(pad(&"x".repeat(width), width), "x".repeat(width));
            assert_eq!(pad(&"x".repeat(width + 1), width), format!("{}…", "x".repeat(width - 1)));
        }
        let row = Widths::of(Some(63)).row("a", "│", &"x".repeat(50));
        assert_eq!(row.chars().count(), 63);
        assert_eq!(Widths::of(Some(5)).left, NARROWEST);
    }
}
