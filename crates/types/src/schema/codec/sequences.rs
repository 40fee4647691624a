//! Sequences as bytes: the last part of a definition of format 7.

use super::{Input, push_type, read_type};
use crate::schema::{SequenceDefinition, SequenceOwner};

pub(super) fn push(sequence: Option<&SequenceDefinition>, out: &mut Vec<u8>) {
    out.push(u8::from(sequence.is_some()));
    let Some(sequence) = sequence else { return };
    push_type(sequence.data_type, out);
    for number in
        [sequence.start, sequence.increment, sequence.least, sequence.greatest, sequence.cache]
    {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.push(u8::from(sequence.cycles));
    out.extend_from_slice(&sequence.generation.to_le_bytes());
    out.push(u8::from(sequence.owner.is_some()));
    if let Some(SequenceOwner { table, column }) = sequence.owner {
        out.extend_from_slice(&table.to_le_bytes());
        out.extend_from_slice(&column.to_le_bytes());
    }
}

pub(super) fn read(input: &mut Input<'_>) -> Result<Option<SequenceDefinition>, &'static str> {
    if !input.flag()? {
        return Ok(None);
    }
    Ok(Some(SequenceDefinition {
        data_type: read_type(input)?,
        start: input.i64()?,
        increment: input.i64()?,
        least: input.i64()?,
        greatest: input.i64()?,
        cache: input.i64()?,
        cycles: input.flag()?,
        generation: input.u32()?,
        owner: match input.flag()? {
            true => Some(SequenceOwner { table: input.u32()?, column: input.u16()? }),
            false => None,
        },
    }))
}
