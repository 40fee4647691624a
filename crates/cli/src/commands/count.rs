//! `onrush count`: how many rows a table has.

use clap::Args;
use onrush_measure::units::grouped;
use onrush_terminal::failure::Outcome;
use serde_json::json;

use super::scan::RangeArguments;
use crate::arguments::database::TableArguments;
use onrush_terminal::{output, progress};

/// Count the rows of a table, or of a range of keys
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Count {
    #[command(flatten)]
    table: TableArguments,
    #[command(flatten)]
    range: RangeArguments,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  onrush count shop orders
  onrush count shop orders --from 100 --json";

/// Rows between two reports of progress.
const REPORT_ROWS: u64 = 1 << 16;

/// Counts and prints.
pub fn run(arguments: &Count) -> Outcome {
    let (database, table) = arguments.table.open()?;
    let options = arguments.range.options(&table)?;
    let bar = progress::rows_bar(false, "counting");
    let mut seen = 0_u64;
    let rows = database.session()?.scan(&table, &options)?.visit_raw(|_, _| {
        seen += 1;
        if seen.is_multiple_of(REPORT_ROWS) {
            bar.set_position(seen);
        }
    })?;
    bar.finish_and_clear();
    if arguments.json {
        output::json_line(&json!({ "table": table.name(), "rows": rows }))?;
    } else {
        output::text(&format!("{} rows\n", grouped(rows)))?;
    }
    Ok(database.close()?)
}
