//! Values as written on the command line.
//!
//! `NULL` and `DEFAULT` in capitals mean what they say; what stands in single quotes is text as it
//! is; everything else is read by the type of its column.

use anyhow::Context;
use onrush::{Table, Value};
use onrush_terminal::failure::usage_error;

use crate::column_spec::unquoted;

/// Reads a value for a column.
pub fn parse(table: &Table, column: usize, text: &str) -> anyhow::Result<Value<'static>> {
    match text {
        "NULL" => return Ok(Value::Null),
        "DEFAULT" => return Ok(Value::Default),
        _ => {}
    }
    let quoted = unquoted(text, '\'').filter(|_| text.len() > 1);
    let text = quoted.as_deref().unwrap_or(text);
    Ok(table.schema().parse(column, text)?.into_owned())
}

/// Reads `column=value` words into a row; the columns that are not named keep their default.
pub fn assignments(table: &Table, words: &[String]) -> anyhow::Result<Vec<Value<'static>>> {
    let definition = table.definition();
    let mut row = vec![Value::Default; definition.columns().len()];
    let mut given = vec![false; row.len()];
    for word in words {
        let Some((name, text)) = word.split_once('=') else {
            return Err(usage_error(format!(
                "{word:?} is no column=value; write for example note='first order'"
            )));
        };
        let column = definition.column_index(name)?;
        if std::mem::replace(&mut given[column], true) {
            return Err(usage_error(format!("column {name} is given twice; give it one value")));
        }
        row[column] = parse(table, column, text)?;
    }
    Ok(row)
}

/// Reads key values in key order; fewer than all are a prefix of the key.
pub fn key(table: &Table, words: &[String]) -> anyhow::Result<Vec<Value<'static>>> {
    let definition = table.definition();
    let columns = definition.primary_key();
    if words.len() > columns.len() {
        return Err(usage_error(format!(
            "{} key values given, but the key of table {} is {}",
            words.len(),
            table.name(),
            key_names(table)
        )));
    }
    let pairs = columns.iter().zip(words);
    pairs
        .map(|(column, text)| parse(table, *column, text))
        .collect::<anyhow::Result<_>>()
        .with_context(|| format!("the key of table {} is {}", table.name(), key_names(table)))
}

/// The names of the key columns, separated by commas.
pub fn key_names(table: &Table) -> String {
    let definition = table.definition();
    let names = definition.primary_key().iter().map(|column| &*definition.columns()[*column].name);
    names.collect::<Vec<_>>().join(", ")
}
