//! Power cuts in the middle of a round of the log, and again in the round that writes the same place
//! anew. More of them: `cargo run -p onrush-sim --release --bin simulate -- torn`.

use onrush_sim::summary::Summary;
use onrush_sim::torn::tear_rounds;

/// Runs of this test.
const SEEDS: u64 = 2;

#[test]
fn what_a_torn_round_leaves_behind_never_passes_for_a_part_of_the_next_one() {
    let mut summary = Summary::default();
    for seed in 1..=SEEDS {
        if let Err(violation) = tear_rounds(seed, &mut summary) {
            panic!("{}", violation.with_command("torn", seed));
        }
    }
    println!("{summary}");
    assert!(summary.images_by_depth[&1] > 500, "hardly any cut in a second life");
}
