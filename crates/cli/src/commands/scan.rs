//! `onrush scan`: rows in key order.

use std::ops::Bound;

use clap::Args;
use onrush::{Direction, ScanOptions, Table, Value};
use onrush_measure::units::parse_count;
use onrush_terminal::failure::Outcome;

use crate::arguments::database::TableArguments;
use crate::row_output::RowOutput;
use crate::values;

/// Print rows in key order
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Scan {
    #[command(flatten)]
    table: TableArguments,
    #[command(flatten)]
    range: RangeArguments,
    /// At most so many rows
    #[arg(long, value_name = "ROWS", value_parser = parse_count)]
    limit: Option<u64>,
    /// From the last row to the first
    #[arg(long)]
    reverse: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  onrush scan shop orders --limit 10
  onrush scan shop orders --from 100 --to 199 --json
  onrush scan shop lines --from 7 --to 7          all lines of order 7: a prefix of the key
  onrush scan shop orders --reverse --limit 1     the last one";

/// A range of keys. Several key columns are separated by commas; fewer than all are a prefix.
#[derive(Args, Clone, Debug)]
pub struct RangeArguments {
    /// The first key
    #[arg(long, value_name = "KEY", value_delimiter = ',', allow_negative_numbers = true)]
    from: Vec<String>,
    /// The last key
    #[arg(long, value_name = "KEY", value_delimiter = ',', allow_negative_numbers = true)]
    to: Vec<String>,
}

impl RangeArguments {
    /// The bounds, both inclusive.
    pub fn options(&self, table: &Table) -> anyhow::Result<ScanOptions<'static>> {
        let bound = |words: &[String]| -> anyhow::Result<Bound<Vec<Value<'static>>>> {
            match words.is_empty() {
                true => Ok(Bound::Unbounded),
                false => Ok(Bound::Included(values::key(table, words)?)),
            }
        };
        Ok(ScanOptions { from: bound(&self.from)?, to: bound(&self.to)?, ..ScanOptions::default() })
    }
}

/// Scans and prints.
pub fn run(arguments: &Scan) -> Outcome {
    let (database, table) = arguments.table.open()?;
    let mut options = arguments.range.options(&table)?;
    options.limit = arguments.limit;
    if arguments.reverse {
        options.direction = Direction::Backward;
    }
    let mut output = RowOutput::new(table.definition(), arguments.json);
    for row in database.session()?.scan(&table, &options)? {
        output.row(row?)?;
    }
    output.finish()?;
    Ok(database.close()?)
}
