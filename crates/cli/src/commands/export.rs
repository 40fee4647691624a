//! `onrush export`: a table, or a range of its keys, as CSV, newline-JSON or Parquet.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use onrush_measure::units;
use onrush_terminal::failure::{Outcome, usage_error};
use onrush_terminal::progress;
use onrush_transfer::{ExportFormat, ExportOptions, export};

use super::import::CsvArguments;
use super::scan::RangeArguments;
use crate::arguments::database::TableArguments;

/// Export rows as CSV, newline-JSON or Parquet
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Export {
    #[command(flatten)]
    table: TableArguments,
    /// The file; - or nothing is standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The form of the output [default: by the file's name, else csv]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    #[command(flatten)]
    range: RangeArguments,
    /// Replace the file if there is one
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    csv: CsvArguments,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  onrush export shop orders > orders.csv
  onrush export shop orders --output orders.parquet
  onrush export shop orders --format json --from 100 --to 199 | jq .note

The rows are those of one snapshot, however long the export takes. What is exported as csv or json
and imported again gives the same rows.";

/// The forms of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Comma-separated values.
    Csv,
    /// One JSON object a line.
    Json,
    /// Parquet.
    Parquet,
}

/// Exports.
pub fn run(arguments: &Export) -> Outcome {
    let path = arguments.output.as_deref().filter(|path| *path != Path::new("-"));
    let format = arguments.format.unwrap_or_else(|| path.map_or(Format::Csv, format_of));
    let options = ExportOptions {
        format: match format {
            Format::Csv => ExportFormat::Csv(arguments.csv.options()),
            Format::Json => ExportFormat::Json,
            Format::Parquet => ExportFormat::Parquet,
        },
    };
    let (database, table) = arguments.table.open()?;
    let range = arguments.range.options(&table)?;
    let scan = database.session()?.scan(&table, &range)?;
    let bar = progress::rows_bar(arguments.quiet, "exporting");
    let mut show = |rows| bar.set_position(rows);
    match path {
        None => {
            let out = BufWriter::with_capacity(1 << 20, std::io::stdout());
            export(&table, scan, out, &options, &mut show)?;
            bar.finish_and_clear();
        }
        Some(path) => {
            let file = NewFile::create(path, arguments.force)?;
            let out = BufWriter::with_capacity(1 << 20, &file.file);
            let rows = export(&table, scan, out, &options, &mut show)
                .with_context(|| format!("cannot export to {}", path.display()))?;
            file.keep()?;
            bar.finish_and_clear();
            onrush_terminal::tell!("exported {} rows to {}", units::grouped(rows), path.display());
        }
    }
    drop(table);
    Ok(database.close()?)
}

fn format_of(path: &Path) -> Format {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
    match ending.to_ascii_lowercase().as_str() {
        "json" | "jsonl" | "ndjson" => Format::Json,
        "parquet" => Format::Parquet,
        _ => Format::Csv,
    }
}

/// A file that has its name only when it is complete.
struct NewFile {
    file: File,
    path: PathBuf,
    partial: PathBuf,
}

impl NewFile {
    fn create(path: &Path, force: bool) -> anyhow::Result<NewFile> {
        if path.exists() && !force {
            return Err(usage_error(format!(
                "{} exists already; add --force to replace it",
                path.display()
            )));
        }
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&partial)
            .with_context(|| format!("cannot create {}", partial.display()))?;
        Ok(NewFile { file, path: path.to_owned(), partial })
    }

    fn keep(&self) -> Outcome {
        (&self.file).flush()?;
        fs::rename(&self.partial, &self.path)
            .with_context(|| format!("cannot name the file {}", self.path.display()))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // Gone already when it was kept; else a part of an export is of no use.
        let _ = fs::remove_file(&self.partial);
    }
}
