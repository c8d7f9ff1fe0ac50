//! The names of encodings, against a table of Redis 7.2's. The redis-server that the differential test compares with is
//! older and has neither listpack lists nor listpack sets.

use crate::testing::Lab;

const TABLE: &str = include_str!("encodings.txt");

#[test]
fn every_row_of_the_table_holds() {
    let rows = TABLE.lines().filter_map(|line| line.split_once(" => "));
    let mut wrong = Vec::new();
    let mut count = 0;
    for (commands, expected) in rows {
        let mut lab = Lab::new();
        for command in commands.split("; ") {
            let words: Vec<Vec<u8>> = command.split(' ').flat_map(expand).collect();
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            let answer = lab.send(lab.client, &words);
            assert!(!answer.starts_with('-'), "{command}: {answer}");
        }
        let answer = lab.run("OBJECT ENCODING k");
        let found = answer.lines().nth(1).unwrap_or(&answer).to_owned();
        if found != expected {
            wrong.push(format!("{commands}: {found} instead of {expected}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "only {count} rows were read");
}

/// The words that a word of the table stands for.
fn expand(word: &str) -> Vec<Vec<u8>> {
    if word == "\"\"" {
        return vec![Vec::new()];
    }
    if let Some((text, times)) = word.split_once('*')
        && let Ok(times) = times.parse()
    {
        return vec![text.repeat(times).into_bytes()];
    }
    let Some((first, rest)) = word.split_once("..") else {
        return vec![word.into()];
    };
    let (last, value) = match rest.split_once('=') {
        Some((last, value)) => (last, Some(value)),
        None => (rest, None),
    };
    let split = |text: &str| -> (String, usize) {
        let digits = text.find(|c: char| c.is_ascii_digit()).expect("a number");
        let number = text[digits..].parse().expect("a number");
        (text[..digits].to_owned(), number)
    };
    let ((prefix, first), (_, last)) = (split(first), split(last));
    let mut words = Vec::new();
    for number in first..=last {
        words.push(format!("{prefix}{number}").into_bytes());
        words.extend(value.map(|value| value.as_bytes().to_vec()));
    }
    words
}
