//! The Prometheus text format, version 0.0.4: families with HELP and TYPE, labels escaped.

use std::fmt::{Display, Write};

/// Series of one family that are written; further ones are left out and counted. A store has some 250 commands, and names
/// of queues and units are the team's own.
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
pub(super) struct Exposition {
    text: String,
    /// Series beyond the limit of their family.
    left_out: usize,
}

impl Exposition {
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// The last family: how many series are not in the text.
    pub(super) fn write_left_out(&mut self) {
        let help = "Series of this page that are left out, because their family has too many.";
        let left_out = self.left_out;
        self.single(Kind::Gauge, "kumi_http_series_left_out", help, left_out);
    }

    /// A family with these series, in their order: labels and value of each.
    pub(super) fn family<'a, V: Display>(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (&'a [(&'a str, &'a str)], V)>,
    ) {
        let mut series = series.into_iter().peekable();
        if series.peek().is_none() {
            return;
        }
        self.head(kind, name, help);
        for (labels, value) in series.by_ref().take(SERIES_LIMIT) {
            self.series(name, labels, value);
        }
        self.leave_out(series.count());
    }

    /// Counts series that are not written.
    pub(super) fn leave_out(&mut self, count: usize) {
        self.left_out += count;
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
        self.text.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            self.text.push(if at == 0 { '{' } else { ',' });
            self.text.push_str(label);
            self.text.push_str("=\"");
            for letter in text.chars() {
                match letter {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    other => self.text.push(other),
                }
            }
            self.text.push('"');
        }
        let end = if labels.is_empty() { "" } else { "}" };
        self.line(format_args!("{end} {value}\n"));
    }

    fn line(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a String does not fail.
        let _ = self.text.write_fmt(arguments);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text before the family that counts what is left out, which has this value.
    fn without_count(mut out: Exposition, left_out: usize) -> String {
        out.write_left_out();
        let text = out.into_text();
        let (before, count) = text.split_once("# HELP kumi_http_series_left_out").unwrap();
        let expected = format!("\nkumi_http_series_left_out {left_out}\n");
        assert!(count.ends_with(&expected), "{count}");
        before.to_owned()
    }

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
        assert_eq!(without_count(out, 0), expected);
    }

    #[test]
    fn series_beyond_the_limit_are_left_out_and_counted() {
        let mut out = Exposition::default();
        let none: &[(&str, &str)] = &[];
        out.family(
            Kind::Gauge,
            "kumi_x",
            "X.",
            (0..2 * SERIES_LIMIT).map(|n| (none, n)),
        );
        let text = without_count(out, SERIES_LIMIT);
        assert_eq!(text.lines().count(), 2 + SERIES_LIMIT);
    }
}
