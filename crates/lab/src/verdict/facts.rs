//! The figures of a run that a verdict weighs, and how they are told.

use onrush::KeyStrategy;
use onrush_measure::classic_table::CLASSIC_ROW_BYTES;
use onrush_measure::units::{elapsed, micros, rounded};
use onrush_waits::{LatchClass, Spin};

use super::cause::{Cause, ForAdvice};
use super::meaning::Load;
use super::{BUSY, Surroundings};
use crate::study::Setting;
use crate::study::outcome::{CaseOutcome, Repeat};
use crate::target::record::{DRAIN_BEHIND, ROWS_MOVED, WaitRecord};

/// So many other waits are named beside the longest.
const WAITS_NAMED: usize = 3;

/// From this share of the pace on it is the pace that holds sessions back.
const PACE_SHARE: f64 = 0.95;

/// What sessions waited for, under one cause.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Waited {
    pub(super) cause: Cause,
    pub(super) seconds: f64,
    /// Of the time of all sessions.
    pub(super) share: f64,
    /// Names and seconds, the longest first.
    pub(super) waits: Vec<(String, f64)>,
}

/// What counts.
pub(super) struct Facts<'c> {
    pub(super) repeat: &'c Repeat,
    pub(super) sessions: f64,
    pub(super) cpus: usize,
    pub(super) cpu_percent: f64,
    /// Processor time over what the sessions could use at most.
    pub(super) busy: f64,
    pub(super) is_durable: bool,
    pub(super) is_short_of_memory: bool,
    has_front: bool,
    rows_per_s_max: u64,
    pub(super) commits_per_sync: Option<f64>,
    pub(super) share_of_bound: Option<f64>,
    /// Bytes written over what the device can write.
    pub(super) device_share: Option<f64>,
    /// Bytes read over what the device can read.
    device_read_share: Option<f64>,
    /// The longest first.
    pub(super) waited: Vec<Waited>,
    advice: ForAdvice,
}

impl<'c> Facts<'c> {
    pub(super) fn of(case: &'c CaseOutcome, around: Surroundings) -> Option<Facts<'c>> {
        let repeat = case.repeats.get(case.summary.as_ref()?.middle)?;
        let settings = &case.settings;
        let sessions = settings.number(Setting::Sessions).max(1);
        let cpus = around.cpus.max(1);
        let usable = (sessions as f64).min(cpus as f64) / cpus as f64;
        let evicted = repeat
            .counters
            .iter()
            .any(|counter| counter.name.contains("EVICTION") && counter.value > 0.0);
        let device = repeat.device.zip(around.device_write_mb_per_s);
        let device_read = repeat.device.zip(around.device_read_mb_per_s);
        let rows_before =
            settings.number(Setting::PreloadRows) + settings.number(Setting::WarmupRows);
        let table_bytes = (repeat.rows + rows_before).saturating_mul(CLASSIC_ROW_BYTES);
        let busy = repeat.cpu_percent / 100.0 / usable;
        let is_onrush = case.target.starts_with("onrush");
        let is_durable = settings.is_durable();
        let load = Load { is_onrush, is_durable, is_busy: busy >= BUSY };
        let is_tasks = settings.is(Setting::Driver, "tasks");
        let key = settings.key();
        Some(Facts {
            repeat,
            sessions: sessions as f64,
            cpus,
            cpu_percent: repeat.cpu_percent,
            busy,
            is_durable,
            is_short_of_memory: evicted,
            has_front: settings.is_on(Setting::Front),
            rows_per_s_max: settings.number(Setting::RowsPerSecondMax),
            commits_per_sync: repeat.commits_per_sync,
            share_of_bound: repeat.share_of_bound,
            device_share: device.map(|(used, most)| used.write_mb_per_s / most.max(1e-9)),
            device_read_share: device_read.map(|(used, most)| used.read_mb_per_s / most.max(1e-9)),
            waited: waited(repeat, sessions as f64, load),
            advice: ForAdvice {
                is_onrush,
                is_durable,
                sessions,
                rows_per_commit: settings.number(Setting::RowsPerCommit),
                is_shared_edge: settings.is(Setting::SequentialKeys, "shared-edge"),
                is_tasks,
                is_spread: matches!(key, KeyStrategy::SessionOffset | KeyStrategy::UuidV4),
                is_random: key == KeyStrategy::UuidV4,
                keeps_stocks: settings.is(Setting::PastMemory, "auto"),
                is_far_past_memory: table_bytes > 2 * settings.number(Setting::CacheBytes),
            },
        })
    }

    /// Whether waiting commits polled, or their tasks did: processors are busy with looking then, and
    /// that is no bound.
    pub(super) fn commits_polled(&self) -> bool {
        let looked =
            |wait: &WaitRecord| wait.group == "spin" && wait.name == Spin::CommitGroup.name();
        let any_looked = self.repeat.waits.iter().any(|wait| looked(wait) && wait.count > 0);
        any_looked || self.advice.is_tasks
    }

    /// Whether no session has to wait for another one's processor: whoever wrote the log was busy then,
    /// and not in the way of anybody.
    pub(super) fn have_a_processor_each(&self) -> bool {
        self.sessions <= self.cpus as f64
    }

    pub(super) fn longest(&self) -> Option<&Waited> {
        self.waited.first()
    }

    pub(super) fn is_onrush(&self) -> bool {
        self.advice.is_onrush
    }

    /// Of the time of all sessions, what was waited under a cause.
    pub(super) fn share_of(&self, cause: &Cause) -> f64 {
        let waited = self.waited.iter().find(|waited| waited.cause == *cause);
        waited.map_or(0.0, |waited| waited.share)
    }

    /// The same under those that come with too little memory.
    pub(super) fn of_memory(&self) -> f64 {
        let causes =
            [Cause::Memory, Cause::LeafReads, Cause::StockReads, Cause::Flushes, Cause::Device];
        causes.iter().map(|cause| self.share_of(cause)).sum()
    }

    /// Whether the device, and not who waits for it, decides how long a read takes.
    pub(super) fn device_reads_all_it_can(&self) -> bool {
        self.device_read_share.is_some_and(|share| share >= BUSY)
    }

    pub(super) fn for_advice(&self) -> ForAdvice {
        self.advice
    }

    /// The figures that show a cause, the strongest first.
    pub(super) fn evidence(&self, cause: &Cause) -> Vec<String> {
        let mut said = Vec::new();
        if *cause == Cause::NotSynchronous {
            said.extend(self.commits_per_sync.map(|commits| {
                format!(
                    "{} commits for each sync, but only {}",
                    rounded(commits),
                    sessions(self.sessions)
                )
            }));
            return said;
        }
        if *cause == Cause::LoadGenerator {
            let cpu_ns = 1e9 * self.repeat.cpu_s / (self.repeat.rows as f64).max(1.0);
            said.push(format!("{} ns a row", rounded(1e9 / self.repeat.rows_per_s.max(1e-9))));
            said.push(format!("{} ns of a processor's time", rounded(cpu_ns)));
        }
        said.extend(self.of_drain());
        said.extend(self.of_waits());
        said.extend(self.of_shared_edge());
        if self.is_durable {
            said.extend(self.of_commits());
        }
        said.push(format!("CPU {} % of {}", rounded(self.cpu_percent), processors(self.cpus)));
        if matches!(cause, Cause::Processor | Cause::Places | Cause::FewSessions) {
            said.extend(self.of_phases());
        }
        let is_of_device = matches!(
            cause,
            Cause::Device
                | Cause::Memory
                | Cause::LeafReads
                | Cause::StockReads
                | Cause::Flushes
                | Cause::LogSpace
        );
        if is_of_device {
            said.extend(self.of_device());
        }
        said
    }

    fn of_waits(&self) -> Option<String> {
        let waits = self.waited.iter().flat_map(|waited| waited.waits.iter());
        let mut waits: Vec<_> = waits.collect();
        waits.sort_by(|left, right| right.1.total_cmp(&left.1));
        let time_s = self.sessions * self.repeat.elapsed_s;
        let told = waits.iter().map(|(name, seconds)| (name, 100.0 * seconds / time_s.max(1e-9)));
        let told: Vec<String> = told
            .filter(|(_, percent)| *percent >= 1.0)
            .take(WAITS_NAMED)
            .map(|(name, percent)| format!("{name} {percent:.0} %"))
            .collect();
        let sessions = if self.sessions > 1.0 { "sessions'" } else { "the session's" };
        (!told.is_empty()).then(|| format!("{} of {sessions} time", told.join(", ")))
    }

    /// How often sessions met on the last leaf, where they are all sent there. Few at a time are inside the
    /// engine: with few processors they spin for each other, and hardly wait.
    fn of_shared_edge(&self) -> Option<String> {
        let is_leaf =
            |wait: &&WaitRecord| wait.group == "latch" && wait.name == LatchClass::Leaf.name();
        let leaf = self.repeat.waits.iter().find(is_leaf).filter(|_| self.advice.is_shared_edge)?;
        let percent = 100.0 * leaf.count as f64 / (self.repeat.rows as f64).max(1.0);
        Some(format!("{} % of the rows met another at their leaf", rounded(percent)))
    }

    fn of_commits(&self) -> Vec<String> {
        let bound = self.share_of_bound.map(|share| {
            format!(
                "{} % of the bound N/F ({}, {} a sync)",
                rounded(100.0 * share),
                sessions(self.sessions),
                micros(self.repeat.sync_time_us.p50_us)
            )
        });
        let commits = self
            .commits_per_sync
            .map(|commits| format!("{} commits for each sync", rounded(commits)));
        bound.into_iter().chain(commits).collect()
    }

    /// Of the rows in a front, how many the drain had moved when the last was acknowledged.
    pub(super) fn share_moved(&self) -> Option<f64> {
        if !self.has_front {
            return None;
        }
        let rows = (self.repeat.rows as f64).max(1.0);
        Some(self.counter(ROWS_MOVED)? / rows)
    }

    /// Whether sessions went as fast as they were told to.
    pub(super) fn keeps_pace(&self) -> bool {
        let told = self.rows_per_s_max as f64;
        told > 0.0 && self.repeat.rows_per_s >= PACE_SHARE * told
    }

    fn counter(&self, name: &str) -> Option<f64> {
        let counter = self.repeat.counters.iter().find(|counter| counter.name == name)?;
        Some(counter.value)
    }

    fn of_drain(&self) -> Option<String> {
        let moved = self.share_moved()?;
        let behind = self.counter(DRAIN_BEHIND).map_or(String::new(), |behind_ms| {
            format!(", each at most {} ms after its insert", rounded(behind_ms))
        });
        Some(format!(
            "{} % of the rows were moved when the last was acknowledged{behind}",
            rounded((100.0 * moved).min(100.0))
        ))
    }

    /// The phase of an insert that takes most of the processor time.
    fn of_phases(&self) -> Option<String> {
        let phases = self.repeat.phases.iter().filter(|phase| !phase.is_idle);
        let all: f64 = phases.clone().map(|phase| phase.seconds).sum();
        let most = phases.max_by(|left, right| left.seconds.total_cmp(&right.seconds))?;
        (all > 0.0).then(|| {
            let percent = 100.0 * most.seconds / all;
            format!("most of it, {percent:.0} %, in the phase {}", most.name)
        })
    }

    fn of_device(&self) -> Option<String> {
        let device = self.repeat.device?;
        let share = self
            .device_share
            .map_or(String::new(), |share| format!(" ({:.0} % of what it can)", 100.0 * share));
        Some(format!(
            "the device wrote {} MB/s{share} and read {} MB/s for {}",
            rounded(device.write_mb_per_s),
            rounded(device.read_mb_per_s),
            elapsed(std::time::Duration::from_secs_f64(self.repeat.elapsed_s.max(0.0)))
        ))
    }
}

fn sessions(count: f64) -> String {
    if count > 1.0 { format!("{count} sessions") } else { "1 session".to_owned() }
}

fn processors(count: usize) -> String {
    if count == 1 { "1 processor".to_owned() } else { format!("{count} processors") }
}

/// Waits of sessions, summed by what they mean. Latches and spins are part of a wait, and left out.
fn waited(repeat: &Repeat, sessions: f64, load: Load) -> Vec<Waited> {
    let time_s = (sessions * repeat.elapsed_s).max(1e-9);
    let mut all: Vec<Waited> = Vec::new();
    for wait in &repeat.waits {
        let is_part = matches!(wait.group.as_str(), "latch" | "spin");
        if wait.is_idle || is_part || wait.seconds <= 0.0 {
            continue;
        }
        let Some(cause) = Cause::of_wait(wait, load) else { continue };
        let place = all.iter().position(|one| one.cause == cause).unwrap_or_else(|| {
            all.push(Waited { cause, seconds: 0.0, share: 0.0, waits: Vec::new() });
            all.len() - 1
        });
        all[place].seconds += wait.seconds;
        all[place].share = all[place].seconds / time_s;
        all[place].waits.push((wait.name.clone(), wait.seconds));
    }
    all.sort_by(|left, right| right.seconds.total_cmp(&left.seconds));
    all
}
