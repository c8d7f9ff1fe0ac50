//! Medians, percentiles and spreads of small samples. It never averages: one disturbed run would move a mean.

/// Several measurements of one thing, in ascending order; never empty.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    sorted: Vec<f64>,
}

impl Sample {
    /// `None` without values.
    pub(crate) fn new(mut values: Vec<f64>) -> Option<Sample> {
        values.sort_by(f64::total_cmp);
        if values.is_empty() {
            None
        } else {
            Some(Sample { sorted: values })
        }
    }

    pub(crate) fn single(value: f64) -> Sample {
        Sample {
            sorted: vec![value],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.sorted.len()
    }

    pub(crate) fn min(&self) -> f64 {
        self.sorted[0]
    }

    pub(crate) fn max(&self) -> f64 {
        self.sorted[self.sorted.len() - 1]
    }

    /// The middle value, or the mean of the two middle ones.
    pub(crate) fn median(&self) -> f64 {
        let middle = self.sorted.len() / 2;
        if self.sorted.len() % 2 == 1 {
            self.sorted[middle]
        } else {
            (self.sorted[middle - 1] + self.sorted[middle]) / 2.0
        }
    }

    /// The smallest value that at least `percent` percent of the values do not exceed (nearest rank).
    pub(crate) fn percentile(&self, percent: f64) -> f64 {
        let rank = (percent / 100.0 * self.sorted.len() as f64).ceil() as usize;
        self.sorted[rank.clamp(1, self.sorted.len()) - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values.to_vec()).unwrap()
    }

    #[test]
    fn median_of_an_odd_count_is_the_middle_value() {
        assert_eq!(sample(&[9.0, 1.0, 5.0]).median(), 5.0);
    }

    #[test]
    fn median_of_an_even_count_lies_between_the_middle_two() {
        assert_eq!(sample(&[4.0, 1.0, 2.0, 9.0]).median(), 3.0);
    }

    #[test]
    fn percentiles_are_values_of_the_sample() {
        let hundred = sample(&(1..=100).map(f64::from).collect::<Vec<_>>());
        let check =
            |percent, expected| assert_eq!(hundred.percentile(percent), expected, "p{percent}");
        check(0.0, 1.0);
        check(50.0, 50.0);
        check(99.0, 99.0);
        check(99.9, 100.0);
        check(100.0, 100.0);
    }

    #[test]
    fn one_value_is_every_percentile() {
        let one = Sample::single(7.0);
        assert_eq!(
            (one.min(), one.median(), one.percentile(99.0), one.max()),
            (7.0, 7.0, 7.0, 7.0)
        );
        assert_eq!(one.len(), 1);
    }

    #[test]
    fn nothing_has_no_sample() {
        assert_eq!(Sample::new(Vec::new()), None);
    }
}
