//! A call of the disk fails: the answer fits the outcome, nothing acknowledged is lost, and what
//! was no reason to stop does not stop anything.

use onrush_sim::errors::fail_calls;
use onrush_sim::summary::Summary;

#[test]
fn a_failed_call_loses_nothing_that_was_acknowledged() {
    let mut summary = Summary::default();
    for seed in 2000..2070 {
        if let Err(violation) = fail_calls(seed, 8, &mut summary) {
            panic!(
                "{}\nagain: cargo run -p onrush-sim --release --bin simulate -- errors \
                 --seed {seed} --seeds 1 --images 8",
                violation.0
            );
        }
    }
    assert!(summary.failed_calls > 300, "{} calls failed", summary.failed_calls);
}
