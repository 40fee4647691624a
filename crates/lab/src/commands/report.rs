//! `onrush-lab report`: what a study found as a page, and as CSV and JSON.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use onrush_lab::study::run::store::Store;
use onrush_lab::study::{Size, Study, StudyResult};
use onrush_lab::{compare, page};
use onrush_terminal::failure::{Outcome, usage_error};

/// Write the report of a study, finished or not: HTML, CSV and JSON
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArguments {
    /// A result file
    results: PathBuf,
    /// Folder for the report [default: where the result file is]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Write only this JSON file, with what `onrush-lab compare` needs and nothing else
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    kept: Option<PathBuf>,
    /// Write only this SVG file, the first chart of the report, for a page of your own
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "kept"])]
    chart: Option<PathBuf>,
    /// Do not say what was written
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  onrush-lab report lab-keys-quick.sqlite
  onrush-lab report keys.sqlite --out reports
  onrush-lab report keys.sqlite --chart keys.svg";

/// Writes the report.
pub fn run(arguments: &ReportArguments) -> Outcome {
    let result = Store::open(&arguments.results)?.result()?;
    if let Some(path) = &arguments.kept {
        let text = serde_json::to_string(&compare::kept(result))?;
        return std::fs::write(path, text + "\n")
            .with_context(|| format!("cannot write {}", path.display()));
    }
    if let Some(path) = &arguments.chart {
        let chart =
            page::chart_svg(&result).context("no case has run: there is nothing to draw")?;
        return std::fs::write(path, chart)
            .with_context(|| format!("cannot write {}", path.display()));
    }
    let folder = arguments.out.clone().unwrap_or_else(|| folder_of(&arguments.results));
    write(&result, &folder, &arguments.results, arguments.quiet)
}

/// Writes the report beside the result file, under its name.
pub fn write_beside(result: &StudyResult, results: &Path, quiet: bool) -> Outcome {
    write(result, &folder_of(results), results, quiet)
}

fn write(result: &StudyResult, folder: &Path, results: &Path, quiet: bool) -> Outcome {
    let name = results.file_stem().map_or_else(|| result.study.clone().into(), ToOwned::to_owned);
    let paths = page::write(result, folder, &name.to_string_lossy())?;
    if let Some((page, others)) = paths.split_first().filter(|_| !quiet) {
        let others: Vec<String> = others.iter().map(|path| path.display().to_string()).collect();
        onrush_terminal::tell!("report: {} ({})", page.display(), others.join(", "));
    }
    Ok(())
}

fn folder_of(results: &Path) -> PathBuf {
    match results.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Where the result file goes: the path that was given, or, if that is a folder, one in it.
pub fn result_file(out: &Path, study: &Study) -> anyhow::Result<PathBuf> {
    let is_folder = out.is_dir() || out.extension().is_none();
    if !is_folder {
        return Ok(out.to_owned());
    }
    std::fs::create_dir_all(out).map_err(|error| {
        usage_error(format!("cannot make the folder {}: {error}", out.display()))
    })?;
    let size = if study.size == Size::Quick { "-quick" } else { "" };
    Ok(out.join(format!("{}{size}.sqlite", study.name)))
}
