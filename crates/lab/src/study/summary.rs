//! What the repeats of a case say together: median, spread, and how sure the median is.

use std::f64::consts::FRAC_PI_2;

use serde::{Deserialize, Serialize};

use crate::study::outcome::Repeat;

/// Rows a second over all repeats, and the middle of a few other figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Runs.
    pub repeats: usize,
    /// The middle; of an even number, the mean of the two in the middle.
    pub rows_per_s: f64,
    /// The mean.
    pub rows_per_s_mean: f64,
    /// The slowest run.
    pub rows_per_s_min: f64,
    /// The fastest run.
    pub rows_per_s_max: f64,
    /// Standard deviation of a run; None for one run.
    pub rows_per_s_deviation: Option<f64>,
    /// Where the mean lies with 95 % confidence (Student's t); None for one run.
    pub rows_per_s_confidence: Option<(f64, f64)>,
    /// (max - min) / median, in percent.
    pub spread_percent: f64,
    /// The middle of the elapsed times.
    pub elapsed_s: f64,
    /// The middle of the CPU percentages.
    pub cpu_percent: f64,
    /// The middle of the billions of bytes checked a second.
    pub gb_per_s: Option<f64>,
    /// The middle of the commits for each sync.
    pub commits_per_sync: Option<f64>,
    /// The middle of the shares of the bound N/F.
    pub share_of_bound: Option<f64>,
    /// The middles of the median and of the 99th percentile of commit latency, in microseconds.
    pub commit_latency_us: (f64, f64),
    /// Which run is nearest to the middle: its waits and counters stand for the case.
    pub middle: usize,
}

impl Summary {
    /// Half of the confidence interval, in percent of the middle; None for one run.
    pub fn confidence_percent(&self) -> Option<f64> {
        let (low, high) = self.rows_per_s_confidence?;
        Some(50.0 * (high - low) / self.rows_per_s.max(f64::MIN_POSITIVE))
    }

    /// Of any number of runs; None without any.
    pub fn of(repeats: &[Repeat]) -> Option<Summary> {
        let rates: Vec<f64> = repeats.iter().map(|repeat| repeat.rows_per_s).collect();
        let median = middle(&rates)?;
        let count = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / count;
        let deviation = (rates.len() > 1).then(|| {
            let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
            (squares / (count - 1.0)).sqrt()
        });
        let confidence = deviation.map(|deviation| {
            let half = student_t(CONFIDENCE, rates.len() - 1) * deviation / count.sqrt();
            (mean - half, mean + half)
        });
        let min = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let max = rates.iter().copied().fold(0.0, f64::max);
        let of = |value: &dyn Fn(&Repeat) -> Option<f64>| {
            middle(&repeats.iter().filter_map(value).collect::<Vec<_>>())
        };
        let distance = |repeat: &Repeat| (repeat.rows_per_s - median).abs();
        let nearest = repeats
            .iter()
            .enumerate()
            .min_by(|(_, left), (_, right)| distance(left).total_cmp(&distance(right)));
        Some(Summary {
            repeats: repeats.len(),
            rows_per_s: median,
            rows_per_s_mean: mean,
            rows_per_s_min: min,
            rows_per_s_max: max,
            rows_per_s_deviation: deviation,
            rows_per_s_confidence: confidence,
            spread_percent: if median > 0.0 { 100.0 * (max - min) / median } else { 0.0 },
            elapsed_s: of(&|repeat| Some(repeat.elapsed_s)).unwrap_or(0.0),
            cpu_percent: of(&|repeat| Some(repeat.cpu_percent)).unwrap_or(0.0),
            gb_per_s: of(&|repeat| repeat.gb_per_s),
            commits_per_sync: of(&|repeat| repeat.commits_per_sync),
            share_of_bound: of(&|repeat| repeat.share_of_bound),
            commit_latency_us: (
                of(&|repeat| Some(repeat.commit_latency_us.p50)).unwrap_or(0.0),
                of(&|repeat| Some(repeat.commit_latency_us.p99)).unwrap_or(0.0),
            ),
            middle: nearest.map_or(0, |(index, _)| index),
        })
    }
}

fn middle(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    match sorted.len() % 2 {
        0 => Some((sorted[sorted.len() / 2 - 1] + upper) / 2.0),
        _ => Some(upper),
    }
}

/// How sure an interval of a single case is.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// With more degrees of freedom than this the next one changes nothing that is shown.
const FREEDOM_MAX: usize = 1000;

/// The two-sided point of Student's t: a value of so many degrees of freedom is between it and its
/// negative with this probability.
pub(crate) fn student_t(confidence: f64, freedom: usize) -> f64 {
    if freedom == 0 {
        return f64::INFINITY;
    }
    let freedom = freedom.min(FREEDOM_MAX);
    // The probability rises with the angle, so that halving the range finds it.
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    for _ in 0..f64::MANTISSA_DIGITS {
        let angle = f64::midpoint(low, high);
        match student_probability(angle, freedom) < confidence {
            true => low = angle,
            false => high = angle,
        }
    }
    (freedom as f64).sqrt() * low.tan()
}

/// The probability that a value is between t and -t, where t is the tangent of the angle times the root
/// of the degrees of freedom: the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4.
fn student_probability(angle: f64, freedom: usize) -> f64 {
    let (sine, cosine) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    let (mut term, mut sum) = if is_odd { (cosine, 0.0) } else { (1.0, 0.0) };
    for power in (2 + usize::from(is_odd)..=freedom).step_by(2) {
        sum += term;
        term *= cosine * cosine * (power - 1) as f64 / power as f64;
    }
    match is_odd {
        true => (angle + sine * sum) / FRAC_PI_2,
        false => sine * sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_is_between_the_two() {
        assert_eq!(middle(&[]), None);
        assert_eq!(middle(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(middle(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn the_points_of_students_t_are_those_of_the_tables() {
        for (confidence, freedom, point) in [
            (0.95, 1, 12.706),
            (0.95, 2, 4.303),
            (0.95, 3, 3.182),
            (0.95, 4, 2.776),
            (0.95, 11, 2.201),
            (0.95, 30, 2.042),
            (0.95, 10_000, 1.962),
            (0.99, 5, 4.032),
            (0.99, 10, 3.169),
            (0.999, 1, 636.619),
            (0.999, 7, 5.408),
        ] {
            let found = student_t(confidence, freedom);
            assert!((found - point).abs() < 0.0006, "{confidence} {freedom}: {found}");
        }
    }
}
