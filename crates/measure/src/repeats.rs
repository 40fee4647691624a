//! The same load several times, and the run in the middle.

use serde::Serialize;

use crate::case::run_case;
use crate::error::MeasureError;
use crate::progress::Observer;
use crate::result::CaseResult;
use crate::settings::CaseSettings;

/// Several runs of one load: the fields of the median run, and what the others reached.
#[derive(Clone, Debug, Serialize)]
pub struct Repeated {
    /// The run with the median of rows/s; of an even number, the slower of the two in the middle.
    #[serde(flatten)]
    pub median: CaseResult,
    /// Runs made.
    pub repeats: usize,
    /// Rows a second of each, in the order they ran.
    pub rows_per_s_of_runs: Vec<f64>,
}

/// Runs a load `repeats` times, each in a database of its own. Stops at the first run whose
/// verification fails, and returns that one.
///
/// # Errors
/// As [`run_case`]; no runs at all.
pub fn run_repeated(
    settings: &CaseSettings,
    repeats: usize,
    observer: &dyn Observer,
) -> Result<Repeated, MeasureError> {
    if repeats == 0 {
        return Err(MeasureError::Setting("--repeats is 0; give at least 1".into()));
    }
    if repeats > 1 && settings.placement.keep && settings.placement.folder.is_some() {
        return Err(MeasureError::Setting(
            "--keep and --dir leave space for one database only; run without --repeats".into(),
        ));
    }
    let mut runs = Vec::with_capacity(repeats);
    for _ in 0..repeats {
        let run = run_case(settings, observer)?;
        if !run.passed() {
            let rows_per_s_of_runs = vec![run.rows_per_s];
            return Ok(Repeated { median: run, repeats: 1, rows_per_s_of_runs });
        }
        runs.push(run);
    }
    let rows_per_s_of_runs = runs.iter().map(|run| run.rows_per_s).collect();
    let median = middle(runs).ok_or_else(|| MeasureError::Setting("nothing was run".into()))?;
    Ok(Repeated { median, repeats, rows_per_s_of_runs })
}

fn middle(mut runs: Vec<CaseResult>) -> Option<CaseResult> {
    runs.sort_by(|left, right| left.rows_per_s.total_cmp(&right.rows_per_s));
    let middle = runs.len().checked_sub(1)? / 2;
    Some(runs.swap_remove(middle))
}
