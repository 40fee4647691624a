//! The heading: what the study found, in one sentence, and a sentence for each panel.
//!
//! Invariant: figures that are not synchronous, or whose rows were not all there, win nothing.

use onrush_measure::units::rounded;

use super::view::{Group, Panel, Value};
use crate::study::StudyResult;
use crate::study::table::is_all_checks;

/// Onrush beside the best baseline at one place of the axis.
struct Duel<'p, 'r> {
    place: &'p str,
    own: &'p Value<'r>,
    baseline: &'p Value<'r>,
}

impl Duel<'_, '_> {
    fn ratio(&self) -> f64 {
        self.own.value / self.baseline.value
    }
}

fn counts(value: &&Value<'_>) -> bool {
    value.value > 0.0 && !value.case.not_synchronous && value.case.passed()
}

fn duel<'p, 'r>(group: &'p Group<'r>) -> Option<Duel<'p, 'r>> {
    let best = |is_wanted: &dyn Fn(&str) -> bool| {
        let values = group.values.iter().filter(counts);
        values
            .filter(|value| is_wanted(&value.case.target))
            .max_by(|left, right| left.value.total_cmp(&right.value))
    };
    let own = best(&|target| target.starts_with("onrush"))?;
    let baseline = best(&|target| !target.starts_with("onrush") && target != "null")?;
    Some(Duel { place: &group.label, own, baseline })
}

/// The sentence over all.
pub(super) fn sentence(result: &StudyResult, panels: &[Panel<'_>]) -> String {
    if result.cases.iter().any(|case| !case.passed()) {
        return "Not every run ended well: see below before believing any figure".to_owned();
    }
    if result.chart.y != "rows_per_s" {
        return result.title.clone();
    }
    let mut ratios: Vec<f64> = panels
        .iter()
        .flat_map(|panel| &panel.groups)
        .filter_map(duel)
        .map(|duel| duel.ratio())
        .collect();
    ratios.sort_by(f64::total_cmp);
    match (ratios.first(), ratios.last()) {
        (Some(least), Some(most)) => {
            let verb = if is_all_checks(result) { "checks" } else { "inserts" };
            against_baselines(*least, *most, verb)
        }
        _ => among_own(panels).unwrap_or_else(|| result.title.clone()),
    }
}

fn against_baselines(least: f64, most: f64, verb: &str) -> String {
    let times = |ratio: f64| match ratio {
        _ if ratio >= 9.95 => format!("{ratio:.0}"),
        _ => format!("{ratio:.1}"),
    };
    let (low, high) = (times(least), times(most));
    match (least, most) {
        _ if low == high => format!("Onrush {verb} {low} times the rows of its best baseline"),
        (least, _) if least >= 1.0 => {
            format!("Onrush {verb} {low} to {high} times the rows of its best baseline")
        }
        (_, most) if most <= 1.0 => {
            format!("The best baseline is ahead: Onrush {verb} {low} to {high} times its rows")
        }
        _ => format!("Onrush {verb} between {low} and {high} times the rows of its best baseline"),
    }
}

/// Without baselines: how far apart the settings are.
fn among_own(panels: &[Panel<'_>]) -> Option<String> {
    let values = || {
        let places = panels.iter().flat_map(|panel| &panel.groups);
        places.flat_map(|group| {
            group.values.iter().filter(counts).map(move |value| (group.label.as_str(), value))
        })
    };
    let by_value = |left: &(&str, &Value<'_>), right: &(&str, &Value<'_>)| {
        left.1.value.total_cmp(&right.1.value)
    };
    let (slow, least) = values().min_by(by_value)?;
    let (fast, most) = values().max_by(by_value)?;
    let named = |place: &str, value: &Value<'_>| match place == slow && slow == fast {
        true => value.series.clone(),
        false => place.to_owned(),
    };
    if most.value < least.value * 1.05 {
        return Some(format!("{} rows/s, whatever is turned", rounded(most.value)));
    }
    Some(format!(
        "From {} to {} rows/s: {:.1} times, from {} to {}",
        rounded(least.value),
        rounded(most.value),
        most.value / least.value,
        named(slow, least),
        named(fast, most)
    ))
}

/// What a panel shows, place by place.
pub(super) fn of_panel(panel: &Panel<'_>) -> Vec<String> {
    let duels = panel.groups.iter().filter_map(duel);
    duels
        .map(|duel| {
            format!(
                "{}: {} {}, {} {}; {:.1} times",
                duel.place,
                duel.own.series,
                rounded(duel.own.value),
                duel.baseline.series,
                rounded(duel.baseline.value),
                duel.ratio()
            )
        })
        .collect()
}
