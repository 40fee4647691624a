//! Runs a study in a folder of its own, without telling anybody how far it is.

use onrush_lab::study::run::{Progress, RunOptions, StudyObserver};
use onrush_lab::study::{CellOutcome, Repeat, Study, StudyResult};
use onrush_lab::{Observer, Step, target};

pub struct Silent;

impl Observer for Silent {
    fn begin(&self, _step: Step, _rows: Option<u64>) {}
    fn advance(&self, _rows_done: u64) {}
    fn end(&self) {}
    fn warn(&self, _message: &str) {}
}

impl StudyObserver for Silent {
    fn run_begins(&self, _progress: &Progress<'_>) {}
    fn run_ends(&self, _cell: &CellOutcome, _outcome: Result<&Repeat, &str>) {}
}

/// Every cell of these targets; of all of them, if none is named.
pub fn run(study: &Study, targets: &[&str]) -> StudyResult {
    let folder = tempfile::tempdir().unwrap();
    let options = RunOptions {
        folder: folder.path().join("runs"),
        results: folder.path().join("results.sqlite"),
        resume: false,
        targets: targets.iter().map(|target| (*target).to_owned()).collect(),
        command: format!("onrush lab run {} --quick", study.name),
    };
    let result = onrush_lab::study::run::run(study, &options, &target::find, &Silent).unwrap();
    for cell in &result.cells {
        assert_eq!(cell.failed, None, "{} {:?}", cell.target, cell.part);
        assert!(cell.passed(), "{} {:?}", cell.target, cell.part);
    }
    result
}
