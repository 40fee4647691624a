//! The report of a study: one HTML file that loads nothing, and the same figures as CSV and JSON.
//!
//! - [`view`]: which figure goes where. [`headline`]: what it says in a sentence.
//! - [`chart`]: drawings; [`shares`]: what a whole consists of. [`pictures`]: the sections that have one. [`tables`],
//!   [`classic_format`] and [`counters`]: the others.
//! - [`csv`]: for spreadsheets.
//!
//! Invariants
//! 1. The page needs no script, no font and no picture from elsewhere, and no network.
//! 2. Every figure in a chart stands in a table too.
//! 3. Whatever makes a figure doubtful stands beside it.

mod chart;
mod classic_format;
mod counters;
mod csv;
mod headline;
mod pictures;
mod shares;
mod tables;
#[cfg(test)]
pub(crate) mod tests;
mod view;

use std::path::{Path, PathBuf};

use crate::error::LabError;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use onrush_measure::FolderError;
use onrush_measure::units::micros;

use crate::study::StudyResult;

const STYLE: &str = include_str!("style.css");

/// The page.
pub fn html(result: &StudyResult) -> String {
    let panels = view::panels(result);
    let sentence = headline::sentence(result, &panels);
    let title = format!("{}: {sentence}", result.title);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { (heading(result, &sentence)) }
                main {
                    (pictures::chart(result, &panels))
                    (tables::doubts(result))
                    (tables::verdicts(result))
                    (tables::cases(result))
                    (tables::steps(result))
                    (tables::classic(result))
                    (pictures::waits(result))
                    (pictures::phases(result))
                    (pictures::stacks(result))
                    (pictures::over_time(result))
                    (counters::of_baselines(result))
                    (tables::settings(result))
                    (tables::again(result))
                }
            }
        }
    };
    page.into_string()
}

/// The study's first chart as a picture (SVG) that needs nothing else, for a page of one's own.
/// None if no case has run.
pub fn chart_svg(result: &StudyResult) -> Option<String> {
    let panels = view::panels(result);
    let chart = pictures::chart_file(result, panels.first()?, STYLE).into_string();
    Some(format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{chart}\n"))
}

fn heading(result: &StudyResult, sentence: &str) -> Markup {
    let size = format!("{:?} size", result.size).to_lowercase();
    let machine = &result.machine;
    html! {
        p.kicker {
            "Onrush lab"
            @if !result.experiment.is_empty() { " \u{b7} " (result.experiment) }
            " \u{b7} " (result.title)
        }
        h1 { (sentence) "." }
        p.lead { (result.description.trim()) }
        p.meta {
            (tables::date(result.started_unix_s)) " \u{b7} " (size) " \u{b7} "
            (machine.cpus) " CPUs, " (machine.cpu_name) " \u{b7} "
            (result.device.kind) " on " (result.device.device) " \u{b7} durable write of 4 KiB "
            (micros(result.sync_time_us.p50_us)) " \u{b7} Onrush " (result.version)
        }
    }
}

/// Writes `NAME.html`, `NAME.csv`, `NAME-waits.csv` and `NAME.json` into a folder, which is made if
/// it is not there; returns their paths, the page first.
///
/// # Errors
/// The disk refuses; what has been written stays.
pub fn write(result: &StudyResult, folder: &Path, name: &str) -> Result<Vec<PathBuf>, LabError> {
    std::fs::create_dir_all(folder)
        .map_err(|error| FolderError::new("create folder", folder, error))?;
    let json = serde_json::to_string_pretty(result)
        .map_err(|error| LabError::Setting(format!("the result is no JSON: {error}")))?;
    let files = [
        ("html", String::new(), html(result)),
        ("csv", String::new(), csv::runs(result)),
        ("csv", "-waits".to_owned(), csv::waits(result)),
        ("json", String::new(), json + "\n"),
    ];
    let mut paths = Vec::new();
    for (kind, part, text) in files {
        let path = folder.join(format!("{name}{part}.{kind}"));
        std::fs::write(&path, text).map_err(|error| FolderError::new("write", &path, error))?;
        paths.push(path);
    }
    Ok(paths)
}
