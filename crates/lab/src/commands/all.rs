//! `onrush-lab run all`: every shipped study, one after the other, and how long each of them took.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use onrush_lab::study::{StudyResult, shipped};
use onrush_measure::units::elapsed;
use onrush_terminal::failure::{AlreadyTold, Outcome, usage_error};
use onrush_terminal::output;
use serde::Serialize;

use super::report;
use super::study::{StudyArguments, failed_cases};

/// What is given in place of a study.
pub const NAME: &str = "all";

/// What became of one study.
#[derive(Serialize)]
struct Ran {
    study: &'static str,
    elapsed_s: f64,
    /// Cases that ran, that cannot run here, and that failed.
    ran: usize,
    skipped: usize,
    failed: usize,
    results: PathBuf,
    /// Why none of its cases ran, or why it ended early.
    reason: Option<String>,
}

/// What became of all of them.
#[derive(Serialize)]
struct AllRan {
    studies: Vec<Ran>,
    elapsed_s: f64,
}

/// Runs them. One that cannot run here, or fails, is told and costs itself only.
pub fn run(arguments: &StudyArguments) -> Outcome {
    let size = if arguments.quick { "-quick" } else { "" };
    let folder = arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("lab-all{size}")));
    if folder.extension().is_some() && !folder.is_dir() {
        let given = folder.display();
        return Err(usage_error(format!("--out {given} is a file; of all studies give a folder")));
    }
    StudyArguments::continue_with(arguments.hint(NAME, &folder));
    let started = Instant::now();
    let mut studies = Vec::new();
    for name in shipped::names() {
        if !arguments.answer.quiet {
            onrush_terminal::tell!("{name}");
        }
        studies.push(one(arguments, name, &folder)?);
    }
    let all = AllRan { studies, elapsed_s: started.elapsed().as_secs_f64() };
    match arguments.answer.json {
        true => output::json(&all)?,
        false => output::text(&text(&all))?,
    }
    match all.studies.iter().all(|ran| ran.failed == 0) {
        true => Ok(()),
        false => Err(AlreadyTold::NotDone.into()),
    }
}

fn one(arguments: &StudyArguments, name: &'static str, folder: &Path) -> anyhow::Result<Ran> {
    let study = arguments.read(name)?;
    let results = report::result_file(folder, &study)?;
    let ended =
        Ran { study: name, elapsed_s: 0.0, ran: 0, skipped: 0, failed: 0, results, reason: None };
    if !arguments.concerns(&study) {
        let reason = Some("left out: it has none of the targets that were asked for".to_owned());
        return Ok(Ran { reason, ..ended });
    }
    let started = Instant::now();
    let outcome = arguments.run_kept(&study, &ended.results);
    let ended = Ran { elapsed_s: started.elapsed().as_secs_f64(), ..ended };
    let result = match outcome {
        Ok(result) => result,
        Err(error) => {
            let (failed, reason) = (study.cases().len(), Some(format!("FAILED: {error}")));
            return Ok(Ran { failed, reason, ..ended });
        }
    };
    report::write_beside(&result, &ended.results, arguments.answer.quiet)?;
    let count = |is: fn(&onrush_lab::study::CaseOutcome) -> bool| {
        result.cases.iter().filter(|case| is(case)).count()
    };
    Ok(Ran {
        ran: count(|case| case.summary.is_some()),
        skipped: count(|case| case.skipped.is_some()),
        failed: failed_cases(&result),
        reason: left_out(&result),
        ..ended
    })
}

/// Why not one case could run: the reason of the first.
fn left_out(result: &StudyResult) -> Option<String> {
    let all_skipped = result.cases.iter().all(|case| case.skipped.is_some());
    let first = result.cases.first()?;
    first.skipped.as_ref().filter(|_| all_skipped).map(|reason| format!("left out: {reason}"))
}

fn text(all: &AllRan) -> String {
    let time = |seconds: f64| elapsed(Duration::from_secs_f64(seconds));
    let mut text =
        format!("{:<12} {:>8} {:>6} {:>8} {:>7}\n", "study", "time", "cases", "not run", "failed");
    for ran in &all.studies {
        let reason = ran.reason.as_ref().map_or(String::new(), |reason| format!("  {reason}"));
        let (name, time) = (ran.study, time(ran.elapsed_s));
        writeln!(
            text,
            "{name:<12} {time:>8} {:>6} {:>8} {:>7}{reason}",
            ran.ran, ran.skipped, ran.failed
        )
        .expect("writing to a String cannot fail");
    }
    text + &format!("{:<12} {:>8}\n", "in all", time(all.elapsed_s))
}
