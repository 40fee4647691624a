//! Crowds of transactions over the wire show no cycle that snapshot isolation forbids, and cuts leave them whole.
//!
//! The same at length: `cargo xtask prove-wire --lists --seconds 600`.

use onrush_prove_wire::lists;
use onrush_prove_wire::summary::Summary;

#[test]
fn crowds_show_no_cycle_and_cuts_leave_them_whole() {
    let mut summary = Summary::default();
    for seed in 1..=6 {
        if let Err(violation) = lists::prove(seed, 15, &mut summary) {
            panic!("{}", violation.0);
        }
    }
    println!("{summary}");
    assert!(summary.commits > 100, "transactions that are committed");
}
