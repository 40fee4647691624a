//! The sections of the page with charts.

use std::collections::BTreeMap;

use maud::{Markup, html};
use onrush_measure::units::{micros, rounded};

use super::chart::{Curve, Drawing, Group, Layout, Mark, Words, bars, both, curve, file, lines};
use super::shares::{Shares, colours, legend};
use super::view::{self, COLOURS, Panel, middle, name_of, ran};
use super::{classic_format, headline};
use crate::study::file::NO_SERVER;
use crate::study::outcome::{Repeat, StudyResult};
use crate::study::{ChartKind, Setting};
use crate::target::record::{CounterSeries, top_waits};

/// Fewer samples over time than this show nothing.
const SAMPLES_MIN: usize = 4;
/// So many counters of a case are drawn.
const CURVES_MAX: usize = 12;

/// The study's own chart.
pub(super) fn chart(result: &StudyResult, panels: &[Panel<'_>]) -> Markup {
    let is_single = ran(result).all(|case| case.repeats.len() < 2);
    let has_references =
        panels.iter().any(|panel| panel.groups.iter().any(|group| !group.references.is_empty()));
    html! {
        section #chart {
            h2 { (axis_name(&result.chart.y, &result.chart.unit)) " by " (plain_axis(&result.chart.x)) }
            @for panel in panels { (one_panel(result, panel)) }
            p.note {
                @if is_single { "One run of each case, so that there are no error bars. " }
                @else { "Bars and points are medians; whiskers say where the mean lies with 95 % confidence. " }
                @if has_references {
                    "Dashed: the classic result, as it was published, under "
                    a href="#classic" { "conditions of its own" } ". " (NO_SERVER)
                }
            }
        }
    }
}

fn axis_name(y: &str, unit: &str) -> String {
    match y {
        "rows_per_s" => "Rows per second".to_owned(),
        "gb_per_s" => "Billions of bytes per second".to_owned(),
        "elapsed_s" => "Elapsed time".to_owned(),
        _ => format!("{} ({unit})", y.replace('_', " ")),
    }
}

fn plain_axis(axis: &str) -> String {
    match axis {
        "part" => "step".to_owned(),
        other => Setting::named(other).map_or(other.replace('_', " "), view::plain),
    }
}

/// The chart of one panel as a picture file.
pub(super) fn chart_file(result: &StudyResult, panel: &Panel<'_>, style: &str) -> Markup {
    let words = words_of(result, panel);
    file(&words, style, drawing(result, panel))
}

fn words_of(result: &StudyResult, panel: &Panel<'_>) -> Words {
    Words {
        id: format!("panel-{}", panel.number),
        title: match panel.title.as_str() {
            "" => result.title.clone(),
            title => format!("{}: {title}", result.title),
        },
        description: view::in_words(panel, &result.chart.unit),
    }
}

fn one_panel(result: &StudyResult, panel: &Panel<'_>) -> Markup {
    let words = words_of(result, panel);
    let findings = headline::of_panel(panel);
    html! {
        figure {
            @if !panel.title.is_empty() {
                figcaption {
                    h3 { (panel.title) }
                    @if !panel.note.is_empty() { p { (panel.note) } }
                }
            }
            (both(&words, drawing(result, panel)))
            @if !findings.is_empty() {
                ul.findings { @for finding in findings { li { (finding) } } }
            }
        }
    }
}

/// How a panel is drawn, for whichever window.
fn drawing<'a>(result: &'a StudyResult, panel: &Panel<'_>) -> Box<dyn Fn(&Layout) -> Drawing + 'a> {
    if result.chart.kind == ChartKind::Lines && panel.groups.len() > 1 {
        let (groups, name) = (line_groups(result, panel), plain_axis(&result.chart.x));
        return Box::new(move |layout| lines(&groups, &name, layout));
    }
    let groups = bar_groups(result, panel);
    Box::new(move |layout| bars(&groups, layout))
}

fn mark(value: &view::Value<'_>, unit: &str) -> Mark {
    Mark {
        label: value.series.clone(),
        class: value.class.clone(),
        value: value.value,
        confidence: value.confidence,
        flag: match &value.case {
            case if !case.passed() => "rows wrong",
            case if case.not_synchronous => "not synchronous",
            case if case.negative_scaling.is_some() => "negative scaling",
            _ => "",
        },
        hint: view::hint(value, unit),
    }
}

/// The classic results stand behind ours.
fn bar_groups(result: &StudyResult, panel: &Panel<'_>) -> Vec<Group> {
    let unit = &result.chart.unit;
    let classic = |reference: &&crate::study::Reference| {
        let value = view::value_of_reference(reference, &result.chart.y)?;
        let (label, conditions) = (&reference.label, &reference.conditions);
        Some(Mark {
            label: "classic".to_owned(),
            class: "classic".to_owned(),
            value,
            confidence: None,
            flag: "not run here",
            hint: format!("{label}: {} {unit}; {conditions}", rounded(value)),
        })
    };
    let of_group = |group: &view::Group<'_>| Group {
        label: group.label.clone(),
        marks: (group.values.iter().map(|value| mark(value, unit)))
            .chain(group.references.iter().filter_map(classic))
            .collect(),
    };
    panel.groups.iter().map(of_group).collect()
}

/// Each series has a colour of its own.
fn line_groups(result: &StudyResult, panel: &Panel<'_>) -> Vec<Group> {
    let mut series: Vec<&str> = Vec::new();
    let names = panel.groups.iter().flat_map(|group| &group.values).map(|value| &value.series);
    for name in names {
        if !series.contains(&name.as_str()) {
            series.push(name);
        }
    }
    let of_group = |group: &view::Group<'_>| {
        let marks = group.values.iter().map(|value| {
            let place = series.iter().position(|name| *name == value.series).unwrap_or(0);
            let mark = mark(value, &result.chart.unit);
            let hint = format!("{}: {}", group.label, mark.hint);
            Mark { class: format!("c{}", place % COLOURS), hint, ..mark }
        });
        Group { label: group.label.clone(), marks: marks.collect() }
    };
    panel.groups.iter().map(of_group).collect()
}

/// Shares of what was waited for, and the tables in the classic format.
pub(super) fn waits(result: &StudyResult) -> Markup {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    let cases: Vec<_> = ran(result)
        .filter_map(|case| Some((case, middle(case)?)))
        .filter(|(_, repeat)| !top_waits(&repeat.waits).is_empty())
        .collect();
    for (_, repeat) in &cases {
        for (wait, percent) in top_waits(&repeat.waits) {
            *sums.entry(&wait.name).or_default() += percent;
        }
    }
    let colours = colours(sums);
    let all: Vec<Shares> = cases
        .iter()
        .map(|(case, repeat)| {
            let parts = top_waits(&repeat.waits);
            let shares = parts.iter().map(|(wait, percent)| (wait.name.as_str(), percent / 100.0));
            let waited = view::waited_s(repeat);
            let whole = micros(1e6 * waited / (repeat.rows as f64).max(1.0));
            Shares::of(name_of(case, result), format!("{whole} a row"), shares, &colours)
        })
        .collect();
    if all.is_empty() {
        return html! {};
    }
    html! {
        section #waits {
            h2 { "What was waited for" }
            p { "Each bar is all the time that was waited in the middle run of a case, of sessions "
                "and background threads, idling apart; the waits that make up the top 95 %." }
            (legend(&colours))
            figure { @for shares in &all { (shares.drawn()) } }
            @for (case, repeat) in &cases {
                (classic_format::waits(&name_of(case, result), repeat))
            }
        }
    }
}

/// Processor time by phase.
pub(super) fn phases(result: &StudyResult) -> Markup {
    let busy_s = |repeat: &Repeat| {
        let busy = repeat.phases.iter().filter(|phase| !phase.is_idle);
        busy.map(|phase| phase.seconds).sum::<f64>()
    };
    let cases: Vec<_> = ran(result)
        .filter_map(|case| Some((case, middle(case)?)))
        .filter(|(_, repeat)| busy_s(repeat) > 0.0)
        .collect();
    if cases.is_empty() {
        return html! {};
    }
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for (_, repeat) in &cases {
        for phase in repeat.phases.iter().filter(|phase| !phase.is_idle && phase.seconds > 0.0) {
            *sums.entry(&phase.name).or_default() += phase.seconds / busy_s(repeat);
        }
    }
    let colours = colours(sums);
    let all: Vec<Shares> = cases
        .iter()
        .map(|(case, repeat)| {
            let all = busy_s(repeat);
            let busy = repeat.phases.iter().filter(|phase| !phase.is_idle && phase.seconds > 0.0);
            let shares = busy.map(|phase| (phase.name.as_str(), phase.seconds / all));
            let whole = micros(1e6 * all / (repeat.rows as f64).max(1.0));
            Shares::of(name_of(case, result), format!("{whole} a row"), shares, &colours)
        })
        .collect();
    html! {
        section #phases {
            h2 { "Time by phase" }
            p { "Where the time of an insert goes, without waits; estimated from timed samples." }
            (legend(&colours))
            figure { @for shares in &all { (shares.drawn()) } }
            (classic_format::phases(&cases, result))
        }
    }
}

/// Flame graphs, where stacks were sampled.
pub(super) fn stacks(result: &StudyResult) -> Markup {
    let graphs: Vec<(String, usize, &String)> = ran(result)
        .flat_map(|case| case.repeats.iter().map(move |repeat| (case, repeat)))
        .filter_map(|(case, repeat)| {
            Some((name_of(case, result), repeat.number + 1, repeat.stacks.as_ref()?))
        })
        .collect();
    if graphs.is_empty() {
        return html! {};
    }
    html! {
        section #stacks {
            h2 { "Time by stack" }
            p {
                "Flame graphs of the loads, beside the result file: the wider a frame, the more processor time. Time "
                "in the C library and in the system is left out."
            }
            ul {
                @for (case, number, file) in &graphs {
                    li { a href=(file) { (case) ", run " (number) } }
                }
            }
        }
    }
}

/// First come those that tell most about a growing table.
const FIRST: &[&str] = &[
    "ROWS",
    "LOG_WRITE_MEAN_US",
    "LOG_WRITE_P99_US",
    "LOG_QUEUE",
    "LOG_BYTES",
    "LOG_SYNCS",
    "IMAGES_CHECKPOINT",
    "IMAGES_EVICTION",
    "EVICTIONS",
    "LEAF_LOADS",
    "PAGES_ALLOCATED",
    "LOG_GROWTHS",
    "FRAMES_USED",
    "SPLITS",
];

fn rank(series: &CounterSeries) -> usize {
    let is_it = |name: &&&str| series.name == **name;
    let place = |name: &&str| FIRST.iter().position(|one| one == name);
    if let Some(name) = FIRST.iter().find(is_it) {
        return place(name).unwrap_or(FIRST.len());
    }
    let near = FIRST.iter().position(|name| series.name.contains(name) && *name != "ROWS");
    near.unwrap_or(FIRST.len())
}

/// Counters over time, checkpoints marked.
pub(super) fn over_time(result: &StudyResult) -> Markup {
    let cases: Vec<_> = ran(result)
        .filter_map(|case| Some((case, middle(case)?)))
        .filter(|(_, repeat)| repeat.series.iter().any(|one| one.points.len() >= SAMPLES_MIN))
        .collect();
    if cases.is_empty() {
        return html! {};
    }
    html! {
        section #time {
            h2 { "Counters over time" }
            p { "Of the middle run of each case: counters a second, levels as they stood. "
                span.checkpoint-key {} " A checkpoint ended." }
            @for (index, (case, repeat)) in cases.iter().enumerate() {
                details open[index == 0] {
                    summary { (name_of(case, result)) }
                    div.curves { (curves(repeat, case.number)) }
                }
            }
        }
    }
}

fn curves(repeat: &Repeat, number: usize) -> Markup {
    let mut series: Vec<_> =
        repeat.series.iter().filter(|one| one.points.len() >= SAMPLES_MIN).collect();
    series.sort_by_key(|one| rank(one));
    series.truncate(CURVES_MAX);
    let marks: Vec<f64> = repeat.marks.iter().map(|mark| mark.at_s).collect();
    let of_series = |one: &CounterSeries| {
        let name = one.name.to_lowercase().replace('_', " ");
        let name = name.trim_end_matches(" us").to_owned(); // the unit stands beside it
        let unit = if one.unit == "1" { "" } else { one.unit.as_str() };
        let unit = unit.replace("1/s", "/s");
        let drawn = Curve {
            name: &name,
            unit: &unit,
            points: &one.points,
            marks: &marks,
            end_s: repeat.elapsed_s,
        };
        let values = one.points.iter().map(|(_, value)| *value);
        let (count, sum) = (one.points.len() as f64, values.clone().sum::<f64>());
        let words = Words {
            id: format!("curve-{number}-{}", one.name.to_lowercase()),
            title: format!("{name} over time"),
            description: format!(
                "Mean {} {unit}, largest {}, over {} s; {} checkpoints.",
                rounded(sum / count),
                rounded(values.fold(0.0, f64::max)),
                rounded(repeat.elapsed_s),
                marks.len()
            ),
        };
        curve(&words, &drawn)
    };
    html! { @for one in series { (of_series(one)) } }
}
