//! What was measured, as a table to read and as lines to parse.
//!
//! The figure lines of a row are printed as soon as it is measured, so that a run that is ended early leaves its figures.
//! The tables and the goals follow at the end.
//!
//! A figure line is `figure name=N server=S value=V unit=U min=A max=B runs=R`, followed by `ratio_vs_redis=` (or
//! whichever server is the reference) for every other server, and by `goal=` and `met=` where the project set itself one. Values hold no spaces.

use std::fmt::{self, Write};

use crate::stats::Sample;

/// The server everything is compared with, unless a report names another.
pub(crate) const REFERENCE: &str = "redis";
/// The server the goals are for.
const OURS: &str = "kumi";
/// The name of another build of our server, when two builds are compared.
pub(crate) const BEFORE: &str = "before";
/// The unit of the rows by which two builds are compared.
const CPU: &str = "us/op";
/// What a build may cost more than the one before it: in any row, and in the geometric mean of all.
const MAX_ROW: f64 = 1.05;
const MAX_MEAN: f64 = 1.02;

/// What the project wants a figure of its own to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Goal {
    AtMost(f64),
    AtLeast(f64),
    /// As a multiple of the reference server's figure.
    RatioAtMost(f64),
    RatioAtLeast(f64),
    /// As a multiple of the named server's figure. Not judged in a run without that server.
    RatioAtMostOf(&'static str, f64),
    RatioAtLeastOf(&'static str, f64),
}

impl Goal {
    /// Whether our figure in `row` reaches the goal.
    fn met(self, row: &Row, reference: &str) -> Option<bool> {
        let value = row.sample(OURS)?.median();
        match self {
            Goal::AtMost(limit) => Some(value <= limit),
            Goal::AtLeast(limit) => Some(value >= limit),
            Goal::RatioAtMost(limit) => Some(row.ratio(OURS, reference)? <= limit),
            Goal::RatioAtLeast(limit) => Some(row.ratio(OURS, reference)? >= limit),
            Goal::RatioAtMostOf(server, limit) => Some(row.ratio(OURS, server)? <= limit),
            Goal::RatioAtLeastOf(server, limit) => Some(row.ratio(OURS, server)? >= limit),
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Goal::AtMost(limit) => write!(f, "<={}", number(limit)),
            Goal::AtLeast(limit) => write!(f, ">={}", number(limit)),
            Goal::RatioAtMost(limit) => write!(f, "ratio<={limit:.3}"),
            Goal::RatioAtLeast(limit) => write!(f, "ratio>={limit:.3}"),
            Goal::RatioAtMostOf(server, limit) => write!(f, "<={server}*{limit:.3}"),
            Goal::RatioAtLeastOf(server, limit) => write!(f, ">={server}*{limit:.3}"),
        }
    }
}

/// One figure, measured on each server.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Dotted, for the figure line.
    name: String,
    /// For the table.
    label: String,
    unit: &'static str,
    goal: Option<Goal>,
    cells: Vec<(&'static str, Sample)>,
    /// Its figure lines have been printed.
    shown: bool,
}

impl Row {
    pub(crate) fn new(
        name: impl Into<String>,
        label: impl Into<String>,
        unit: &'static str,
    ) -> Row {
        Row {
            name: name.into(),
            label: label.into(),
            unit,
            goal: None,
            cells: Vec::new(),
            shown: false,
        }
    }

    pub(crate) fn goal(mut self, goal: Option<Goal>) -> Row {
        self.goal = goal;
        self
    }

    /// Sets the goal of a row that has its figures already.
    pub(crate) fn aim(&mut self, goal: Option<Goal>) {
        self.goal = goal;
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The server with the largest median, this one left out.
    pub(crate) fn largest_other(&self, server: &str) -> Option<&'static str> {
        self.others(server).last().map(|(name, _)| *name)
    }

    /// The server with the smallest median, this one left out.
    pub(crate) fn smallest_other(&self, server: &str) -> Option<&'static str> {
        self.others(server).first().map(|(name, _)| *name)
    }

    fn others(&self, server: &str) -> Vec<(&'static str, f64)> {
        let others = self.cells.iter().filter(|(name, _)| *name != server);
        let mut others: Vec<_> = others
            .map(|(name, sample)| (*name, sample.median()))
            .collect();
        others.sort_by(|a, b| a.1.total_cmp(&b.1));
        others
    }

    pub(crate) fn add(&mut self, server: &'static str, sample: Sample) {
        self.cells.push((server, sample));
    }

    fn sample(&self, server: &str) -> Option<&Sample> {
        self.cells
            .iter()
            .find(|(name, _)| *name == server)
            .map(|(_, sample)| sample)
    }

    /// A server's median as a multiple of the reference's.
    fn ratio(&self, server: &str, reference: &str) -> Option<f64> {
        let compared = self.sample(reference)?.median();
        let own = self.sample(server)?.median();
        (server != reference && compared > 0.0).then(|| own / compared)
    }

    /// It is the whole CPU time of a server. What is left above the floor is mostly noise between two builds.
    fn compares_builds(&self) -> bool {
        self.unit == CPU && !self.name.ends_with(".above_floor_us")
    }

    fn verdict(&self, reference: &str) -> Option<(Goal, bool)> {
        let goal = self.goal?;
        let met = goal.met(self, reference)?;
        Some((goal, met))
    }
}

#[derive(Clone, Debug)]
struct Section {
    title: String,
    rows: Vec<Row>,
}

/// Everything one run of the bench has to say.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    reference: &'static str,
    sections: Vec<Section>,
    notes: Vec<String>,
}

impl Default for Report {
    fn default() -> Report {
        Report::against(REFERENCE)
    }
}

impl Report {
    /// A report that compares everything with this server.
    pub(crate) fn against(reference: &'static str) -> Report {
        Report {
            reference,
            sections: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Prints the figure lines of a row that has just been measured, and gives it back for its section.
    pub(crate) fn shown(&self, mut row: Row) -> Row {
        if row.shown {
            return row;
        }
        if self.reference == BEFORE {
            let goal = Goal::RatioAtMost(MAX_ROW);
            row.goal = row.compares_builds().then_some(goal);
        }
        row.shown = true;
        print!("{}", self.figures_of(&row));
        row
    }

    /// A table of rows. Those that were not shown yet are now.
    pub(crate) fn section(&mut self, title: impl Into<String>, rows: Vec<Row>) {
        let rows = rows.into_iter().map(|row| self.shown(row)).collect();
        self.sections.push(Section {
            title: title.into(),
            rows,
        });
    }

    /// Prints what follows the figures: the tables, the notes and how the goals were met.
    pub(crate) fn end(&self) {
        print!("\n{}\n{}", self.tables(), self.goals());
    }

    /// A sentence the reader of the figures should know.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    pub(crate) fn tables(&self) -> String {
        let mut out = String::new();
        for section in &self.sections {
            push_section(&mut out, section, self.reference);
        }
        for note in &self.notes {
            push_line(&mut out, &format!("note: {note}"));
        }
        out
    }

    /// The figure lines of all rows.
    #[cfg(test)]
    pub(crate) fn figures(&self) -> String {
        let rows = self.sections.iter().flat_map(|section| &section.rows);
        rows.map(|row| self.figures_of(row)).collect()
    }

    /// The figure lines of one row.
    fn figures_of(&self, row: &Row) -> String {
        let mut out = String::new();
        for (server, sample) in &row.cells {
            push_line(&mut out, &figure(row, server, sample, self.reference));
        }
        out
    }

    /// How many goals were met, and a line for each that was missed.
    pub(crate) fn goals(&self) -> String {
        let rows = self.sections.iter().flat_map(|section| &section.rows);
        let judged = rows.filter_map(|row| Some((row, row.verdict(self.reference)?)));
        let (mut all, mut missed) = (0, Vec::new());
        for (row, (goal, met)) in judged {
            all += 1;
            if !met {
                let ratio = row.ratio(OURS, self.reference).map(number);
                let ratio =
                    ratio.map_or(String::new(), |it| format!(" ({it} of {})", self.reference));
                missed.push(format!("missed {}: {goal}{ratio}", row.name));
            }
        }
        let mut out = String::new();
        push_line(
            &mut out,
            &format!("goals: {} of {all} met", all - missed.len()),
        );
        missed.iter().for_each(|line| push_line(&mut out, line));
        if let Some((mean, rows)) = self.mean_of_builds() {
            let met = if mean <= MAX_MEAN { "met" } else { "MISSED" };
            let text = format!(
                "geometric mean of {OURS}/{BEFORE} in {rows} rows of {CPU}: {mean:.4} (goal <={MAX_MEAN}, {met})"
            );
            push_line(&mut out, &text);
        }
        out
    }

    /// The geometric mean of the ratios between two builds, and of how many rows it is.
    fn mean_of_builds(&self) -> Option<(f64, usize)> {
        let rows = self.sections.iter().flat_map(|section| &section.rows);
        let ratios = rows
            .filter(|row| row.compares_builds() && self.reference == BEFORE)
            .filter_map(|row| row.ratio(OURS, BEFORE));
        let logarithms: Vec<f64> = ratios.map(f64::ln).collect();
        let rows = logarithms.len();
        let sum: f64 = logarithms.iter().sum();
        (rows > 0).then(|| ((sum / rows as f64).exp(), rows))
    }
}

fn push_section(out: &mut String, section: &Section, reference: &str) {
    let mut servers: Vec<&str> = Vec::new();
    for (server, _) in section.rows.iter().flat_map(|row| &row.cells) {
        if !servers.contains(server) {
            servers.push(server);
        }
    }
    let compared = section
        .rows
        .iter()
        .any(|row| row.ratio(OURS, reference).is_some());
    let aimed = section
        .rows
        .iter()
        .any(|row| row.verdict(reference).is_some());

    let mut header: Vec<String> = vec![String::new(), "unit".to_owned()];
    header.extend(servers.iter().map(|server| (*server).to_owned()));
    if compared {
        header.push(format!("{OURS}/{reference}"));
    }
    if aimed {
        header.extend(["goal".to_owned(), String::new()]);
    }
    let mut lines = vec![header];
    for row in &section.rows {
        let mut line = vec![row.label.clone(), row.unit.to_owned()];
        line.extend(
            servers
                .iter()
                .map(|server| row.sample(server).map_or(String::from("-"), cell)),
        );
        if compared {
            line.push(row.ratio(OURS, reference).map_or(String::new(), number));
        }
        if let Some((goal, met)) = row.verdict(reference) {
            line.extend([
                goal.to_string(),
                if met { "met" } else { "MISSED" }.to_owned(),
            ]);
        }
        lines.push(line);
    }
    push_line(out, &section.title);
    push_columns(out, &lines);
    out.push('\n');
}

/// Left-aligned columns as wide as their widest cell, two spaces apart.
fn push_columns(out: &mut String, lines: &[Vec<String>]) {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        lines
            .iter()
            .filter_map(|line| line.get(column))
            .map(String::len)
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for line in lines {
        let mut text = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            // Writing to a String cannot fail.
            let _ = write!(text, "  {cell:<width$}");
        }
        push_line(out, text.trim_end());
    }
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

fn cell(sample: &Sample) -> String {
    let median = number(sample.median());
    if sample.len() == 1 {
        median
    } else {
        format!(
            "{median} ({}..{})",
            number(sample.min()),
            number(sample.max())
        )
    }
}

fn figure(row: &Row, server: &str, sample: &Sample, reference: &str) -> String {
    let mut line = format!(
        "figure name={} server={server} value={} unit={} min={} max={} runs={}",
        row.name,
        number(sample.median()),
        row.unit,
        number(sample.min()),
        number(sample.max()),
        sample.len(),
    );
    // Writing to a String cannot fail.
    if let Some(ratio) = row.ratio(server, reference) {
        let _ = write!(line, " ratio_vs_{reference}={ratio:.3}");
    }
    if let Some((goal, met)) = row.verdict(reference).filter(|_| server == OURS) {
        let _ = write!(line, " goal={goal} met={}", if met { "yes" } else { "no" });
    }
    line
}

/// About four significant digits, more for large numbers, and no exponent.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 1000.0 || (size.fract() == 0.0 && size < 1000.0) => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(goal: Goal) -> Row {
        let mut row = Row::new("store.get.p16.cpu_us", "GET P=16 CPU", "us").goal(Some(goal));
        row.add("kumi", Sample::new(vec![0.9, 0.8, 1.0]).unwrap());
        row.add("redis", Sample::single(1.8));
        row
    }

    fn figures(row: Row) -> Vec<String> {
        let mut report = Report::default();
        report.section("title", vec![row]);
        report.figures().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_figure_line_carries_spread_ratio_and_goal() {
        let lines = figures(row(Goal::RatioAtMost(1.0 / 1.5)));
        assert_eq!(
            lines,
            [
                "figure name=store.get.p16.cpu_us server=kumi value=0.900 unit=us min=0.800 max=1 runs=3 \
                 ratio_vs_redis=0.500 goal=ratio<=0.667 met=yes",
                "figure name=store.get.p16.cpu_us server=redis value=1.800 unit=us min=1.800 max=1.800 runs=1",
            ]
        );
    }

    #[test]
    fn missed_goals_are_named() {
        let mut report = Report::default();
        report.section(
            "title",
            vec![row(Goal::RatioAtMost(0.5)), row(Goal::RatioAtMost(0.4))],
        );
        assert_eq!(
            report.goals(),
            "goals: 1 of 2 met\nmissed store.get.p16.cpu_us: ratio<=0.400 (0.500 of redis)\n"
        );
    }

    #[test]
    fn two_builds_are_compared_row_by_row_and_in_the_mean() {
        let mut report = Report::against(BEFORE);
        let row = |name, unit, ours, before| {
            let mut row = Row::new(name, name, unit).goal(Some(Goal::RatioAtMost(0.3)));
            row.add(OURS, Sample::single(ours));
            row.add(BEFORE, Sample::single(before));
            row
        };
        let rows = vec![
            row("dearer", CPU, 1.2, 1.0),
            row("cheaper", CPU, 1.0, 1.25),
            row("rate", "op/s", 1.0, 9.0),
            row("dearer.above_floor_us", CPU, 9.0, 1.0),
        ];
        report.section("title", rows);
        assert_eq!(
            report.goals(),
            "goals: 1 of 2 met\nmissed dearer: ratio<=1.050 (1.200 of before)\n\
             geometric mean of kumi/before in 2 rows of us/op: 0.9798 (goal <=1.02, met)\n"
        );
    }

    #[test]
    fn goals_are_judged_by_the_median() {
        let met = |goal| row(goal).verdict(REFERENCE).unwrap().1;
        assert!(met(Goal::AtMost(0.9)) && !met(Goal::AtMost(0.89)));
        assert!(met(Goal::AtLeast(0.9)) && !met(Goal::AtLeast(0.91)));
        assert!(met(Goal::RatioAtMost(0.5)) && !met(Goal::RatioAtMost(0.49)));
        assert!(met(Goal::RatioAtLeast(0.5)) && !met(Goal::RatioAtLeast(0.51)));
    }

    #[test]
    fn a_goal_may_name_another_server_than_the_reference() {
        let goal = Goal::RatioAtMostOf("valkey", 0.6);
        let mut row = row(goal);
        assert_eq!(row.verdict(REFERENCE), None);
        row.add("valkey", Sample::single(1.5));
        assert_eq!(row.verdict(REFERENCE), Some((goal, true)));
        assert!(figures(row)[0].ends_with("ratio_vs_redis=0.500 goal=<=valkey*0.600 met=yes"));
    }

    #[test]
    fn a_ratio_goal_without_the_reference_stays_open() {
        let mut alone = Row::new("n", "l", "us").goal(Some(Goal::RatioAtMost(1.0)));
        alone.add("kumi", Sample::single(1.0));
        assert_eq!(alone.verdict(REFERENCE), None);
    }

    #[test]
    fn tables_align_and_show_what_is_missing() {
        let mut report = Report::default();
        let mut other = Row::new("x", "a longer label than that", "B");
        other.add("valkey", Sample::single(96.0));
        report.section("Title", vec![row(Goal::AtMost(0.1)), other]);
        report.note("noisy");
        let expected = "\
Title
                            unit  kumi                redis  valkey  kumi/redis  goal
  GET P=16 CPU              us    0.900 (0.800..1)    1.800  -       0.500        <=0.100  MISSED
  a longer label than that  B     -                   -      96

note: noisy
";
        let trim = |text: &str| -> Vec<Vec<String>> {
            text.lines()
                .map(|line| line.split_whitespace().map(str::to_owned).collect())
                .collect()
        };
        assert_eq!(trim(&report.tables()), trim(expected));
        let tables = report.tables();
        let column =
            |line: usize, text: &str| tables.lines().nth(line).unwrap().find(text).unwrap();
        assert_eq!(column(1, "valkey"), column(3, "96"));
        assert_eq!(column(1, "goal"), column(2, "<="));
    }

    #[test]
    fn numbers_keep_about_four_digits() {
        let check = |value, expected| assert_eq!(number(value), expected);
        check(0.91234, "0.912");
        check(7.3, "7.300");
        check(12.345, "12.35");
        check(130.04, "130.0");
        check(123_456.7, "123457");
        check(1000.0, "1000");
        check(75.0, "75");
        check(0.0, "0");
    }
}
