//! `onrush-lab run STUDY`, `lab list` and `lab show`: whole matrices over several targets.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use clap::Args;
use onrush_lab::LabError;
use onrush_lab::study::run::store::Store;
use onrush_lab::study::run::{Progress, RunOptions, StudyObserver, command_of, shell_word};
use onrush_lab::study::{CaseOutcome, Repeat, Size, Study, StudyResult, shipped, table};
use onrush_lab::target;
use onrush_measure::units::{elapsed, rounded};
use onrush_measure::{Observer, Step};
use onrush_terminal::arguments::answer::{AnswerArguments, PlaceArguments};
use onrush_terminal::arguments::metrics::MetricsArguments;
use onrush_terminal::failure::{AlreadyTold, Outcome, usage_error};
use onrush_terminal::output;
use onrush_terminal::progress::LabProgress;

use super::{all, report};

/// A study: its matrix on every target it names
#[derive(Args, Clone)]
pub struct StudyArguments {
    /// A shipped study (see `onrush-lab list`), a file of your own (see docs/lab.md), or `all`:
    /// every shipped study, one after the other
    #[arg(required = true, value_name = "STUDY")]
    pub(super) study: Option<String>,
    /// Its small size: a minute or two on two processors
    #[arg(long)]
    pub(super) quick: bool,
    /// A setting for all cases, whatever the study says; give it several times for several
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(super) set: Vec<String>,
    /// Runs of each case, instead of what the study says; several give medians and error bars
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(super) repeats: Option<u8>,
    /// Only this target, also one that the study does not name; give it several times for several.
    /// Of `all` only the studies that name it
    #[arg(long = "target", value_name = "NAME")]
    pub(super) targets: Vec<String>,
    #[command(flatten)]
    pub(super) place: PlaceArguments,
    /// The result file, or a folder for it; the report is written beside it
    /// [default: lab-STUDY.sqlite or lab-STUDY-quick.sqlite, numbered; of all: a folder lab-all]
    #[arg(long, value_name = "PATH")]
    pub(super) out: Option<PathBuf>,
    /// Write a flame graph of each load beside the result file: where processor time goes, stack by stack, of targets
    /// in this process, without the C library and the system. It costs some percent of the rate
    #[arg(long)]
    pub(super) stacks: bool,
    /// Continue the result file where it was interrupted, and try again what failed
    #[arg(long)]
    pub(super) resume: bool,
    #[command(flatten)]
    pub(super) answer: AnswerArguments,
    #[command(flatten)]
    pub(super) metrics: MetricsArguments,
}

pub const EXAMPLES: &str = "\
Examples:
  onrush-lab run singleton
  onrush-lab run keys --quick
  onrush-lab run keys --quick --repeats 3
  onrush-lab run keys --target onrush --target sqlite --dir /mnt/nvme --out keys.sqlite
  onrush-lab run keys --out keys.sqlite --resume
  onrush-lab run keys --target onrush --metrics 127.0.0.1:9187
  onrush-lab run keys --quick --set sessions=8 --set rows=200k
  onrush-lab run phases --quick --stacks
  onrush-lab run all --quick
  onrush-lab run my-study.toml --json";

/// List the studies that come with onrush, and the targets
#[derive(Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct ListArguments {
    /// Print the file of this study, to begin one of your own with
    #[arg(long, value_name = "STUDY")]
    source: Option<String>,
    /// Print the settings that a study may turn, as the table of docs/lab.md
    #[arg(long, conflicts_with = "source")]
    settings: bool,
}

const LIST_EXAMPLES: &str = "\
Examples:
  onrush-lab list
  onrush-lab list --source keys > mine.toml
  onrush-lab list --settings";

/// Show the results of a study, finished or not
#[derive(Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct ShowArguments {
    /// A result file
    results: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const SHOW_EXAMPLES: &str = "\
Examples:
  onrush-lab show lab-keys-quick.sqlite
  onrush-lab show keys.sqlite --json";

/// Lists studies and targets.
pub fn list(arguments: &ListArguments) -> Outcome {
    if let Some(name) = &arguments.source {
        return output::text(shipped::source(name).map_err(usage_error)?);
    }
    if arguments.settings {
        return output::text(&onrush_lab::study::page::settings_table());
    }
    let mut text = String::from("Studies: onrush-lab run NAME [--quick]\n\n");
    for name in shipped::names() {
        let study = shipped::study(name, Size::Full)?;
        text += &format!("  {name:<12} {:<4} {}\n", study.experiment, study.title);
    }
    text += "\nTargets\n\n";
    for name in target::NAMES {
        let state = match target::find(name) {
            Ok(target) => target.missing().unwrap_or_else(|| "ready".to_owned()),
            Err(reason) => reason,
        };
        text += &format!("  {name:<14} {state}\n");
    }
    output::text(&text)
}

/// Shows what a result file holds.
pub fn show(arguments: &ShowArguments) -> Outcome {
    print(&Store::open(&arguments.results)?.result()?, arguments.json)
}

fn print(result: &StudyResult, json: bool) -> Outcome {
    if json { output::json(result) } else { output::text(&table::text(result)) }
}

/// Runs a study, or all of them.
pub fn run(arguments: &StudyArguments) -> Outcome {
    let given = arguments.study.as_deref().unwrap_or_default();
    for name in &arguments.targets {
        target::find(name).map_err(usage_error)?;
    }
    arguments.metrics.address_of_many()?;
    if given == all::NAME {
        return all::run(arguments);
    }
    let (result, results) = made(arguments)?;
    print(&result, arguments.answer.json)?;
    if !arguments.answer.quiet {
        onrush_terminal::tell!("results: {}", results.display());
    }
    report::write_beside(&result, &results, arguments.answer.quiet)?;
    tell_failed(&result)
}

/// Runs one study, or what is missing of it; its result, and the file that keeps it.
pub(super) fn made(arguments: &StudyArguments) -> anyhow::Result<(StudyResult, PathBuf)> {
    let given = arguments.study.as_deref().unwrap_or_default();
    let mut study = arguments.read(given)?;
    for name in &arguments.targets {
        study.measure_also(name).map_err(usage_error)?;
    }
    let results = match &arguments.out {
        Some(path) => report::result_file(path, &study)?,
        None => default_results(&study, arguments.resume),
    };
    let hint = arguments.hint(given, &results);
    StudyArguments::continue_with(hint.clone());
    let result = arguments.run_kept(&study, &results).map_err(|error| {
        // What another command began is not continued by this one: such an error names its own cure.
        let is_of_another = matches!(error.downcast_ref(), Some(LabError::OtherStudy { .. }));
        match results.exists() && !is_of_another {
            true => anyhow::anyhow!("{error}; {hint}"),
            false => error,
        }
    })?;
    Ok((result, results))
}

/// Fails, with a word to the user, if a case failed.
pub(super) fn tell_failed(result: &StudyResult) -> Outcome {
    match failed_cases(result) {
        0 => Ok(()),
        failed => {
            onrush_terminal::tell!(
                "onrush-lab: {failed} cases failed or did not hold what was acknowledged"
            );
            Err(AlreadyTold::NotDone.into())
        }
    }
}

/// How many cases failed, or did not hold what was acknowledged.
pub(super) fn failed_cases(result: &StudyResult) -> usize {
    result.cases.iter().filter(|case| !case.passed()).count()
}

impl StudyArguments {
    /// The study in the size, with the repeats and settings that were asked for.
    pub(super) fn read(&self, given: &str) -> anyhow::Result<Study> {
        let mut study = read(given, if self.quick { Size::Quick } else { Size::Full })?;
        study.repeats = self.repeats.map_or(study.repeats, usize::from);
        for setting in &self.set {
            study.set_everywhere(setting).map_err(usage_error)?;
        }
        Ok(study)
    }

    /// Whether a study has any of the targets that were asked for.
    pub(super) fn concerns(&self, study: &Study) -> bool {
        let is_asked_for = |target: &String| self.targets.contains(target);
        self.targets.is_empty() || study.cases().iter().any(|case| is_asked_for(&case.target))
    }

    /// Runs a study, or what is missing of it, into its result file.
    pub(super) fn run_kept(&self, study: &Study, results: &Path) -> anyhow::Result<StudyResult> {
        let options = RunOptions {
            folder: self.place.dir.clone(),
            results: results.to_owned(),
            resume: self.resume,
            targets: self.targets.clone(),
            stacks: self.stacks,
            command: command_of(std::env::args()),
        };
        let observer = Shown::new(self.answer.quiet);
        let metrics = self.metrics.address_of_many()?;
        let find = |name: &str| target::find_serving(name, metrics);
        Ok(onrush_lab::study::run::run(study, &options, &find, &observer)?)
    }

    /// Where the results are, and how to go on.
    pub(super) fn hint(&self, given: &str, results: &Path) -> String {
        let mut words = ["onrush-lab", "run", "--resume", given].map(shell_word).to_vec();
        let flag = |name: &str, value: &str| [name.to_owned(), shell_word(value)];
        words.extend(self.quick.then(|| "--quick".to_owned()));
        words.extend(self.stacks.then(|| "--stacks".to_owned()));
        words.extend(self.repeats.iter().flat_map(|one| flag("--repeats", &one.to_string())));
        words.extend(self.set.iter().flat_map(|one| flag("--set", one)));
        words.extend(self.targets.iter().flat_map(|one| flag("--target", one)));
        words.extend(flag("--dir", &self.place.dir.to_string_lossy()));
        words.extend(flag("--out", &results.to_string_lossy()));
        let (results, words) = (results.display(), words.join(" "));
        format!("the results so far are in {results}; continue with `{words}`")
    }

    /// What to say should this process be interrupted. Set once: it runs one study, or all of them.
    pub(super) fn continue_with(hint: String) {
        let _ = CONTINUE.set(hint);
    }
}

/// Runs a study that is not kept: only its result counts.
pub fn measure(
    study: &Study,
    dir: &Path,
    results: &Path,
    quiet: bool,
) -> anyhow::Result<StudyResult> {
    let options = RunOptions {
        folder: dir.to_owned(),
        results: results.to_owned(),
        resume: false,
        targets: Vec::new(),
        stacks: false,
        command: command_of(std::env::args()),
    };
    let observer = Shown::new(quiet);
    Ok(onrush_lab::study::run::run(study, &options, &target::find, &observer)?)
}

fn read(given: &str, size: Size) -> anyhow::Result<Study> {
    let is_file = given.ends_with(".toml") || Path::new(given).is_file();
    if !is_file {
        let text = shipped::source(given).map_err(usage_error)?;
        return Ok(Study::read(text, given, size)?);
    }
    let text = std::fs::read_to_string(given)
        .map_err(|error| anyhow::anyhow!("cannot read the study {given}: {error}"))?;
    Study::read(&text, given, size).map_err(|error| usage_error(error.to_string()))
}

/// A name that is free; to continue, the newest one that is not.
fn default_results(study: &Study, resume: bool) -> PathBuf {
    let size = if study.size == Size::Quick { "-quick" } else { "" };
    let name = |number: usize| match number {
        1 => PathBuf::from(format!("lab-{}{size}.sqlite", study.name)),
        _ => PathBuf::from(format!("lab-{}{size}-{number}.sqlite", study.name)),
    };
    let free = (1..).find(|number| !name(*number).exists()).unwrap_or(1);
    if resume && free > 1 { name(free - 1) } else { name(free) }
}

/// What to say should the study be interrupted.
static CONTINUE: OnceLock<String> = OnceLock::new();

/// Says where the results are and how to go on, if a study was running.
pub fn tell_how_to_continue() {
    if let Some(hint) = CONTINUE.get() {
        onrush_terminal::tell(&format!("\nonrush-lab: interrupted; {hint}"));
    }
}

/// A line for each run; within it, what it is doing, if this is a terminal.
struct Shown {
    quiet: bool,
    is_terminal: bool,
    inner: LabProgress,
    runs: Cell<(usize, usize)>,
}

impl Shown {
    fn new(quiet: bool) -> Shown {
        let is_terminal = onrush_terminal::progress::is_shown(quiet);
        Shown { quiet, is_terminal, inner: LabProgress::new(!is_terminal), runs: Cell::new((0, 0)) }
    }
}

impl Observer for Shown {
    fn begin(&self, step: Step, rows: Option<u64>) {
        if self.is_terminal {
            self.inner.begin(step, rows);
        }
    }

    fn advance(&self, rows_done: u64) {
        self.inner.advance(rows_done);
    }

    fn end(&self) {
        self.inner.end();
    }

    fn warn(&self, message: &str) {
        self.inner.warn(message);
    }
}

impl StudyObserver for Shown {
    fn run_begins(&self, progress: &Progress<'_>) {
        self.runs.set((progress.done + 1, progress.all));
        if self.quiet {
            return;
        }
        let left = progress.left.map_or(String::new(), |left| {
            let left = Duration::from_secs(left.as_secs());
            format!(", about {} left", elapsed(left))
        });
        let (number, all) = self.runs.get();
        let case = progress.case;
        let changed: Vec<String> = case
            .settings
            .changed()
            .map(|(setting, value)| format!("{} {value}", setting.name()))
            .collect();
        let part = case.part.as_ref().map_or(String::new(), |part| format!("{part}: "));
        let changed = changed.join(", ");
        onrush_terminal::tell!("[{number}/{all}{left}] {part}{}, {changed}", case.target);
    }

    fn run_ends(&self, case: &CaseOutcome, outcome: Result<&Repeat, &str>) {
        match outcome {
            Ok(repeat) if !self.quiet => {
                onrush_terminal::tell!("    {} rows/s", rounded(repeat.rows_per_s));
                for warning in &repeat.warnings {
                    onrush_terminal::tell!("    warning: {warning}");
                }
            }
            Ok(_) => {}
            Err(reason) => {
                onrush_terminal::tell!("onrush-lab: {} failed: {reason}; going on", case.target)
            }
        }
    }
}
