//! The bounded model of definitions (`docs/models`): definitions are whole or absent, names are unique, grants
//! stay with their table and no key comes twice, in whatever order the steps fall and whenever the power fails;
//! and each fault, planted, is found. This is a short exploration; the long one is a command of its own.

#[path = "../../../docs/models/definitions/mod.rs"]
mod definitions;

#[test]
fn definitions_are_whole_or_absent_in_twenty_thousand_schedules() {
    let explored = definitions::command(&["--sound", "10000", "--directed", "10000"]);
    assert_eq!(explored, Ok(()));
}

#[test]
fn every_planted_fault_is_found() {
    assert_eq!(definitions::command(&["--planted"]), Ok(()));
}
