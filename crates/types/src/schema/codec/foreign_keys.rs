//! Foreign keys as bytes: a part of a definition of format 7.

use super::{Input, push_short, push_u16};
use crate::schema::{Deferral, ForeignKey, ReferentialAction, TableDefinition};

type References = (Vec<ForeignKey>, Vec<u32>);

const ACTIONS: [ReferentialAction; 5] = [
    ReferentialAction::NoAction,
    ReferentialAction::Restrict,
    ReferentialAction::Cascade,
    ReferentialAction::SetNull,
    ReferentialAction::SetDefault,
];
const DEFERRALS: [Deferral; 3] =
    [Deferral::NotDeferrable, Deferral::InitiallyImmediate, Deferral::InitiallyDeferred];

pub(super) fn push(definition: &TableDefinition, out: &mut Vec<u8>) {
    push_u16(definition.foreign_keys().len(), out);
    for foreign_key in definition.foreign_keys() {
        push_short(foreign_key.name.as_bytes(), out);
        out.extend_from_slice(&foreign_key.referenced_table.to_le_bytes());
        push_u16(foreign_key.columns.len(), out);
        let columns = foreign_key.columns.iter().zip(&foreign_key.referenced_columns);
        for (own, referenced) in columns {
            push_u16(usize::from(*own), out);
            push_u16(usize::from(*referenced), out);
        }
        push_one_of(&ACTIONS, foreign_key.on_delete, out);
        push_one_of(&ACTIONS, foreign_key.on_update, out);
        push_one_of(&DEFERRALS, foreign_key.deferral, out);
        out.push(u8::from(foreign_key.is_match_full));
        out.push(u8::from(foreign_key.is_validated));
    }
    push_u16(definition.referenced_by().len(), out);
    for table in definition.referenced_by() {
        out.extend_from_slice(&table.to_le_bytes());
    }
}

/// The position among all that there are.
fn push_one_of<T: PartialEq>(all: &[T], one: T, out: &mut Vec<u8>) {
    let position = all.iter().position(|other| *other == one);
    out.push(position.unwrap_or_default() as u8);
}

pub(super) fn read(input: &mut Input<'_>) -> Result<References, &'static str> {
    let mut foreign_keys = Vec::new();
    for _ in 0..input.u16()? {
        let (name, referenced_table) = (input.name()?, input.u32()?);
        let (mut columns, mut referenced_columns) = (Vec::new(), Vec::new());
        for _ in 0..input.u16()? {
            columns.push(input.u16()?);
            referenced_columns.push(input.u16()?);
        }
        foreign_keys.push(ForeignKey {
            name,
            columns,
            referenced_table,
            referenced_columns,
            on_delete: read_one_of(&ACTIONS, input)?,
            on_update: read_one_of(&ACTIONS, input)?,
            deferral: read_one_of(&DEFERRALS, input)?,
            is_match_full: input.flag()?,
            is_validated: input.flag()?,
        });
    }
    let mut referenced_by = Vec::new();
    for _ in 0..input.u16()? {
        referenced_by.push(input.u32()?);
    }
    Ok((foreign_keys, referenced_by))
}

fn read_one_of<T: Copy>(all: &[T], input: &mut Input<'_>) -> Result<T, &'static str> {
    let unknown = "what a foreign key does is not known";
    all.get(usize::from(input.u8()?)).copied().ok_or(unknown)
}
