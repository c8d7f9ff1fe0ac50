//! Medians, percentiles and spreads, of few values and of many. It never averages: one disturbed run would move a mean.

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

    /// The same values, each less by `amount`.
    pub(crate) fn minus(&self, amount: f64) -> Sample {
        Sample {
            sorted: self.sorted.iter().map(|value| value - amount).collect(),
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

/// Buckets per power of two: values are known to one part in sixteen.
const SUB_BUCKETS: u64 = 16;

/// How often values came, for counts too large to keep each one. The largest is kept exactly.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    count: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            counts: vec![0; bucket_of(u64::MAX) + 1],
            count: 0,
            max: 0,
        }
    }
}

impl Histogram {
    pub(crate) fn record(&mut self, value: u64) {
        self.counts[bucket_of(value)] += 1;
        self.count += 1;
        self.max = self.max.max(value);
    }

    /// The upper end of the bucket that holds this percentile; 0 when nothing was recorded.
    pub(crate) fn percentile(&self, percent: f64) -> f64 {
        let rank = (percent / 100.0 * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return last_of_bucket(bucket).min(self.max) as f64;
            }
        }
        self.max as f64
    }
}

/// Small values have a bucket each; above, a power of two is cut into equal parts.
fn bucket_of(value: u64) -> usize {
    if value < SUB_BUCKETS {
        return value as usize;
    }
    let exponent = u64::from(value.ilog2() - SUB_BUCKETS.ilog2());
    let part = (value >> exponent) - SUB_BUCKETS;
    ((exponent + 1) * SUB_BUCKETS + part) as usize
}

/// The largest value of a bucket.
fn last_of_bucket(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < SUB_BUCKETS {
        return bucket;
    }
    let exponent = bucket / SUB_BUCKETS - 1;
    let first = (SUB_BUCKETS + bucket % SUB_BUCKETS) << exponent;
    first + ((1 << exponent) - 1)
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
    fn every_value_is_in_a_bucket_that_ends_close_above_it() {
        let mut values: Vec<u64> = (0..5000).collect();
        values.extend(
            (0..64).flat_map(|bit| [1u64 << bit, (1 << bit) + (1 << bit) / 3, u64::MAX >> bit]),
        );
        for value in values {
            let last = last_of_bucket(bucket_of(value));
            assert!(
                last >= value && last - value <= value / SUB_BUCKETS,
                "{value} in a bucket up to {last}"
            );
            assert_eq!(bucket_of(last), bucket_of(value));
        }
    }

    #[test]
    fn a_histogram_counts_and_keeps_the_exact_maximum() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(50.0), 0.0);
        for value in 1..=1000 {
            histogram.record(value);
        }
        assert_eq!((histogram.count, histogram.max), (1000, 1000));
        let median = histogram.percentile(50.0);
        assert!((500.0..532.0).contains(&median), "{median}");
        assert_eq!(histogram.percentile(100.0), 1000.0);
    }

    #[test]
    fn nothing_has_no_sample() {
        assert_eq!(Sample::new(Vec::new()), None);
    }
}
