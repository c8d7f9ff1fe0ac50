//! Three hints per topic, from `hints.txt`: each says more than the one before, the last is nearly the answer.

use crate::lang::Lang;

const TEXT: &str = include_str!("../hints.txt");

/// How many hints a topic has.
pub const COUNT: usize = 3;

/// The hint number `number` (1 to 3) of a topic.
pub fn hint(step: u8, topic: &str, number: usize, lang: Lang) -> Option<String> {
    let heading = format!("= {step} {topic}");
    let mut lines = TEXT.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.starts_with("= "));
    let opening = format!("{number} {}", lang.code());
    lines.by_ref().find(|line| *line == opening)?;
    let is_opening =
        |line: &&str| !matches!(line.split_once(' '), Some((number, "en" | "ja")) if number.parse::<usize>().is_ok());
    let text: Vec<&str> = lines.take_while(is_opening).collect();
    Some(text.join("\n").trim_end().to_string())
}

/// The topic that helps with a red test: that of the missing file if a `todo!` named one, else the test's.
pub fn topic<'a>(step: u8, test_topic: &'a str, missing_file: Option<&str>) -> &'a str {
    match (step, missing_file) {
        (1, Some("client.rs")) => "pong",
        (2, Some("client.rs")) => "loop",
        (2, Some("resp.rs")) if test_topic == "loop" => "parse",
        (3, Some("store.rs")) if test_topic == "commands" => "store",
        (4, Some("expiry.rs")) => "passive",
        (6, Some("pubsub.rs")) => "publish",
        (6, Some("session.rs" | "client.rs")) => "session",
        (7, Some("pubsub.rs")) => "notify",
        _ => test_topic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps;

    #[test]
    fn every_test_has_three_hints_in_both_languages_and_each_says_more() {
        for test in (1..=steps::LAST).flat_map(steps::of) {
            for lang in Lang::ALL {
                let texts: Vec<String> = (1..=COUNT)
                    .map(|number| {
                        let found = hint(test.step, test.topic, number, lang);
                        found.unwrap_or_else(|| panic!("step {} {} {number} {lang:?}", test.step, test.topic))
                    })
                    .collect();
                assert!(texts.iter().all(|text| text.len() > 20), "{} {}: {texts:?}", test.step, test.topic);
                assert!(texts[0].len() < texts[2].len(), "{} {}", test.step, test.topic);
                assert_eq!(hint(test.step, test.topic, COUNT + 1, lang), None);
            }
        }
    }

    /// A line without its comment.
    fn without_comment(line: &str) -> String {
        match (line.split_once("/*"), line.split_once("*/")) {
            (Some((before, _)), Some((_, after))) => format!("{before}/**/{after}"),
            _ => line.to_string(),
        }
    }

    #[test]
    fn comments_in_japanese_hints_are_japanese() {
        let is_japanese = |text: &str| text.chars().any(|character| character > '\u{3000}');
        for test in (1..=steps::LAST).flat_map(steps::of) {
            for number in 1..=COUNT {
                let text = hint(test.step, test.topic, number, Lang::Ja).unwrap();
                for comment in text.split("/*").skip(1).filter_map(|rest| rest.split("*/").next()) {
                    assert!(is_japanese(comment), "step {} {} {number}: {comment}", test.step, test.topic);
                }
            }
        }
    }

    #[test]
    fn the_two_languages_show_the_same_code() {
        let code = |text: String| -> Vec<String> {
            text.lines().filter(|line| line.starts_with("    ")).map(without_comment).collect()
        };
        for test in (1..=steps::LAST).flat_map(steps::of) {
            for number in 1..=COUNT {
                let [en, ja] = Lang::ALL.map(|lang| code(hint(test.step, test.topic, number, lang).unwrap()));
                assert_eq!(en, ja, "step {} {} {number}", test.step, test.topic);
            }
        }
    }

    #[test]
    fn a_missing_file_leads_to_hints_that_exist() {
        let files =
            ["server.rs", "client.rs", "resp.rs", "store.rs", "commands.rs", "expiry.rs", "session.rs", "pubsub.rs"];
        for test in (1..=steps::LAST).flat_map(steps::of) {
            for file in files {
                let topic = topic(test.step, test.topic, Some(file));
                assert!(hint(test.step, topic, 1, Lang::Ja).is_some(), "step {} {topic}", test.step);
            }
        }
        assert_eq!(topic(1, "accept", Some("client.rs")), "pong");
        assert_eq!(topic(1, "accept", None), "accept");
    }
}
