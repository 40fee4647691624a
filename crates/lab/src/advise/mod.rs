//! `onrush-lab advise`: a short ladder on a table and a target, and what to do about what it shows.
//!
//! [`study`] makes the ladder: key strategies, rows per commit, durability and layouts, each rung
//! beside the same first one. [`of`] reads its result. A change is recommended only where every
//! run of the better case was faster than every run of the first, and by enough to matter.
//!
//! Invariant: [`of`] is a pure function, and names no figure that is not in the result.

#[cfg(test)]
mod tests;

use crate::error::LabError;
use onrush_measure::units::rounded;
use serde::Serialize;

use crate::own_table::OwnTable;
use crate::study::outcome::{CaseOutcome, StudyResult};
use crate::study::{Setting, Size, Study};

/// Parts of the ladder, and the setting that each of them turns.
const PARTS: &[(&str, Setting)] = &[
    (KEY, Setting::Key),
    (BATCH, Setting::RowsPerCommit),
    (DURABILITY, Setting::Durability),
    (LAYOUT, Setting::DataFiles),
];
const KEY: &str = "key";
const BATCH: &str = "rows per commit";
const DURABILITY: &str = "durability";
const LAYOUT: &str = "layout";

/// A change that gains less is not worth making.
const GAIN_MIN: f64 = 1.05;
/// With one run of each there is no spread to judge by.
const GAIN_MIN_OF_ONE_RUN: f64 = 1.25;
/// Of batches that reach this share of the fastest, the smallest is the best.
const BATCH_SHARE: f64 = 0.9;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Ladder<'t> {
    /// The table; None for the classic one.
    pub table: Option<(&'t OwnTable, &'t str)>,
    /// Who is measured.
    pub target: String,
    /// Concurrent sessions.
    pub sessions: usize,
    /// How much is measured.
    pub size: Size,
}

/// The ladder as a study.
///
/// # Errors
/// A path that cannot be written into a study.
pub fn study(ladder: &Ladder<'_>) -> Result<Study, LabError> {
    let (name, path, keys) = match ladder.table {
        Some((table, path)) => {
            let keys = table.strategies().iter().map(ToString::to_string).collect::<Vec<_>>();
            (table.name.as_str(), path, keys)
        }
        None => {
            let keys = ["identity", "session-offset", "bit-reversed", "uuid-v4"];
            ("the classic table", "", keys.map(String::from).to_vec())
        }
    };
    // TOML takes the escapes that Rust's debug form makes of a path or a name.
    let text = format!(
        include_str!("ladder.toml"),
        title = format!("{:?}", format!("Advice for {name}")),
        target = format!("{:?}", ladder.target),
        sessions = ladder.sessions,
        table = format!("{path:?}"),
        first_key = format!("{:?}", keys[0]),
        keys = format!("{keys:?}"),
    );
    Study::read(&text, "advise", ladder.size)
}

/// What to do, by what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The table's heading.
    pub title: String,
    /// Who was measured.
    pub target: String,
    /// One for each part of the ladder that has an answer.
    pub recommendations: Vec<Recommendation>,
    /// What makes the advice doubtful or incomplete.
    pub doubts: Vec<String>,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    /// What it is about: `key`, `rows per commit`, `durability` or `layout`.
    pub about: String,
    /// The first rung's value.
    pub first: String,
    /// The value to use; the first one if nothing better was found.
    pub best: String,
    /// Whether to change it.
    pub change: bool,
    /// Rows a second of the first rung.
    pub first_rows_per_s: f64,
    /// Rows a second of the recommended value.
    pub best_rows_per_s: f64,
    /// The one over the other.
    pub gain: f64,
    /// All of it in a sentence.
    pub sentence: String,
    /// What held the recommended case back.
    pub verdict: Option<String>,
}

/// The advice that a result gives.
pub fn of(result: &StudyResult) -> Advice {
    let mut doubts = Vec::new();
    let mut recommendations = Vec::new();
    for (part, setting) in PARTS {
        let cases: Vec<&CaseOutcome> =
            result.cases.iter().filter(|case| case.part.as_deref() == Some(part)).collect();
        match recommend(part, *setting, &cases) {
            Ok(recommendation) => recommendations.push(recommendation),
            Err(reason) => doubts.push(format!("no answer about {part}: {reason}")),
        }
        for case in cases {
            let value = case.settings.text(*setting);
            let warnings = case.repeats.iter().flat_map(|repeat| &repeat.warnings);
            let mut warnings: Vec<&String> = warnings.collect();
            warnings.dedup();
            doubts.extend(warnings.iter().map(|warning| format!("{part} {value}: {warning}")));
        }
    }
    let target = result.cases.first().map_or_else(String::new, |case| case.target.clone());
    Advice { title: result.title.clone(), target, recommendations, doubts }
}

/// The cases of a part, the first rung first, as far as they can be believed.
fn recommend(
    part: &str,
    setting: Setting,
    cases: &[&CaseOutcome],
) -> Result<Recommendation, String> {
    let (first, others) = cases.split_first().ok_or("it was not measured")?;
    let rate = |case: &CaseOutcome| sound(case).map(|()| rows_per_s(case));
    let first_rate = rate(first)?;
    let sound: Vec<(&CaseOutcome, f64)> =
        others.iter().filter_map(|case| Some((*case, rate(case).ok()?))).collect();
    let fastest = sound.iter().map(|(_, rate)| *rate).fold(first_rate, f64::max);
    let enough = if setting == Setting::RowsPerCommit { BATCH_SHARE * fastest } else { fastest };
    // Values are in ascending order of what they ask of the user.
    let chosen = sound.iter().find(|(case, rate)| *rate >= enough && is_faster(first, case));
    let (best, best_rate) = chosen.map_or((*first, first_rate), |(case, rate)| (*case, *rate));
    let (change, gain) = (chosen.is_some(), best_rate / first_rate.max(f64::MIN_POSITIVE));
    let (from, to) = (first.settings.text(setting), best.settings.text(setting));
    let rates = format!("{} instead of {} rows/s", rounded(best_rate), rounded(first_rate));
    let sentence = match (change, part) {
        (false, _) => format!("Keep {from}: nothing that was tried is faster beyond doubt."),
        (true, DURABILITY) => format!(
            "If a crash may take the last moments, {to} commits are {gain:.2} times as fast: {rates}."
        ),
        (true, LAYOUT) => {
            format!("Use {to} data files instead of {from}: {gain:.2} times as fast, {rates}.")
        }
        (true, BATCH) => format!(
            "Insert {to} rows in each transaction instead of {from}: {gain:.2} times as fast, {rates}."
        ),
        (true, _) => format!("Use {to} instead of {from}: {gain:.2} times as fast, {rates}."),
    };
    Ok(Recommendation {
        about: part.to_owned(),
        first: from,
        best: to,
        change,
        first_rows_per_s: first_rate,
        best_rows_per_s: best_rate,
        gain,
        sentence,
        verdict: best.verdict.clone(),
    })
}

/// Whether a case's figure can be believed.
fn sound(case: &CaseOutcome) -> Result<(), String> {
    if let Some(reason) = case.skipped.as_ref().or(case.failed.as_ref()) {
        return Err(reason.clone());
    }
    if !case.passed() {
        return Err("rows were missing or wrong afterwards".into());
    }
    if case.not_synchronous {
        return Err("commits did not wait for the disk".into());
    }
    case.summary.as_ref().map(|_| ()).ok_or_else(|| "no run of it has ended".into())
}

fn rows_per_s(case: &CaseOutcome) -> f64 {
    case.summary.as_ref().map_or(0.0, |summary| summary.rows_per_s)
}

/// Whether all runs of one case were faster than all of the other, and by enough to matter.
fn is_faster(first: &CaseOutcome, other: &CaseOutcome) -> bool {
    let (Some(before), Some(after)) = (&first.summary, &other.summary) else { return false };
    let runs = before.repeats.min(after.repeats);
    let least = if runs > 1 { GAIN_MIN } else { GAIN_MIN_OF_ONE_RUN };
    after.rows_per_s_min > before.rows_per_s_max && after.rows_per_s >= least * before.rows_per_s
}

impl Advice {
    /// All of it for people.
    pub fn text(&self) -> String {
        let mut text = format!("{} on {}\n\n", self.title, self.target);
        for recommendation in &self.recommendations {
            text += &format!("{:<16} {}\n", recommendation.about, recommendation.sentence);
            if let Some(verdict) = &recommendation.verdict {
                text += &format!("{:<16} {verdict}\n", "");
            }
        }
        for doubt in &self.doubts {
            text += &format!("note: {doubt}\n");
        }
        text
    }
}
