//! Totals in the text format that Prometheus reads.
//!
//! Written by hand: the totals are complete sums already, so there is nothing for a client library
//! to hold. Times are in seconds and counts in counters, as the format's conventions ask.

use std::fmt::Write;

use crate::catalog::WaitClass;
use crate::numbers::bucket_end;
use crate::totals::{Collisions, Totals, WaitTotal};

/// Text in the exposition format, family by family.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

/// What kind of numbers a family has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by upper end.
    Histogram,
}

impl MetricKind {
    fn name(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

impl Exposition {
    /// Begins a family. Names and texts are from the catalog and need no escapes.
    pub fn family(&mut self, name: &str, kind: MetricKind, help: &str) {
        let kind = kind.name();
        self.push(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// One number of the family begun last.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
        match labels.is_empty() {
            true => self.push(format_args!("{name} {value}\n")),
            false => self.push(format_args!("{name}{{{}}} {value}\n", labels.join(","))),
        }
    }

    /// A family of one number.
    pub fn single(&mut self, name: &str, kind: MetricKind, help: &str, value: f64) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.text
    }

    fn push(&mut self, line: std::fmt::Arguments<'_>) {
        self.text.write_fmt(line).expect("writing to a String cannot fail");
    }

    /// All of the totals.
    pub fn totals(&mut self, totals: &Totals) {
        self.waits(totals);
        self.latches(totals);
        let name = "onrush_events_total";
        self.family(name, MetricKind::Counter, "Everything that is counted, by name.");
        for total in &totals.counters {
            self.sample(name, &[("counter", total.counter.name())], total.value as f64);
        }
        let name = "onrush_phase_seconds_total";
        self.family(name, MetricKind::Counter, "Time by phase, waits left out.");
        for total in &totals.phases {
            self.sample(name, &[("phase", total.phase.name())], total.nanos as f64 / 1e9);
        }
        let help = "Time that recorders existed, one beside the other.";
        let recorded = totals.recorded_nanos as f64 / 1e9;
        self.single("onrush_recorded_seconds_total", MetricKind::Counter, help, recorded);
    }

    fn waits(&mut self, totals: &Totals) {
        let name = "onrush_wait_seconds";
        self.family(name, MetricKind::Histogram, "Waits by name, with their times.");
        for total in &totals.waits {
            self.wait_histogram(name, total);
        }
        let name = "onrush_wait_signal_seconds_total";
        let help = "The part of waits after what was waited for was there.";
        self.family(name, MetricKind::Counter, help);
        for total in &totals.waits {
            self.sample(name, &[("wait", total.wait.name())], total.signal_nanos as f64 / 1e9);
        }
        let name = "onrush_wait_max_seconds";
        self.family(name, MetricKind::Gauge, "The longest wait of each name.");
        for total in &totals.waits {
            self.sample(name, &[("wait", total.wait.name())], total.nanos_max as f64 / 1e9);
        }
    }

    /// Every fourth bucket from a microsecond on: enough for a graph, and few enough to keep.
    fn wait_histogram(&mut self, name: &str, total: &WaitTotal) {
        let (wait, idle) = (total.wait.name(), total.wait.class() == WaitClass::Idle);
        let idle = if idle { "true" } else { "false" };
        let bucket_name = format!("{name}_bucket");
        let mut below = 0;
        for (bucket, count) in total.histogram.iter().enumerate() {
            below += count;
            if bucket >= 9 && (bucket - 9).is_multiple_of(4) && bucket + 1 < total.histogram.len() {
                let end = (bucket_end(bucket) + 1) as f64 / 1e9;
                let labels = [("wait", wait), ("idle", idle), ("le", &end.to_string())];
                self.sample(&bucket_name, &labels, below as f64);
            }
        }
        let labels = [("wait", wait), ("idle", idle), ("le", "+Inf")];
        self.sample(&bucket_name, &labels, total.count as f64);
        let labels = [("wait", wait), ("idle", idle)];
        self.sample(&format!("{name}_sum"), &labels, total.nanos as f64 / 1e9);
        self.sample(&format!("{name}_count"), &labels, total.count as f64);
    }

    fn latches(&mut self, totals: &Totals) {
        let name = "onrush_latch_requests_total";
        self.family(name, MetricKind::Counter, "Latches asked for, by class.");
        for total in &totals.latches {
            self.sample(name, &[("latch", total.latch.name())], total.requests as f64);
        }
        let name = "onrush_latch_wait_seconds_total";
        self.family(name, MetricKind::Counter, "Time until a latch was had, by class.");
        for total in &totals.latches {
            self.sample(name, &[("latch", total.latch.name())], total.nanos as f64 / 1e9);
        }
        let name = "onrush_latch_max_seconds";
        self.family(name, MetricKind::Gauge, "The longest wait for a latch, by class.");
        for total in &totals.latches {
            self.sample(name, &[("latch", total.latch.name())], total.nanos_max as f64 / 1e9);
        }
        let latches = totals.latches.iter().map(|total| (total.latch.name(), total.spun));
        let words = totals.spins.iter().map(|total| (total.spin.name(), total.spun));
        let all: Vec<(&str, Collisions)> = latches.chain(words).collect();
        type Column = fn(&Collisions) -> u64;
        let columns: [(&str, &str, Column); 4] = [
            ("collisions", "Times that somebody else was there.", |spun| spun.collisions),
            ("spins", "Looks in vain.", |spun| spun.spins),
            ("backoffs", "Times that a thread gave its processor away.", |spun| spun.backoffs),
            ("sleeps", "Times that a thread slept.", |spun| spun.sleeps),
        ];
        for (column, help, value) in columns {
            let name = format!("onrush_spin_{column}_total");
            self.family(&name, MetricKind::Counter, help);
            for (spin, spun) in &all {
                self.sample(&name, &[("spin", spin)], value(spun) as f64);
            }
        }
    }
}
