//! `onrush insert`: one row by hand.

use clap::Args;
use onrush_terminal::failure::Outcome;
use onrush_terminal::output;

use crate::arguments::database::TableArguments;
use crate::values;

/// Insert one row; what is not given takes its default
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Insert {
    #[command(flatten)]
    table: TableArguments,
    /// Values by column
    #[arg(value_name = "COLUMN=VALUE")]
    values: Vec<String>,
    /// Replace the row that has the same key, if there is one
    #[arg(long)]
    replace: bool,
    /// Print the row's key as a JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  onrush insert shop orders
  onrush insert shop orders note='first order' at=2024-05-31T12:00:00
  onrush insert shop orders id=7 note=NULL --replace

NULL and DEFAULT in capitals mean what they say; the text NULL is written \"'NULL'\".";

/// Inserts and prints the key, once the row is durable.
pub fn run(arguments: &Insert) -> Outcome {
    let (database, table) = arguments.table.open_for_few_rows()?;
    let row = values::assignments(&table, &arguments.values)?;
    let mut session = database.session()?;
    if arguments.replace {
        session.upsert(&table, &row)?;
    } else {
        session.insert(&table, &row)?;
    }
    let key = table.schema().decode_key(session.last_row().0)?;
    drop(session);
    let definition = table.definition();
    let names = definition.primary_key().iter().map(|column| &*definition.columns()[*column].name);
    let pairs = names.zip(&key);
    if arguments.json {
        let object: serde_json::Map<_, _> = pairs
            .map(|(name, value)| (name.to_owned(), onrush_transfer::json::value(value)))
            .collect();
        output::json_line(&object)?;
    } else {
        let words: Vec<_> = pairs.map(|(name, value)| format!("{name}={value}")).collect();
        output::text(&format!("inserted {}\n", words.join(" ")))?;
    }
    Ok(database.close()?)
}
