//! A power cut takes no delayed commit that is older than the window, and no more bytes than it
//! has.
//!
//! `cargo run -p onrush-sim --release --bin simulate -- window --cuts 10000` makes more of them.

use onrush_sim::summary::Summary;
use onrush_sim::window::{Loss, simulate};

/// Power cuts of this test, at least.
const CUTS: u64 = 400;
/// Seeds after which it gives up to show something for every window. How far a run gets while a round
/// is written depends on threads, so on a busy machine some show little.
const SEEDS_MAX: u64 = 200;

#[test]
fn a_power_cut_takes_nothing_that_is_older_than_the_window() {
    let mut summary = Summary::default();
    let mut seed = 1;
    while summary.cuts() < CUTS || (!shows_something(&summary) && seed <= SEEDS_MAX) {
        if let Err(violation) = simulate(seed, 1, &mut summary) {
            panic!("{}", violation.with_command("window", seed));
        }
        seed += 1;
    }
    println!("{summary}");
    assert!(shows_something(&summary), "what was lost shows nothing: {summary}");
}

/// Whether there were several windows, and under each of them cuts took commits that were almost as
/// old as they may be: a test under which nothing is ever lost shows nothing.
fn shows_something(summary: &Summary) -> bool {
    let is_close = |(window_ms, loss): (&u64, &Loss)| {
        loss.commits > 0 && loss.idle_age_micros_max > window_ms * 1000 / 2
    };
    summary.windows.len() > 1 && summary.windows.iter().all(is_close)
}
