//! Runs a study in a folder of its own, without telling anybody how far it is.

use onrush_lab::study::run::RunOptions;
use onrush_lab::study::{Study, StudyResult};
use onrush_lab::target;
use onrush_measure::Quiet;

/// Every case of these targets; of all of them, if none is named.
pub fn run(study: &Study, targets: &[&str]) -> StudyResult {
    let folder = tempfile::tempdir().unwrap();
    let options = RunOptions {
        folder: folder.path().join("runs"),
        results: folder.path().join("results.sqlite"),
        resume: false,
        targets: targets.iter().map(|target| (*target).to_owned()).collect(),
        stacks: false,
        command: format!("onrush-lab run {} --quick", study.name),
    };
    let result = onrush_lab::study::run::run(study, &options, &target::find, &Quiet).unwrap();
    for case in &result.cases {
        assert_eq!(case.failed, None, "{} {:?}", case.target, case.part);
        assert!(case.passed(), "{} {:?}", case.target, case.part);
    }
    result
}
