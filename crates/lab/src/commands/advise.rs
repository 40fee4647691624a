//! `onrush-lab advise`: a short ladder on a table of the user's own, and what to do about it.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use onrush_lab::advise::{self, Ladder};
use onrush_lab::own_table::{OwnTable, sample};
use onrush_lab::study::Size;
use onrush_lab::target;
use onrush_terminal::arguments::answer::{AnswerArguments, PlaceArguments};
use onrush_terminal::failure::{Outcome, usage_error};
use onrush_terminal::output;
use onrush_transfer::csv::reader::{CsvReader, Record};

use super::study;

/// Measure key strategies, batches, durability and data files on your table, and say what to use
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct AdviseArguments {
    /// A file with a CREATE TABLE statement [default: the table of the classic studies]
    #[arg(value_name = "FILE.sql")]
    table: Option<PathBuf>,
    /// Instead: a CSV file with a header and some rows, as they will be inserted; the first column
    /// is the key
    #[arg(long, value_name = "FILE.csv", conflicts_with = "table")]
    sample: Option<PathBuf>,
    /// Who is measured; targets other than onrush get the classic table
    #[arg(long, value_name = "NAME", default_value = "onrush")]
    target: String,
    /// Concurrent sessions
    #[arg(long, value_name = "N", default_value_t = 24)]
    sessions: usize,
    /// Measure for a minute or so; the advice is rougher
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    place: PlaceArguments,
    #[command(flatten)]
    answer: AnswerArguments,
}

const EXAMPLES: &str = "\
Examples:
  onrush-lab advise orders.sql --dir /mnt/nvme
  onrush-lab advise --sample orders.csv --quick
  onrush-lab advise orders.sql --quick --json

Columns get their defaults, or typical values of their types; the key is made by the strategies that
fit its type. Nothing of the table's own data is needed, and nothing of it is touched.";

/// So many rows of a sample are looked at.
const SAMPLE_ROWS_MAX: usize = 10_000;

/// Measures and advises.
pub fn run(arguments: &AdviseArguments) -> Outcome {
    target::find(&arguments.target).map_err(usage_error)?;
    let kept = tempfile::tempdir().context("cannot make a folder for the results")?;
    let path = match (&arguments.table, &arguments.sample) {
        (Some(path), _) => Some(std::path::absolute(path)?),
        (None, Some(path)) => Some(from_sample(path, kept.path(), arguments.answer.quiet)?),
        (None, None) => None,
    };
    let table = path.as_deref().map(OwnTable::read).transpose().map_err(usage_error)?;
    let path = path.map(|path| path.display().to_string()).unwrap_or_default();
    if table.is_some() && arguments.target != "onrush" && !arguments.answer.quiet {
        onrush_terminal::tell!(
            "onrush-lab: {} is measured with the classic table",
            arguments.target
        );
    }
    let ladder = Ladder {
        table: table.as_ref().map(|table| (table, path.as_str())),
        target: arguments.target.clone(),
        sessions: arguments.sessions,
        size: if arguments.quick { Size::Quick } else { Size::Full },
    };
    let results = kept.path().join("advise.sqlite");
    let result = study::measure(
        &advise::study(&ladder)?,
        &arguments.place.dir,
        &results,
        arguments.answer.quiet,
    )?;
    let advice = advise::of(&result);
    if arguments.answer.json { output::json(&advice) } else { output::text(&advice.text()) }
}

/// Writes the CREATE TABLE statement that fits the sample, and returns where.
fn from_sample(path: &Path, folder: &Path, quiet: bool) -> anyhow::Result<PathBuf> {
    let unreadable = || format!("cannot read the sample {}", path.display());
    let mut reader =
        CsvReader::new(BufReader::new(File::open(path).with_context(unreadable)?), b',');
    let mut records: Vec<Vec<String>> = Vec::new();
    while records.len() <= SAMPLE_ROWS_MAX {
        match reader.read().with_context(unreadable)? {
            Record::End => break,
            Record::Bad(reason) => {
                let line = reader.line();
                return Err(usage_error(format!("{} line {line}: {reason}", path.display())));
            }
            Record::Fields => {
                let fields = (0..reader.len()).filter_map(|index| reader.field(index));
                records.push(fields.map(|(text, _)| text.to_owned()).collect());
            }
        }
    }
    let stem = path.file_stem().map_or_else(|| "sample".into(), |stem| stem.to_string_lossy());
    let (header, rows) = records
        .split_first()
        .map_or((&[][..], &[][..]), |(header, rows)| (header.as_slice(), rows));
    let statement = sample::statement(&stem, header, rows)
        .map_err(|reason| usage_error(format!("{}: {reason}", path.display())))?;
    if !quiet {
        onrush_terminal::tell!(
            "the sample as a table, with a typical row as defaults:\n{}",
            statement.trim_end()
        );
    }
    let file = folder.join("sample.sql");
    std::fs::write(&file, statement).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}
