//! The bounded model of cold key ranges (`docs/models`): no commit is lost, no key comes twice and every snapshot
//! reads its state, in whatever order flushes, merges, checkpoints and redo take their steps and whenever the power
//! fails; and each fault, planted, is found. This is a short exploration; the long one is a command of its own.

#[path = "../../../docs/models/ranges/mod.rs"]
mod ranges;

#[test]
fn ranges_lose_nothing_in_four_thousand_schedules() {
    let explored = ranges::command(&["--sound", "2000", "--directed", "2000"]);
    assert_eq!(explored, Ok(()));
}

#[test]
fn every_planted_fault_is_found() {
    assert_eq!(ranges::command(&["--planted"]), Ok(()));
}
