//! The table that rows go into and the one with the marks beside it: their names, their columns, and how they are made.

use crate::columns::{LakeColumn, LakeKind, added_columns, check_columns, mismatch};
use crate::error::LakeError;
use crate::wire::{Failure, Line};

/// The table with the marks, in the same schema.
const MARKS: &str = "onrush_marks";

/// What the tables are called in statements.
#[derive(Debug, Clone)]
pub(super) struct Names {
    /// `schema.table`, as it was given.
    pub(super) shown: String,
    schema: String,
    /// With their schema, and quoted.
    pub(super) table: String,
    pub(super) marks: String,
    /// As texts.
    pub(super) name_text: String,
    pub(super) schema_text: String,
}

impl Names {
    /// Of `schema.table`.
    pub(super) fn new(name: &str) -> Result<Names, LakeError> {
        let parts: Vec<&str> = name.split('.').collect();
        let [schema, table] = parts[..] else {
            return Err(refuse(name, "is not of the form schema.table"));
        };
        if schema.is_empty() || table.is_empty() || name.contains('\0') {
            return Err(refuse(name, "is not of the form schema.table"));
        }
        if table == MARKS {
            return Err(refuse(name, "is where the marks are: choose another name"));
        }
        let qualified = |table: &str| format!("{}.{}", quoted(schema), quoted(table));
        Ok(Names {
            shown: name.to_owned(),
            schema: quoted(schema),
            table: qualified(table),
            marks: qualified(MARKS),
            name_text: text(table),
            schema_text: text(schema),
        })
    }
}

fn refuse(name: &str, cause: &str) -> LakeError {
    LakeError::NoSuchTarget { name: name.to_owned(), cause: cause.to_owned() }
}

/// A name in a statement.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text in a statement.
fn text(value: &str) -> String {
    let quotes = value.replace('\'', "''");
    // Whatever `standard_conforming_strings` is.
    if quotes.contains('\\') {
        format!("E'{}'", quotes.replace('\\', "\\\\"))
    } else {
        format!("'{quotes}'")
    }
}

/// Makes both tables, unless they are there.
pub(super) async fn ensure(
    line: &Line,
    names: &Names,
    columns: &[LakeColumn],
) -> Result<(), Failure> {
    let Names { schema, schema_text, table, marks, .. } = names;
    let added = added_columns();
    let defined: Vec<String> = columns.iter().chain(&added).map(definition).collect();
    let create = format!("CREATE TABLE IF NOT EXISTS {table} ({})", defined.join(", "));
    let probe = format!("SELECT 1 FROM {table} LIMIT 0");
    let known = format!("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = {schema_text}");
    if line.rows(&known).await?.is_empty() {
        let made = line.say(&format!("CREATE SCHEMA {schema}")).await;
        // Another node may have been quicker.
        if line.rows(&known).await?.is_empty() {
            made?;
        }
    }
    line.ensure(&probe, &create).await?;
    let create = format!(
        "CREATE TABLE IF NOT EXISTS {marks} (table_name text NOT NULL, node bigint NOT NULL, \
         history uuid NOT NULL, nonce uuid NOT NULL, lsn bigint NOT NULL, closed_by bigint, \
         table_oid bigint NOT NULL, at timestamptz NOT NULL DEFAULT now(), \
         PRIMARY KEY (table_name, node))"
    );
    line.ensure(&format!("SELECT 1 FROM {marks} LIMIT 0"), &create).await
}

fn definition(column: &LakeColumn) -> String {
    let not_null = if column.is_nullable { "" } else { " NOT NULL" };
    format!("{} {}{not_null}", quoted(&column.name), type_name(column.kind))
}

fn type_name(kind: LakeKind) -> String {
    match kind {
        LakeKind::Boolean => "boolean".into(),
        LakeKind::Int32 => "integer".into(),
        LakeKind::Int64 => "bigint".into(),
        LakeKind::Float32 => "real".into(),
        LakeKind::Float64 => "double precision".into(),
        LakeKind::Decimal { precision, scale } => format!("numeric({precision},{scale})"),
        LakeKind::Text => "text".into(),
        LakeKind::Bytes => "bytea".into(),
        LakeKind::Uuid => "uuid".into(),
        LakeKind::Date => "date".into(),
        LakeKind::TimeMicros => "time without time zone".into(),
        LakeKind::TimestampMicros => "timestamp without time zone".into(),
        LakeKind::TimestamptzMicros => "timestamp with time zone".into(),
    }
}

/// The columns that are written, in their order.
pub(super) fn column_list(columns: &[LakeColumn]) -> String {
    let added = added_columns();
    let names = columns.iter().chain(&added).map(|column| quoted(&column.name));
    names.collect::<Vec<_>>().join(", ")
}

/// Whether rows of these columns can be written into the table that is there.
pub(super) async fn check(
    line: &Line,
    names: &Names,
    columns: &[LakeColumn],
) -> Result<(), LakeError> {
    check_columns(columns)?;
    let Names { name_text, schema_text, .. } = names;
    let found = line
        .rows(&format!(
            "SELECT column_name, data_type, numeric_precision, numeric_scale, datetime_precision, \
             is_nullable, column_default FROM information_schema.columns \
             WHERE table_schema = {schema_text} AND table_name = {name_text}"
        ))
        .await?;
    let added = added_columns();
    let all = || columns.iter().chain(&added);
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u8>().ok());
    for column in all() {
        let expected = type_name(column.kind);
        let Some(row) = found.iter().find(|row| row.get(0) == Some(column.name.as_str())) else {
            return Err(mismatch(&column.name, &expected, "no such column"));
        };
        let found = row.get(1).unwrap_or_default();
        let fits = match column.kind {
            LakeKind::Text => matches!(found, "text" | "character varying"),
            LakeKind::Decimal { precision, scale } => {
                let digits = number(row.get(2)).zip(number(row.get(3)));
                let has_space = |(p, s): (u8, u8)| s >= scale && p - s.min(p) >= precision - scale;
                found == "numeric" && digits.is_none_or(has_space)
            }
            // With fewer digits a time would be rounded in silence.
            LakeKind::TimeMicros | LakeKind::TimestampMicros | LakeKind::TimestamptzMicros => {
                found == expected && number(row.get(4)).is_none_or(|digits| digits == 6)
            }
            _ => found == expected,
        };
        if !fits {
            let digits = [row.get(2), row.get(3), row.get(4)].into_iter().flatten();
            let found = format!("{found} {}", digits.collect::<Vec<_>>().join(" "));
            return Err(mismatch(&column.name, &expected, found.trim_end()));
        }
        if row.get(5) == Some("NO") && column.is_nullable {
            return Err(mismatch(&column.name, "a column that may be NULL", "NOT NULL"));
        }
    }
    for row in &found {
        let name = row.get(0).unwrap_or_default();
        let is_needed = row.get(5) == Some("NO") && row.get(6).is_none();
        if is_needed && !all().any(|column| column.name == name) {
            return Err(mismatch(name, "a column that may be NULL, or has a default", "NOT NULL"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        let names = Names::new("a\"b.it's").unwrap();
        assert_eq!(names.table, "\"a\"\"b\".\"it's\"");
        assert_eq!(names.name_text, "'it''s'");
        assert_eq!(text("a\\'b"), "E'a\\\\''b'");
        for wrong in ["events", "a.b.c", ".a", "a.", "a.onrush_marks", "a.b\0"] {
            assert!(Names::new(wrong).is_err(), "{wrong:?}");
        }
    }
}
