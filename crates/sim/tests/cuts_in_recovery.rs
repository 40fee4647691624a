//! The power fails in a recovery, and in the recovery from that: at each boundary. More of them:
//! `cargo run -p onrush-sim --release --bin simulate -- recovery --cuts 100000`.

use onrush_sim::cuts::{Budget, simulate};
use onrush_sim::summary::Summary;

/// Power cuts in recoveries of this test.
const CUTS: u64 = 400;

#[test]
fn a_recovery_that_is_cut_off_can_be_repeated() {
    let mut summary = Summary::default();
    let mut seed = 1;
    while summary.images_in_recovery < CUTS {
        if let Err(violation) = simulate(seed, Budget::of_recovery(), &mut summary) {
            panic!("{}", violation.with_command("recovery", seed));
        }
        seed += 1;
    }
    println!("{summary}");
    assert_eq!(summary.images_by_depth.len(), 3, "cuts in recoveries, and in theirs");
}
