//! The committed kept result compares with a run of today: every case that it has is one of the study.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use onrush_lab::compare;
use onrush_lab::study::shipped;

#[test]
fn every_case_that_ran_is_one_of_the_study_as_it_is_shipped() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/keys-kept.json");
    let kept = compare::read(&path).unwrap();
    let cases = shipped::study(&kept.study, kept.size).unwrap().cases();
    let ran: Vec<_> = kept.cases.iter().filter(|case| case.summary.is_some()).collect();
    assert!(ran.len() > 20, "{}", ran.len());
    for case in ran {
        let is_same = |one: &&onrush_lab::study::Case| {
            one.target == case.target && one.part == case.part && one.settings == case.settings
        };
        assert!(
            cases.iter().any(|one| is_same(&one)),
            "{} {:?}: {:?}",
            case.target,
            case.part,
            case.settings
        );
    }
    let command = format!("onrush lab run {} --quick --repeats {}", kept.study, kept.repeats);
    assert_eq!(kept.command, command, "`onrush-lab compare --run` runs this");
}
