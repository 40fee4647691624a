//! A power cut takes no delayed commit that is older than the window, and no more bytes than it
//! has.
//!
//! `cargo run -p onrush-sim --release --bin simulate -- window --cuts 10000` makes more of them.

use onrush_sim::summary::Summary;
use onrush_sim::window::simulate;

/// Power cuts of this test.
const CUTS: u64 = 400;

#[test]
fn a_power_cut_takes_nothing_that_is_older_than_the_window() {
    let mut summary = Summary::default();
    let mut seed = 1;
    while summary.cuts() < CUTS {
        if let Err(violation) = simulate(seed, 1, &mut summary) {
            panic!(
                "{}\nagain: cargo run -p onrush-sim --release --bin simulate -- \
                 window --seed {seed} --seeds 1",
                violation.0
            );
        }
        seed += 1;
    }
    println!("{summary}");
    assert!(summary.windows.len() > 1, "one window only");
    for (window, loss) in &summary.windows {
        // A test under which nothing is ever lost shows nothing.
        assert!(loss.commits > 0, "no cut took a commit under a window of {window} ms");
        let window_micros = window * 1000;
        assert!(loss.idle_age_micros_max > window_micros / 2, "{window} ms: {loss}");
    }
}
