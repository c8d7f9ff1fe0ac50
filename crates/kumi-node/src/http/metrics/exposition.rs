//! The Prometheus text format, version 0.0.4: families with HELP and TYPE, labels escaped.

use std::fmt::{Display, Write};

/// Series of one family that are written; further ones are left out. A store has some 250 commands, and names of queues
/// and units are the team's own.
pub(super) const SERIES_LIMIT: usize = 1_000;

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Gauge,
    Counter,
    Summary,
}

/// Metrics being written.
#[derive(Default)]
pub(super) struct Exposition(String);

impl Exposition {
    pub(super) fn into_text(self) -> String {
        self.0
    }

    /// A family with these series, in their order: labels and value of each.
    pub(super) fn family<'a, V: Display>(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (&'a [(&'a str, &'a str)], V)>,
    ) {
        let mut series = series.into_iter().take(SERIES_LIMIT).peekable();
        if series.peek().is_none() {
            return;
        }
        self.head(kind, name, help);
        for (labels, value) in series {
            self.series(name, labels, value);
        }
    }

    /// A family with one series that has no labels.
    pub(super) fn single(&mut self, kind: Kind, name: &str, help: &str, value: impl Display) {
        self.head(kind, name, help);
        self.series(name, &[], value);
    }

    /// HELP and TYPE of a family whose series follow.
    pub(super) fn head(&mut self, kind: Kind, name: &str, help: &str) {
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Summary => "summary",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// One series of the family whose head was written last.
    pub(super) fn series(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            self.0.push(if at == 0 { '{' } else { ',' });
            self.0.push_str(label);
            self.0.push_str("=\"");
            for letter in text.chars() {
                match letter {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    other => self.0.push(other),
                }
            }
            self.0.push('"');
        }
        let end = if labels.is_empty() { "" } else { "}" };
        self.line(format_args!("{end} {value}\n"));
    }

    fn line(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a String does not fail.
        let _ = self.0.write_fmt(arguments);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_its_head_once_and_escaped_labels() {
        let mut out = Exposition::default();
        let series: [(&[(&str, &str)], f64); 2] = [
            (&[("queue", "a\"b\\c\nd"), ("state", "é")], 1.5),
            (&[], 2.0),
        ];
        out.family(Kind::Gauge, "kumi_x", "Back\\slash\nand line.", series);
        let none: [(&[(&str, &str)], u64); 0] = [];
        out.family(Kind::Counter, "kumi_none_total", "Nothing.", none);
        let expected = "# HELP kumi_x Back\\\\slash\\nand line.\n# TYPE kumi_x gauge\n\
            kumi_x{queue=\"a\\\"b\\\\c\\nd\",state=\"é\"} 1.5\nkumi_x 2\n";
        assert_eq!(out.into_text(), expected);
    }

    #[test]
    fn series_beyond_the_limit_are_left_out() {
        let mut out = Exposition::default();
        let none: &[(&str, &str)] = &[];
        out.family(
            Kind::Gauge,
            "kumi_x",
            "X.",
            (0..2 * SERIES_LIMIT).map(|n| (none, n)),
        );
        assert_eq!(out.into_text().lines().count(), 2 + SERIES_LIMIT);
    }
}
