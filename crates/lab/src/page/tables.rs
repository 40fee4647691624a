//! The sections of the page that are text and tables.

use std::time::Duration;

use maud::{Markup, html};
use onrush_measure::units::{bytes, elapsed, micros, rounded};

use super::view::{middle, name_of, plain, ran};
use crate::study::Setting;
use crate::study::file::NO_SERVER;
use crate::study::outcome::{CaseOutcome, Repeat, StudyResult};
use crate::study::proof::told;
use crate::study::table::{is_all_checks, varying};

/// A table that may be wider than a phone: it scrolls within itself.
pub(super) fn scrolled(label: &str, table: Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(label) { (table) } }
}

/// A moment as a date, in UTC.
pub(super) fn date(unix_s: u64) -> String {
    let timestamp = i64::try_from(unix_s).ok().and_then(|s| jiff::Timestamp::from_second(s).ok());
    timestamp.map_or_else(
        || "unknown date".to_owned(),
        |timestamp| timestamp.strftime("%Y-%m-%d %H:%M UTC").to_string(),
    )
}

/// What was not run, what failed, and what is not what it seems.
pub(super) fn doubts(result: &StudyResult) -> Markup {
    let mut doubts: Vec<(&str, String, String)> = Vec::new();
    for case in &result.cases {
        let mut add = |what, why: &str| doubts.push((what, name_of(case, result), why.to_owned()));
        if let Some(reason) = &case.skipped {
            add("skipped", reason);
        }
        if let Some(reason) = &case.failed {
            add("failed", reason);
        }
        case.given_up.iter().for_each(|what| add("given up", what));
        if case.not_synchronous {
            add("not synchronous", "more commits for each sync than sessions: they did not wait");
        }
        if let Some(scaling) = &case.negative_scaling {
            add("negative scaling", scaling.trim_start_matches("negative scaling: "));
        }
        let verified = case.repeats.iter().filter_map(|repeat| repeat.verification.as_ref());
        for verification in verified.filter(|verification| !verification.passed) {
            add("rows wrong", &verification.faults.join("; "));
        }
        let mut warnings: Vec<&String> =
            case.repeats.iter().flat_map(|one| &one.warnings).collect();
        warnings.sort();
        warnings.dedup();
        for warning in warnings.iter().filter(|text| !text.starts_with("not synchronous")) {
            add("doubtful", warning);
        }
    }
    if doubts.is_empty() {
        return html! {};
    }
    let is_grave = |what: &str| {
        matches!(what, "failed" | "rows wrong" | "not synchronous" | "negative scaling")
    };
    let grave = doubts.iter().filter(|(what, ..)| is_grave(what)).count();
    let table = html! {
        table {
            thead { tr { th { "" } th { "case" } th { "why" } } }
            tbody {
                @for (what, case, why) in &doubts {
                    tr {
                        td { span class=(if is_grave(what) { "flag grave" } else { "flag" }) { (what) } }
                        td { (case) }
                        td.wrap { (why) }
                    }
                }
            }
        }
    };
    html! {
        section #doubts {
            h2 { "Not run, or not what it seems" }
            details open[grave > 0 || doubts.len() < 9] {
                summary { (doubts.len()) @if doubts.len() == 1 { " remark on a case" } @else { " remarks on cases" } }
                (scrolled("Cases that were not run or are doubtful", table))
            }
        }
    }
}

/// What held each case back.
pub(super) fn verdicts(result: &StudyResult) -> Markup {
    let judged: Vec<_> =
        ran(result).filter_map(|case| Some((case, case.verdict.as_ref()?))).collect();
    if judged.is_empty() {
        return html! {};
    }
    let (own, baselines): (Vec<_>, Vec<_>) =
        judged.into_iter().partition(|(case, _)| case.target.starts_with("onrush"));
    let list = |judged: &[(&CaseOutcome, &String)]| {
        html! {
            dl.verdicts {
                @for (case, verdict) in judged {
                    div {
                        dt { (name_of(case, result)) }
                        dd {
                            @match verdict.split_once(": ") {
                                Some((cause, evidence)) => {
                                    strong { (cause) } ": " (with_code(evidence))
                                }
                                None => { (verdict) }
                            }
                        }
                    }
                }
            }
        }
    };
    html! {
        section #verdicts {
            h2 { "What held it back" }
            (list(&own))
            @if !baselines.is_empty() && !own.is_empty() {
                details { summary { "What held the baselines back" } (list(&baselines)) }
            } @else {
                (list(&baselines))
            }
        }
    }
}

/// A text in which words between backticks are code.
fn with_code(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// All cases with their figures.
pub(super) fn cases(result: &StudyResult) -> Markup {
    let varying = varying(result);
    let has_parts = result.cases.iter().any(|case| case.part.is_some());
    let is_check = is_all_checks(result);
    let names: &[&str] = match is_check {
        true => &["rows/s", "\u{b1} %", "GB/s", "elapsed", "CPU %"],
        false => &[
            "rows/s",
            "\u{b1} %",
            "elapsed",
            "CPU %",
            "commits per sync",
            "of N/F",
            "commit p50",
            "commit p99",
            "log MB/s",
            "log bytes per row",
            "log blocks",
            "rows per log block",
        ],
    };
    let table = html! {
        table {
            thead { tr {
                @if has_parts { th { "part" } }
                @for setting in &varying { th { (plain(*setting)) } }
                th { "target" }
                @for name in names { th.number { (name) } }
                th { "rows" }
            } }
            tbody { @for case in ran(result) {
                tr class=(if case.target.starts_with("onrush") { "own" } else { "" }) {
                    @if has_parts { td { (case.part.as_deref().unwrap_or("")) } }
                    @for setting in &varying { td { (shown(case, *setting)) } }
                    td { (case.target) }
                    @if is_check { (figures_of_check(case)) } @else { (figures(case)) }
                    td { (rows_found(case)) }
                }
            } }
        }
    };
    html! {
        section #cases {
            h2 { "All cases" }
            @if is_check { p { "Medians. GB/s are those of each one's own files." } }
            @else { p { "Medians. " b { "of N/F" } " is the share of the bound sessions over sync time, which "
                "no synchronous commit can pass." } }
            (scrolled("All cases", table))
        }
    }
}

fn shown(case: &CaseOutcome, setting: Setting) -> String {
    match setting.kind() {
        crate::study::Kind::Bytes => bytes(case.settings.number(setting)),
        _ => case.settings.shown(setting),
    }
}

fn optional(value: Option<f64>) -> String {
    value.map_or("\u{2013}".to_owned(), rounded)
}

fn figures_of_check(case: &CaseOutcome) -> Markup {
    let Some(summary) = &case.summary else { return html! {} };
    html! {
        td.number.main {
            (rounded(summary.rows_per_s)) @if case.negative_scaling.is_some() { " !" }
        }
        td.number { (optional(summary.confidence_percent())) }
        td.number { (optional(summary.gb_per_s)) }
        td.number { (elapsed(Duration::from_secs_f64(summary.elapsed_s.max(0.0)))) }
        td.number { (rounded(summary.cpu_percent)) }
    }
}

fn rows_found(case: &CaseOutcome) -> Markup {
    let verified: Vec<_> =
        case.repeats.iter().filter_map(|run| run.verification.as_ref()).collect();
    html! {
        @if verified.is_empty() { "\u{2013}" }
        @else if verified.iter().all(|one| one.passed) { "all there" }
        @else { span.flag.grave { "wrong" } }
    }
}

fn figures(case: &CaseOutcome) -> Markup {
    let Some(summary) = &case.summary else { return html! {} };
    let share = summary.share_of_bound.map(|share| format!("{} %", rounded(100.0 * share)));
    let (p50, p99) = summary.commit_latency_us;
    let repeat = middle(case);
    let log_bytes = repeat.and_then(|repeat| repeat.log_bytes_per_row);
    html! {
        td.number.main { (rounded(summary.rows_per_s)) @if case.not_synchronous { " !" } }
        td.number { (optional(summary.confidence_percent())) }
        td.number { (elapsed(Duration::from_secs_f64(summary.elapsed_s.max(0.0)))) }
        td.number { (rounded(summary.cpu_percent)) }
        td.number { (optional(summary.commits_per_sync)) }
        td.number { (share.unwrap_or_else(|| "\u{2013}".to_owned())) }
        td.number { (micros(p50)) }
        td.number { (micros(p99)) }
        td.number { (optional(repeat.and_then(Repeat::log_mb_per_s))) }
        td.number { (optional(log_bytes)) }
        td.number { (optional(repeat.and_then(Repeat::log_blocks))) }
        td.number { (optional(repeat.and_then(Repeat::rows_per_log_block))) }
    }
}

/// What each step of a ladder shows, with the counters that prove it.
pub(super) fn steps(result: &StudyResult) -> Markup {
    let cases: Vec<_> = ran(result).filter(|case| !case.proof.is_empty()).collect();
    if cases.is_empty() {
        return html! {};
    }
    let value = |case: &CaseOutcome, name: &String| Some(told(middle(case)?, name));
    html! {
        section #steps {
            h2 { "What each step shows" }
            dl.verdicts { @for case in cases {
                div {
                    dt { (name_of(case, result)) }
                    dd {
                        (case.note) " "
                        @for proof in case.proof.iter().filter_map(|name| value(case, name)) {
                            span.proof { (proof) } " "
                        }
                    }
                }
            } }
        }
    }
}

/// The classic results beside ours.
pub(super) fn classic(result: &StudyResult) -> Markup {
    if result.references.is_empty() {
        return html! {};
    }
    // A result in bytes a second stands beside the cases of the part that has its label.
    let ours = |reference: &crate::study::Reference| {
        let (x, is_bytes) = (reference.x.as_ref()?, reference.gb_per_s.is_some());
        let same = ran(result)
            .filter(|case| case.target.starts_with("onrush") && &case.axis(&result.chart.x) == x)
            .filter(|case| !is_bytes || case.part.as_ref() == Some(&reference.label));
        let rate = |case: &CaseOutcome| match (&case.summary, is_bytes) {
            (Some(summary), true) => summary.gb_per_s,
            (summary, _) => summary.as_ref().map(|summary| summary.rows_per_s),
        };
        let rates: Vec<f64> = same.filter_map(rate).collect();
        let unit = if is_bytes { "GB/s" } else { "rows/s" };
        let least = rates.iter().copied().reduce(f64::min)?;
        let most = rates.iter().copied().reduce(f64::max)?;
        Some(match rates.len() {
            1 => format!("{} {unit}", rounded(most)),
            _ => format!("{} to {} {unit}", rounded(least), rounded(most)),
        })
    };
    let table = html! {
        table {
            thead { tr { th { "" } th { "classic" } th { "its conditions" } th { "Onrush here" } } }
            tbody { @for reference in &result.references {
                tr {
                    td.wrap { (reference.label) }
                    td.wrap { (reference.figures().join("; ")) }
                    td.wrap { (reference.conditions) }
                    td { (ours(reference).unwrap_or_else(|| "\u{2013}".to_owned())) }
                }
            } }
        }
    };
    html! {
        section #classic {
            h2 { "The classic results beside ours" }
            p { "Other machines, other years, other conditions: they say what was known, not what "
                "would be measured here. " (NO_SERVER) }
            (scrolled("Classic results", table))
        }
    }
}

/// What was measured where, with which settings.
pub(super) fn settings(result: &StudyResult) -> Markup {
    let varying = varying(result);
    let Some(first) = result.cases.first() else { return html! {} };
    let common = first
        .settings
        .iter()
        .filter(|(setting, value)| !varying.contains(setting) && !value.to_string().is_empty());
    let machine = &result.machine;
    let mut targets: Vec<&CaseOutcome> = Vec::new();
    for case in result.cases.iter().filter(|case| case.target_shown.is_some()) {
        if !targets.iter().any(|one| one.target == case.target) {
            targets.push(case);
        }
    }
    let pairs = [
        ("machine", format!("{} CPUs, {}", machine.cpus, machine.cpu_name)),
        ("memory", bytes(machine.memory_bytes)),
        ("system", machine.system.clone()),
        ("device", format!("{} on {}", result.device.kind, result.device.device)),
        (
            "durable write of 4 KiB",
            format!(
                "{} p50, {} p99",
                micros(result.sync_time_us.p50_us),
                micros(result.sync_time_us.p99_us)
            ),
        ),
        ("repeats", result.repeats.to_string()),
        ("settings hash", result.settings_hash.clone()),
    ];
    html! {
        section #settings {
            h2 { "Machine and settings" }
            dl.pairs { @for (name, value) in pairs { div { dt { (name) } dd { (value) } } } }
            details {
                summary { "Settings that all cases share" }
                dl.pairs { @for (setting, _) in common {
                    div { dt { (setting.name()) } dd { (shown(first, setting)) } }
                } }
            }
            @for case in targets { @if let Some(target) = &case.target_shown {
                details {
                    summary { (case.target) " " (target.version) }
                    dl.pairs { @for (name, value) in &target.settings {
                        div { dt { (name) } dd { (value) } }
                    } }
                }
            } }
        }
    }
}

/// How to get these figures again.
pub(super) fn again(result: &StudyResult) -> Markup {
    html! {
        section #again {
            h2 { "Again" }
            p { "Begun " (date(result.started_unix_s)) " with" }
            pre { (result.command) }
            p.note {
                "The order of the runs is shuffled from seed " (result.seed) ". The command "
                "writes this page, and beside it the same figures for spreadsheets and programs as CSV "
                "and JSON; "
                code { "onrush-lab compare" } " sets two results against each other."
            }
        }
    }
}
