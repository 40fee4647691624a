//! `onrush create`: a database, a table in it, or both.

use std::path::PathBuf;

use clap::Args;
use onrush::{ColumnDefinition, Database, KeyStrategy, Options, TableDefinition};
use onrush_measure::classic_table;
use onrush_terminal::arguments::words::key_strategy;
use onrush_terminal::failure::{Outcome, usage_error};
use onrush_terminal::output;

use crate::arguments::database::open;
use crate::column_spec;

/// Create a database, if there is none in the folder, and a table in it
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Create {
    /// The database's folder; made if it is missing
    folder: PathBuf,
    /// The table to create
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// A column: name, type, then null or not null and default VALUE; once for each column
    #[arg(long = "column", value_name = "COLUMN", requires = "table",
          value_parser = column_spec::parse)]
    columns: Vec<ColumnDefinition>,
    /// The columns of the primary key, in order; they are never null, whatever they are declared as
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', requires = "columns")]
    key: Vec<String>,
    /// Instead of columns: the table of the classic studies, its key made by this strategy
    #[arg(long, value_name = "STRATEGY", value_parser = key_strategy,
          conflicts_with_all = ["columns", "key"])]
    classic: Option<KeyStrategy>,
    /// Keep the rows out of the log: they are gone whenever the database is opened again, so this
    /// is of use only to a program that keeps it open
    #[arg(long, requires = "columns")]
    unlogged: bool,
}

const EXAMPLES: &str = "\
Examples:
  onrush create shop
  onrush create shop --table orders --column 'id bigint default identity' \\
         --column 'at timestamp default now' --column 'note varchar(40) null' --key id
  onrush create shop --table big --classic session-offset

Types:    boolean, smallint, integer, bigint, real, double, decimal(p,s), char(n), varchar(n), text,
          bytes, uuid, date, time, timestamp, timestamptz, json, jsonb
Defaults: now, a value ('in quotes' if it has blanks), or a key strategy: identity, uuid-v4, uuid-v7,
          sequential-guid, session-offset, node-offset, bit-reversed, hash-prefix
          identity(1000) begins at 1000, identity(strict) ascends in commit order, node-offset(7) is of
          node 7";

/// Creates what is asked for.
pub fn run(arguments: &Create) -> Outcome {
    let definition = definition(arguments)?;
    let database = match Database::create(&arguments.folder, Options::default()) {
        Ok(database) => {
            output::text(&format!("created database {}\n", arguments.folder.display()))?;
            database
        }
        Err(onrush::Error::AlreadyExists { .. }) if definition.is_some() => {
            open(&arguments.folder)?
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(definition) = definition {
        let table = database.create_table(definition)?;
        output::text(&format!("created table {}\n", table.name()))?;
    }
    Ok(database.close()?)
}

fn definition(arguments: &Create) -> anyhow::Result<Option<TableDefinition>> {
    if let Some(strategy) = arguments.classic {
        let name = arguments.table.as_deref().unwrap_or(onrush_measure::CLASSIC_TABLE);
        return Ok(Some(classic_table(name, strategy)?));
    }
    let Some(name) = &arguments.table else { return Ok(None) };
    if arguments.columns.is_empty() {
        return Err(usage_error(format!(
            "table {name} has no columns; add --column 'name type' for each, or --classic STRATEGY"
        )));
    }
    if arguments.key.is_empty() {
        return Err(usage_error(format!(
            "table {name} has no primary key; add --key COLUMN[,COLUMN...]"
        )));
    }
    let mut builder = TableDefinition::builder(name.as_str());
    for column in &arguments.columns {
        builder = builder.column(column.clone());
    }
    if arguments.unlogged {
        builder = builder.unlogged();
    }
    Ok(Some(builder.primary_key(arguments.key.iter().map(String::as_str)).build()?))
}
