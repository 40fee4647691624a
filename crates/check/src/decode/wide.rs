//! Wide rows, whose longest values stand elsewhere, and the pieces of such values.

use super::input::u16_at;
use super::is_zero;
use super::row::{RowFault, RowPlan, is_null, version_of};

/// Bytes of a piece, but of the last one.
const PIECE_BYTES: u32 = 7900;
/// A value that stands elsewhere: its id, and how many bytes it has.
const POINTER_BYTES: usize = 20;
/// A piece as a row: version, no NULL, and where its bytes end.
const PIECE_AT: usize = 5;

/// What a row says of a value that stands elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pointer {
    pub(crate) id: u128,
    pub(crate) bytes: u32,
}

/// A piece of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) id: u128,
    pub(crate) number: u32,
    pub(crate) bytes: u32,
}

impl Piece {
    /// Of a sound row of a table of pieces.
    pub(crate) fn of(key: &[u8], row: &[u8]) -> Option<Piece> {
        let (id, number) = key.split_first_chunk::<16>()?;
        // Keys have the sign turned over.
        let number = u32::from_be_bytes(number.try_into().ok()?) ^ 1 << 31;
        let bytes = row.len().checked_sub(PIECE_AT)? as u32;
        Some(Piece { id: u128::from_be_bytes(*id), number, bytes })
    }
}

/// The pieces that a value must have.
pub(crate) fn pieces_of(value: Pointer) -> impl Iterator<Item = Piece> {
    let piece = move |number: u32| {
        let bytes = (value.bytes - number * PIECE_BYTES).min(PIECE_BYTES);
        Piece { id: value.id, number, bytes }
    };
    (0..value.bytes.div_ceil(PIECE_BYTES)).map(piece)
}

/// Whether a row of at least two bytes is a wide one.
#[inline]
pub(crate) fn is_wide(row: &[u8]) -> bool {
    row[1] & 0x80 != 0
}

impl RowPlan {
    pub(super) fn bitmap_bytes(&self) -> usize {
        self.fixed_at - 2
    }

    /// Where the ends of the variable columns stand in a wide row, and their bytes.
    fn wide_at(&self) -> (usize, usize) {
        let ends_at = self.ends_at + self.bitmap_bytes();
        (ends_at, ends_at + 2 * (self.variable_at - self.ends_at))
    }

    /// Where the bytes of a column of variable width stand in a wide row.
    fn wide_value<'r>(&self, row: &'r [u8], ordinal: usize) -> Option<&'r [u8]> {
        let (ends_at, variable_at) = self.wide_at();
        let end = |ordinal: usize| {
            let at = ends_at + 4 * ordinal;
            let low = u32::from(u16_at(row, at));
            let end = low | u32::from(u16_at(row, at + 2)) << 16;
            variable_at.saturating_add(end as usize)
        };
        let start = ordinal.checked_sub(1).map_or(variable_at, end);
        row.get(start..end(ordinal))
    }

    /// Checks a wide row of one of these versions.
    #[cold]
    pub(super) fn check_wide(&self, row: &[u8]) -> Result<(), RowFault> {
        use RowFault::{Shape, Value};
        if !self.may_be_wide {
            return Err(Shape("a wide row of a table without long values"));
        }
        let (_, variable_at) = self.wide_at();
        if row.len() < variable_at {
            return Err(Shape("the row ends inside its fixed part"));
        }
        let nulls = &row[2..self.fixed_at];
        let elsewhere = &row[self.fixed_at..self.fixed_at + self.bitmap_bytes()];
        if nulls.iter().zip(&self.never_null).any(|(bits, never)| bits & never != 0) {
            return Err(Shape("a NOT NULL column is NULL, or a bit of no column is set"));
        }
        let (mut pointers, mut end) = (0, variable_at);
        for (index, stored) in self.stored.iter().enumerate() {
            let (is_null, is_elsewhere) = (is_null(nulls, index), is_null(elsewhere, index));
            let bytes = match stored.rule.width() {
                Some(width) => {
                    let place = stored.place + self.bitmap_bytes();
                    &row[place..place + width]
                }
                None => {
                    let bytes = self.wide_value(row, stored.place);
                    let bytes = bytes.ok_or(Shape("an end of a column lies outside the row"))?;
                    end += bytes.len();
                    bytes
                }
            };
            if is_null && !(is_zero(bytes) && (stored.rule.width().is_some() || bytes.is_empty())) {
                return Err(Value(stored.column, "a NULL column has a value"));
            }
            if is_elsewhere {
                pointers += 1;
                let is_pointer = stored.rule.width().is_none() && bytes.len() == POINTER_BYTES;
                if is_null || !is_pointer {
                    return Err(Value(stored.column, "a value that cannot stand elsewhere"));
                }
            } else if !is_null {
                stored.rule.check(bytes).map_err(|fault| Value(stored.column, fault))?;
            }
        }
        let bits = elsewhere.iter().map(|byte| byte.count_ones()).sum::<u32>();
        if pointers == 0 || pointers != bits {
            return Err(Shape("a wide row without a value elsewhere, or with one of no column"));
        }
        match end == row.len() {
            true => Ok(()),
            false => Err(Shape("bytes are left over after the last column")),
        }
    }

    /// The values of a sound row that stand elsewhere.
    pub(crate) fn pointers(&self, row: &[u8]) -> Vec<Pointer> {
        if row.len() < 2 || !is_wide(row) {
            return Vec::new();
        }
        let Some(plan) = self.of_version(version_of(row)) else { return Vec::new() };
        let Some(elsewhere) = row.get(plan.fixed_at..plan.fixed_at + plan.bitmap_bytes()) else {
            return Vec::new();
        };
        let pointer = |(index, stored): (usize, &super::row::Stored)| {
            if !is_null(elsewhere, index) || stored.rule.width().is_some() {
                return None;
            }
            let bytes = plan.wide_value(row, stored.place)?;
            let (id, bytes) = bytes.split_first_chunk::<16>()?;
            let bytes = u32::from_le_bytes(bytes.try_into().ok()?);
            Some(Pointer { id: u128::from_be_bytes(*id), bytes })
        };
        plan.stored.iter().enumerate().filter_map(pointer).collect()
    }
}
