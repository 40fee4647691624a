//! A sample of the short lists of actions, cut at every boundary in every mode. All of them:
//! `cargo run -p onrush-sim --release --bin simulate -- lists`.

use onrush_sim::lists::{LISTS, cut_list};
use onrush_sim::summary::Summary;

/// One list in so many; it has no factor in common with 12, so that each action is met in each
/// place.
const ONE_IN: usize = 73;

#[test]
fn a_short_list_of_actions_survives_a_cut_at_every_boundary() {
    let mut summary = Summary::default();
    for number in (0..LISTS).step_by(ONE_IN) {
        if let Err(violation) = cut_list(number, &mut summary) {
            panic!("{}", violation.with_command("lists", number));
        }
    }
    println!("{summary}");
    assert!(summary.cuts() > 1000, "{} cuts", summary.cuts());
}
