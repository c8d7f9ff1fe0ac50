//! The course's table: how much is written in each step, and how long reading about it may take.

use course::files;
use course::lang::Lang;

use crate::guide::{PAGES, Page};

struct Row {
    step: u8,
    lines: usize,
    lines_in_short: usize,
    minutes: usize,
    minutes_in_short: usize,
}

const TABLE: [Row; 5] = [
    Row { step: 1, lines: 15, lines_in_short: 15, minutes: 12, minutes_in_short: 9 },
    Row { step: 2, lines: 45, lines_in_short: 25, minutes: 24, minutes_in_short: 16 },
    Row { step: 3, lines: 35, lines_in_short: 35, minutes: 16, minutes_in_short: 11 },
    Row { step: 4, lines: 30, lines_in_short: 30, minutes: 14, minutes_in_short: 9 },
    Row { step: 5, lines: 18, lines_in_short: 18, minutes: 10, minutes_in_short: 7 },
];

/// Minutes before the first and after the last step.
const AROUND: (usize, usize) = (5 + 9, 3 + 5);

/// How far the number of lines may be from the table's.
const TOLERANCE: usize = 3;

/// Words per minute of the short timetable: reading takes at most a third of the time, at 180 words a minute. For
/// Japanese, a word counts as three characters.
const WORDS_PER_MINUTE: usize = 60;

#[test]
fn learners_type_as_many_lines_as_the_table_says() {
    let mut sum = 0;
    for row in &TABLE {
        let lines = files::lines_of_step(row.step, false).unwrap();
        let short = files::lines_of_step(row.step, true).unwrap();
        sum += lines;
        assert!(lines.abs_diff(row.lines) <= TOLERANCE, "step {}: {lines} lines, not about {}", row.step, row.lines);
        assert!(short.abs_diff(row.lines_in_short) <= TOLERANCE, "step {} of 60 minutes: {short} lines", row.step);
    }
    assert!(sum.abs_diff(145) <= 5, "{sum} lines in all");
}

#[test]
fn the_timetables_add_up_and_the_notes_show_them() {
    assert_eq!(TABLE.iter().map(|row| row.minutes).sum::<usize>() + AROUND.0, 90);
    assert_eq!(TABLE.iter().map(|row| row.minutes_in_short).sum::<usize>() + AROUND.1, 60);
    for lang in Lang::ALL {
        let text = Page::read(lang, "teacher.md").text;
        for row in &TABLE {
            let line = text.lines().find(|line| line.starts_with(&format!("| {} ", row.step))).expect("a row");
            assert!(line.contains(&format!("| {} | {} |", row.minutes, row.minutes_in_short)), "{line}");
            assert!(line.contains(&row.lines.to_string()) && line.contains(&row.lines_in_short.to_string()), "{line}");
        }
    }
}

#[test]
fn each_step_of_the_guide_can_be_read_in_its_time() {
    for lang in Lang::ALL {
        for row in &TABLE {
            let name = PAGES[usize::from(row.step) + 1];
            let words = Page::read(lang, name).words(lang);
            let limit = row.minutes_in_short * WORDS_PER_MINUTE;
            assert!(words <= limit, "{} {name}: {words} words, at most {limit}", lang.code());
            assert!(words * 4 >= limit, "{} {name}: {words} words explain too little", lang.code());
        }
    }
}
