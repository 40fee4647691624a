//! `onrush describe`: the columns of a table.

use clap::Args;
use onrush::{ColumnDefinition, DefaultValue, Table};
use onrush_terminal::failure::Outcome;
use onrush_terminal::output;
use serde_json::{Value, json};

use crate::arguments::database::TableArguments;

/// Print the columns of a table, in the words that create takes
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Describe {
    #[command(flatten)]
    table: TableArguments,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  onrush describe shop orders
  onrush describe shop orders --json";

/// Prints the definition.
pub fn run(arguments: &Describe) -> Outcome {
    let (database, table) = arguments.table.open()?;
    if arguments.json {
        output::json(&as_json(&table))?;
    } else {
        output::text(&as_text(&table))?;
    }
    Ok(database.close()?)
}

fn key_names(table: &Table) -> Vec<&str> {
    let definition = table.definition();
    let names = definition.primary_key().iter().map(|column| &*definition.columns()[*column].name);
    names.collect()
}

fn as_text(table: &Table) -> String {
    let mut text = format!("--table {}\n", table.name());
    for column in table.definition().columns() {
        text += &format!("--column {:?}\n", spec(column));
    }
    text += &format!("--key {}\n", key_names(table).join(","));
    if !table.definition().is_logged() {
        text += "--unlogged\n";
    }
    text
}

fn as_json(table: &Table) -> Value {
    let columns: Vec<_> = table
        .definition()
        .columns()
        .iter()
        .map(|column| {
            json!({
                "name": column.name,
                "type": column.data_type.to_string(),
                "nullable": column.nullable,
                "default": default(column),
            })
        })
        .collect();
    json!({
        "table": table.name(),
        "columns": columns,
        "primary_key": key_names(table),
        "logged": table.definition().is_logged(),
    })
}

fn spec(column: &ColumnDefinition) -> String {
    let is_plain = column.name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let name = if is_plain { column.name.clone() } else { format!("\"{}\"", column.name) };
    let null = if column.nullable { "null" } else { "not null" };
    let default = match &column.default {
        // Columns stand in it by their numbers.
        DefaultValue::Generated(generated) => format!(" generated as ({})", generated.expression),
        _ => default(column).map(|text| format!(" default {text}")).unwrap_or_default(),
    };
    format!("{name} {} {null}{default}", column.data_type)
}

fn default(column: &ColumnDefinition) -> Option<String> {
    match &column.default {
        DefaultValue::None | DefaultValue::Generated(_) => None,
        DefaultValue::Now => Some("now".to_owned()),
        DefaultValue::Key(strategy) => Some(strategy.to_string()),
        DefaultValue::Expression(computed) => Some(format!("({})", computed.expression)),
        DefaultValue::Constant(value) if column.data_type.is_text() && !value.is_null() => {
            Some(format!("'{}'", value.to_string().trim_end_matches(' ').replace('\'', "''")))
        }
        DefaultValue::Constant(value) => Some(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column_spec::parse;

    #[test]
    fn what_is_described_can_be_created() {
        for text in [
            "id bigint not null default identity(100)",
            "at timestamptz null default now",
            "note varchar(40) null default 'it''s a note'",
            "amount decimal(10,2) not null default 0.50",
            "\"my column\" uuid null",
        ] {
            let column = parse(text).unwrap();
            assert_eq!(spec(&column), text);
            assert_eq!(parse(&spec(&column)).unwrap(), column);
        }
    }
}
