//! Runs a study in a folder of its own, without telling anybody how far it is.

use onrush_lab::study::run::RunOptions;
use onrush_lab::study::{Study, StudyResult};
use onrush_lab::target;
use onrush_measure::Quiet;

/// Every cell of these targets; of all of them, if none is named.
pub fn run(study: &Study, targets: &[&str]) -> StudyResult {
    let folder = tempfile::tempdir().unwrap();
    let options = RunOptions {
        folder: folder.path().join("runs"),
        results: folder.path().join("results.sqlite"),
        resume: false,
        targets: targets.iter().map(|target| (*target).to_owned()).collect(),
        command: format!("onrush-lab run {} --quick", study.name),
    };
    let result = onrush_lab::study::run::run(study, &options, &target::find, &Quiet).unwrap();
    for cell in &result.cells {
        assert_eq!(cell.failed, None, "{} {:?}", cell.target, cell.part);
        assert!(cell.passed(), "{} {:?}", cell.target, cell.part);
    }
    result
}
