//! What baselines counted themselves, each under its own names. Onrush's statistics stand in sections of
//! their own.

use maud::{Markup, html};
use onrush_measure::units::{bytes, grouped, rounded};

use super::tables::scrolled;
use super::view::{middle, name_of, ran};
use crate::study::outcome::StudyResult;

/// The counters of the middle run of each baseline's case.
pub(super) fn of_baselines(result: &StudyResult) -> Markup {
    let baselines = ran(result).filter(|case| !case.target.starts_with("onrush"));
    let counted: Vec<_> = baselines
        .filter_map(|case| Some((case, middle(case)?)))
        .filter(|(_, repeat)| !repeat.counters.is_empty())
        .collect();
    if counted.is_empty() {
        return html! {};
    }
    html! {
        section #counted {
            h2 { "What the baselines counted" }
            p { "Their own counters, under their own names: increases during the load; levels as they "
                "stood at its end." }
            @for (case, repeat) in counted {
                details {
                    summary { (name_of(case, result)) }
                    (scrolled("What a baseline counted", html! {
                        table {
                            thead { tr { th { "counter" } th.number { "value" } th { "unit" } } }
                            tbody { @for counter in &repeat.counters { tr {
                                td { (counter.name) }
                                td.number { (value(counter.value, &counter.unit)) }
                                td {
                                    @if !matches!(counter.unit.as_str(), "1" | "bytes") { (counter.unit) }
                                    @if counter.is_level { " level" }
                                }
                            } } }
                        }
                    }))
                }
            }
        }
    }
}

fn value(value: f64, unit: &str) -> String {
    match unit {
        "bytes" if value >= 0.0 => bytes(value as u64),
        _ if value >= 0.0 && value.fract() == 0.0 => grouped(value as u64),
        _ => rounded(value),
    }
}
