//! The power is cut at every boundary, in every mode, of short workloads that alter tables, or let their
//! names change hands: the definition is the old one or the new one, no row is lost, and the check finds
//! nothing.

use onrush_sim::lists::cut_actions;
use onrush_sim::plan::Action;
use onrush_sim::summary::Summary;

#[test]
fn an_altered_table_is_whole_after_a_power_cut_at_any_boundary() {
    use Action::{Alter, Barrier, Checkpoint, Delete, InsertMany, InsertToken, Reopen, Update};
    let lists: [&[Action]; 6] = [
        &[Alter, InsertToken, Alter, Update, Checkpoint, Alter],
        &[InsertMany, Alter, Update, InsertMany, Reopen, Alter, Update],
        &[Alter, Alter, Alter, Checkpoint, InsertToken, Update, Delete],
        &[Checkpoint, Alter, Checkpoint, Update, Alter, Barrier],
        &[Alter, InsertMany, Alter, InsertMany, Alter, InsertMany, Barrier],
        &[Action::Truncate, Alter, InsertMany, Alter, Checkpoint, Action::DropAndCreate, Alter],
    ];
    cut_all(&lists, 12);
}

#[test]
fn a_table_keeps_its_rows_whoever_had_its_name_before() {
    use Action::{Checkpoint, Fill, InsertMany, PassNames, Reopen};
    let lists: [&[Action]; 4] = [
        &[PassNames, Checkpoint, PassNames, PassNames, Checkpoint, Reopen],
        &[Fill, Checkpoint, InsertMany, Checkpoint, PassNames],
        &[InsertMany, Checkpoint, PassNames, Reopen, Fill, Checkpoint, Checkpoint],
        &[Fill, PassNames, Fill, Checkpoint, Action::DropAndCreate, PassNames, Checkpoint],
    ];
    cut_all(&lists, 12);
}

fn cut_all(lists: &[&[Action]], rounds: u64) {
    let mut summary = Summary::default();
    for (number, actions) in (0..rounds).zip(lists.iter().cycle()) {
        if let Err(violation) = cut_actions(number, actions, &mut summary) {
            panic!("{}", violation.0);
        }
    }
    println!("{summary}");
    assert!(summary.cuts() > 1000, "{} cuts", summary.cuts());
}
