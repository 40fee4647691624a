//! What targets tell about themselves, under neutral names: the same for every one of them.

use serde::{Deserialize, Serialize};

/// Log bytes written, headers and padding included.
pub const LOG_BYTES: &str = "LOG_BYTES";
/// Log bytes of records alone.
pub const LOG_RECORD_BYTES: &str = "LOG_RECORD_BYTES";
/// Blocks written to the log.
pub const LOG_BLOCKS: &str = "LOG_BLOCKS";
/// Durable writes of the log.
pub const LOG_SYNCS: &str = "LOG_SYNCS";
/// Checkpoints ended.
pub const CHECKPOINTS: &str = "CHECKPOINTS";
/// Rows that a drain has moved from the front to the table behind it.
pub const ROWS_MOVED: &str = "ROWS_MOVED";
/// The longest that a row can have waited for that, in milliseconds.
pub const DRAIN_BEHIND: &str = "DRAIN_BEHIND_MAX_MS";
/// Memory of the process that lies in large pages: what was obtained, not what was asked for.
pub const LARGE_PAGE_BYTES: &str = "LARGE_PAGE_BYTES";
/// What Onrush tells as levels: log not yet free, leaves, memory for leaves in use, places of leaves
/// in the data files in use.
pub(crate) const ONRUSH_LEVELS: [&str; 4] =
    ["LOG_SPACE_BYTES", "LEAVES", "FRAMES_USED", "SLOTS_USED"];

/// What Onrush tells over time only: mean and 99th percentile of the time of a write of its log, and
/// sessions that wait for it.
pub(crate) const ONRUSH_LOG_WRITES: [&str; 3] =
    ["LOG_WRITE_MEAN_US", "LOG_WRITE_P99_US", "LOG_QUEUE"];

/// One thing that was waited for, or collided on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitRecord {
    /// `wait`, `latch`, `spin`, or the target's own class (`LWLock`, `IO`, `wait/synch/mutex`).
    pub group: String,
    /// Its name in the target.
    pub name: String,
    /// How often; of sampled waits, how many samples.
    pub count: u64,
    /// How long, in seconds, over all sessions.
    pub seconds: f64,
    /// Until what was waited for was there.
    pub resource_s: Option<f64>,
    /// From then until the thread ran.
    pub signal_s: Option<f64>,
    /// The longest one.
    pub max_s: Option<f64>,
    /// Of latches: how often they were asked for, where that is counted.
    #[serde(default)]
    pub requests: Option<u64>,
    /// Collisions, spins, sleeps and backoffs of latches and spinlocks.
    pub spins: Option<Spins>,
    /// Whether it is idling, which is left out of percentages.
    pub is_idle: bool,
    /// Whether the time is estimated from samples.
    pub is_sampled: bool,
}

/// How threads collided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spins {
    /// Times that it was not free at once.
    pub collisions: u64,
    /// Tries in vain.
    pub spins: u64,
    /// Times that a thread slept.
    pub sleeps: u64,
    /// Times that a thread stepped back.
    pub backoffs: u64,
}

/// Processor time of one phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseRecord {
    /// Its name.
    pub name: String,
    /// How often it was gone through.
    pub count: u64,
    /// Its time, in seconds.
    pub seconds: f64,
    /// Whether it is idling.
    pub is_idle: bool,
}

/// One counter's value, or its increase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterRecord {
    /// Its name.
    pub name: String,
    /// Its unit: `bytes`, `pages`, `1` for plain counts.
    pub unit: String,
    /// Its value.
    pub value: f64,
    /// A level, such as memory in use: not to be subtracted.
    pub is_level: bool,
}

impl CounterRecord {
    pub(crate) fn counted(name: &str, unit: &str, value: u64) -> CounterRecord {
        CounterRecord { name: name.into(), unit: unit.into(), value: value as f64, is_level: false }
    }

    pub(crate) fn level(name: &str, unit: &str, value: u64) -> CounterRecord {
        CounterRecord { is_level: true, ..CounterRecord::counted(name, unit, value) }
    }
}

/// One counter over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterSeries {
    /// Its name.
    pub name: String,
    /// Its unit; of anything that is not a level, a second: `bytes/s`.
    pub unit: String,
    /// Seconds since the load began, and the value.
    pub points: Vec<(f64, f64)>,
}

/// A moment worth a line in a chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Seconds since the load began.
    pub at_s: f64,
    /// What happened.
    pub label: String,
}

/// Everything a target tells at one moment, counted since it was prepared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Waits.
    pub waits: Vec<WaitRecord>,
    /// Phases.
    pub phases: Vec<PhaseRecord>,
    /// Counters.
    pub counters: Vec<CounterRecord>,
}

impl Snapshot {
    /// What happened between two readings.
    #[must_use]
    pub fn since(mut self, earlier: &Snapshot) -> Snapshot {
        for wait in &mut self.waits {
            let same =
                |before: &&WaitRecord| before.group == wait.group && before.name == wait.name;
            if let Some(before) = earlier.waits.iter().find(same) {
                wait.subtract(before);
            }
        }
        for phase in &mut self.phases {
            if let Some(before) = earlier.phases.iter().find(|before| before.name == phase.name) {
                phase.count = phase.count.saturating_sub(before.count);
                phase.seconds = (phase.seconds - before.seconds).max(0.0);
            }
        }
        for counter in self.counters.iter_mut().filter(|counter| !counter.is_level) {
            let same = |before: &&CounterRecord| before.name == counter.name;
            if let Some(before) = earlier.counters.iter().find(same) {
                counter.value -= before.value;
            }
        }
        self.waits.retain(|wait| wait.count > 0 || wait.seconds > 0.0);
        self
    }

    /// A counter's value.
    pub fn counter(&self, name: &str) -> Option<f64> {
        self.counters.iter().find(|counter| counter.name == name).map(|counter| counter.value)
    }
}

impl WaitRecord {
    /// Adds what another instance of the same target counted.
    pub(crate) fn add(&mut self, other: &WaitRecord) {
        let sum = |mine: Option<f64>, other: Option<f64>| match (mine, other) {
            (Some(mine), Some(other)) => Some(mine + other),
            (mine, other) => mine.or(other),
        };
        self.count += other.count;
        self.seconds += other.seconds;
        self.resource_s = sum(self.resource_s, other.resource_s);
        self.signal_s = sum(self.signal_s, other.signal_s);
        self.max_s = self.max_s.into_iter().chain(other.max_s).reduce(f64::max);
        if let (Some(mine), Some(other)) = (&mut self.requests, other.requests) {
            *mine += other;
        }
        if let (Some(mine), Some(other)) = (&mut self.spins, other.spins) {
            mine.collisions += other.collisions;
            mine.spins += other.spins;
            mine.sleeps += other.sleeps;
            mine.backoffs += other.backoffs;
        }
    }

    fn subtract(&mut self, before: &WaitRecord) {
        let less = |now: Option<f64>, before: Option<f64>| match (now, before) {
            (Some(now), Some(before)) => Some((now - before).max(0.0)),
            (now, _) => now,
        };
        self.count = self.count.saturating_sub(before.count);
        self.seconds = (self.seconds - before.seconds).max(0.0);
        self.resource_s = less(self.resource_s, before.resource_s);
        self.signal_s = less(self.signal_s, before.signal_s);
        // The longest of all may be an earlier one; none of these was longer than all of them.
        self.max_s = self.max_s.map(|max| max.min(self.seconds));
        if let (Some(now), Some(before)) = (&mut self.requests, before.requests) {
            *now = now.saturating_sub(before);
        }
        if let (Some(now), Some(before)) = (&mut self.spins, before.spins) {
            now.collisions = now.collisions.saturating_sub(before.collisions);
            now.spins = now.spins.saturating_sub(before.spins);
            now.sleeps = now.sleeps.saturating_sub(before.sleeps);
            now.backoffs = now.backoffs.saturating_sub(before.backoffs);
        }
    }
}

/// The waits that make up the top 95 % of those that are not idling, the longest first, each with
/// its percentage. Latches and spins, whose time is part of a wait, are left out.
pub fn top_waits(waits: &[WaitRecord]) -> Vec<(&WaitRecord, f64)> {
    let counts = |wait: &&WaitRecord| {
        !wait.is_idle && wait.seconds > 0.0 && !matches!(wait.group.as_str(), "latch" | "spin")
    };
    let mut busy: Vec<_> = waits.iter().filter(counts).collect();
    busy.sort_by(|left, right| right.seconds.total_cmp(&left.seconds));
    let all: f64 = busy.iter().map(|wait| wait.seconds).sum();
    let mut percent_before = 0.0;
    let mut top = Vec::new();
    for wait in busy {
        if percent_before >= 95.0 {
            break;
        }
        let percent = 100.0 * wait.seconds / all;
        percent_before += percent;
        top.push((wait, percent));
    }
    top
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(name: &str, seconds: f64, count: u64) -> WaitRecord {
        WaitRecord { group: "wait".into(), name: name.into(), count, seconds, ..Default::default() }
    }

    #[test]
    fn the_difference_of_two_readings_leaves_out_what_did_not_happen() {
        let level =
            CounterRecord { name: "used".into(), value: 7.0, is_level: true, ..Default::default() };
        let earlier = Snapshot {
            waits: vec![wait("a", 1.0, 10), wait("b", 2.0, 5)],
            counters: vec![
                CounterRecord { name: "rows".into(), value: 100.0, ..Default::default() },
                level.clone(),
            ],
            ..Snapshot::default()
        };
        let mut later = earlier.clone();
        later.waits[0] = wait("a", 1.5, 14);
        later.counters[0].value = 150.0;
        let between = later.since(&earlier);
        assert_eq!(between.waits, vec![wait("a", 0.5, 4)]);
        assert_eq!(between.counter("rows"), Some(50.0));
        assert_eq!(between.counter("used"), Some(7.0));
    }

    #[test]
    fn the_longest_wait_of_a_difference_is_no_longer_than_all_of_it() {
        let at = |seconds, requests| WaitRecord {
            max_s: Some(0.9),
            requests: Some(requests),
            ..wait("LEAF", seconds, 10)
        };
        let snapshot = |wait| Snapshot { waits: vec![wait], ..Snapshot::default() };
        let between = snapshot(at(1.25, 30)).since(&snapshot(at(1.0, 20)));
        assert_eq!((between.waits[0].max_s, between.waits[0].requests), (Some(0.25), Some(10)));
    }

    #[test]
    fn the_top_ends_at_ninety_five_percent_and_leaves_idling_out() {
        let mut idle = wait("idle", 1000.0, 1);
        idle.is_idle = true;
        let waits = [wait("a", 1.0, 1), wait("b", 90.0, 1), idle, wait("c", 9.0, 1)];
        let top: Vec<_> = top_waits(&waits).iter().map(|(wait, _)| wait.name.clone()).collect();
        assert_eq!(top, ["b", "c"]);
    }
}
