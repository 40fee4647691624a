//! `onrush get`: one row by its key.

use clap::Args;
use onrush_terminal::failure::{Outcome, usage_error};

use crate::arguments::database::TableArguments;
use crate::row_output::RowOutput;
use crate::values;

/// Print the row with a key
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Get {
    #[command(flatten)]
    table: TableArguments,
    /// The values of the key columns, in order
    #[arg(required = true, value_name = "KEY", allow_negative_numbers = true)]
    key: Vec<String>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  onrush get shop orders 1
  onrush get shop lines 1 3 --json

Exit code 1 and a message when there is no such row.";

/// Looks up and prints.
pub fn run(arguments: &Get) -> Outcome {
    let (database, table) = arguments.table.open()?;
    let key = values::key(&table, &arguments.key)?;
    if key.len() < table.definition().primary_key().len() {
        return Err(usage_error(format!(
            "the key of table {} is {}; give a value for each, or use scan --from --to",
            table.name(),
            values::key_names(&table)
        )));
    }
    let row = database.session()?.get(&table, &key)?;
    let found = match row {
        Some(row) => {
            let mut output = RowOutput::new(table.definition(), arguments.json);
            output.row(row)?;
            output.finish()
        }
        None => Err(anyhow::anyhow!(
            "table {} has no row with key {}",
            table.name(),
            arguments.key.join(", ")
        )),
    };
    database.close()?;
    found
}
