//! Indexes as bytes: a part of definitions from format 6 on.

use super::{
    FORMAT_WITH_BUILDING, FORMAT_WITH_DEFERRABLE, FORMAT_WITH_INDEX_EXPRESSIONS, Input, push_short,
    push_type, push_u16, read_type, row_expressions,
};
use crate::schema::{
    DeferrableUnique, EntriesOf, IndexDefinition, Indexed, IndexedColumn, IndexedExpression,
    KeyOrder, TableDefinition, Uniqueness,
};

type Indexes = (Vec<IndexDefinition>, Option<EntriesOf>);

/// The flag beside the order of what is no column.
const EXPRESSION: u8 = 4;

pub(super) fn push(definition: &TableDefinition, format: u8, out: &mut Vec<u8>) {
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
        for IndexedColumn { of, order } in &index.columns {
            let (number, kind) = match of {
                Indexed::Column(number) => (*number, 0),
                Indexed::Expression(position) => (*position, EXPRESSION),
            };
            push_u16(usize::from(number), out);
            out.push(order_flags(*order) | kind);
        }
        push_u16(index.included.len(), out);
        for number in &index.included {
            push_u16(usize::from(*number), out);
        }
        if format >= FORMAT_WITH_INDEX_EXPRESSIONS {
            push_u16(index.expressions.len(), out);
            for IndexedExpression { of, data_type } in &index.expressions {
                row_expressions::push(of, out);
                push_type(*data_type, out);
            }
            out.push(u8::from(index.predicate.is_some()));
            if let Some(predicate) = &index.predicate {
                row_expressions::push(predicate, out);
            }
        }
        if format >= FORMAT_WITH_BUILDING {
            out.push(u8::from(index.is_building));
        }
        if format >= FORMAT_WITH_DEFERRABLE {
            out.push(index.deferrable.map_or(0, deferrable_flags));
        }
    }
    out.push(u8::from(definition.entries_of().is_some()));
    if let Some(EntriesOf { table, orders }) = definition.entries_of() {
        out.extend_from_slice(&table.to_le_bytes());
        push_u16(orders.len(), out);
        orders.iter().for_each(|order| out.push(order_flags(*order)));
    }
}

/// The flag of what is deferrable.
const DEFERRABLE: u8 = 1;

fn deferrable_flags(of: DeferrableUnique) -> u8 {
    DEFERRABLE | u8::from(of.is_deferred) << 1 | u8::from(of.nulls_equal) << 2
}

fn deferrable_of(flags: u8) -> Result<Option<DeferrableUnique>, &'static str> {
    match flags {
        0 => Ok(None),
        1 | 3 | 5 | 7 => {
            let (is_deferred, nulls_equal) = (flags & 2 != 0, flags & 4 != 0);
            Ok(Some(DeferrableUnique { is_deferred, nulls_equal }))
        }
        _ => Err("how an index is deferrable is not known"),
    }
}

fn order_flags(order: KeyOrder) -> u8 {
    u8::from(order.descending) | u8::from(order.nulls_first) << 1
}

pub(super) fn read(format: u8, input: &mut Input<'_>) -> Result<Indexes, &'static str> {
    let has_expressions = format >= FORMAT_WITH_INDEX_EXPRESSIONS;
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
            let (number, flags) = (input.u16()?, input.u8()?);
            let of = match flags & EXPRESSION {
                0 => Indexed::Column(number),
                _ if has_expressions => Indexed::Expression(number),
                _ => return Err("the order of a column is not known"),
            };
            columns.push(IndexedColumn { of, order: order_of(flags & !EXPRESSION)? });
        }
        let mut included = Vec::new();
        for _ in 0..input.u16()? {
            included.push(input.u16()?);
        }
        let (mut expressions, mut predicate) = (Vec::new(), None);
        if has_expressions {
            for _ in 0..input.u16()? {
                let of = row_expressions::read(input)?;
                expressions.push(IndexedExpression { of, data_type: read_type(input)? });
            }
            if input.flag()? {
                predicate = Some(row_expressions::read(input)?);
            }
        }
        let is_building = format >= FORMAT_WITH_BUILDING && input.flag()?;
        let deferrable = match format {
            FORMAT_WITH_DEFERRABLE.. => deferrable_of(input.u8()?)?,
            _ => None,
        };
        indexes.push(IndexDefinition {
            name,
            entries,
            columns,
            expressions,
            predicate,
            included,
            uniqueness,
            deferrable,
            is_constraint,
            is_building,
        });
    }
    if !input.flag()? {
        return Ok((indexes, None));
    }
    let table = input.u32()?;
    let mut orders = Vec::new();
    for _ in 0..input.u16()? {
        orders.push(order_of(input.u8()?)?);
    }
    Ok((indexes, Some(EntriesOf { table, orders })))
}

fn order_of(flags: u8) -> Result<KeyOrder, &'static str> {
    match flags {
        0..=3 => Ok(KeyOrder { descending: flags & 1 != 0, nulls_first: flags & 2 != 0 }),
        _ => Err("the order of a column is not known"),
    }
}
