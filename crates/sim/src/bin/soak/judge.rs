//! What the numbers of a run say: flat or not, reclaimed or not.
//!
//! Trends compare the second quarter with the last, by medians: the first is for warming up. Only
//! the second half of each round counts, since a process that has just begun has not taken its
//! memory yet.

use serde::Serialize;

use super::rounds::Run;
use super::samples::Sample;
use super::settings::Settings;
use super::tables::ROW_BYTES_MEAN;

pub(crate) const QUARTERS: usize = 4;
/// Fewer settled samples of a quarter than this say nothing.
const SAMPLES_MIN: usize = 20;
/// Trends of shorter runs are those of their beginning.
const TREND_SECONDS_MIN: f64 = 55.0;
/// A last quarter may be larger than the second by this part and by so much.
const GROWTH: f64 = 0.10;
const MEMORY_SLACK_BYTES: f64 = 4.0 * MIB;
const COUNT_SLACK: f64 = 4.0;
/// Leaves and data follow the waves of rows, which do not end with the quarters.
const WAVE_GROWTH: f64 = 0.25;
const LEAVES_SLACK: f64 = 64.0;
/// Data files grow in steps of this size.
const DATA_SLACK_BYTES: f64 = 16.0 * MIB;
/// Within a round the last quarter may have this much more memory than the one before.
const ROUND_GROWTH: f64 = 0.02;
const ROUND_SLACK_BYTES: f64 = 1.0 * MIB;
/// In shorter rounds memory still grows to what the work needs: most of it within the first minute.
const ROUND_SECONDS_MIN: f64 = 120.0;
/// Data files may be so many times as large as all rows at their most: leaves that are half full
/// after deletes, each twice while a checkpoint writes it.
const DATA_MULTIPLE: f64 = 8.0;
const MIB: f64 = 1_048_576.0;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Holds,
    Fails,
    /// The run was too short to tell.
    TooShort,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Judgement {
    pub(crate) what: &'static str,
    pub(crate) measured: String,
    pub(crate) allowed: String,
    pub(crate) verdict: Verdict,
}

/// A quarter of the run, or a minute of it: medians of its settled samples, and the rows changed.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Stretch {
    pub(crate) samples: usize,
    pub(crate) resident_bytes: f64,
    pub(crate) descriptors: f64,
    pub(crate) threads: f64,
    pub(crate) data_bytes: f64,
    pub(crate) log_bytes: f64,
    pub(crate) leaves: f64,
    pub(crate) slots: f64,
    pub(crate) live_rows: f64,
    /// Rows inserted, updated or deleted a second, restarts and verifications included.
    pub(crate) rows_per_s: f64,
}

/// The run in stretches of equal length.
pub(crate) fn stretches(run: &Run, count: usize) -> Vec<Stretch> {
    let seconds = run.seconds.max(1e-3) / count as f64;
    let place = |sample: &Sample| ((sample.at / seconds) as usize).min(count - 1);
    let stretch = |wanted: usize| {
        let inside = run.samples.iter().filter(|sample| place(sample) == wanted);
        let settled: Vec<&Sample> = inside.filter(|sample| is_settled(sample)).collect();
        let middle = |number: &dyn Fn(&Sample) -> u64| median(settled.iter().map(|s| number(s)));
        Stretch {
            samples: settled.len(),
            resident_bytes: middle(&|sample| sample.resident_bytes),
            descriptors: middle(&|sample| sample.descriptors),
            threads: middle(&|sample| sample.threads),
            data_bytes: middle(&|sample| sample.data_bytes),
            log_bytes: middle(&|sample| sample.log_bytes),
            leaves: middle(&|sample| sample.told.leaves),
            slots: middle(&|sample| sample.told.slots),
            live_rows: middle(&|sample| sample.told.live_rows),
            rows_per_s: changed(run, &|sample| place(sample) == wanted) as f64 / seconds,
        }
    };
    (0..count).map(stretch).collect()
}

/// Whether the process has been working for a while, and said so.
fn is_settled(sample: &Sample) -> bool {
    sample.part >= 0.5 && sample.told.leaves > 0
}

/// Rows changed from sample to sample, by the later one's place.
fn changed(run: &Run, is_inside: &dyn Fn(&Sample) -> bool) -> u64 {
    let rows = |sample: &Sample| sample.told.inserted + sample.told.updated + sample.told.deleted;
    let before = std::iter::once(None).chain(run.samples.iter().map(Some));
    let pairs = before.zip(&run.samples).filter(|(_, later)| is_inside(later));
    let grown = pairs.map(|(earlier, later)| match earlier {
        Some(earlier) if earlier.round == later.round => rows(later).saturating_sub(rows(earlier)),
        _ => rows(later),
    });
    grown.sum()
}

fn median(numbers: impl Iterator<Item = u64>) -> f64 {
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    numbers.get(numbers.len() / 2).map_or(0.0, |number| *number as f64)
}

/// All judgements of a run.
pub(crate) fn judge(run: &Run, settings: &Settings) -> Vec<Judgement> {
    let quarters = stretches(run, QUARTERS);
    let mut all = vec![nothing_lost(run), checks_clean(run)];
    let flat = |what, number: fn(&Stretch) -> f64, growth, slack, unit| {
        trend(run, &quarters, what, number, growth, slack, unit)
    };
    let memory: fn(&Stretch) -> f64 = |stretch| stretch.resident_bytes;
    all.push(flat("memory is flat over the run", memory, GROWTH, MEMORY_SLACK_BYTES, Unit::Mib));
    all.push(memory_within_rounds(run));
    all.push(flat("descriptors are flat", |s| s.descriptors, GROWTH, COUNT_SLACK, Unit::One));
    all.push(flat("threads are flat", |s| s.threads, GROWTH, COUNT_SLACK, Unit::One));
    all.push(flat("leaves are flat", |s| s.leaves, WAVE_GROWTH, LEAVES_SLACK, Unit::One));
    let data: fn(&Stretch) -> f64 = |stretch| stretch.data_bytes;
    all.push(flat("data files are flat", data, WAVE_GROWTH, DATA_SLACK_BYTES, Unit::Mib));
    all.push(space_reclaimed(run));
    all.push(log_bounded(run, settings));
    all
}

fn nothing_lost(run: &Run) -> Judgement {
    let seen = &run.seen;
    Judgement {
        what: "nothing lost, nothing wrong",
        measured: match &run.failure {
            Some(failure) => failure.lines().next().unwrap_or_default().to_owned(),
            None => format!(
                "{} restarts, {} rows read and compared; {} of {} operations acknowledged without \
                 durability lost by kills",
                run.rounds, seen.rows, seen.lost_delayed, seen.acknowledged
            ),
        },
        allowed: "each session has the state after one of its operations, none before the last \
                  that was acknowledged as durable"
            .to_owned(),
        verdict: if run.failure.is_none() { Verdict::Holds } else { Verdict::Fails },
    }
}

fn checks_clean(run: &Run) -> Judgement {
    let closed = run.seen.checks;
    Judgement {
        what: "checks are clean",
        measured: format!(
            "{closed} of closed databases and copies, {} beside sessions; {} backups compared",
            run.told.checks, run.seen.backups
        ),
        allowed: "no finding".to_owned(),
        verdict: match (&run.failure, closed) {
            (Some(_), _) => Verdict::Fails,
            (None, 0) => Verdict::TooShort,
            (None, _) => Verdict::Holds,
        },
    }
}

#[derive(Clone, Copy)]
enum Unit {
    One,
    Mib,
}

impl Unit {
    fn show(self, number: f64) -> String {
        match self {
            Unit::One => format!("{number:.0}"),
            Unit::Mib => format!("{:.1} MiB", number / MIB),
        }
    }
}

fn trend(
    run: &Run,
    quarters: &[Stretch],
    what: &'static str,
    number: fn(&Stretch) -> f64,
    growth: f64,
    slack: f64,
    unit: Unit,
) -> Judgement {
    let (second, last) = (number(&quarters[1]), number(&quarters[QUARTERS - 1]));
    let allowed = second * (1.0 + growth) + slack;
    let is_enough = run.seconds >= TREND_SECONDS_MIN
        && quarters[1..].iter().all(|quarter| quarter.samples >= SAMPLES_MIN);
    Judgement {
        what,
        measured: format!(
            "{} in the second quarter, {} in the last",
            unit.show(second),
            unit.show(last)
        ),
        allowed: format!(
            "up to {}: {:.0} % and {} more",
            unit.show(allowed),
            growth * 100.0,
            unit.show(slack)
        ),
        verdict: verdict(is_enough, last <= allowed),
    }
}

fn verdict(is_enough: bool, holds: bool) -> Verdict {
    match (is_enough, holds) {
        (false, _) => Verdict::TooShort,
        (true, true) => Verdict::Holds,
        (true, false) => Verdict::Fails,
    }
}

/// The third and the fourth quarter of each round long enough; the median over the rounds.
fn memory_within_rounds(run: &Run) -> Judgement {
    let resident = |round: u64, from: f64, to: f64| {
        let inside = run.samples.iter().filter(|sample| {
            is_settled(sample)
                && sample.round == round
                && sample.round_seconds >= ROUND_SECONDS_MIN
                && sample.part >= from
                && sample.part < to
        });
        let bytes: Vec<u64> = inside.map(|sample| sample.resident_bytes).collect();
        (bytes.len() >= SAMPLES_MIN / 2).then(|| median(bytes.into_iter()))
    };
    let mut excess = Vec::new();
    for round in 1..=run.rounds {
        let Some(third) = resident(round, 0.5, 0.75) else { continue };
        let Some(fourth) = resident(round, 0.75, 1.0) else { continue };
        excess.push((fourth - third, third * ROUND_GROWTH + ROUND_SLACK_BYTES));
    }
    excess.sort_by(|one, other| one.0.total_cmp(&other.0));
    let middle = excess.get(excess.len() / 2).copied();
    let (grown, allowed) = middle.unwrap_or_default();
    Judgement {
        what: "memory is flat within rounds",
        measured: format!(
            "{:+.2} MiB from the third to the fourth quarter of a round, the median of {} rounds of at \
             least {ROUND_SECONDS_MIN} s",
            grown / MIB,
            excess.len()
        ),
        allowed: format!("up to {:.1} MiB: 2 % and 1 MiB", allowed / MIB),
        verdict: verdict(run.seconds >= TREND_SECONDS_MIN && excess.len() >= 3, grown <= allowed),
    }
}

fn space_reclaimed(run: &Run) -> Judgement {
    let most =
        |number: fn(&Sample) -> u64| run.samples.iter().map(number).max().unwrap_or(0) as f64;
    let live = most(|sample| sample.told.live_rows) * ROW_BYTES_MEAN as f64;
    let data = most(|sample| sample.data_bytes);
    let allowed = live * DATA_MULTIPLE + DATA_SLACK_BYTES;
    let written = run.told.inserted as f64 * ROW_BYTES_MEAN as f64;
    Judgement {
        what: "space of deleted and truncated rows is used again",
        measured: format!(
            "data files took at most {:.1} MiB; at most {:.1} MiB of rows at a time, {:.1} MiB \
             inserted in all",
            data / MIB,
            live / MIB,
            written / MIB
        ),
        allowed: format!("{:.1} MiB: {DATA_MULTIPLE} times the rows, and 16 MiB", allowed / MIB),
        verdict: verdict(live > 0.0, data <= allowed && run.too_large_bytes.is_none()),
    }
}

fn log_bounded(run: &Run, settings: &Settings) -> Judgement {
    let most = run.samples.iter().map(|sample| sample.log_bytes).max().unwrap_or(0);
    let options = &settings.options;
    let allowed = options.log_capacity_bytes + 2 * options.log_segment_bytes;
    Judgement {
        what: "the log stays within its capacity",
        measured: Unit::Mib.show(most as f64),
        allowed: format!("{}: the capacity and two segments", Unit::Mib.show(allowed as f64)),
        verdict: verdict(most > 0, most <= allowed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sixteen minutes in rounds of 160 seconds, ten samples in four seconds.
    fn run(resident: impl Fn(f64) -> u64, leaves: impl Fn(f64) -> u64) -> Run {
        let sample = |number: u64| {
            let at = number as f64 / 2.5;
            let told =
                crate::samples::Told { leaves: leaves(at), live_rows: 1000, ..Default::default() };
            Sample {
                at,
                round: number / 400 + 1,
                round_seconds: 160.0,
                part: (number % 400) as f64 / 400.0,
                resident_bytes: resident(at),
                told,
                ..Sample::default()
            }
        };
        let samples = (0..2400).map(sample).collect();
        Run { samples, rounds: 6, seconds: 960.0, ..Run::default() }
    }

    fn verdict_of(run: &Run, what: &str) -> Verdict {
        let all = judge(run, &Settings::of(64 << 20));
        all.into_iter().find(|judgement| judgement.what == what).unwrap().verdict
    }

    #[test]
    fn flat_memory_holds() {
        let run = run(|_| 100 << 20, |_| 5000);
        assert_eq!(verdict_of(&run, "memory is flat over the run"), Verdict::Holds);
        assert_eq!(verdict_of(&run, "memory is flat within rounds"), Verdict::Holds);
        assert_eq!(verdict_of(&run, "leaves are flat"), Verdict::Holds);
    }

    #[test]
    fn memory_that_grows_over_restarts_fails() {
        let run = run(|at| (100 << 20) + at as u64 * (1 << 20), |_| 5000);
        assert_eq!(verdict_of(&run, "memory is flat over the run"), Verdict::Fails);
    }

    #[test]
    fn memory_that_each_restart_gives_back_fails_within_rounds() {
        let run = run(|at| (100 << 20) + (at % 160.0) as u64 * (1 << 20), |_| 5000);
        assert_eq!(verdict_of(&run, "memory is flat over the run"), Verdict::Holds);
        assert_eq!(verdict_of(&run, "memory is flat within rounds"), Verdict::Fails);
    }

    #[test]
    fn leaves_that_nobody_takes_away_fail() {
        let run = run(|_| 100 << 20, |at| 1000 + at as u64 * 100);
        assert_eq!(verdict_of(&run, "leaves are flat"), Verdict::Fails);
    }

    #[test]
    fn a_short_run_is_not_judged() {
        let mut run = run(|at| (100 << 20) + at as u64 * (1 << 20), |_| 5000);
        run.seconds = 20.0;
        assert_eq!(verdict_of(&run, "memory is flat over the run"), Verdict::TooShort);
    }
}
