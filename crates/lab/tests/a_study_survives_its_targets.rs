//! A target that refuses, dies or panics in the middle is told, and the rest of the study is run.

#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use onrush_lab::error::LabError;
use onrush_lab::study::run::{self, Progress, RunOptions, StudyObserver};
use onrush_lab::study::{CaseOutcome, Repeat, Settings, Size, Study, TargetShown};
use onrush_lab::target::{Instance, LoadFigures, LoadOrder, Target};
use onrush_measure::verify::Verification;
use onrush_measure::{Observer, Step};

/// A target that was planted: it loads, or ends badly, or loses so many rows.
struct Planted(&'static str, fn() -> Result<(), LabError>, u64);

impl Target for Planted {
    fn name(&self) -> &'static str {
        self.0
    }

    fn impossible(&self, _settings: &Settings) -> Option<String> {
        None
    }

    fn shown(&self, _settings: &Settings) -> Result<TargetShown, LabError> {
        Ok(TargetShown { version: "1".into(), settings: Vec::new() })
    }

    fn prepare(&self, _settings: &Settings, folder: &Path) -> Result<Box<dyn Instance>, LabError> {
        std::fs::write(folder.join("data"), "x").unwrap();
        Ok(Box::new(Planted(self.0, self.1, self.2)))
    }
}

impl Instance for Planted {
    fn load(
        &mut self,
        order: LoadOrder,
        _observer: &dyn Observer,
    ) -> Result<LoadFigures, LabError> {
        (self.1)()?;
        Ok(LoadFigures {
            rows: order.rows,
            commits: order.rows,
            elapsed: Duration::from_secs(1),
            cpu: Duration::ZERO,
            commit_latency_us: Default::default(),
        })
    }

    fn verify(&mut self, _observer: &dyn Observer) -> Result<Option<Verification>, LabError> {
        let rows_found = ROWS - self.2;
        Ok(Some(Verification {
            passed: self.2 == 0,
            rows_acknowledged: ROWS,
            rows_found,
            is_exact: true,
            elapsed_s: 0.0,
            faults: Vec::new(),
        }))
    }
}

fn find(name: &str) -> Result<Box<dyn Target>, String> {
    let died = || {
        let (target, what) = ("sqlite".into(), "the disk is full".into());
        Err(LabError::Target { target, what })
    };
    match name {
        "null" => Ok(Box::new(Planted("null", || Ok(()), 0))),
        "sqlite" => Ok(Box::new(Planted("sqlite", died, 0))),
        "lmdb" => Ok(Box::new(Planted("lmdb", || panic!("out of its mind"), 0))),
        "fjall" => Ok(Box::new(Planted("fjall", || Ok(()), 1))),
        _ => Err(format!("{name} is not installed; install it")),
    }
}

/// Rows of each case.
const ROWS: u64 = 10;

#[derive(Default)]
struct Order(RefCell<Vec<(usize, usize)>>);

impl Observer for Order {
    fn begin(&self, _step: Step, _rows: Option<u64>) {}
    fn advance(&self, _rows_done: u64) {}
    fn end(&self) {}
    fn warn(&self, _message: &str) {}
}

impl StudyObserver for Order {
    fn run_begins(&self, progress: &Progress<'_>) {
        self.0.borrow_mut().push((progress.repeat, progress.case.number));
    }
    fn run_ends(&self, _case: &CaseOutcome, _outcome: Result<&Repeat, &str>) {}
}

fn study(targets: &str) -> Study {
    let text = format!(
        "name = \"s\"\ntitle = \"S\"\ntargets = {targets}\nrepeats = 2\n\
         [settings]\nrows = {ROWS}\ndurability = \"delayed\"\nsessions = [1, 2, 3, 4, 5, 6]\n\
         [chart]\nx = \"sessions\"\n"
    );
    Study::read(&text, "s.toml", Size::Full).unwrap()
}

fn options(folder: &Path) -> RunOptions {
    RunOptions {
        folder: folder.to_owned(),
        results: folder.join("r.sqlite"),
        resume: false,
        targets: Vec::new(),
        stacks: false,
        command: "test".into(),
    }
}

#[test]
fn failures_and_panics_are_kept_with_their_reason_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let study = study(r#"["sqlite", "lmdb", "null", "redb"]"#);
    let result = run::run(&study, &options(folder.path()), &find, &Order::default()).unwrap();
    for case in &result.cases {
        match case.target.as_str() {
            "null" => assert_eq!(case.repeats.len(), 2),
            "sqlite" => assert!(case.failed.as_ref().unwrap().contains("the disk is full")),
            "lmdb" => assert!(case.failed.as_ref().unwrap().contains("out of its mind")),
            _ => assert!(case.skipped.as_ref().unwrap().contains("install it")),
        }
        assert_eq!(case.passed(), matches!(case.target.as_str(), "null" | "redb"));
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "only the result file is left: {left:?}");
}

#[test]
fn a_case_that_lost_a_row_does_not_pass_and_is_told_in_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let study = study(r#"["fjall", "null"]"#);
    let result = run::run(&study, &options(folder.path()), &find, &Order::default()).unwrap();
    for case in &result.cases {
        assert_eq!(case.passed(), case.target == "null", "{}", case.target);
    }
    let table = onrush_lab::study::table::text(&result);
    let told = |target: &str, word: &str| {
        table.lines().filter(|line| line.contains(target) && line.ends_with(word)).count()
    };
    assert_eq!((told("fjall", "NO"), told("null", "yes")), (6, 6), "{table}");
}

#[test]
fn rounds_are_interleaved_and_shuffled() {
    let folder = tempfile::tempdir().unwrap();
    let order = Order::default();
    run::run(&study(r#"["null"]"#), &options(folder.path()), &find, &order).unwrap();
    let order = order.0.into_inner();
    let repeats: Vec<usize> = order.iter().map(|(repeat, _)| *repeat).collect();
    assert_eq!(repeats, [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
    let cases: Vec<usize> = order.iter().map(|(_, case)| *case).collect();
    assert_ne!(cases[..6], [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_case_that_failed_is_tried_again_when_the_study_is_continued() {
    let folder = tempfile::tempdir().unwrap();
    let study = study(r#"["sqlite"]"#);
    let mut options = options(folder.path());
    let broken = run::run(&study, &options, &find, &Order::default()).unwrap();
    assert!(broken.cases.iter().all(|case| case.failed.is_some() && case.repeats.is_empty()));
    options.resume = true;
    let mended = |_: &str| Ok(Box::new(Planted("sqlite", || Ok(()), 0)) as Box<dyn Target>);
    let whole = run::run(&study, &options, &mended, &Order::default()).unwrap();
    assert!(whole.cases.iter().all(|case| case.failed.is_none() && case.repeats.len() == 2));
}
