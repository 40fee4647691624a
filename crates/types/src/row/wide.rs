//! Wide rows: those that are too large for a leaf, whose longest values stand elsewhere as they are stored. The layout
//! stands in the head of [`crate::row`].

use uuid::Uuid;

use super::decode::offset_of;
use super::field::{self, bit, clear_bit, set_bit};
use super::{EncodedRow, ROW_BYTES_MAX, WHOLE_ROW_BYTES_MAX};
use crate::schema::Field;
use crate::{Schema, TypeError, Value};

/// Bit of the version in front of a wide row.
pub(super) const WIDE: u16 = 1 << 15;

/// What a row that is stored wide takes at most with its key, unless its columns do not let it.
const STORED_BYTES: usize = 4000;
/// A value that stands elsewhere leaves so many bytes in its row.
const POINTER_BYTES: usize = 20;
/// Shorter values stay where they are.
const MOVED_BYTES_MIN: usize = 64;

/// A value of a row that stands elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongValue {
    /// Its column, by its position among those outside the key.
    pub(super) index: usize,
    /// Names it, and no other one ever.
    pub id: Uuid,
    /// How many bytes it has.
    pub bytes: usize,
}

impl Schema {
    /// Whether a row is a wide one.
    #[inline]
    #[must_use]
    pub fn is_wide(row: &[u8]) -> bool {
        row.get(1).is_some_and(|byte| byte & 0x80 != 0)
    }

    /// Makes a wide row of an encoded one, whose last columns may be missing.
    #[cold]
    pub(super) fn widen(&self, out: &mut EncodedRow) -> Result<(), TypeError> {
        let (layout, wide, row) = (&self.layout, self.layout.wide(), &out.row);
        if self.definition.long_values().is_none() {
            return Err(self.row_too_large(out.key.len() + row.len(), ROW_BYTES_MAX));
        }
        let mut widened = Vec::with_capacity(row.len() + wide.variable - layout.variable);
        widened.extend_from_slice(&row[..layout.fixed]);
        widened[1] |= 0x80;
        widened.resize(wide.fixed, 0);
        widened.extend_from_slice(&row[layout.fixed..layout.ends]);
        for end in row[layout.ends..layout.variable].chunks_exact(2) {
            widened.extend_from_slice(&[end[0], end[1], 0, 0]);
        }
        widened.extend_from_slice(&row[layout.variable..]);
        out.row = widened;
        out.elided.clear();
        Ok(())
    }

    /// Why a row is no wide row of this schema; its version is not looked at.
    pub(super) fn wide_fault(&self, row: &[u8]) -> Option<TypeError> {
        let wide = self.layout.wide();
        if row.len() < wide.variable {
            return Some(self.row_damaged(row.len(), "the row ends inside its fixed part"));
        }
        let mut start = wide.variable;
        for at in (wide.ends..wide.variable).step_by(4) {
            let end = self.wide_end(row, (at - wide.ends) / 4);
            if end < start || end > row.len() {
                return Some(self.row_damaged(at, "an end lies outside the row"));
            }
            start = end;
        }
        if start != row.len() {
            return Some(self.row_damaged(start, "bytes are left over after the last column"));
        }
        for (index, stored) in self.stored.iter().enumerate() {
            let is_pointer = matches!(stored.field, Field::Variable { .. })
                && !bit(&row[self.layout.nulls..], index)
                && self.wide_field(index, row).len() == POINTER_BYTES;
            if bit(&row[wide.elsewhere..], index) && !is_pointer {
                return Some(self.row_damaged(wide.elsewhere, "a column cannot stand elsewhere"));
            }
        }
        None
    }

    fn wide_end(&self, row: &[u8], ordinal: usize) -> usize {
        let wide = self.layout.wide();
        let at = wide.ends + 4 * ordinal;
        let end = u32::from_le_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]]);
        wide.variable.saturating_add(end as usize)
    }

    /// The bytes of a column in a sound wide row.
    fn wide_field<'r>(&self, index: usize, row: &'r [u8]) -> &'r [u8] {
        match self.stored[index].field {
            Field::Fixed { offset, width } => {
                let offset = offset + self.layout.shift::<true>();
                &row[offset..offset + width]
            }
            Field::Variable { ordinal: 0 } => {
                &row[self.layout.wide().variable..self.wide_end(row, 0)]
            }
            Field::Variable { ordinal } => {
                &row[self.wide_end(row, ordinal - 1)..self.wide_end(row, ordinal)]
            }
        }
    }

    fn is_elsewhere(&self, index: usize, row: &[u8]) -> bool {
        bit(&row[self.layout.wide().elsewhere..], index)
    }

    /// The value of a column outside the key in a sound wide row.
    #[cold]
    pub(super) fn wide_value<'r>(
        &'r self,
        index: usize,
        row: &'r [u8],
    ) -> Result<Value<'r>, TypeError> {
        if bit(&row[self.layout.nulls..], index) {
            return Ok(Value::Null);
        }
        let bytes = self.wide_field(index, row);
        if self.is_elsewhere(index, row) {
            let reason = "a value stands elsewhere, and was not read";
            return Err(self.row_damaged(offset_of(row, bytes), reason));
        }
        field::read(self.stored[index].data_type, bytes)
            .map_err(|reason| self.row_damaged(offset_of(row, bytes), reason))
    }

    /// The values of a row that stand elsewhere; none of one that is not wide.
    ///
    /// # Errors
    /// Damage in the row.
    pub fn long_values(&self, row: &[u8]) -> Result<Vec<LongValue>, TypeError> {
        if !Schema::is_wide(row) {
            return Ok(Vec::new());
        }
        let of = self.schema_of(row)?;
        match of.wide_fault(row) {
            Some(fault) => Err(fault),
            None => Ok(of.pointers(row)),
        }
    }

    /// Those of a sound wide row of this version.
    fn pointers(&self, row: &[u8]) -> Vec<LongValue> {
        let is_elsewhere = |index: &usize| self.is_elsewhere(*index, row);
        let pointer = |index: usize| {
            let (id, bytes) = self.wide_field(index, row).split_first_chunk::<16>()?;
            let bytes = u32::from_le_bytes(bytes.try_into().ok()?) as usize;
            Some(LongValue { index, id: Uuid::from_bytes(*id), bytes })
        };
        (0..self.stored.len()).filter(is_elsewhere).filter_map(pointer).collect()
    }

    /// The bytes of a value, in the whole row of this version.
    #[must_use]
    pub fn long_value<'r>(&self, value: &LongValue, whole: &'r [u8]) -> &'r [u8] {
        self.wide_field(value.index, whole)
    }

    /// What is stored of a whole wide row of this version: its longest values stand elsewhere, under ids that `new_id`
    /// makes. Those of a row `before` (as it was stored, and whole), which stood elsewhere and are the same, keep
    /// theirs.
    ///
    /// # Errors
    /// [`TypeError::RowTooLarge`]: what stays is too large as well. Damage in the row.
    pub fn move_out<E: From<TypeError>>(
        &self,
        (key, whole): (&[u8], &[u8]),
        before: Option<(&[u8], &[u8])>,
        mut new_id: impl FnMut() -> Result<Uuid, E>,
    ) -> Result<(Vec<u8>, Vec<LongValue>), E> {
        let mut moved = self.unchanged(whole, before)?;
        let stays = |moved: &[LongValue], index: usize| moved.iter().all(|of| of.index != index);
        let saved = |bytes: usize| bytes.saturating_sub(POINTER_BYTES);
        let mut bytes = key.len() + whole.len();
        bytes -= moved.iter().map(|of| saved(of.bytes)).sum::<usize>();
        let mut others: Vec<(usize, usize)> = (0..self.stored.len())
            .filter(|index| matches!(self.stored[*index].field, Field::Variable { .. }))
            .filter(|index| stays(&moved, *index))
            .map(|index| (self.wide_field(index, whole).len(), index))
            .filter(|(bytes, _)| *bytes >= MOVED_BYTES_MIN)
            .collect();
        others.sort_unstable();
        while bytes > STORED_BYTES
            && let Some((value_bytes, index)) = others.pop()
        {
            moved.push(LongValue { index, id: new_id()?, bytes: value_bytes });
            bytes -= saved(value_bytes);
        }
        if bytes > ROW_BYTES_MAX {
            return Err(self.row_too_large(bytes, ROW_BYTES_MAX).into());
        }
        let pointer = |index: usize, out: &mut Vec<u8>| {
            let Some(value) = moved.iter().find(|of| of.index == index) else { return Ok(false) };
            out.extend_from_slice(value.id.as_bytes());
            out.extend_from_slice(&(value.bytes as u32).to_le_bytes());
            Ok(true)
        };
        let stored = self.with_values::<E>(whole, pointer)?;
        Ok((stored, moved))
    }

    /// The values of a row before that stood elsewhere and are the same in the row now.
    fn unchanged(
        &self,
        whole: &[u8],
        before: Option<(&[u8], &[u8])>,
    ) -> Result<Vec<LongValue>, TypeError> {
        if let Some(fault) = self.wide_fault(whole) {
            return Err(fault);
        }
        let Some((stored, whole_before)) = before else { return Ok(Vec::new()) };
        // Of an earlier version the columns may stand elsewhere.
        if stored.get(..2) != whole.get(..2) || stored.get(..2) != whole_before.get(..2) {
            return Ok(Vec::new());
        }
        if let Some(fault) = self.wide_fault(stored).or_else(|| self.wide_fault(whole_before)) {
            return Err(fault);
        }
        let mut same = self.pointers(stored);
        same.retain(|of| {
            let is_null = bit(&whole[self.layout.nulls..], of.index);
            !is_null && self.wide_field(of.index, whole) == self.wide_field(of.index, whole_before)
        });
        Ok(same)
    }

    /// The whole of a wide row as it is stored; `read` appends the bytes of a value that stands elsewhere. Columns that
    /// are not `wanted`, by their position, stay elsewhere, but in a row of an earlier version.
    ///
    /// # Errors
    /// Damage in the row; those of `read`.
    pub fn move_in<E: From<TypeError>>(
        &self,
        stored: &[u8],
        wanted: impl Fn(usize) -> bool,
        mut read: impl FnMut(&LongValue, &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Vec<u8>, E> {
        let of = self.schema_of(stored)?;
        if let Some(fault) = of.wide_fault(stored) {
            return Err(fault.into());
        }
        let mut pointers = of.pointers(stored);
        if std::ptr::eq(of, self) {
            pointers.retain(|value| wanted(self.stored[value.index].column));
        }
        let bytes = pointers.iter().map(|of| of.bytes).sum::<usize>() + stored.len();
        if bytes > WHOLE_ROW_BYTES_MAX + ROW_BYTES_MAX {
            return Err(of.row_damaged(0, "a value that stands elsewhere is too long").into());
        }
        of.with_values(stored, |index, out| {
            let Some(value) = pointers.iter().find(|of| of.index == index) else {
                return Ok(of.is_elsewhere(index, stored));
            };
            let start = out.len();
            read(value, out)?;
            match out.len() - start == value.bytes {
                true => Ok(false),
                false => Err(of.row_damaged(0, "a value that stands elsewhere is cut off").into()),
            }
        })
    }

    /// A sound wide row of this version with other bytes for columns for which `other` appends some, and says
    /// whether these stand for a value elsewhere.
    fn with_values<E: From<TypeError>>(
        &self,
        row: &[u8],
        mut other: impl FnMut(usize, &mut Vec<u8>) -> Result<bool, E>,
    ) -> Result<Vec<u8>, E> {
        let wide = self.layout.wide();
        let mut made = row[..wide.variable].to_vec();
        for (index, stored) in self.stored.iter().enumerate() {
            let Field::Variable { ordinal } = stored.field else { continue };
            let start = made.len();
            let is_elsewhere = other(index, &mut made)?;
            let elsewhere = &mut made[wide.elsewhere..];
            match is_elsewhere {
                true => set_bit(elsewhere, index),
                false => clear_bit(elsewhere, index),
            }
            if made.len() == start {
                let bytes = self.wide_field(index, row);
                // An empty value that stood elsewhere is not there.
                made.extend_from_slice(bytes);
            }
            field::set_end_in::<true>(&self.layout, &mut made, ordinal);
        }
        Ok(made)
    }
}
