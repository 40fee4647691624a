//! `onrush import`: rows from CSV or newline-JSON.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use onrush_measure::units;
use onrush_terminal::arguments::answer::AnswerArguments;
use onrush_terminal::failure::{AlreadyTold, Outcome, usage_error};
use onrush_transfer::csv::CsvOptions;
use onrush_transfer::{
    ImportFormat, ImportOptions, ImportReport, Rejects, TransferError, Watcher, import,
};
use serde_json::json;

use super::import_mark::{Mark, command_from};
use crate::arguments::database::TableArguments;
use onrush_terminal::{output, progress};

/// Import rows from CSV or newline-JSON
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Import {
    #[command(flatten)]
    table: TableArguments,
    /// The file; - or nothing is standard input
    file: Option<PathBuf>,
    /// The form of the input [default: by the file's name, else csv]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Rows of each transaction
    #[arg(long, value_name = "ROWS", default_value = "1", value_parser = units::parse_count)]
    rows_per_commit: u64,
    /// Begin with this line, where a row begins; a header is read all the same
    #[arg(long, value_name = "LINE", default_value_t = 1)]
    from_line: u64,
    /// Let a row replace the one that has its key
    #[arg(long)]
    upsert: bool,
    /// Where rejected rows go; beside it, under the next free name, if there is a file already
    /// [default: the input's name with .rejected.csv added]
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// Replace a file of rejected rows that is there
    #[arg(long)]
    overwrite_rejects: bool,
    /// Exit with 0 although rows were rejected
    #[arg(long)]
    rejects_ok: bool,
    #[command(flatten)]
    csv: CsvArguments,
    #[command(flatten)]
    answer: AnswerArguments,
}

const EXAMPLES: &str = "\
Examples:
  onrush import shop orders orders.csv
  onrush import shop orders orders.jsonl --rows-per-commit 100
  zcat orders.csv.gz | onrush import shop orders --rejects bad.csv
  onrush import shop orders old.csv --no-header --delimiter ';' --null '\\N'
  onrush import shop orders orders.csv --from-line 120001        go on where one was cut off
  onrush import shop orders orders.csv --upsert                  rows that are there are replaced

CSV: the first line names the columns; columns that are missing take their default. An empty field
is NULL (or the default, where NULL is not allowed), an empty text is \"\".
JSON: one object a line. Numbers are for numeric columns, true and false for boolean ones; a text is
read for a column of any type.
A row that cannot be imported goes to the rejects file as line,reason,row; the others are imported,
and the exit code is 1. All imported rows are durable when the command ends.
Ctrl-C, or SIGTERM, ends the import behind the row at hand: what was read is imported and durable, and
the command to go on with is told; the exit code is 1. A second one ends it at once.";

/// The forms of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Comma-separated values.
    Csv,
    /// One JSON object a line.
    Json,
}

/// How CSV looks.
#[derive(Args, Clone, Debug)]
pub struct CsvArguments {
    /// CSV: what stands between fields; \t is a tabulator
    #[arg(long, value_name = "CHARACTER", default_value = ",", value_parser = delimiter)]
    delimiter: u8,
    /// CSV: what stands for NULL when it is not in quotes [default: nothing]
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    null: String,
    /// CSV: the first line does not name the columns; they come in the order of the table
    #[arg(long)]
    no_header: bool,
}

impl CsvArguments {
    /// The options that the flags stand for.
    pub fn options(&self) -> CsvOptions {
        CsvOptions { delimiter: self.delimiter, null: self.null.clone(), header: !self.no_header }
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    let text = if text == "\\t" { "\t" } else { text };
    match text.as_bytes() {
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err("one ASCII character is expected, and no quote or line end".to_owned()),
    }
}

/// Imports, and says what became of the rows.
pub fn run(arguments: &Import) -> Outcome {
    let input = Input::open(arguments.file.as_deref())?;
    let options = ImportOptions {
        format: match arguments.format.unwrap_or_else(|| format_of(&input.name)) {
            Format::Csv => ImportFormat::Csv(arguments.csv.options()),
            Format::Json => ImportFormat::Json,
        },
        rows_per_commit: usize::try_from(arguments.rows_per_commit).unwrap_or(usize::MAX),
        from_line: arguments.from_line,
        is_upsert: arguments.upsert,
    };
    if options.rows_per_commit == 0 {
        return Err(usage_error("--rows-per-commit is 0; give at least 1"));
    }
    let is_enough = interruption()?;
    let (database, table) = arguments.table.open()?;
    let mut mark = Mark::new(&arguments.table.folder, &arguments.table.table, &input.name);
    if let Some(earlier) = mark.earlier() {
        onrush_terminal::tell!("onrush: {earlier}");
    }
    mark.write(arguments.from_line);
    let rejects_path = arguments.rejects.clone().unwrap_or_else(|| input.rejects_path());
    let mut rejects = match arguments.overwrite_rejects {
        true => Rejects::overwriting(rejects_path),
        false => Rejects::new(rejects_path),
    };
    let bar = match input.length_bytes {
        Some(length) => progress::bytes_bar(arguments.answer.quiet, length, "importing"),
        None => progress::rows_bar(arguments.answer.quiet, "importing"),
    };
    let by_bytes = input.length_bytes.is_some();
    let mut watch = Watch { bar: &bar, by_bytes, is_enough, mark: &mut mark };
    let started = Instant::now();
    let outcome = import(&database, &table, input.reader, &options, &mut rejects, &mut watch)
        .with_context(|| format!("cannot import {}", input.name));
    bar.finish_and_clear();
    if outcome.is_err() {
        // The import has failed already; that the rows rejected before are incomplete is no news.
        let _ = rejects.finish();
    }
    if let Err(error) = &outcome
        && matches!(error.downcast_ref(), Some(TransferError::Input(_)))
    {
        // Nothing was begun.
        mark.remove();
    }
    let report = outcome?;
    let elapsed = started.elapsed();
    drop(table);
    database.close()?;
    match report.is_interrupted {
        true => mark.write(report.next_line),
        false => mark.remove(),
    }
    tell(arguments, &report, &rejects, elapsed)
}

/// Set once somebody has asked the process to end.
fn interruption() -> anyhow::Result<&'static AtomicBool> {
    static IS_ENOUGH: AtomicBool = AtomicBool::new(false);
    let handler = || {
        if IS_ENOUGH.swap(true, Ordering::Relaxed) {
            // Whoever asks twice does not want to wait for a row that may never come.
            std::process::exit(1);
        }
    };
    ctrlc::set_handler(handler).context("cannot wait for signals")?;
    Ok(&IS_ENOUGH)
}

/// Shows how far the import is, and ends it when it is asked to.
struct Watch<'w> {
    bar: &'w ProgressBar,
    by_bytes: bool,
    is_enough: &'static AtomicBool,
    mark: &'w mut Mark,
}

impl Watcher for Watch<'_> {
    fn advanced(&mut self, report: &ImportReport) {
        advance(self.bar, self.by_bytes, report);
        self.mark.advance(report.next_line);
    }

    fn is_enough(&self) -> bool {
        self.is_enough.load(Ordering::Relaxed)
    }
}

fn advance(bar: &ProgressBar, by_bytes: bool, report: &ImportReport) {
    bar.set_position(if by_bytes { report.bytes_read } else { report.rows_imported });
    let rejected = match report.rows_rejected {
        0 => String::new(),
        rows => format!(" ({} rejected)", units::grouped(rows)),
    };
    let imported = units::grouped(report.rows_imported);
    bar.set_message(match by_bytes {
        true => format!("imported {imported} rows{rejected}"),
        false => format!("importing{rejected}"),
    });
}

fn tell(
    arguments: &Import,
    report: &ImportReport,
    rejects: &Rejects,
    elapsed: Duration,
) -> Outcome {
    let seconds = elapsed.as_secs_f64();
    let rows_per_s = report.rows_imported as f64 / seconds.max(1e-9);
    let side_file = (rejects.count() > 0).then(|| rejects.path().display().to_string());
    if arguments.answer.json {
        output::json_line(&json!({
            "rows_read": report.rows_read,
            "rows_imported": report.rows_imported,
            "rows_rejected": report.rows_rejected,
            "rejects_file": side_file,
            "bytes_read": report.bytes_read,
            "next_line": report.next_line,
            "is_interrupted": report.is_interrupted,
            "go_on": report.is_interrupted.then(|| command_from(report.next_line)),
            "elapsed_s": seconds,
            "rows_per_s": rows_per_s,
        }))?;
    } else {
        output::text(&format!(
            "imported {} rows in {} ({} rows/s)\n",
            units::grouped(report.rows_imported),
            units::elapsed(elapsed),
            units::rounded(rows_per_s)
        ))?;
    }
    if report.is_interrupted {
        onrush_terminal::tell!(
            "onrush: interrupted after {} rows; all up to line {} are imported or rejected, and durable. To go \
             on:\n  {}",
            units::grouped(report.rows_read),
            report.next_line.saturating_sub(1),
            command_from(report.next_line)
        );
    }
    let not_all = if report.is_interrupted { Err(AlreadyTold::NotDone.into()) } else { Ok(()) };
    let Some(side_file) = side_file else { return not_all };
    onrush_terminal::tell!(
        "onrush: rejected {} of {} rows; they are in {side_file} with line numbers and reasons",
        units::grouped(report.rows_rejected),
        units::grouped(report.rows_read)
    );
    for (line, reason) in rejects.examples() {
        onrush_terminal::tell!("  line {line}: {reason}");
    }
    if report.rows_rejected > rejects.examples().len() as u64 {
        onrush_terminal::tell!("  ...");
    }
    if arguments.rejects_ok { not_all } else { Err(AlreadyTold::NotDone.into()) }
}

/// Where rows come from.
struct Input {
    name: String,
    path: Option<PathBuf>,
    length_bytes: Option<u64>,
    reader: Box<dyn BufRead>,
}

impl Input {
    fn open(path: Option<&Path>) -> anyhow::Result<Input> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            let stdin = std::io::stdin();
            if stdin.is_terminal() {
                return Err(usage_error(
                    "no file given, and standard input is the keyboard; name a file or pipe into it",
                ));
            }
            return Ok(Input {
                name: "standard input".into(),
                path: None,
                length_bytes: None,
                reader: Box::new(BufReader::with_capacity(1 << 20, stdin)),
            });
        };
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
        let metadata = file.metadata().with_context(|| format!("cannot open {name}"))?;
        anyhow::ensure!(!metadata.is_dir(), "cannot import {name}: it is a folder; name a file");
        Ok(Input {
            name,
            path: Some(path.to_owned()),
            length_bytes: metadata.is_file().then_some(metadata.len()),
            reader: Box::new(BufReader::with_capacity(1 << 20, file)),
        })
    }

    fn rejects_path(&self) -> PathBuf {
        let name = self.path.as_deref().map_or(Path::new("stdin"), |path| path);
        let mut with_ending = name.as_os_str().to_owned();
        with_ending.push(".rejected.csv");
        PathBuf::from(with_ending)
    }
}

fn format_of(name: &str) -> Format {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).unwrap_or("");
    match ending.to_ascii_lowercase().as_str() {
        "json" | "jsonl" | "ndjson" => Format::Json,
        _ => Format::Csv,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_follows_the_name() {
        assert_eq!(format_of("a/orders.jsonl"), Format::Json);
        assert_eq!(format_of("orders.CSV"), Format::Csv);
        assert_eq!(format_of("standard input"), Format::Csv);
    }

    #[test]
    fn a_delimiter_is_one_character() {
        assert_eq!(delimiter(";"), Ok(b';'));
        assert_eq!(delimiter("\\t"), Ok(b'\t'));
        assert!(delimiter("::").is_err() && delimiter("\"").is_err() && delimiter("é").is_err());
    }
}
