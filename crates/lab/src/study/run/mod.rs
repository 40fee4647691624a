//! Runs a study: every case of it, in shuffled rounds, each run kept as soon as it has ended.
//!
//! - [`skip`]: which cases cannot be run, and why.
//! - [`order`]: the order of the runs. [`turn`]: one of them; [`sampling`]: counters meanwhile;
//!   [`stacks`]: a flame graph. [`check`]: where a check is measured.
//! - [`store`]: the result file. [`record`]: the command that runs it again.
//!
//! Invariants
//! 1. A run that fails, or panics, is kept with its reason, and the study goes on; a case that
//!    failed is not run again in this study.
//! 2. What a run leaves behind is removed before the next one begins, and what a killed one left
//!    when the study is continued.
//! 3. The result file is the only state: continuing reads it, and makes the first run that is not
//!    in it.

mod check;
mod order;
mod record;
mod sampling;
pub mod skip;
mod stacks;
pub mod store;
mod turn;

pub use record::{command_of, shell_word, words_of_lab};

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::LabError;
use onrush_files::OsDisk;
use onrush_measure::FolderError;
use onrush_measure::disk::{Bandwidth, bandwidth, sync_time};
use onrush_measure::machine::FileSystem;
use onrush_measure::place::Place;
use onrush_measure::progress::{Observer, Quiet, Step};
use onrush_measure::settings::Placement;
use xxhash_rust::xxh3::xxh3_64;

use crate::study::file::{Size, Study};
use crate::study::matrix::Case;
use crate::study::outcome::{CaseOutcome, Repeat, StudyResult, TargetShown};
use crate::study::setting::Setting;
use order::Turn;
use skip::FindTarget;
use store::{Kept, Store};

/// How a study is run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Folder in which each run makes one of its own.
    pub folder: PathBuf,
    /// The result file.
    pub results: PathBuf,
    /// Continue the result file instead of making it.
    pub resume: bool,
    /// Only these targets; empty: all of the study.
    pub targets: Vec<String>,
    /// A flame graph of each load is written beside the result file.
    pub stacks: bool,
    /// The command that runs it again, for the record.
    pub command: String,
}

/// Where a study stands.
#[derive(Clone, Debug)]
pub struct Progress<'p> {
    /// Runs ended, those of before an interruption included.
    pub done: usize,
    /// Runs in all.
    pub all: usize,
    /// Time until the end, by the runs so far.
    pub left: Option<Duration>,
    /// What runs next.
    pub case: &'p CaseOutcome,
    /// Which repeat of it, from 0.
    pub repeat: usize,
}

/// Is told what a study is doing.
pub trait StudyObserver: Observer {
    /// A run begins.
    fn run_begins(&self, progress: &Progress<'_>);
    /// A run has ended.
    fn run_ends(&self, case: &CaseOutcome, outcome: Result<&Repeat, &str>);
}

impl StudyObserver for Quiet {
    fn run_begins(&self, _progress: &Progress<'_>) {}
    fn run_ends(&self, _case: &CaseOutcome, _outcome: Result<&Repeat, &str>) {}
}

/// Runs a study, or what is missing of it.
///
/// # Errors
/// The result file cannot be written, or belongs to something else. Runs that fail are part of the
/// result.
pub fn run(
    study: &Study,
    options: &RunOptions,
    find: FindTarget<'_>,
    observer: &dyn StudyObserver,
) -> Result<StudyResult, LabError> {
    let (mut begun, cases) = begin(study, options, find)?;
    let continued = match options.resume && options.results.exists() {
        true => Some(continued(options, &begun)?),
        false => {
            Store::check_new(&options.results)?;
            None
        }
    };
    let given_up: BTreeSet<&String> = begun.cases.iter().flat_map(|case| &case.given_up).collect();
    given_up.iter().for_each(|what| observer.warn(what));
    measure_device(&mut begun, &cases, options, observer)?;
    let store = match continued {
        Some(store) => store,
        None => Store::create(&options.results, &begun)?,
    };
    // What was skipped may be possible by now: a baseline was installed.
    store.renew(&begun)?;
    let kept = store.kept()?;
    let done: BTreeSet<(usize, usize)> = kept.iter().map(|run| (run.case, run.repeat)).collect();
    let runnable: Vec<usize> =
        begun.cases.iter().filter(|case| case.skipped.is_none()).map(|case| case.number).collect();
    let turns = order::turns(&runnable, study.repeats, study.seed);
    let (all, started, mut made) = (turns.len(), Instant::now(), 0_u32);
    let mut failed_cases = BTreeSet::new();
    for (place, turn) in turns.iter().enumerate() {
        if done.contains(&(turn.case, turn.repeat)) || failed_cases.contains(&turn.case) {
            continue;
        }
        let missing = turns[place..].iter().filter(|turn| {
            !done.contains(&(turn.case, turn.repeat)) && !failed_cases.contains(&turn.case)
        });
        let missing = u32::try_from(missing.count()).unwrap_or(u32::MAX);
        let left = (made > 0).then(|| started.elapsed() / made * missing);
        let case = &begun.cases[turn.case];
        let progress = Progress { done: place, all, left, case, repeat: turn.repeat };
        observer.run_begins(&progress);
        let folder = run_folder(&options.folder, *turn)?;
        store.begins(&folder)?;
        let stacks =
            options.stacks.then(|| stacks::path_of(&options.results, turn.case, turn.repeat));
        let ran = run_turn(&cases[turn.case], *turn, folder, stacks.as_deref(), find, observer);
        made += 1;
        let (target_shown, outcome) = match ran {
            Ok((shown, repeat)) => (Some(shown), Ok(repeat)),
            Err(error) => (None, Err(error.to_string())),
        };
        observer.run_ends(case, outcome.as_ref().map_err(String::as_str));
        if outcome.is_err() {
            failed_cases.insert(turn.case);
        }
        store.keep(&Kept { case: turn.case, repeat: turn.repeat, target_shown, outcome })?;
    }
    store.result()
}

/// Everything about the study that is known before anything is measured or written: what is wrong
/// with it is told at once.
fn begin(
    study: &Study,
    options: &RunOptions,
    find: FindTarget<'_>,
) -> Result<(StudyResult, Vec<Case>), LabError> {
    let mut cases = study.cases();
    if !options.targets.is_empty() {
        cases.retain(|case| options.targets.contains(&case.target));
    }
    if cases.is_empty() {
        let named = options.targets.join(", ");
        return Err(LabError::Setting(format!("the study {} has no case of {named}", study.name)));
    }
    let mut outcomes = Vec::with_capacity(cases.len());
    for (number, case) in cases.iter_mut().enumerate() {
        case.number = number;
        let judged = skip::reason(study, case, find);
        outcomes.push(outcome(study, case, judged));
    }
    let device = FileSystem::under(&options.folder)
        .map_err(|error| FolderError::new("measure", &options.folder, error))?;
    let result = StudyResult {
        settings_hash: settings_hash(&cases, study),
        started_unix_s: turn::unix_seconds(),
        command: options.command.clone(),
        ..StudyResult::begun(study, device, outcomes)
    };
    Ok((result, cases))
}

/// Measures the device. Its bandwidth only for the full size, and where cases read from the device: it
/// takes seconds, and as many bytes as a small study.
fn measure_device(
    begun: &mut StudyResult,
    cases: &[Case],
    options: &RunOptions,
    observer: &dyn Observer,
) -> Result<(), LabError> {
    std::fs::create_dir_all(&options.folder)
        .map_err(|error| FolderError::new("create folder", &options.folder, error))?;
    observer.begin(Step::MeasureSync, None);
    let sync = sync_time::measure(&OsDisk::new(), &options.folder, Duration::from_millis(500));
    observer.end();
    begun.sync_time_us = sync?;
    let reads = |case: &Case| case.settings.is(Setting::CheckReads, "device");
    let needs_bandwidth = begun.size == Size::Full || cases.iter().any(reads);
    if needs_bandwidth && !options.resume {
        observer.begin(Step::MeasureBandwidth, None);
        let free_bytes = begun.device.free_bytes;
        let measured = bandwidth::measure(&OsDisk::new(), &options.folder, free_bytes);
        observer.end();
        let Bandwidth { write_mb_per_s, read_mb_per_s, .. } = measured?;
        begun.device_write_mb_per_s = Some(write_mb_per_s);
        begun.device_read_mb_per_s = Some(read_mb_per_s);
    }
    Ok(())
}

fn outcome(study: &Study, case: &Case, judged: Result<Vec<String>, String>) -> CaseOutcome {
    let (given_up, skipped) = match judged {
        Ok(given_up) => (given_up, None),
        Err(reason) => (Vec::new(), Some(reason)),
    };
    let part = study.parts.iter().find(|part| Some(&part.name) == case.part.as_ref());
    CaseOutcome {
        number: case.number,
        target: case.target.clone(),
        target_shown: None,
        part: case.part.clone(),
        note: part.map(|part| part.note.clone()).unwrap_or_default(),
        proof: part.map(|part| part.proof.clone()).unwrap_or_default(),
        settings: case.settings.clone(),
        skipped,
        given_up,
        failed: None,
        repeats: Vec::new(),
        summary: None,
        not_synchronous: false,
        verdict: None,
        negative_scaling: None,
    }
}

/// Of everything that decides what is measured. Not of what can change between two attempts: which
/// baselines are installed.
fn settings_hash(cases: &[Case], study: &Study) -> String {
    let text = format!("{} {:?} {} {}", study.name, study.size, study.repeats, study.seed);
    let cases = serde_json::to_string(cases).unwrap_or_default();
    format!("{:016x}", xxh3_64((text + &cases).as_bytes()))
}

fn continued(options: &RunOptions, begun: &StudyResult) -> Result<Store, LabError> {
    let store = Store::open(&options.results)?;
    let earlier = store.begun()?;
    let differs = |what: &str, cure: &str| LabError::OtherStudy {
        path: options.results.clone(),
        what: format!(
            "it was begun with {what}, and its results would not compare; give another --out, or \
             continue it {cure}"
        ),
    };
    if earlier.settings_hash != begun.settings_hash {
        let command = record::continuing(&earlier.command, &options.results, &options.folder);
        let what = "another study, other settings, other targets or another size";
        return Err(differs(what, &format!("as it was begun: `{command}`")));
    }
    if earlier.version != begun.version {
        return Err(differs(&format!("Onrush {}", earlier.version), "with that one"));
    }
    if earlier.machine != begun.machine {
        return Err(differs("another machine or kernel", "there"));
    }
    store.forget_failures()?;
    for folder in store.left_behind()? {
        // What cannot be removed is left, and tried again next time: it is in nobody's way.
        let removed = std::fs::remove_dir_all(&folder);
        if removed.is_ok() || !folder.exists() {
            store.forget_removed(&folder)?;
        }
    }
    Ok(store)
}

/// The folder of a run; none other has this name.
fn run_folder(folder: &Path, turn: Turn) -> Result<PathBuf, LabError> {
    let folder =
        std::path::absolute(folder).map_err(|error| FolderError::new("find", folder, error))?;
    let name = format!("onrush-lab-{}-{}-{}", std::process::id(), turn.case, turn.repeat);
    Ok(folder.join(name))
}

/// Makes one run in a folder of its own, which is gone afterwards.
fn run_turn(
    case: &Case,
    turn: Turn,
    folder: PathBuf,
    stacks: Option<&Path>,
    find: FindTarget<'_>,
    observer: &dyn Observer,
) -> Result<(TargetShown, Repeat), LabError> {
    let placement = Placement { folder: Some(folder), data_files: 1, ..Placement::default() };
    let place = Place::prepare(&placement)?;
    let target = find(&case.target).map_err(LabError::Setting)?;
    let folders = turn::Folders { own: place.folder(), stacks };
    let run = || turn::run(&*target, &case.settings, turn.repeat, folders, observer);
    std::panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(LabError::Target { target: case.target.clone(), what: format!("it panicked: {text}") })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_that_another_build_began_is_not_continued() {
        let folder = tempfile::tempdir().unwrap();
        let options = RunOptions {
            folder: folder.path().to_owned(),
            results: folder.path().join("r.sqlite"),
            resume: true,
            targets: Vec::new(),
            stacks: false,
            command: String::new(),
        };
        let now = crate::page::tests::invented();
        let began = StudyResult { version: "0.0.0 (build 00000000)".into(), ..now.clone() };
        drop(Store::create(&options.results, &began).unwrap());
        let refused = continued(&options, &now).err().unwrap().to_string();
        assert!(refused.contains("begun with Onrush 0.0.0 (build 00000000)"), "{refused}");
        assert!(continued(&options, &began).is_ok());
    }
}
