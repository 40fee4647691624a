//! Power cuts in runs in which transactions of a few rows are large ones, and all rows are in ranges that have a stock.

use onrush_sim::cuts::{Budget, simulate};
use onrush_sim::summary::Summary;
use onrush_waits::Counter;

/// Their plans have both.
const SEEDS: [u64; 6] = [94, 122, 195, 200, 221, 237];

#[test]
fn what_a_power_cut_leaves_of_intents_in_stocks_is_a_prefix_of_the_commits() {
    let budget = Budget { images: 220, ..Budget::default() };
    let mut summary = Summary::default();
    for seed in SEEDS {
        if let Err(violation) = simulate(seed, budget, &mut summary) {
            panic!("seed {seed}: {}", violation.0);
        }
    }
    println!("{summary}");
    for counter in [Counter::RangeFlushes, Counter::RangeCompactions, Counter::Rollbacks] {
        assert!(summary.counter(counter) > 10, "hardly any {}", counter.name());
    }
}
