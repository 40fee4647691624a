//! What a part of a study shows as its proof: names of waits, latches, spins, counters and phases,
//! checked when the study is read, and their values when it has run.

use onrush_measure::nearest::nearest;
use onrush_measure::units::{grouped, rounded};
use onrush_waits::{Counter, LatchClass, Phase, Spin, Wait};

use crate::study::outcome::Repeat;
use crate::target::record::{
    DRAIN_BEHIND, LARGE_PAGE_BYTES, LOG_RECORD_BYTES, ONRUSH_LEVELS, WaitRecord,
};

/// Every name that Onrush tells something under.
fn names() -> impl Iterator<Item = &'static str> {
    let waits = Wait::ALL.iter().map(|wait| wait.name());
    let latches = LatchClass::ALL.iter().map(|latch| latch.name());
    let spins = Spin::ALL.iter().map(|spin| spin.name());
    let counters = Counter::ALL.iter().map(|counter| counter.name());
    let phases = Phase::ALL.iter().map(|phase| phase.name());
    let levels = ONRUSH_LEVELS.iter().copied();
    let levels = levels.chain([DRAIN_BEHIND, LARGE_PAGE_BYTES, LOG_RECORD_BYTES]);
    waits.chain(latches).chain(spins).chain(counters).chain(phases).chain(levels)
}

/// Refuses a name that Onrush tells nothing under.
pub(super) fn known(name: &str) -> Result<(), String> {
    if names().any(|known| known == name) {
        return Ok(());
    }
    let hint = nearest(name, names());
    Err(format!("there is no wait, latch, spin, counter or phase {name:?} to prove it; {hint}"))
}

/// What a run says under a name, in words: "LEAF 1,234 collisions".
pub(crate) fn told(repeat: &Repeat, name: &str) -> String {
    let counter = repeat.counters.iter().find(|counter| counter.name == name);
    let mut found: Vec<String> = Vec::new();
    if let Some(counter) = counter {
        let whole = counter.value.fract() == 0.0 && counter.value >= 0.0;
        let value = if whole { grouped(counter.value as u64) } else { rounded(counter.value) };
        let unit = if counter.unit == "1" { String::new() } else { format!(" {}", counter.unit) };
        found.push(format!("{value}{unit}"));
    }
    found.extend(repeat.waits.iter().filter(|wait| wait.name == name).map(of_wait));
    found.extend(of_phase(repeat, name));
    match found.is_empty() {
        true => format!("{name} none"),
        false => format!("{name} {}", found.join(", ")),
    }
}

fn of_wait(wait: &WaitRecord) -> String {
    let count = grouped(wait.count);
    match (wait.group.as_str(), &wait.spins) {
        ("latch" | "spin", Some(_)) => format!("{count} collisions"),
        _ if wait.seconds > 0.0 => format!("{count} waits of {} s", rounded(wait.seconds)),
        _ => format!("{count} waits"),
    }
}

/// Of the time of all phases, idling apart.
fn of_phase(repeat: &Repeat, name: &str) -> Option<String> {
    let busy = || repeat.phases.iter().filter(|phase| !phase.is_idle);
    let own = busy().find(|phase| phase.name == name)?;
    let all: f64 = busy().map(|phase| phase.seconds).sum();
    (all > 0.0).then(|| format!("{} % of the time by phase", rounded(100.0 * own.seconds / all)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::record::{CounterRecord, PhaseRecord, Spins};

    #[test]
    fn a_name_that_nobody_counts_under_is_refused_with_the_nearest() {
        for name in ["PAGELATCH_EX", "LEAF", "TRANSACTION_ID", "LOG_SYNCS", "SEEK", DRAIN_BEHIND] {
            known(name).unwrap();
        }
        let refused = known("LOG_SYNC").unwrap_err();
        assert!(refused.contains("did you mean \"LOG_SYNCS\"?"), "{refused}");
        assert!(known("HINT_HITS").is_err());
    }

    #[test]
    fn names_mean_one_thing_each() {
        let mut all: Vec<_> = names().collect();
        all.sort_unstable();
        let twice: Vec<_> = all.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }

    #[test]
    fn waits_collisions_counters_and_phases_are_told_in_their_own_words() {
        let wait = |group: &str, name: &str, seconds| WaitRecord {
            group: group.into(),
            name: name.into(),
            count: 1234,
            seconds,
            spins: (group != "wait").then(Spins::default),
            ..WaitRecord::default()
        };
        let phase = |name: &str, seconds, is_idle| PhaseRecord {
            name: name.into(),
            count: 1,
            seconds,
            is_idle,
        };
        let repeat = Repeat {
            waits: vec![wait("wait", "PAGELATCH_EX", 0.5), wait("latch", "LEAF", 0.5)],
            counters: vec![CounterRecord::counted("LOG_BYTES", "bytes", 4096)],
            phases: vec![
                phase("SEEK", 1.0, false),
                phase("PLACE", 3.0, false),
                phase("IDLE", 9.0, true),
            ],
            ..Repeat::default()
        };
        assert_eq!(told(&repeat, "PAGELATCH_EX"), "PAGELATCH_EX 1,234 waits of 0.50 s");
        assert_eq!(told(&repeat, "LEAF"), "LEAF 1,234 collisions");
        assert_eq!(told(&repeat, "LOG_BYTES"), "LOG_BYTES 4,096 bytes");
        assert_eq!(told(&repeat, "SEEK"), "SEEK 25.0 % of the time by phase");
        assert_eq!(told(&repeat, "TRANSACTION_ID"), "TRANSACTION_ID none");
    }
}
