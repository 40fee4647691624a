//! At least 10,000 power cuts, over workloads that went through everything that can go wrong.

use onrush_sim::cuts::{Budget, simulate};
use onrush_sim::summary::Summary;
use onrush_waits::Counter;

/// Power cuts of this test. `cargo run -p onrush-sim --release --bin simulate` makes 100,000.
const CUTS: u64 = 11_000;
/// Some seeds have hardly a conflict: it goes on until everything was covered, but not for ever.
const CUTS_MAX: u64 = 3 * CUTS;
/// What runs must have gone through, each more often than [`TIMES`].
const COVERED: [Counter; 15] = [
    Counter::SplitsRightEdge,
    Counter::SplitsLocalRun,
    Counter::SplitsMiddle,
    Counter::SplitsBlockGrant,
    Counter::LeavesRemoved,
    Counter::Checkpoints,
    Counter::Evictions,
    Counter::ImagesEviction,
    Counter::Rollbacks,
    Counter::Conflicts,
    Counter::DuplicateKeys,
    Counter::RowsUpdated,
    Counter::RowsDeleted,
    Counter::RowsMoved,
    Counter::KeyLeases,
];
const TIMES: u64 = 10;

#[test]
fn what_a_power_cut_leaves_is_a_prefix_of_the_commits_with_all_that_was_acknowledged() {
    let budget = Budget { images: 220, ..Budget::default() };
    let mut summary = Summary::default();
    let mut seed = 1000;
    let rare = |summary: &Summary| COVERED.iter().find(|one| summary.counter(**one) <= TIMES);
    while summary.cuts() < CUTS || (summary.cuts() < CUTS_MAX && rare(&summary).is_some()) {
        if let Err(violation) = simulate(seed, budget, &mut summary) {
            panic!(
                "{}\nagain: cargo run -p onrush-sim --release --bin simulate -- \
                 --seed {seed} --seeds 1 --images {}",
                violation.0, budget.images
            );
        }
        seed += 1;
    }
    println!("{summary}");
    if let Some(counter) = rare(&summary) {
        panic!("hardly any {}", counter.name());
    }
    assert_eq!(summary.images.len(), 9, "every mode");
    assert!(summary.images_by_depth.len() == 3, "cuts in recoveries, and in theirs");
    let several = summary.runs_by_files.iter().filter(|(files, _)| **files > 1);
    assert!(several.map(|(_, runs)| runs).sum::<u64>() >= 3, "several data files");
    assert!(summary.commits_of_several > 1000, "commits of several rows");
    assert!(summary.visits > 100, "work in the middle of checkpoints");
}
