//! Verdicts: what held a case back, in a sentence with its evidence, and the change to try.
//!
//! Pure functions over what a run found. [`facts`] takes the figures of the run in the middle,
//! [`meaning`] knows what a wait means and [`cause`] what helps; here they are weighed:
//!
//! 1. Commits that did not wait for the disk make a durable figure worthless: nothing else is said.
//! 2. What sessions waited for longest is the cause, if it is a real share of their time.
//! 3. A wait that is the shadow of busy processors (admission, yielding) means the processors.
//!    So does a read of a stock, if the processors are busy and the device is not.
//! 4. Commits that polled for their sync wait for the sync, however busy that makes the processors; so
//!    do sessions that have a processor each.
//! 5. Without waits: processors in use, then one writer at a time, then too few sessions.
//!
//! A check is judged by [`check`]: by processors and device, and by how it scales.
//!
//! Invariant: no sentence names a figure that is not in the outcome.

#[cfg(test)]
mod baseline_tests;
pub mod cause;
mod check;
mod facts;
mod meaning;
#[cfg(test)]
mod tests;

use crate::study::outcome::{CaseOutcome, StudyResult};
pub use cause::Cause;
use facts::Facts;

/// Sessions that wait for less of their time are not held back by it.
const WAIT_SHARE_MIN: f64 = 0.05;
/// The same when the processors are busy: they are the more likely cause.
const WAIT_SHARE_MIN_WHEN_BUSY: f64 = 0.25;
/// Processors are busy from here on, of what the sessions could use.
const BUSY: f64 = 0.8;
/// Below this nobody would say that the processors are the bound.
const HALF_BUSY: f64 = 0.5;
/// Sync time is the bound itself from this share of N/F on, however busy the processors are.
const BOUND_SHARE: f64 = 0.6;
/// A drain that moved less of the rows while they came has been outrun.
const KEPT_UP: f64 = 0.9;
/// One writer at a time: no more than so many commits for each sync.
const COMMITS_PER_SYNC_ALONE: f64 = 1.5;

/// What is known about the place of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surroundings {
    /// Processors.
    pub cpus: usize,
    /// Millions of bytes that the device can write a second; None where it was not measured.
    pub device_write_mb_per_s: Option<f64>,
    /// Millions of bytes that it reads a second; None likewise.
    pub device_read_mb_per_s: Option<f64>,
}

/// What held a case back.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Which bound.
    pub cause: Cause,
    /// Figures that show it, the strongest first.
    pub evidence: Vec<String>,
    /// What to try.
    pub change: String,
}

impl Verdict {
    /// All of it as text.
    pub fn text(&self) -> String {
        let evidence = self.evidence.join("; ");
        format!("{}: {evidence}. {}", self.cause.headline(), self.change)
    }
}

/// The verdict on a case; None if no run of it ended.
pub fn of(case: &CaseOutcome, surroundings: Surroundings) -> Option<Verdict> {
    if case.settings.is_check() {
        return check::of(case, surroundings);
    }
    let facts = Facts::of(case, surroundings)?;
    let cause = cause_of(case, &facts);
    Some(Verdict {
        evidence: facts.evidence(&cause),
        change: cause.change(&facts.for_advice()),
        cause,
    })
}

/// Gives every case that ran its verdict.
pub fn judge(result: &mut StudyResult) {
    let surroundings = Surroundings {
        cpus: result.machine.cpus,
        device_write_mb_per_s: result.device_write_mb_per_s,
        device_read_mb_per_s: result.device_read_mb_per_s,
    };
    let scaling: Vec<_> =
        result.cases.iter().map(|case| check::negative_scaling(case, &result.cases)).collect();
    for (case, scaling) in result.cases.iter_mut().zip(scaling) {
        case.verdict = of(case, surroundings).map(|verdict| verdict.text());
        case.negative_scaling = scaling;
    }
}

fn cause_of(case: &CaseOutcome, facts: &Facts<'_>) -> Cause {
    if case.not_synchronous {
        return Cause::NotSynchronous;
    }
    if case.target == "null" {
        return Cause::LoadGenerator;
    }
    if facts.share_moved().is_some_and(|share| share < KEPT_UP) {
        return Cause::Drain;
    }
    if facts.keeps_pace() {
        return Cause::Pace;
    }
    let is_busy = facts.busy >= BUSY;
    let share_min = if is_busy { WAIT_SHARE_MIN_WHEN_BUSY } else { WAIT_SHARE_MIN };
    match facts.longest().filter(|longest| longest.share >= share_min) {
        Some(longest)
            if longest.cause == Cause::SyncTime
                && is_busy
                && !facts.commits_polled()
                && !facts.have_a_processor_each() =>
        {
            let is_bound = facts.share_of_bound.is_some_and(|share| share >= BOUND_SHARE);
            if is_bound { Cause::SyncTime } else { Cause::Processor }
        }
        Some(longest) if longest.cause == Cause::LeafReads && facts.is_short_of_memory => {
            Cause::Memory
        }
        // Who was woken by a read waits for a processor: the device is not what is short.
        Some(longest)
            if longest.cause == Cause::StockReads
                && is_busy
                && !facts.device_reads_all_it_can() =>
        {
            Cause::Processor
        }
        // Whoever waits for the latch of an inner node waits for a holder that loads a leaf below.
        Some(longest)
            if longest.cause == Cause::StructureLatch
                && facts.is_short_of_memory
                && facts.of_memory() >= share_min =>
        {
            Cause::Memory
        }
        // Places inside the engine are as many as processors: whoever waits for one waits for them,
        // unless those who hold the places do not run.
        Some(longest)
            if longest.cause == Cause::Places
                && (facts.busy >= HALF_BUSY || facts.share_of(&Cause::Processor) >= share_min) =>
        {
            Cause::Processor
        }
        Some(longest) => longest.cause.clone(),
        None if facts.device_share.is_some_and(|share| share >= BUSY) => Cause::Device,
        None if is_busy && facts.sessions < facts.cpus as f64 => Cause::FewSessions,
        None if is_busy => Cause::Processor,
        None => without_waits(facts),
    }
}

/// For targets that tell no waits, and loads that did not wait. In Onrush commits share syncs: few of
/// them in each mean that there were few, not that one has to wait for another.
fn without_waits(facts: &Facts<'_>) -> Cause {
    let is_alone = facts.sessions > 1.0
        && !facts.is_onrush()
        && match facts.commits_per_sync {
            Some(commits) => facts.is_durable && commits <= COMMITS_PER_SYNC_ALONE,
            None => false,
        };
    if is_alone {
        return Cause::OneWriter;
    }
    if facts.is_durable && facts.share_of_bound.is_some_and(|share| share >= BOUND_SHARE) {
        return Cause::SyncTime;
    }
    // One processor's worth of work from many sessions.
    let processors_used = facts.cpu_percent / 100.0 * facts.cpus as f64;
    let is_one = facts.sessions > 1.0 && facts.cpus > 1 && processors_used <= 1.2;
    if !facts.is_durable && is_one && !facts.is_onrush() {
        return Cause::OneProcessor;
    }
    Cause::Unknown
}
