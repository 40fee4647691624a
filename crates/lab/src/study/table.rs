//! The result of a study as text: a table of all cases, what they waited for, and what was not run.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use onrush_measure::units::{elapsed, micros, rounded};

use crate::study::file::NO_SERVER;
use crate::study::outcome::{CaseOutcome, Repeat, StudyResult};
use crate::study::proof::told;
use crate::study::setting::Setting;
use crate::target::record::top_waits;

/// So many waits of a case are shown.
const WAITS_SHOWN: usize = 4;

/// Everything, for people.
pub fn text(result: &StudyResult) -> String {
    let mut text = heading(result);
    text += &cases(result);
    text += &waits(result);
    text += &verdicts(result);
    text += &proofs(result);
    text += &not_run(result);
    text += &classic(result);
    text
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to a String cannot fail");
}

fn heading(result: &StudyResult) -> String {
    let mut text = String::new();
    let experiment = if result.experiment.is_empty() { "" } else { ", " };
    let size = format!("{:?}", result.size).to_lowercase();
    push(&mut text, format_args!("{} ({size}{experiment}{})", result.title, result.experiment));
    push(
        &mut text,
        format_args!(
            "{} CPUs, {}; {}; {} on {}; durable write of 4 KiB {} p50\n",
            result.machine.cpus,
            result.machine.cpu_name,
            result.machine.system,
            result.device.kind,
            result.device.device,
            micros(result.sync_time_us.p50_us)
        ),
    );
    text
}

/// The settings that differ between cases, rows apart.
pub(crate) fn varying(result: &StudyResult) -> Vec<Setting> {
    let differs = |setting: &&Setting| {
        let values: BTreeSet<_> =
            result.cases.iter().map(|case| case.settings.value(**setting)).collect();
        values.len() > 1 && !matches!(setting, Setting::Rows | Setting::RowsPerSession)
    };
    Setting::ALL.iter().filter(differs).copied().collect()
}

fn cases(result: &StudyResult) -> String {
    let varying = varying(result);
    let has_parts = result.cases.iter().any(|case| case.part.is_some());
    let mut rows = Vec::new();
    let mut names: Vec<String> = if has_parts { vec!["part".into()] } else { Vec::new() };
    names.extend(varying.iter().map(|setting| setting.name().to_owned()));
    names.push("target".into());
    let left = names.len();
    let is_check = is_all_checks(result);
    let tells_log = tells_log(result);
    let measured: &[&str] = match is_check {
        true => &["rows/s", "+-%", "GB/s", "elapsed", "CPU %", "rows ok"],
        false => {
            &["rows/s", "+-%", "elapsed", "CPU %", "c/sync", "of N/F", "p50", "p99", "rows ok"]
        }
    };
    names.extend(measured.iter().map(|name| (*name).to_owned()));
    let tells_rate = tells_log_rate(result);
    if tells_rate {
        names.push("log MB/s".to_owned());
    }
    if tells_log {
        names.extend(["log B/row", "blocks", "rows/block"].map(String::from));
    }
    rows.push(names);
    for case in result.cases.iter().filter(|case| case.summary.is_some()) {
        let mut row: Vec<String> = Vec::new();
        if has_parts {
            row.push(case.part.clone().unwrap_or_default());
        }
        row.extend(varying.iter().map(|setting| case.settings.shown(*setting)));
        row.push(case.target.clone());
        row.extend(if is_check { figures_of_check(case) } else { figures(case) });
        if tells_rate {
            row.push(optional(middle(case).and_then(Repeat::log_mb_per_s)));
        }
        if tells_log {
            row.extend(figures_of_log(case));
        }
        rows.push(row);
    }
    columns(&rows, left)
}

/// Whether every case checks and none inserts: nothing is committed then.
pub(crate) fn is_all_checks(result: &StudyResult) -> bool {
    result.cases.iter().all(|case| case.settings.is_check())
}

fn optional(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), rounded)
}

/// Whether the rows were there afterwards.
fn is_sound(case: &CaseOutcome) -> &'static str {
    let verdicts: Vec<_> =
        case.repeats.iter().filter_map(|repeat| repeat.verification.as_ref()).collect();
    match (verdicts.is_empty(), verdicts.iter().all(|verdict| verdict.passed)) {
        (true, _) => "-",
        (false, true) => "yes",
        (false, false) => "NO",
    }
}

fn figures_of_check(case: &CaseOutcome) -> Vec<String> {
    let Some(summary) = &case.summary else { return Vec::new() };
    let rate = rounded(summary.rows_per_s);
    vec![
        if case.negative_scaling.is_some() { format!("!{rate}") } else { rate },
        optional(summary.confidence_percent()),
        optional(summary.gb_per_s),
        elapsed(Duration::from_secs_f64(summary.elapsed_s)),
        rounded(summary.cpu_percent),
        is_sound(case).to_owned(),
    ]
}

fn figures(case: &CaseOutcome) -> Vec<String> {
    let Some(summary) = &case.summary else { return Vec::new() };
    let share = summary.share_of_bound.map(|share| 100.0 * share);
    let (p50, p99) = summary.commit_latency_us;
    let rate = rounded(summary.rows_per_s);
    vec![
        if case.not_synchronous { format!("!{rate}") } else { rate },
        optional(summary.confidence_percent()),
        elapsed(Duration::from_secs_f64(summary.elapsed_s)),
        rounded(summary.cpu_percent),
        optional(summary.commits_per_sync),
        share.map_or("-".to_owned(), |share| format!("{}%", rounded(share))),
        micros(p50),
        micros(p99),
        is_sound(case).to_owned(),
    ]
}

/// Whether the study turns what decides how rows lie in the log.
fn tells_log(result: &StudyResult) -> bool {
    let of_log = [Setting::RowsPerCommit, Setting::LogBlockBytesMax];
    varying(result).iter().any(|setting| of_log.contains(setting))
}

/// Whether any case tells how much log it wrote: a column of the classic tables.
fn tells_log_rate(result: &StudyResult) -> bool {
    result.cases.iter().filter_map(middle).any(|repeat| repeat.log_mb_per_s().is_some())
}

fn middle(case: &CaseOutcome) -> Option<&Repeat> {
    case.repeats.get(case.summary.as_ref()?.middle)
}

fn figures_of_log(case: &CaseOutcome) -> Vec<String> {
    let repeat = middle(case);
    let of = |figure: fn(&Repeat) -> Option<f64>| optional(repeat.and_then(figure));
    vec![
        of(|repeat| repeat.log_bytes_per_row),
        of(Repeat::log_blocks),
        of(Repeat::rows_per_log_block),
    ]
}

/// Columns, those from `left` on to the right.
fn columns(rows: &[Vec<String>], left: usize) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count)
        .map(|column| {
            let widths = rows.iter().filter_map(|row| row.get(column)).map(|case| case.len());
            widths.max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, case) in row.iter().enumerate() {
            let width = widths[column];
            match column < left {
                true => write!(line, "{case:width$}  "),
                false => write!(line, "{case:>width$}  "),
            }
            .expect("writing to a String cannot fail");
        }
        push(&mut text, format_args!("{}", line.trim_end()));
    }
    text
}

/// The settings in which a case differs from others of its part: within a part most of what varies in
/// a study stands still.
pub(crate) fn telling(case: &CaseOutcome, result: &StudyResult) -> Vec<Setting> {
    let near: Vec<_> = result.cases.iter().filter(|one| one.part == case.part).collect();
    let differs = |setting: &Setting| {
        near.iter().any(|one| one.settings.value(*setting) != case.settings.value(*setting))
    };
    varying(result).into_iter().filter(differs).collect()
}

/// What tells a case from the others, in a few words.
pub fn name_of(case: &CaseOutcome, result: &StudyResult) -> String {
    let settings = telling(case, result)
        .into_iter()
        .map(|setting| format!("{} {}", setting.name(), case.settings.shown(setting)));
    let parts = case.part.clone().into_iter();
    let words: Vec<String> = parts.chain([case.target.clone()]).chain(settings).collect();
    words.join(", ")
}

fn waits(result: &StudyResult) -> String {
    let mut text = String::new();
    for case in &result.cases {
        let Some(summary) = &case.summary else { continue };
        let Some(repeat) = case.repeats.get(summary.middle) else { continue };
        let top: Vec<String> = top_waits(&repeat.waits)
            .iter()
            .take(WAITS_SHOWN)
            .map(|(wait, percent)| format!("{} {}%", wait.name, rounded(*percent)))
            .collect();
        if !top.is_empty() {
            push(&mut text, format_args!("  {}: {}", name_of(case, result), top.join(", ")));
        }
    }
    if text.is_empty() { text } else { format!("\nWhat was waited for\n{text}") }
}

fn verdicts(result: &StudyResult) -> String {
    let mut text = String::new();
    for case in &result.cases {
        if let Some(verdict) = &case.verdict {
            push(&mut text, format_args!("  {}: {verdict}", name_of(case, result)));
        }
    }
    if text.is_empty() { text } else { format!("\nWhat held it back\n{text}") }
}

fn proofs(result: &StudyResult) -> String {
    let mut text = String::new();
    let mut noted = BTreeSet::new();
    for case in result.cases.iter().filter(|case| !case.note.is_empty()) {
        if !noted.insert(&case.part) && case.proof.is_empty() {
            continue; // the same note, and nothing to prove it
        }
        let repeat = case.summary.as_ref().and_then(|summary| case.repeats.get(summary.middle));
        let Some(repeat) = repeat else { continue };
        let values: Vec<String> = case.proof.iter().map(|name| told(repeat, name)).collect();
        let part = case.part.clone().unwrap_or_default();
        let proof =
            if values.is_empty() { String::new() } else { format!(" [{}]", values.join(", ")) };
        push(&mut text, format_args!("  {part}: {}{proof}", case.note));
    }
    if text.is_empty() { text } else { format!("\nWhat each step shows\n{text}") }
}

fn not_run(result: &StudyResult) -> String {
    let mut text = String::new();
    // Cases with the same reason together, in the order of the first of them.
    let mut told: Vec<(&str, &str, &str, Vec<&CaseOutcome>)> = Vec::new();
    for case in &result.cases {
        let skipped = case.skipped.as_deref().map(|reason| ("skipped", reason));
        let failed = case.failed.as_deref().map(|reason| ("FAILED", reason));
        for (what, reason) in skipped.into_iter().chain(failed) {
            let same = |(one, target, why, _): &&mut (&str, &str, &str, Vec<&CaseOutcome>)| {
                (*one, *target, *why) == (what, case.target.as_str(), reason)
            };
            match told.iter_mut().find(same) {
                Some((.., cases)) => cases.push(case),
                None => told.push((what, &case.target, reason, vec![case])),
            }
        }
    }
    for (what, target, reason, cases) in told {
        let which = match cases.as_slice() {
            [case] => name_of(case, result),
            cases => format!("{target}, {} cases", cases.len()),
        };
        push(&mut text, format_args!("  {what}: {which}: {reason}"));
    }
    for case in &result.cases {
        for what in &case.given_up {
            push(&mut text, format_args!("  GIVEN UP: {}: {what}", name_of(case, result)));
        }
    }
    let warned = result.cases.iter().filter(|case| case.not_synchronous);
    for case in warned {
        let name = name_of(case, result);
        let why = "more commits for each sync than sessions: commits did not wait for the disk";
        push(&mut text, format_args!("  NOT SYNCHRONOUS (!): {name}: {why}"));
    }
    for case in &result.cases {
        if let Some(scaling) = &case.negative_scaling {
            push(&mut text, format_args!("  DOUBTFUL (!): {}: {scaling}", name_of(case, result)));
        }
    }
    if text.is_empty() { text } else { format!("\nNot run, or not what it seems\n{text}") }
}

fn classic(result: &StudyResult) -> String {
    let mut text = String::new();
    for reference in &result.references {
        push(
            &mut text,
            format_args!(
                "  {}: {} ({})",
                reference.label,
                reference.figures().join(", "),
                reference.conditions
            ),
        );
    }
    if text.is_empty() { text } else { format!("\nThe classic results. {NO_SERVER}\n{text}") }
}
