//! The figures as comma-separated values: a line for each run, and a line for each wait.

use crate::study::Setting;
use crate::study::outcome::{CaseOutcome, Repeat, StudyResult};

/// One line for each run, all settings in columns of their own.
pub(super) fn runs(result: &StudyResult) -> String {
    let settings = Setting::ALL.iter().map(|setting| setting.name().to_owned());
    let names = ["study", "size", "case", "part", "target"];
    let figures = figures(None).into_iter().map(|(name, _)| name.to_owned());
    let after = ["not_synchronous", "negative_scaling", "skipped", "failed", "verdict"];
    let all = names.map(String::from).into_iter().chain(settings);
    let mut text = line(all.chain(figures).chain(after.map(String::from)));
    for case in &result.cases {
        if case.repeats.is_empty() {
            text += &run(result, case, None);
        }
        for repeat in &case.repeats {
            text += &run(result, case, Some(repeat));
        }
    }
    text
}

fn run(result: &StudyResult, case: &CaseOutcome, repeat: Option<&Repeat>) -> String {
    let names = [
        result.study.clone(),
        format!("{:?}", result.size).to_lowercase(),
        case.number.to_string(),
        case.part.clone().unwrap_or_default(),
        case.target.clone(),
    ];
    let settings = Setting::ALL.iter().map(|setting| case.settings.text(*setting));
    let figures = figures(repeat).into_iter().map(|(_, value)| value);
    let after = [
        case.not_synchronous.to_string(),
        case.negative_scaling.is_some().to_string(),
        case.skipped.clone().unwrap_or_default(),
        case.failed.clone().unwrap_or_default(),
        case.verdict.clone().unwrap_or_default(),
    ];
    line(names.into_iter().chain(settings).chain(figures).chain(after))
}

type Figure = (&'static str, fn(&Repeat) -> Option<f64>);

const FIGURES: &[Figure] = &[
    ("repeat", |run| Some(run.number as f64)),
    ("rows_done", |run| Some(run.rows as f64)),
    ("commits", |run| Some(run.commits as f64)),
    ("elapsed_s", |run| Some(run.elapsed_s)),
    ("rows_per_s", |run| Some(run.rows_per_s)),
    ("gb_per_s", |run| run.gb_per_s),
    ("commits_per_s", |run| Some(run.commits_per_s)),
    ("cpu_percent", |run| Some(run.cpu_percent)),
    ("cpu_s", |run| Some(run.cpu_s)),
    ("commits_per_sync", |run| run.commits_per_sync),
    ("log_bytes_per_row", |run| run.log_bytes_per_row),
    ("log_blocks", Repeat::log_blocks),
    ("rows_per_log_block", Repeat::rows_per_log_block),
    ("bound_commits_per_s", |run| run.bound_commits_per_s),
    ("share_of_bound", |run| run.share_of_bound),
    ("commit_p50_us", |run| Some(run.commit_latency_us.p50)),
    ("commit_p99_us", |run| Some(run.commit_latency_us.p99)),
    ("commit_max_us", |run| Some(run.commit_latency_us.max)),
    ("sync_p50_us", |run| Some(run.sync_time_us.p50_us)),
    ("device_write_mb_per_s", |run| run.device.map(|device| device.write_mb_per_s)),
    ("device_read_mb_per_s", |run| run.device.map(|device| device.read_mb_per_s)),
];

fn figures(repeat: Option<&Repeat>) -> Vec<(&'static str, String)> {
    let mut all: Vec<_> = FIGURES
        .iter()
        .map(|(name, of)| {
            let value = repeat.and_then(of);
            (*name, value.map(|value| value.to_string()).unwrap_or_default())
        })
        .collect();
    let verified = repeat.and_then(|run| run.verification.as_ref());
    all.push(("rows_verified", verified.map(|one| one.passed.to_string()).unwrap_or_default()));
    all
}

/// One line for each wait, latch and spin of each run.
pub(super) fn waits(result: &StudyResult) -> String {
    let names = ["case", "repeat", "target", "group", "name", "wait_s", "resource_s", "signal_s"];
    let more = ["count", "max_s", "requests", "collisions", "spins", "sleeps", "backoffs"];
    let more = more.into_iter().chain(["idle", "sampled"]);
    let mut text = line(names.into_iter().chain(more).map(String::from));
    for case in &result.cases {
        for repeat in &case.repeats {
            for wait in &repeat.waits {
                let seconds = |value: Option<f64>| value.map(|one| one.to_string());
                let spins = wait.spins;
                let fields = [
                    Some(case.number.to_string()),
                    Some(repeat.number.to_string()),
                    Some(case.target.clone()),
                    Some(wait.group.clone()),
                    Some(wait.name.clone()),
                    Some(wait.seconds.to_string()),
                    seconds(wait.resource_s),
                    seconds(wait.signal_s),
                    Some(wait.count.to_string()),
                    seconds(wait.max_s),
                    wait.requests.map(|requests| requests.to_string()),
                    spins.map(|spins| spins.collisions.to_string()),
                    spins.map(|spins| spins.spins.to_string()),
                    spins.map(|spins| spins.sleeps.to_string()),
                    spins.map(|spins| spins.backoffs.to_string()),
                    Some(wait.is_idle.to_string()),
                    Some(wait.is_sampled.to_string()),
                ];
                text += &line(fields.into_iter().map(Option::unwrap_or_default));
            }
        }
    }
    text
}

fn line(fields: impl Iterator<Item = String>) -> String {
    let fields: Vec<String> = fields.map(|field| quoted(&field)).collect();
    fields.join(",") + "\n"
}

fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_columns_have_one_name() {
        let result = crate::page::tests::invented();
        for text in [runs(&result), waits(&result)] {
            let names: Vec<&str> = text.lines().next().unwrap().split(',').collect();
            let different: BTreeSet<&str> = names.iter().copied().collect();
            assert_eq!(names.len(), different.len(), "{names:?}");
        }
    }

    #[test]
    fn fields_with_commas_and_quotes_are_quoted() {
        let fields = ["a", "b,c", "say \"d\"", "e\nf"].map(String::from);
        assert_eq!(line(fields.into_iter()), "a,\"b,c\",\"say \"\"d\"\"\",\"e\nf\"\n");
    }
}
