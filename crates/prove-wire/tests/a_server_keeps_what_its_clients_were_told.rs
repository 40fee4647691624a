//! Power cuts under a whole server: what is there afterwards is what its clients were told, by their own record.
//!
//! The same at length: `cargo xtask prove-wire`.

use onrush_prove_wire::cuts::Budget;
use onrush_prove_wire::kinds::Kinds;
use onrush_prove_wire::prove;
use onrush_prove_wire::round::{Plan, failing_call, last_change};
use onrush_prove_wire::summary::Summary;

/// Cuts of this test.
const CUTS: u64 = 1500;
const BUDGET: Budget = Budget { cuts: 150, check_one_in: 8, nested_one_in: 24, nested_cuts: 8 };

#[test]
fn what_a_power_cut_leaves_is_what_clients_were_told() {
    let mut summary = Summary::default();
    for seed in 1.. {
        let plan = Plan::new(seed, Kinds::all());
        if let Err(violation) = prove(plan, BUDGET, &mut summary) {
            let kinds = plan.kinds;
            panic!("{}\nagain: cargo xtask prove-wire --seed {seed} --kinds {kinds}", violation.0);
        }
        if summary.cuts >= CUTS {
            break;
        }
    }
    println!("{summary}");
    assert!(summary.nested > 50, "cuts in starts");
    assert!(summary.checks > 20, "checks");
    assert!(summary.visits > 5, "statements in the middle of checkpoints");
    assert!(summary.overtaken > 20, "statements while the log was written");
    assert!(summary.left_waiting > 20, "statements that others overtook");
}

#[test]
fn what_clients_were_told_stays_where_the_disk_fails_or_is_full() {
    let mut summary = Summary::default();
    for seed in 1..=12 {
        let plan = Plan { fault: Some(failing_call(seed)), ..Plan::new(seed, Kinds::all()) };
        if let Err(violation) = prove(plan, Budget { cuts: 30, ..BUDGET }, &mut summary) {
            let kinds = plan.kinds;
            let again = "cargo xtask prove-wire --failing-disk";
            panic!("{}\nagain: {again} --seed {seed} --kinds {kinds}", violation.0);
        }
    }
    println!("{summary}");
}

#[test]
fn what_clients_were_told_stays_where_the_disk_takes_no_changes_any_more() {
    let mut summary = Summary::default();
    for seed in 1..=6 {
        let plan = Plan { fault: Some(last_change(seed)), ..Plan::new(seed, Kinds::all()) };
        if let Err(violation) = prove(plan, Budget { cuts: 20, ..BUDGET }, &mut summary) {
            panic!("{}\nagain: cargo xtask prove-wire --read-only-disk --seed {seed}", violation.0);
        }
    }
    println!("{summary}");
}

#[test]
fn a_disk_that_lies_loses_the_end_or_is_found_damaged() {
    let mut summary = Summary::default();
    for seed in 1..=6 {
        let plan = Plan { is_lying: true, ..Plan::new(seed, Kinds::all()) };
        if let Err(violation) = prove(plan, Budget { cuts: 40, ..BUDGET }, &mut summary) {
            panic!("{}\nagain: cargo xtask prove-wire --lying-disk --seed {seed}", violation.0);
        }
    }
    println!("{summary}");
}

#[test]
fn a_round_follows_from_its_seed() {
    let record = || {
        let plan = Plan::new(5, Kinds::all());
        let round =
            onrush_prove_wire::round::run(plan).unwrap_or_else(|found| panic!("{}", found.0));
        round.history.marks.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(record(), record());
}
