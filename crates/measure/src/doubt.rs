//! What makes the figures of a load doubtful, in the words that all reports use.

use crate::units;

/// A sync time that changed by more than this factor during a load makes its bound rough.
const DRIFT_MAX: f64 = 1.5;
/// From this share of the bound N/F on, the bound or the load is not what it seems.
const BOUND_SHARE_MAX: f64 = 1.1;

/// What a load whose commits wait for the disk has shown.
#[derive(Clone, Copy, Debug)]
pub struct Durable {
    /// Concurrent sessions.
    pub sessions: u64,
    /// Commits for each sync, where syncs were counted.
    pub commits_per_sync: Option<f64>,
    /// Of the bound N/F.
    pub share_of_bound: Option<f64>,
    /// The middle of the sync time before the load and after it, in microseconds.
    pub sync_us: (f64, f64),
}

/// Reasons not to believe such a load.
pub fn of_durable(load: &Durable) -> Vec<String> {
    let mut doubts = Vec::new();
    let exceeds = |commits: &f64| *commits > load.sessions as f64;
    if let Some(commits) = load.commits_per_sync.filter(exceeds) {
        doubts.push(format!(
            "not synchronous: {} commits for each sync, but only {} sessions; commits were \
             acknowledged before they were durable",
            units::rounded(commits),
            load.sessions
        ));
    }
    if load.share_of_bound.is_some_and(|share| share > BOUND_SHARE_MAX) {
        doubts.push(
            "faster than the bound N/F: the sync time changed during the load, or commits did not \
             wait for the disk"
                .to_owned(),
        );
    }
    let (before, after) = load.sync_us;
    let drift = after / before.max(f64::MIN_POSITIVE);
    if after > 0.0 && !(1.0 / DRIFT_MAX..=DRIFT_MAX).contains(&drift) {
        doubts.push(format!(
            "the sync time drifted from {} to {} during the load: the share of the bound is rough",
            units::micros(before),
            units::micros(after)
        ));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: Durable = Durable {
        sessions: 24,
        commits_per_sync: Some(20.0),
        share_of_bound: Some(0.5),
        sync_us: (90.0, 100.0),
    };

    #[test]
    fn each_doubt_is_told_once_and_a_sound_load_has_none() {
        assert_eq!(of_durable(&SOUND), Vec::<String>::new());
        for (load, words) in [
            (Durable { commits_per_sync: Some(25.0), ..SOUND }, "25.0 commits for each sync"),
            (Durable { share_of_bound: Some(1.2), ..SOUND }, "faster than the bound"),
            (Durable { sync_us: (90.0, 140.0), ..SOUND }, "drifted from 90"),
            (Durable { sync_us: (140.0, 90.0), ..SOUND }, "drifted from 140"),
        ] {
            let doubts = of_durable(&load);
            assert!(doubts.len() == 1 && doubts[0].contains(words), "{words}: {doubts:?}");
        }
    }
}
