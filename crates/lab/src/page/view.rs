//! Which figures of a study go where: panels, groups, series, their names and their colours.

use std::collections::BTreeSet;

use onrush_measure::units::rounded;

use super::chart::compact;
use crate::study::outcome::{CaseOutcome, Repeat, StudyResult};
use crate::study::{Reference, Setting};

/// Colours there are for series and parts; what goes beyond them is drawn as "other".
pub(super) const COLOURS: usize = 7;

/// A chart of its own.
pub(super) struct Panel<'r> {
    /// Its place on the page.
    pub(super) number: usize,
    pub(super) title: String,
    pub(super) note: &'r str,
    pub(super) groups: Vec<Group<'r>>,
}

/// Cases with the same value on the axis.
pub(super) struct Group<'r> {
    pub(super) label: String,
    pub(super) values: Vec<Value<'r>>,
    pub(super) references: Vec<&'r Reference>,
}

/// One figure.
pub(super) struct Value<'r> {
    pub(super) series: String,
    pub(super) class: String,
    pub(super) value: f64,
    pub(super) confidence: Option<(f64, f64)>,
    pub(super) case: &'r CaseOutcome,
}

/// The run that stands for a case.
pub(super) fn middle(case: &CaseOutcome) -> Option<&Repeat> {
    case.repeats.get(case.summary.as_ref()?.middle)
}

/// Cases of which at least one run ended.
pub(super) fn ran(result: &StudyResult) -> impl Iterator<Item = &CaseOutcome> {
    result.cases.iter().filter(|case| case.summary.is_some())
}

/// The value that the study's chart draws.
pub(super) fn value_of(case: &CaseOutcome, y: &str) -> Option<f64> {
    let summary = case.summary.as_ref()?;
    match y {
        "elapsed_s" => Some(summary.elapsed_s),
        "cpu_percent" => Some(summary.cpu_percent),
        "gb_per_s" => summary.gb_per_s,
        "commits_per_sync" => summary.commits_per_sync,
        "share_of_bound" => summary.share_of_bound,
        "commits_per_s" => middle(case).map(|repeat| repeat.commits_per_s),
        "log_bytes_per_row" => middle(case)?.log_bytes_per_row,
        "rows_per_log_block" => middle(case)?.rows_per_log_block(),
        "commit_p99_us" => Some(summary.commit_latency_us.1),
        _ => Some(summary.rows_per_s),
    }
}

/// The value of a classic result, where it has one of this kind.
pub(super) fn value_of_reference(reference: &Reference, y: &str) -> Option<f64> {
    match y {
        "rows_per_s" => reference.rows_per_s,
        "gb_per_s" => reference.gb_per_s,
        "elapsed_s" => reference.elapsed_s,
        _ => None,
    }
}

fn is_own(target: &str) -> bool {
    target.starts_with("onrush")
}

/// In the order in which they come, each once.
fn distinct(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    values.filter(|value| seen.insert(value.clone())).collect()
}

/// Every panel of the study's chart that has something to show.
pub(super) fn panels(result: &StudyResult) -> Vec<Panel<'_>> {
    let chart = &result.chart;
    let panel_of = |case: &CaseOutcome| match &chart.panel {
        Some(axis) => case.axis(axis),
        None => String::new(),
    };
    let mut references: Vec<&Reference> = result.references.iter().collect();
    let mut panels = Vec::new();
    for (number, title) in distinct(ran(result).map(panel_of)).into_iter().enumerate() {
        let cases: Vec<_> = ran(result).filter(|case| panel_of(case) == title).collect();
        let note = cases.first().map_or("", |case| case.note.as_str());
        let is_of_part = chart.panel.as_deref() == Some("part");
        panels.push(Panel {
            number,
            title,
            note: if is_of_part { note } else { "" },
            groups: groups(result, &cases, &mut references),
        });
    }
    panels
}

fn groups<'r>(
    result: &'r StudyResult,
    cases: &[&'r CaseOutcome],
    references: &mut Vec<&'r Reference>,
) -> Vec<Group<'r>> {
    let chart = &result.chart;
    let labels = distinct(cases.iter().map(|case| case.axis(&chart.x)));
    let series = distinct(cases.iter().map(|case| series_of(case, cases, result)));
    let of_label = |label: String| {
        let (here, elsewhere) = std::mem::take(references).into_iter().partition(|reference| {
            reference.x.as_ref() == Some(&label)
                && value_of_reference(reference, &chart.y).is_some()
        });
        *references = elsewhere;
        let values = cases.iter().filter(|case| case.axis(&chart.x) == label).filter_map(|case| {
            let series_name = series_of(case, cases, result);
            let place = series.iter().position(|one| *one == series_name).unwrap_or(0);
            let is_rate = chart.y == "rows_per_s";
            let confidence = case.summary.as_ref()?.rows_per_s_confidence;
            Some(Value {
                class: class_of(case, place, chart.series == "target"),
                series: series_name,
                value: value_of(case, &chart.y)?,
                confidence: confidence.filter(|_| is_rate),
                case,
            })
        });
        Group { values: values.collect(), references: here, label }
    };
    labels.into_iter().map(of_label).collect()
}

/// Onrush has its colour, baselines have theirs; series of anything else are told apart by colours.
fn class_of(case: &CaseOutcome, place: usize, is_by_target: bool) -> String {
    match is_by_target {
        true if is_own(&case.target) => "own".to_owned(),
        true => "baseline".to_owned(),
        false => format!("c{}", place % COLOURS),
    }
}

/// The name of a case's series. Where cases would share one name at the same place of the axis, the
/// settings that tell them apart are part of it.
fn series_of(case: &CaseOutcome, cases: &[&CaseOutcome], result: &StudyResult) -> String {
    let chart = &result.chart;
    let name = case.axis(&chart.series);
    let same: Vec<_> = cases.iter().filter(|one| one.axis(&chart.series) == name).collect();
    let differs_at = |setting: Setting, place: &CaseOutcome| {
        let here = same.iter().filter(|one| one.axis(&chart.x) == place.axis(&chart.x));
        here.map(|one| one.settings.text(setting)).collect::<BTreeSet<_>>().len() > 1
    };
    let differs = |setting: &&Setting| {
        let is_axis = [Some(&chart.x), Some(&chart.series), chart.panel.as_ref()]
            .into_iter()
            .flatten()
            .any(|axis| axis == setting.name());
        let is_size = matches!(setting, Setting::Rows | Setting::RowsPerSession);
        !is_axis && !is_size && same.iter().any(|place| differs_at(**setting, place))
    };
    let more = Setting::ALL.iter().filter(differs).map(|setting| short(case, *setting));
    [name].into_iter().chain(more).collect::<Vec<_>>().join(", ")
}

/// A setting in as few words as say it: a word speaks for itself, a number does not.
fn short(case: &CaseOutcome, setting: Setting) -> String {
    let text = case.settings.shown(setting);
    match (setting, setting.kind()) {
        (_, crate::study::Kind::Word(_) | crate::study::Kind::Key) => text,
        (Setting::Sessions, _) => format!("{text} sessions"),
        (_, crate::study::Kind::Bytes) => {
            let bytes = onrush_measure::units::bytes(case.settings.number(setting));
            format!("{} {bytes}", plain(setting))
        }
        _ => format!("{} {text}", plain(setting)),
    }
}

/// The name of a setting as words.
pub(super) fn plain(setting: Setting) -> String {
    setting.name().trim_end_matches("_bytes_max").trim_end_matches("_bytes").replace('_', " ")
}

/// What tells a case from all others, in a few words.
pub(super) fn name_of(case: &CaseOutcome, result: &StudyResult) -> String {
    let settings = crate::study::table::telling(case, result);
    let settings = settings.into_iter().map(|setting| short(case, setting));
    let words = case.part.iter().cloned().chain([case.target.clone()]).chain(settings);
    words.collect::<Vec<_>>().join(", ")
}

/// Median and confidence in words.
pub(super) fn hint(value: &Value<'_>, unit: &str) -> String {
    let name = &value.series;
    match value.confidence {
        Some((low, high)) => format!(
            "{name}: {} {unit} (95 % confidence: {} to {})",
            rounded(value.value),
            rounded(low.max(0.0)),
            rounded(high)
        ),
        None => format!("{name}: {} {unit}", rounded(value.value)),
    }
}

/// A panel in words, for those who do not see it.
pub(super) fn in_words(panel: &Panel<'_>, unit: &str) -> String {
    let groups = panel.groups.iter().map(|group| {
        let values =
            group.values.iter().map(|value| format!("{} {}", value.series, compact(value.value)));
        format!("{}: {}", group.label, values.collect::<Vec<_>>().join(", "))
    });
    let groups: Vec<_> = groups.collect();
    format!("In {unit}. {}. The table of all cases holds the same figures.", groups.join("; "))
}

/// All that was waited, idling apart; latches and spins are part of a wait.
pub(super) fn waited_s(repeat: &Repeat) -> f64 {
    let is_counted = |wait: &&crate::target::record::WaitRecord| {
        !wait.is_idle && !matches!(wait.group.as_str(), "latch" | "spin")
    };
    repeat.waits.iter().filter(is_counted).map(|wait| wait.seconds).sum()
}
