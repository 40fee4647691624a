//! Totals as the tables that people who tune databases know.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::catalog::{PhaseClass, Wait, WaitClass};
use crate::totals::{LatchTotal, Totals, WaitTotal};

/// The report ends with the wait that makes its rows up to so many percent of all.
pub const REPORTED_PERCENT: f64 = 95.0;

/// One row of the wait report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitRow {
    /// Which wait.
    pub wait: Wait,
    /// Seconds waited.
    pub wait_s: f64,
    /// Seconds until what was waited for was there.
    pub resource_s: f64,
    /// Seconds from then until the thread ran.
    pub signal_s: f64,
    /// Waits.
    pub count: u64,
    /// The longest, in seconds.
    pub max_s: f64,
    /// Share of all waiting that is not idling, in percent.
    pub percent: f64,
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

impl Totals {
    /// Time waited, idling apart, in nanoseconds.
    pub fn waited_nanos(&self) -> u64 {
        self.busy_waits().fold(0, |sum, total| sum.saturating_add(total.nanos))
    }

    /// A wait's share of all waiting that is not idling, in percent; 0 for idle waits.
    pub fn wait_percent(&self, wait: Wait) -> f64 {
        let all = self.waited_nanos();
        if all == 0 || wait.class() == WaitClass::Idle {
            return 0.0;
        }
        self.wait(wait).nanos as f64 * 100.0 / all as f64
    }

    /// The waits that make up the top 95 % of all waiting, the longest first. Idle waits are left
    /// out.
    pub fn top_waits(&self) -> Vec<WaitRow> {
        let mut waits: Vec<_> = self.busy_waits().filter(|total| total.nanos > 0).collect();
        waits.sort_by_key(|total| std::cmp::Reverse(total.nanos));
        let mut percent_before = 0.0;
        let mut rows = Vec::new();
        for total in waits {
            if percent_before >= REPORTED_PERCENT {
                break;
            }
            let percent = self.wait_percent(total.wait);
            percent_before += percent;
            rows.push(WaitRow {
                wait: total.wait,
                wait_s: seconds(total.nanos),
                resource_s: seconds(total.resource_nanos()),
                signal_s: seconds(total.signal_nanos),
                count: total.count,
                max_s: seconds(total.nanos_max),
                percent,
            });
        }
        rows
    }

    /// [`Totals::top_waits`] as text, one line a wait under the classic headings and that of the longest
    /// wait; no line is longer than 80 characters.
    pub fn wait_report(&self) -> String {
        let rows = self.top_waits();
        let longest = rows.iter().map(|row| row.wait.name().len()).max().unwrap_or(0).max(8);
        let mut text = format!(
            "{:longest$} {:>8} {:>10} {:>8} {:>8} {:>9} {:>10}\n",
            "WaitType", "Wait_S", "Resource_S", "Signal_S", "Max_Ms", "WaitCount", "Percentage"
        );
        for row in rows {
            push_line(
                &mut text,
                format_args!(
                    "{:longest$} {:>8.2} {:>10.2} {:>8.2} {:>8.2} {:>9} {:>10.2}",
                    row.wait.name(),
                    row.wait_s,
                    row.resource_s,
                    row.signal_s,
                    1e3 * row.max_s,
                    row.count,
                    row.percent
                ),
            );
        }
        text
    }

    /// Requests and collisions by latch class as text; classes without any are left out.
    pub fn latch_report(&self) -> String {
        let mut text = format!(
            "{:14} {:>14} {:>12} {:>12} {:>9}\n",
            "Latch", "Requests", "Waits", "Wait_Ms", "Max_Ms"
        );
        let used = |total: &&LatchTotal| total.requests > 0 || total.spun.collisions > 0;
        for total in self.latches.iter().filter(used) {
            push_line(
                &mut text,
                format_args!(
                    "{:14} {:>14} {:>12} {:>12.2} {:>9.3}",
                    total.latch.name(),
                    total.requests.max(total.spun.collisions),
                    total.spun.collisions,
                    total.nanos as f64 / 1e6,
                    total.nanos_max as f64 / 1e6
                ),
            );
        }
        text
    }

    /// Collisions by name as text, those of latches and those of words without one; names without
    /// any are left out.
    pub fn spin_report(&self) -> String {
        let mut text = format!(
            "{:16} {:>12} {:>14} {:>12} {:>10} {:>10}\n",
            "Spin", "Collisions", "Spins", "Spins/Coll.", "Sleeps", "Backoffs"
        );
        let latches = self.latches.iter().map(|total| (total.latch.name(), &total.spun));
        let words = self.spins.iter().map(|total| (total.spin.name(), &total.spun));
        for (name, spun) in latches.chain(words) {
            let Some(spins_per_collision) = spun.spins_per_collision() else { continue };
            push_line(
                &mut text,
                format_args!(
                    "{:16} {:>12} {:>14} {:>12.1} {:>10} {:>10}",
                    name,
                    spun.collisions,
                    spun.spins,
                    spins_per_collision,
                    spun.sleeps,
                    spun.backoffs
                ),
            );
        }
        text
    }

    /// Estimated time by phase as text, idling left out; the last column is nanoseconds each.
    pub fn phase_report(&self) -> String {
        let busy = || {
            let phases = self.phases.iter();
            phases.filter(|total| total.phase.class() != PhaseClass::Idle && total.count > 0)
        };
        let all = busy().fold(0_u64, |sum, total| sum.saturating_add(total.nanos));
        let mut text =
            format!("{:10} {:>12} {:>10} {:>10}\n", "Phase", "Ms", "Percentage", "Ns_Each");
        for total in busy() {
            push_line(
                &mut text,
                format_args!(
                    "{:10} {:>12.1} {:>10.2} {:>10.0}",
                    total.phase.name(),
                    total.nanos as f64 / 1e6,
                    total.nanos as f64 * 100.0 / all.max(1) as f64,
                    total.nanos as f64 / total.count as f64
                ),
            );
        }
        text
    }

    fn busy_waits(&self) -> impl Iterator<Item = &WaitTotal> {
        self.waits.iter().filter(|total| total.wait.class() != WaitClass::Idle)
    }
}

fn push_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to a String cannot fail");
}
