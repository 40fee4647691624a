//! What a table that was altered knows of its past.

use super::super::history::{Dropped, History, Since};
use super::super::{ColumnDefinition, TableDefinition};
use super::{Input, push_column, push_u16, push_value, read_column};
use crate::Value;
use crate::row::field;

pub(super) fn push(definition: &TableDefinition, history: &History, out: &mut Vec<u8>) {
    push_u16(usize::from(history.first_version), out);
    for (column, since) in definition.columns().iter().zip(&history.columns) {
        push_u16(usize::from(since.number), out);
        push_u16(usize::from(since.version), out);
        out.push(u8::from(!since.missing.is_null()));
        if !since.missing.is_null() {
            push_value(column, &since.missing, out);
        }
    }
    push_u16(history.dropped.len(), out);
    for dropped in &history.dropped {
        push_u16(usize::from(dropped.number), out);
        push_u16(usize::from(dropped.versions.0), out);
        push_u16(usize::from(dropped.versions.1), out);
        push_column(&dropped.column, out);
    }
}

pub(super) fn read(
    columns: &[ColumnDefinition],
    input: &mut Input<'_>,
) -> Result<History, &'static str> {
    let first_version = input.u16()?;
    let mut since = Vec::with_capacity(columns.len());
    for column in columns {
        let (number, version) = (input.u16()?, input.u16()?);
        let missing = match input.flag()? {
            false => Value::Null,
            true => field::read(column.data_type, input.short()?)?.into_owned(),
        };
        since.push(Since { number, version, missing });
    }
    let mut dropped = Vec::new();
    for _ in 0..input.u16()? {
        let (number, versions) = (input.u16()?, (input.u16()?, input.u16()?));
        dropped.push(Dropped { number, column: read_column(input)?, versions });
    }
    Ok(History { first_version, columns: since, dropped })
}
