//! What held a check back, and whether more threads made it slower.

use onrush_measure::units::rounded;

use super::cause::{Cause, ForAdvice};
use super::{BUSY, Surroundings, Verdict};
use crate::study::outcome::{CaseOutcome, Repeat};
use crate::study::{Setting, Settings};

/// From this share of what the device reads on, it is the bound.
const DEVICE_SHARE: f64 = 0.7;
/// A check that is slower than with fewer threads by more than this share scales backwards.
const SLOWER_SHARE: f64 = 0.1;

/// The verdict on a case that checks; None if no run of it ended.
pub(super) fn of(case: &CaseOutcome, around: Surroundings) -> Option<Verdict> {
    let repeat = case.repeats.get(case.summary.as_ref()?.middle)?;
    let (threads, cpus) = (case.settings.number(Setting::CheckThreads), around.cpus.max(1) as u64);
    let usable = threads.min(cpus) as f64 / cpus as f64;
    let is_busy = repeat.cpu_percent / 100.0 / usable >= BUSY;
    let device_share = device_share(case, repeat, around);
    let cause = match device_share {
        Some(share) if share >= DEVICE_SHARE => Cause::DeviceReads,
        _ if is_busy && threads < cpus => Cause::FewThreads,
        _ if is_busy => Cause::Processor,
        _ => Cause::Unknown,
    };
    let change = match cause {
        Cause::Processor if case.settings.is(Setting::CheckDepth, "full") => {
            "More threads do not help; `check_depth = \"physical\"` looks at less.".to_owned()
        }
        Cause::Processor => "More threads do not help; more processors do.".to_owned(),
        Cause::Unknown => "Try more threads, or more rows.".to_owned(),
        _ => cause.change(&ForAdvice {
            is_onrush: case.target.starts_with("onrush"),
            is_durable: case.settings.is_durable(),
            sessions: threads,
            rows_per_commit: 1,
            is_shared_edge: false,
            is_tasks: false,
            is_spread: false,
            is_random: false,
            keeps_stocks: false,
            is_far_past_memory: false,
        }),
    };
    let gb = repeat.gb_per_s.unwrap_or(0.0) * repeat.elapsed_s;
    let share = device_share
        .map(|share| format!("{:.0} % of what the device reads in order", 100.0 * share));
    let evidence = [
        Some(format!("{} GB/s", rounded(repeat.gb_per_s.unwrap_or(0.0)))),
        share,
        Some(format!("CPU {} % of {cpus}", rounded(repeat.cpu_percent))),
        Some(format!("{} GB for each second of a processor", rounded(gb / repeat.cpu_s.max(1e-9)))),
    ];
    Some(Verdict { cause, evidence: evidence.into_iter().flatten().collect(), change })
}

/// Bytes checked over what the device reads, where they came from there.
fn device_share(case: &CaseOutcome, repeat: &Repeat, around: Surroundings) -> Option<f64> {
    let is_from_device = case.settings.is(Setting::CheckReads, "device");
    let most = around.device_read_mb_per_s.filter(|_| is_from_device)?;
    Some(repeat.gb_per_s? * 1e3 / most.max(1e-9))
}

/// That a check is clearly slower than the fastest of those that differ from it by fewer threads
/// only; None if it is not.
pub(super) fn negative_scaling(case: &CaseOutcome, all: &[CaseOutcome]) -> Option<String> {
    if !case.settings.is_check() {
        return None;
    }
    let threads = |case: &CaseOutcome| case.settings.number(Setting::CheckThreads);
    let others =
        |case: &CaseOutcome| -> Settings { case.settings.clone().with(Setting::CheckThreads, 1) };
    let rate = |case: &CaseOutcome| Some(case.summary.as_ref()?.rows_per_s);
    let own = rate(case)?;
    let is_rung = |one: &&CaseOutcome| {
        one.target == case.target
            && one.part == case.part
            && threads(one) < threads(case)
            && others(one) == others(case)
    };
    let fewer = all.iter().filter(is_rung).filter_map(|one| Some((threads(one), rate(one)?)));
    let (best_threads, best) = fewer.max_by(|left, right| left.1.total_cmp(&right.1))?;
    let slower = 1.0 - own / best.max(f64::MIN_POSITIVE);
    (slower > SLOWER_SHARE).then(|| {
        let word = if best_threads == 1 { "thread" } else { "threads" };
        format!("negative scaling: {:.0} % slower than with {best_threads} {word}", 100.0 * slower)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AROUND: Surroundings =
        Surroundings { cpus: 4, device_write_mb_per_s: None, device_read_mb_per_s: Some(2000.0) };

    /// A check of a gigabyte by so many threads, which use so many processors for so many seconds.
    fn checked(threads: u64, processors: f64, elapsed_s: f64) -> CaseOutcome {
        let settings = Settings::default()
            .with(Setting::Operation, "check")
            .with(Setting::CheckThreads, threads);
        let repeat = Repeat {
            rows: 7_000_000,
            elapsed_s,
            rows_per_s: 7e6 / elapsed_s,
            gb_per_s: Some(1.0 / elapsed_s),
            cpu_percent: 100.0 * processors / 4.0,
            cpu_s: processors * elapsed_s,
            ..Repeat::default()
        };
        let mut case = CaseOutcome {
            target: "onrush".into(),
            settings,
            repeats: vec![repeat],
            ..CaseOutcome::default()
        };
        case.conclude();
        case
    }

    fn from_device(mut case: CaseOutcome) -> CaseOutcome {
        case.settings.set(Setting::CheckReads, "device".into());
        case
    }

    #[test]
    fn processors_threads_and_the_device_are_told_apart() {
        let cause = |case: &CaseOutcome| super::super::of(case, AROUND).unwrap().cause;
        assert_eq!(cause(&checked(1, 0.97, 0.4)), Cause::FewThreads);
        assert_eq!(cause(&checked(4, 3.9, 0.1)), Cause::Processor);
        assert_eq!(cause(&checked(32, 3.9, 0.1)), Cause::Processor);
        assert_eq!(cause(&checked(4, 1.0, 0.3)), Cause::Unknown);
        assert_eq!(cause(&from_device(checked(4, 1.0, 0.6))), Cause::DeviceReads);
        assert_eq!(cause(&from_device(checked(1, 1.0, 2.0))), Cause::FewThreads);
    }

    #[test]
    fn the_evidence_is_bytes_a_second_and_bytes_for_each_second_of_a_processor() {
        let text = super::super::of(&from_device(checked(4, 2.0, 0.625)), AROUND).unwrap().text();
        for part in ["1.60 GB/s", "80 % of what the device", "CPU 50.0 % of 4", "0.80 GB for each"]
        {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn a_check_that_more_threads_make_slower_is_flagged_against_the_best_of_the_fewer() {
        let mut physical = checked(2, 2.0, 0.01);
        physical.settings.set(Setting::CheckDepth, "physical".into());
        let all = [
            checked(1, 1.0, 1.0),
            checked(2, 2.0, 0.5),
            checked(4, 4.0, 0.55),
            checked(8, 4.0, 0.8),
            physical,
        ];
        let told: Vec<_> = all.iter().map(|case| negative_scaling(case, &all)).collect();
        assert_eq!(told[..3], [None, None, None]);
        let flag = told[3].as_deref().unwrap();
        assert_eq!(flag, "negative scaling: 38 % slower than with 2 threads");
        assert_eq!(told[4], None);
    }
}
