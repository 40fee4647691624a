//! Indexes as bytes: a part of definitions of formats 6 and 7.

use super::{Input, push_short, push_u16};
use crate::schema::{
    EntriesOf, IndexDefinition, IndexedColumn, KeyOrder, TableDefinition, Uniqueness,
};

type Indexes = (Vec<IndexDefinition>, Option<EntriesOf>);

pub(super) fn push(definition: &TableDefinition, out: &mut Vec<u8>) {
    push_u16(definition.indexes().len(), out);
    for index in definition.indexes() {
        push_short(index.name.as_bytes(), out);
        out.extend_from_slice(&index.entries.to_le_bytes());
        out.push(match index.uniqueness {
            Uniqueness::NotUnique => 0,
            Uniqueness::NullsDistinct => 1,
            Uniqueness::NullsEqual => 2,
        });
        out.push(u8::from(index.is_constraint));
        push_u16(index.columns.len(), out);
        for column in &index.columns {
            push_u16(usize::from(column.number), out);
            push_order(column.order, out);
        }
        push_u16(index.included.len(), out);
        for number in &index.included {
            push_u16(usize::from(*number), out);
        }
    }
    out.push(u8::from(definition.entries_of().is_some()));
    if let Some(EntriesOf { table, orders }) = definition.entries_of() {
        out.extend_from_slice(&table.to_le_bytes());
        push_u16(orders.len(), out);
        orders.iter().for_each(|order| push_order(*order, out));
    }
}

fn push_order(order: KeyOrder, out: &mut Vec<u8>) {
    out.push(u8::from(order.descending) | u8::from(order.nulls_first) << 1);
}

pub(super) fn read(input: &mut Input<'_>) -> Result<Indexes, &'static str> {
    let mut indexes = Vec::new();
    for _ in 0..input.u16()? {
        let (name, entries) = (input.name()?, input.u32()?);
        let uniqueness = match input.u8()? {
            0 => Uniqueness::NotUnique,
            1 => Uniqueness::NullsDistinct,
            2 => Uniqueness::NullsEqual,
            _ => return Err("how an index is unique is not known"),
        };
        let is_constraint = input.flag()?;
        let mut columns = Vec::new();
        for _ in 0..input.u16()? {
            columns.push(IndexedColumn { number: input.u16()?, order: read_order(input)? });
        }
        let mut included = Vec::new();
        for _ in 0..input.u16()? {
            included.push(input.u16()?);
        }
        indexes.push(IndexDefinition {
            name,
            entries,
            columns,
            included,
            uniqueness,
            is_constraint,
        });
    }
    if !input.flag()? {
        return Ok((indexes, None));
    }
    let table = input.u32()?;
    let mut orders = Vec::new();
    for _ in 0..input.u16()? {
        orders.push(read_order(input)?);
    }
    Ok((indexes, Some(EntriesOf { table, orders })))
}

fn read_order(input: &mut Input<'_>) -> Result<KeyOrder, &'static str> {
    match input.u8()? {
        flags @ 0..=3 => Ok(KeyOrder { descending: flags & 1 != 0, nulls_first: flags & 2 != 0 }),
        _ => Err("the order of a column is not known"),
    }
}
