//! The committed baseline compares with a run of today: every cell that it has is one of the study.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use onrush_lab::compare;
use onrush_lab::study::shipped;

#[test]
fn every_cell_that_ran_is_one_of_the_study_as_it_is_shipped() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/keys-baseline.json");
    let baseline = compare::read(&path).unwrap();
    let cells = shipped::study(&baseline.study, baseline.size).unwrap().cells();
    let ran: Vec<_> = baseline.cells.iter().filter(|cell| cell.summary.is_some()).collect();
    assert!(ran.len() > 20, "{}", ran.len());
    for cell in ran {
        let is_same = |one: &&onrush_lab::study::Cell| {
            one.target == cell.target && one.part == cell.part && one.settings == cell.settings
        };
        assert!(
            cells.iter().any(|one| is_same(&one)),
            "{} {:?}: {:?}",
            cell.target,
            cell.part,
            cell.settings
        );
    }
    let command =
        format!("onrush lab run {} --quick --repeats {}", baseline.study, baseline.repeats);
    assert_eq!(baseline.command, command, "`onrush-lab compare --run` runs this");
}
