//! Two results of a study set against each other, case by case: what became faster, what slower,
//! and how sure that is.
//!
//! Rates are compared by their logarithms, so that a difference is a ratio, with Welch's interval:
//! the two sides need not vary alike. A case that ran once on either side has no interval, and
//! nothing is claimed about it. With many cases one interval of 95 % is wrong by chance alone; so each
//! is made so wide that all of them together are right in 95 of 100 comparisons (Bonferroni).

use std::path::Path;

use crate::error::LabError;
use onrush_measure::units::rounded;
use serde::Serialize;

use crate::study::outcome::{CaseOutcome, StudyResult};
use crate::study::run::store::Store;
use crate::study::summary::{CONFIDENCE, student_t};
use crate::study::table::name_of;

/// What can be said about a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Faster, with confidence.
    Faster,
    /// Slower, with confidence, by less than the threshold.
    Slower,
    /// Slower, with confidence, by more than the threshold.
    Regressed,
    /// The interval holds 1.
    Same,
    /// Too few runs for an interval.
    Unsure,
}

/// A case that both results have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Which case.
    pub case: String,
    /// Rows a second of the first, the middle run.
    pub first_rows_per_s: f64,
    /// Of the second.
    pub second_rows_per_s: f64,
    /// Second over first, of geometric means.
    pub ratio: f64,
    /// Where that lies with [`Comparison::confidence`]; None with fewer than two runs on either side.
    pub confidence: Option<(f64, f64)>,
    /// What it means.
    pub change: Change,
}

/// Two results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The study.
    pub study: String,
    /// Versions and builds of the programs that measured the first and the second.
    pub versions: (String, String),
    /// Cases of both.
    pub differences: Vec<Difference>,
    /// Cases that only one of them measured.
    pub unmatched: Vec<String>,
    /// What makes the comparison doubtful: another machine, another size.
    pub doubts: Vec<String>,
    /// How sure the interval of each case is, so that with 95 % none of them is wrong: 0.99 with five.
    pub confidence: f64,
    /// From which part on a slower case has regressed: 0.05 is 5 %.
    pub threshold: f64,
}

impl Comparison {
    /// Whether any case has regressed.
    pub fn has_regressed(&self) -> bool {
        self.differences.iter().any(|difference| difference.change == Change::Regressed)
    }
}

/// Reads a result file, or the JSON that a report has beside it.
///
/// # Errors
/// It cannot be read, or is neither.
pub fn read(path: &Path) -> Result<StudyResult, LabError> {
    if path.extension().is_none_or(|kind| kind != "json") {
        return Store::open(path)?.result();
    }
    let wrong = |what: String| LabError::ResultFile { path: path.to_owned(), what };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| {
        wrong(format!("{error}; give a result file, or the JSON that `onrush-lab report` writes"))
    })
}

/// What a comparison needs, and nothing else: small enough to be kept as a kept result.
#[must_use]
pub fn kept(mut result: StudyResult) -> StudyResult {
    for case in &mut result.cases {
        case.target_shown = None;
        for repeat in &mut case.repeats {
            repeat.waits.clear();
            repeat.phases.clear();
            repeat.counters.clear();
            repeat.series.clear();
            repeat.marks.clear();
        }
    }
    result
}

/// Sets two results against each other; `threshold` as in [`Comparison::threshold`].
///
/// # Errors
/// They are of different studies, or have no case in common.
pub fn compare(
    first: &StudyResult,
    second: &StudyResult,
    threshold: f64,
) -> Result<Comparison, LabError> {
    if first.study != second.study {
        return Err(LabError::Setting(format!(
            "one is a result of the study {}, the other of {}; give two of the same",
            first.study, second.study
        )));
    }
    let pairs = first.cases.iter().filter_map(|case| {
        let other = second.cases.iter().find(|other| is_same(case, other))?;
        Some([Logarithms::of(case)?.variance?, Logarithms::of(other)?.variance?])
    });
    let confidence = 1.0 - (1.0 - CONFIDENCE) / pairs.count().max(1) as f64;
    let sureness = Sureness { confidence, threshold };
    let mut differences = Vec::new();
    let mut unmatched = Vec::new();
    for case in first.cases.iter().filter(|case| case.summary.is_some()) {
        let same = second.cases.iter().find(|other| is_same(case, other));
        match same.and_then(|other| difference(case, other, first, sureness)) {
            Some(difference) => differences.push(difference),
            None => unmatched.push(format!("only in the first: {}", name_of(case, first))),
        }
    }
    for case in second.cases.iter().filter(|case| case.summary.is_some()) {
        let has_run = |other: &CaseOutcome| is_same(case, other) && other.summary.is_some();
        if !first.cases.iter().any(has_run) {
            unmatched.push(format!("only in the second: {}", name_of(case, second)));
        }
    }
    if differences.is_empty() {
        return Err(LabError::Setting(
            "the two results have no case in common that ran in both; compare the same size of the \
             same study"
                .into(),
        ));
    }
    let (study, doubts) = (first.study.clone(), doubts(first, second));
    let versions = (first.version.clone(), second.version.clone());
    Ok(Comparison { study, versions, differences, unmatched, doubts, confidence, threshold })
}

/// When a case is said to differ.
#[derive(Clone, Copy)]
struct Sureness {
    confidence: f64,
    threshold: f64,
}

fn is_same(left: &CaseOutcome, right: &CaseOutcome) -> bool {
    left.target == right.target && left.part == right.part && left.settings == right.settings
}

fn difference(
    left: &CaseOutcome,
    right: &CaseOutcome,
    study: &StudyResult,
    sureness: Sureness,
) -> Option<Difference> {
    let (first, second) = (left.summary.as_ref()?, right.summary.as_ref()?);
    let (before, after) = (Logarithms::of(left)?, Logarithms::of(right)?);
    let (ratio, confidence) = ratio(&before, &after, sureness.confidence);
    let change = match confidence {
        None => Change::Unsure,
        Some((low, _)) if low > 1.0 => Change::Faster,
        Some((_, high)) if high < 1.0 && ratio < 1.0 - sureness.threshold => Change::Regressed,
        Some((_, high)) if high < 1.0 => Change::Slower,
        Some(_) => Change::Same,
    };
    Some(Difference {
        case: name_of(left, study),
        first_rows_per_s: first.rows_per_s,
        second_rows_per_s: second.rows_per_s,
        ratio,
        confidence,
        change,
    })
}

/// Mean and variance of the logarithms of rates.
struct Logarithms {
    count: f64,
    mean: f64,
    /// Of one run; None for one run only.
    variance: Option<f64>,
}

impl Logarithms {
    fn of(case: &CaseOutcome) -> Option<Logarithms> {
        let rates = case.repeats.iter().map(|repeat| repeat.rows_per_s);
        let all: Vec<f64> = rates.filter(|rate| *rate > 0.0).map(f64::ln).collect();
        let count = all.len() as f64;
        let mean = all.iter().sum::<f64>() / count;
        let variance = (all.len() > 1)
            .then(|| all.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0));
        (!all.is_empty()).then_some(Logarithms { count, mean, variance })
    }
}

/// Second over first, and Welch's interval of it.
fn ratio(first: &Logarithms, second: &Logarithms, confidence: f64) -> (f64, Option<(f64, f64)>) {
    let difference = second.mean - first.mean;
    let interval = first.variance.zip(second.variance).map(|(one, other)| {
        let (one, other) = (one / first.count, other / second.count);
        let error = (one + other).sqrt();
        let parts = one.powi(2) / (first.count - 1.0) + other.powi(2) / (second.count - 1.0);
        // Without any variance there is nothing to divide; the interval is a point then.
        let freedom = if parts > 0.0 { (one + other).powi(2) / parts } else { 1.0 };
        let half = student_t(confidence, (freedom.floor() as usize).max(1)) * error;
        ((difference - half).exp(), (difference + half).exp())
    });
    (difference.exp(), interval)
}

fn doubts(first: &StudyResult, second: &StudyResult) -> Vec<String> {
    let mut doubts = Vec::new();
    if first.machine != second.machine {
        doubts.push("they were measured on different machines or kernels".to_owned());
    }
    let drift = second.sync_time_us.p50_us / first.sync_time_us.p50_us.max(f64::MIN_POSITIVE);
    if !(0.67..=1.5).contains(&drift) {
        doubts.push(format!(
            "the device changed: a durable write took {} us, then {} us",
            rounded(first.sync_time_us.p50_us),
            rounded(second.sync_time_us.p50_us)
        ));
    }
    doubts
}

/// A confidence in percent, with as many digits as tell it from certainty: 95, 99.5, 99.95.
fn percents(confidence: f64) -> String {
    let text = format!("{:.3}", 100.0 * confidence);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The comparison for people.
pub fn text(comparison: &Comparison) -> String {
    let percent = |ratio: f64| format!("{:+.1} %", 100.0 * (ratio - 1.0));
    let (first, second) = &comparison.versions;
    let mut text = match first == second {
        true => format!("both are of Onrush {first}\n"),
        false => format!("of two builds: Onrush {first}, then {second}\n"),
    };
    for difference in &comparison.differences {
        let word = match difference.change {
            Change::Faster => "faster",
            Change::Slower => "slower",
            Change::Regressed => "SLOWER",
            Change::Same => "no difference",
            Change::Unsure => "unsure: too few runs",
        };
        let range = difference.confidence.map_or(String::new(), |(low, high)| {
            format!(" ({} to {})", percent(low), percent(high))
        });
        text += &format!(
            "{:>12} {:>12}  {:>9}{range}  {word}: {}\n",
            rounded(difference.first_rows_per_s),
            rounded(difference.second_rows_per_s),
            percent(difference.ratio),
            difference.case
        );
    }
    if comparison.differences.iter().any(|one| one.confidence.is_some()) {
        text += &format!(
            "each range holds with {} %, so that in 95 of 100 comparisons not one is wrong\n",
            percents(comparison.confidence)
        );
    }
    for line in &comparison.unmatched {
        text += &format!("{line}\n");
    }
    for doubt in &comparison.doubts {
        text += &format!("doubtful: {doubt}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::outcome::Repeat;

    fn result(cases: &[(&str, &[f64])]) -> StudyResult {
        let cases = cases.iter().map(|(target, rates)| {
            let repeats =
                rates.iter().map(|rate| Repeat { rows_per_s: *rate, ..Repeat::default() });
            let target = (*target).to_owned();
            let mut case =
                CaseOutcome { target, repeats: repeats.collect(), ..CaseOutcome::default() };
            case.conclude();
            case
        });
        let cases = cases.collect();
        StudyResult { cases, ..crate::page::tests::invented() }
    }

    fn change(before: &[f64], after: &[f64]) -> Change {
        let (before, after) = (result(&[("onrush", before)]), result(&[("onrush", after)]));
        compare(&before, &after, 0.05).unwrap().differences[0].change
    }

    #[test]
    fn clear_differences_are_told_apart_from_noise() {
        assert_eq!(change(&[100.0, 101.0, 102.0], &[80.0, 81.0, 79.0]), Change::Regressed);
        assert_eq!(change(&[100.0, 101.0, 100.5], &[98.0, 98.5, 98.2]), Change::Slower);
        assert_eq!(change(&[100.0, 101.0, 102.0], &[120.0, 121.0, 119.0]), Change::Faster);
        assert_eq!(change(&[100.0, 60.0, 140.0], &[90.0, 130.0, 50.0]), Change::Same);
        assert_eq!(change(&[100.0], &[10.0]), Change::Unsure);
    }

    #[test]
    fn what_is_clear_of_one_case_may_be_chance_among_ten() {
        let rates: [&[f64]; 2] = [&[100.0, 101.0, 100.5], &[98.0, 98.5, 98.2]];
        assert_eq!(change(rates[0], rates[1]), Change::Slower);
        let names: Vec<String> = (0..10).map(|number| format!("target {number}")).collect();
        let [before, after] = rates
            .map(|rates| result(&names.iter().map(|name| (&**name, rates)).collect::<Vec<_>>()));
        let comparison = compare(&before, &after, 0.05).unwrap();
        assert!((comparison.confidence - 0.995).abs() < 1e-12);
        assert!(comparison.differences.iter().all(|one| one.change == Change::Same));
        let told = text(&comparison);
        assert!(told.contains("each range holds with 99.5 %, so that in 95 of 100"), "{told}");
    }

    #[test]
    fn cases_without_an_interval_make_those_of_others_no_wider() {
        let before = result(&[("onrush", &[100.0, 101.0]), ("lmdb", &[10.0])]);
        let comparison = compare(&before, &before, 0.05).unwrap();
        assert!((comparison.confidence - 0.95).abs() < 1e-12);
        assert!(text(&comparison).contains("holds with 95 %"));
    }

    #[test]
    fn only_a_regression_counts_as_one() {
        let before = result(&[("onrush", &[100.0, 101.0]), ("lmdb", &[10.0, 10.1])]);
        let after = result(&[("onrush", &[100.2, 100.9]), ("redb", &[5.0, 5.1])]);
        let comparison = compare(&before, &after, 0.05).unwrap();
        assert!(!comparison.has_regressed());
        assert_eq!(comparison.unmatched.len(), 2, "{:?}", comparison.unmatched);
    }

    #[test]
    fn results_of_two_builds_are_told_as_such() {
        let before = result(&[("onrush", &[1.0])]);
        let after = StudyResult { version: "0.0.0 (build 12345678)".into(), ..before.clone() };
        let told = |after| text(&compare(&before, after, 0.05).unwrap());
        let both = told(&after);
        assert!(both.contains("two builds: Onrush 0.0.0, then 0.0.0 (build 12345678)"), "{both}");
        assert!(told(&before).starts_with("both are of Onrush 0.0.0\n"), "{}", told(&before));
    }

    #[test]
    fn results_without_a_common_case_are_refused() {
        let (before, after) = (result(&[("onrush", &[1.0])]), result(&[("lmdb", &[1.0])]));
        assert!(compare(&before, &after, 0.05).unwrap_err().to_string().contains("no case"));
    }

    #[test]
    fn a_kept_compares_like_the_whole() {
        let whole = crate::page::tests::invented();
        let small = kept(whole.clone());
        let text = serde_json::to_string(&small).unwrap();
        let back: StudyResult = serde_json::from_str(&text).unwrap();
        let comparison = compare(&whole, &back, 0.05).unwrap();
        assert!(
            comparison
                .differences
                .iter()
                .all(|one| one.change == Change::Same || one.change == Change::Unsure)
        );
    }
}
