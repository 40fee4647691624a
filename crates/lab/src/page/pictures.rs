//! The sections of the page with charts.

use std::collections::BTreeMap;

use maud::{Markup, html};
use onrush_measure::units::{micros, rounded};

use super::chart::{Drawing, Layout, Words, bars, both, file, lines, picture, stacks, time};
use super::view::{self, COLOURS, Panel, middle, name_of, ran};
use super::{classic_format, headline};
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
                    "Dashed: the classic result, under "
                    a href="#classic" { "conditions of its own" } "."
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
    let is_lines = result.chart.kind == ChartKind::Lines && panel.groups.len() > 1;
    if is_lines {
        let (lines, axis) = lines_of(result, panel);
        let name = plain_axis(&result.chart.x);
        return Box::new(move |layout| lines::draw(&lines, &axis, &name, layout));
    }
    let groups = bars_of(result, panel);
    Box::new(move |layout| bars::draw(&groups, layout))
}

fn bars_of(result: &StudyResult, panel: &Panel<'_>) -> Vec<bars::Group> {
    let unit = &result.chart.unit;
    let of_group = |group: &view::Group<'_>| {
        let own = group.values.iter().map(|value| bars::Bar {
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
        });
        let classic = group.references.iter().filter_map(|reference| {
            let value = view::value_of_reference(reference, &result.chart.y)?;
            Some(bars::Bar {
                label: "classic".to_owned(),
                class: "classic".to_owned(),
                value,
                confidence: None,
                flag: "",
                hint: format!(
                    "{}: {} {unit}; {}",
                    reference.label,
                    rounded(value),
                    reference.conditions
                ),
            })
        });
        bars::Group { label: group.label.clone(), bars: own.chain(classic).collect() }
    };
    panel.groups.iter().map(of_group).collect()
}

fn lines_of(result: &StudyResult, panel: &Panel<'_>) -> (Vec<lines::Line>, Vec<String>) {
    let mut all: Vec<lines::Line> = Vec::new();
    for (x, group) in panel.groups.iter().enumerate() {
        for value in &group.values {
            let place = all.iter().position(|line| line.label == value.series);
            let place = place.unwrap_or_else(|| {
                let class = format!("c{}", all.len() % COLOURS);
                let label = value.series.clone();
                all.push(lines::Line { label, class, points: Vec::new() });
                all.len() - 1
            });
            all[place].points.push(lines::Point {
                x,
                value: value.value,
                confidence: value.confidence,
                hint: format!("{}: {}", group.label, view::hint(value, &result.chart.unit)),
            });
        }
    }
    (all, panel.groups.iter().map(|group| group.label.clone()).collect())
}

/// A class for each name, those of the largest sums first; the rest is "other".
fn colours(sums: BTreeMap<&str, f64>) -> Vec<(String, String)> {
    let mut names: Vec<_> = sums.into_iter().collect();
    names.sort_by(|left, right| right.1.total_cmp(&left.1));
    let class = |index: usize| match index {
        _ if index < COLOURS => format!("c{index}"),
        _ => "other".to_owned(),
    };
    names.iter().enumerate().map(|(index, (name, _))| ((*name).to_owned(), class(index))).collect()
}

fn legend(colours: &[(String, String)]) -> Markup {
    html! {
        ul.legend {
            @for (name, class) in colours.iter().take(COLOURS) {
                li { span class=(format!("swatch {class}")) {} (name) }
            }
            @if colours.len() > COLOURS { li { span.swatch.other {} "others" } }
        }
    }
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
    let stacks: Vec<stacks::Stack> = cases
        .iter()
        .map(|(case, repeat)| {
            let parts = top_waits(&repeat.waits);
            let shares = parts.iter().map(|(wait, percent)| (wait.name.as_str(), percent / 100.0));
            let waited = view::waited_s(repeat);
            let whole = micros(1e6 * waited / (repeat.rows as f64).max(1.0));
            stack(name_of(case, result), format!("{whole} a row"), shares, &colours)
        })
        .collect();
    if stacks.is_empty() {
        return html! {};
    }
    let words = Words {
        id: "waits".to_owned(),
        title: "What sessions waited for".to_owned(),
        description: stacks_in_words(&stacks),
    };
    html! {
        section #waits {
            h2 { "What was waited for" }
            p { "Each bar is all the time that was waited in the middle run of a case, of sessions "
                "and background threads, idling apart; the waits that make up the top 95 %." }
            (legend(&colours))
            figure { (both(&words, |layout| stacks::draw(&stacks, layout))) }
            @for (case, repeat) in &cases {
                (classic_format::waits(&name_of(case, result), repeat))
            }
        }
    }
}

fn stack<'n>(
    label: String,
    whole: String,
    shares: impl Iterator<Item = (&'n str, f64)>,
    colours: &[(String, String)],
) -> stacks::Stack {
    let class = |name: &str| {
        let found = colours.iter().find(|(one, _)| one == name);
        found.map_or("other".to_owned(), |(_, class)| class.clone())
    };
    let mut parts: Vec<stacks::Part> = shares
        .map(|(name, share)| stacks::Part { name: name.to_owned(), class: class(name), share })
        .collect();
    let rest = 1.0 - parts.iter().map(|part| part.share).sum::<f64>();
    if rest > 0.001 {
        let (name, class) = ("the rest".to_owned(), "other".to_owned());
        parts.push(stacks::Part { name, class, share: rest });
    }
    stacks::Stack { label, whole, parts }
}

fn stacks_in_words(stacks: &[stacks::Stack]) -> String {
    let of = |stack: &stacks::Stack| {
        let parts = stack.parts.iter().filter(|part| part.share >= 0.05);
        let parts: Vec<_> =
            parts.map(|part| format!("{} {:.0} %", part.name, 100.0 * part.share)).collect();
        format!("{}: {}", stack.label, parts.join(", "))
    };
    stacks.iter().map(of).collect::<Vec<_>>().join("; ")
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
    let stacks: Vec<stacks::Stack> = cases
        .iter()
        .map(|(case, repeat)| {
            let all = busy_s(repeat);
            let busy = repeat.phases.iter().filter(|phase| !phase.is_idle && phase.seconds > 0.0);
            let shares = busy.map(|phase| (phase.name.as_str(), phase.seconds / all));
            let whole = micros(1e6 * all / (repeat.rows as f64).max(1.0));
            stack(name_of(case, result), format!("{whole} a row"), shares, &colours)
        })
        .collect();
    let words = Words {
        id: "phases".to_owned(),
        title: "Time by phase of an insert".to_owned(),
        description: stacks_in_words(&stacks),
    };
    html! {
        section #phases {
            h2 { "Time by phase" }
            p { "Where the time of an insert goes, without waits; estimated from timed samples." }
            (legend(&colours))
            figure { (both(&words, |layout| stacks::draw(&stacks, layout))) }
            (classic_format::phases(&cases, result))
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
        let curve = time::Curve {
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
        picture(&words, "c", time::WIDTH, &time::draw(&curve))
    };
    html! { @for one in series { (of_series(one)) } }
}
