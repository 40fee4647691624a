//! `onrush tables`, `truncate`, `drop` and `checkpoint`: what concerns whole tables or all of them.

use std::path::PathBuf;

use clap::Args;
use onrush_terminal::failure::{Outcome, usage_error};
use onrush_terminal::output;
use serde_json::json;

use crate::arguments::database::{TableArguments, open, with_tables};

/// List the tables of a database
#[derive(Args)]
#[command(after_help = TABLES_EXAMPLES)]
pub struct Tables {
    /// The database's folder
    folder: PathBuf,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

/// Remove all rows of a table
#[derive(Args)]
#[command(after_help = TRUNCATE_EXAMPLES)]
pub struct Truncate {
    #[command(flatten)]
    table: TableArguments,
    /// Yes, remove it: there is no way back
    #[arg(long)]
    yes: bool,
}

/// Remove a table and all its rows
#[derive(Args)]
#[command(after_help = DROP_EXAMPLES)]
pub struct DropTable {
    #[command(flatten)]
    table: TableArguments,
    /// Yes, remove it: there is no way back
    #[arg(long)]
    yes: bool,
}

/// Write a checkpoint now, so that the next opening has no log to replay
#[derive(Args)]
#[command(after_help = CHECKPOINT_EXAMPLES)]
pub struct Checkpoint {
    /// The database's folder
    folder: PathBuf,
}

const TABLES_EXAMPLES: &str = "\
Examples:
  onrush tables shop
  onrush tables shop --json";

const TRUNCATE_EXAMPLES: &str = "\
Examples:
  onrush count shop orders            how many rows will be gone?
  onrush truncate shop orders --yes";

const DROP_EXAMPLES: &str = "\
Examples:
  onrush export shop orders --format parquet --output orders.parquet
  onrush drop shop orders --yes";

const CHECKPOINT_EXAMPLES: &str = "\
Examples:
  onrush checkpoint shop";

/// Lists the tables.
pub fn run(arguments: &Tables) -> Outcome {
    let database = open(&arguments.folder)?;
    let mut names: Vec<_> = database.tables().iter().map(|table| table.name().to_owned()).collect();
    names.sort();
    if arguments.json {
        output::json_line(&json!(names))?;
    } else {
        output::text(&names.iter().map(|name| format!("{name}\n")).collect::<String>())?;
    }
    Ok(database.close()?)
}

/// Removes all rows.
pub fn truncate(arguments: &Truncate) -> Outcome {
    confirm(arguments.yes, "all rows", &arguments.table)?;
    let database = open(&arguments.table.folder)?;
    let name = &arguments.table.table;
    database.truncate_table(name).map_err(|error| with_tables(error, &database))?;
    output::text(&format!("truncated {name}\n"))?;
    Ok(database.close()?)
}

/// Removes the table.
pub fn drop_table(arguments: &DropTable) -> Outcome {
    confirm(arguments.yes, "the table and all its rows", &arguments.table)?;
    let database = open(&arguments.table.folder)?;
    let name = &arguments.table.table;
    database.drop_table(name).map_err(|error| with_tables(error, &database))?;
    output::text(&format!("dropped {name}\n"))?;
    Ok(database.close()?)
}

/// What is gone is gone: a word more is asked for.
fn confirm(yes: bool, what: &str, table: &TableArguments) -> Outcome {
    if yes {
        return Ok(());
    }
    Err(usage_error(format!(
        "this removes {what} of {} in {} for good; add --yes if that is meant",
        table.table,
        table.folder.display()
    )))
}

/// Writes a checkpoint.
pub fn checkpoint(arguments: &Checkpoint) -> Outcome {
    let database = open(&arguments.folder)?;
    database.checkpoint()?;
    output::text("checkpoint written\n")?;
    Ok(database.close()?)
}
