//! What the project set itself as goals, each between two contestants of the same run.

use crate::stats::Sample;

/// A goal and what became of it.
#[derive(Debug)]
pub(super) struct Verdict {
    /// Dotted, for programs.
    pub(super) name: String,
    /// A sentence for people.
    pub(super) sentence: String,
    pub(super) ratio: f64,
    pub(super) bound: Bound,
}

/// What the ratio of ours to theirs has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Verdict {
    /// Compares medians.
    pub(super) fn new(
        name: impl Into<String>,
        sentence: impl Into<String>,
        ours: &Sample,
        theirs: &Sample,
        bound: Bound,
    ) -> Verdict {
        Verdict {
            name: name.into(),
            sentence: sentence.into(),
            ratio: ours.median() / theirs.median(),
            bound,
        }
    }

    pub(super) fn met(&self) -> bool {
        match self.bound {
            Bound::AtMost(limit) => self.ratio <= limit,
            Bound::AtLeast(limit) => self.ratio >= limit,
        }
    }

    /// For people.
    pub(super) fn line(&self) -> String {
        let met = if self.met() { "met   " } else { "MISSED" };
        format!(
            "  {met}  {:<78} {:>6.3} {}",
            self.sentence,
            self.ratio,
            self.wanted()
        )
    }

    /// For programs.
    pub(super) fn figure(&self) -> String {
        format!(
            "goal name={} ratio={:.3} wanted={} met={}",
            self.name,
            self.ratio,
            self.wanted(),
            if self.met() { "yes" } else { "no" }
        )
    }

    fn wanted(&self) -> String {
        match self.bound {
            Bound::AtMost(limit) => format!("<={limit}"),
            Bound::AtLeast(limit) => format!(">={limit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_met_on_its_edge() {
        let one = Sample::single(5.0);
        let other = Sample::single(4.0);
        let check = |bound, expected| {
            let verdict = Verdict::new("a.b", "it is", &one, &other, bound);
            assert_eq!(verdict.met(), expected, "{bound:?}");
            let figure = verdict.figure();
            assert!(
                figure.starts_with("goal name=a.b ratio=1.250 wanted="),
                "{figure}"
            );
        };
        check(Bound::AtMost(1.25), true);
        check(Bound::AtMost(1.2), false);
        check(Bound::AtLeast(1.25), true);
        check(Bound::AtLeast(1.3), false);
    }
}
