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

    #[test]
    fn the_two_languages_show_the_same_code() {
        let code = |text: String| -> Vec<String> {
            text.lines().filter(|line| line.starts_with("    ")).map(|line| line.to_string()).collect()
        };
        for test in (1..=steps::LAST).flat_map(steps::of) {
            for number in 1..=COUNT {
                let [en, ja] = Lang::ALL.map(|lang| code(hint(test.step, test.topic, number, lang).unwrap()));
                assert_eq!(en, ja, "step {} {} {number}", test.step, test.topic);
            }
        }
    }
}
