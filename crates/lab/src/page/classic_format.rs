//! Waits, collisions and phases of one run as tables, in the format of the classic studies.

use maud::{Markup, html};
use onrush_measure::units::{grouped, rounded};

use super::tables::scrolled;
use super::view::name_of;
use crate::study::outcome::{CaseOutcome, Repeat, StudyResult};
use crate::target::record::top_waits;

/// Of latches all of them, of spins those that are counted.
const LATCH_COLUMNS: &[&str] = &[
    "Requests",
    "Collisions",
    "Wait_Ms",
    "Max_Ms",
    "Spins",
    "Spins per collision",
    "Sleeps",
    "Backoffs",
];

fn milliseconds(seconds: Option<f64>) -> String {
    seconds.map_or("\u{2013}".to_owned(), |seconds| format!("{:.2}", 1e3 * seconds))
}

/// The waits of a run in the classic format, and the collisions behind them.
pub(super) fn waits(name: &str, repeat: &Repeat) -> Markup {
    let optional = |value: Option<f64>| value.map_or("\u{2013}".to_owned(), |s| format!("{s:.2}"));
    let collided = |wait: &&crate::target::record::WaitRecord| {
        wait.spins.is_some_and(|spins| spins.collisions > 0)
    };
    let is_sampled = repeat.waits.iter().any(|wait| wait.is_sampled);
    let table = html! {
        table.figures {
            thead { tr {
                th { "WaitType" }
                @for name in ["Wait_S", "Resource_S", "Signal_S", "WaitCount", "Percentage"] {
                    th.number { (name) }
                }
            } }
            tbody { @for (wait, percent) in top_waits(&repeat.waits) {
                tr {
                    td { (wait.name) }
                    td.number { (format!("{:.2}", wait.seconds)) }
                    td.number { (optional(wait.resource_s)) }
                    td.number { (optional(wait.signal_s)) }
                    td.number { (grouped(wait.count)) }
                    td.number { (format!("{percent:.2}")) }
                }
            } }
        }
        @if repeat.waits.iter().any(|wait| collided(&wait)) {
            table.figures {
                thead { tr {
                    th { "Latch or spin" }
                    @for name in LATCH_COLUMNS { th.number { (name) } }
                } }
                tbody { @for wait in repeat.waits.iter().filter(collided) {
                    @let spins = wait.spins.unwrap_or_default();
                    tr {
                        td { (wait.name) }
                        td.number { (wait.requests.map_or("\u{2013}".to_owned(), grouped)) }
                        td.number { (grouped(spins.collisions)) }
                        td.number { (milliseconds(wait.requests.map(|_| wait.seconds))) }
                        td.number { (milliseconds(wait.max_s)) }
                        td.number { (grouped(spins.spins)) }
                        td.number { (rounded(spins.spins as f64 / spins.collisions.max(1) as f64)) }
                        td.number { (grouped(spins.sleeps)) }
                        td.number { (grouped(spins.backoffs)) }
                    }
                } }
            }
        }
    };
    html! {
        details {
            summary { (name) }
            @if is_sampled { p.note { "Times are estimated from samples." } }
            (scrolled("Waits", table))
        }
    }
}

/// Phases as numbers.
pub(super) fn phases(cases: &[(&CaseOutcome, &Repeat)], result: &StudyResult) -> Markup {
    let one = |repeat: &Repeat| {
        let busy = || repeat.phases.iter().filter(|phase| !phase.is_idle && phase.seconds > 0.0);
        let all: f64 = busy().map(|phase| phase.seconds).sum();
        html! {
            table.figures {
                thead { tr { th { "Phase" }
                    @for name in ["ms", "ns per row", "%"] { th.number { (name) } } } }
                tbody { @for phase in busy() {
                    tr {
                        td { (phase.name) }
                        td.number { (rounded(1e3 * phase.seconds)) }
                        td.number { (rounded(1e9 * phase.seconds / (repeat.rows as f64).max(1.0))) }
                        td.number { (format!("{:.1}", 100.0 * phase.seconds / all)) }
                    }
                } }
            }
        }
    };
    html! {
        @for (case, repeat) in cases {
            details { summary { (name_of(case, result)) } (scrolled("Phases", one(repeat))) }
        }
    }
}
