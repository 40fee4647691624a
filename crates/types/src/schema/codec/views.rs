//! Views as bytes: the last part of a definition of format 8.

use super::{Input, push_u16};
use crate::row::field;
use crate::schema::{ViewColumnKind, ViewDefinition, ViewRows, ViewSource};

const KINDS: [ViewColumnKind; 6] = [
    ViewColumnKind::Oid,
    ViewColumnKind::Name,
    ViewColumnKind::Char,
    ViewColumnKind::Interval,
    ViewColumnKind::Array,
    ViewColumnKind::Vector,
];

pub(super) fn push(view: &ViewDefinition, out: &mut Vec<u8>) {
    // What rows it keeps stands at the end of the definition.
    let ViewDefinition { query, sources, kinds, rows: _ } = view;
    out.extend_from_slice(&(query.len() as u32).to_le_bytes());
    out.extend_from_slice(query.as_bytes());
    push_u16(sources.len(), out);
    for ViewSource { table, columns, used } in sources {
        out.extend_from_slice(&table.to_le_bytes());
        push_numbers(columns, out);
        push_numbers(used, out);
    }
    push_u16(kinds.len(), out);
    for (column, kind) in kinds {
        out.extend_from_slice(&column.to_le_bytes());
        let number = KINDS.iter().position(|known| known == kind).map_or(0, |at| at + 1);
        out.push(number as u8);
    }
}

fn push_numbers(numbers: &[u16], out: &mut Vec<u8>) {
    push_u16(numbers.len(), out);
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

pub(super) fn read(input: &mut Input<'_>) -> Result<ViewDefinition, &'static str> {
    let length = usize::try_from(input.u32()?).map_err(|_| "a view is too long")?;
    let query = field::utf8(input.take(length)?)?.to_owned();
    let mut sources = Vec::new();
    for _ in 0..input.u16()? {
        let (table, columns, used) = (input.u32()?, read_numbers(input)?, read_numbers(input)?);
        sources.push(ViewSource { table, columns, used });
    }
    let mut kinds = Vec::new();
    for _ in 0..input.u16()? {
        let column = input.u16()?;
        let kind = usize::from(input.u8()?).checked_sub(1).and_then(|at| KINDS.get(at));
        kinds.push((column, *kind.ok_or("the kind of a view's column is not known")?));
    }
    Ok(ViewDefinition { query, sources, kinds, rows: ViewRows::None })
}

pub(super) fn number_of(rows: ViewRows) -> u8 {
    match rows {
        ViewRows::None => 0,
        ViewRows::Kept => 1,
        ViewRows::Missing => 2,
    }
}

pub(super) fn rows_of(number: u8) -> Result<ViewRows, &'static str> {
    match number {
        1 => Ok(ViewRows::Kept),
        2 => Ok(ViewRows::Missing),
        _ => Err("what rows a view keeps is not known"),
    }
}

fn read_numbers(input: &mut Input<'_>) -> Result<Vec<u16>, &'static str> {
    let count = input.u16()?;
    (0..count).map(|_| input.u16()).collect()
}
