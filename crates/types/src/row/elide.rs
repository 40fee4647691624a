//! The elided form: a row without the columns that are at their constant default, for the log.
//! The layout stands in the head of [`crate::row`].

use super::field::{bit, clear_bit, set_bit};
use crate::schema::{DefaultKind, Field, StoredColumn};
use crate::{DataType, ROW_BYTES_MAX, Schema, TypeError, convert};

impl Schema {
    pub(crate) fn elided_bitmap_bytes(&self) -> usize {
        (self.stored.len() + 1).div_ceil(8)
    }

    /// Whether the elided form begins with the version of the row: that of every table that was
    /// altered, but for the rows that are older than that.
    #[inline]
    pub fn elided_names_version(&self) -> bool {
        !self.earlier.is_empty()
    }

    #[inline]
    pub(super) fn push_elided_version(&self, elided: &mut Vec<u8>) {
        if self.elided_names_version() {
            elided.extend_from_slice(&self.version().to_le_bytes());
        }
    }

    /// Appends the elided form of a sound row of this schema's version to `elided`.
    pub fn elide_row(&self, row: &[u8], elided: &mut Vec<u8>) {
        self.push_elided_version(elided);
        if self.stored.is_empty() {
            // Such as the entry of an index.
            elided.push(0);
            return;
        }
        let start = elided.len();
        elided.resize(start + self.elided_bitmap_bytes(), 0);
        let nulls = &row[self.layout.nulls..self.layout.fixed];
        if nulls.iter().zip(&self.logged_nulls).any(|(null, logged)| null & logged != 0) {
            set_bit(&mut elided[start..], 0);
            elided.extend_from_slice(nulls);
        }
        let template_nulls = &self.template[self.layout.nulls..self.layout.fixed];
        for (index, stored) in self.stored.iter().enumerate() {
            let null = bit(nulls, index);
            let bytes = self.field_bytes(index, row);
            let present = stored.default != DefaultKind::Constant
                || null != bit(template_nulls, index)
                || !same(bytes, self.field_bytes(index, &self.template));
            if present {
                set_bit(&mut elided[start..], index + 1);
                if !null {
                    push_elided(stored, bytes, elided);
                }
            }
        }
    }

    /// Restores the row bytes from their elided form; `row` is replaced. `names_version`: whether the
    /// form begins with its version, as the log record says; else it is of the table's first.
    ///
    /// # Errors
    /// [`TypeError::RowDamaged`] when the bytes are not an elided row of this table;
    /// [`TypeError::WrongSchemaVersion`] for a version that it never had.
    pub fn expand_elided(
        &self,
        elided: &[u8],
        names_version: bool,
        row: &mut Vec<u8>,
    ) -> Result<(), TypeError> {
        let mut input = Input { bytes: elided, at: 0 };
        self.expand_of(&mut input, names_version, row).map_err(|fault| match fault {
            ExpandFault::Damaged(reason) => {
                TypeError::RowDamaged { table: self.name().into(), at: input.at, reason }
            }
            ExpandFault::Version(found) => self.wrong_version(found),
        })
    }

    fn expand_of(
        &self,
        input: &mut Input<'_>,
        names_version: bool,
        row: &mut Vec<u8>,
    ) -> Result<(), ExpandFault> {
        let version = match names_version {
            true => u16::from_le_bytes(input.take(2)?.try_into().map_err(|_| "it has no version")?),
            false => self.definition.first_version(),
        };
        if version == self.version() {
            return Ok(self.expand(input, row)?);
        }
        let earlier = self.earlier(version).ok_or(ExpandFault::Version(version))?;
        earlier.schema.expand(input, row)?;
        row[..2].copy_from_slice(&version.to_le_bytes());
        Ok(())
    }

    fn expand(&self, input: &mut Input<'_>, row: &mut Vec<u8>) -> Result<(), &'static str> {
        let bitmap = input.take(self.elided_bitmap_bytes())?;
        row.clear();
        row.extend_from_slice(&self.template[..self.layout.variable]);
        let nulls_given = bit(bitmap, 0);
        if nulls_given {
            let nulls = input.take(self.layout.fixed - self.layout.nulls)?;
            row[self.layout.nulls..self.layout.fixed].copy_from_slice(nulls);
        }
        for index in 0..self.stored.len() {
            if !bit(bitmap, index + 1) {
                if self.stored[index].default != DefaultKind::Constant {
                    return Err("a column without a constant default is missing");
                }
                self.put_constant(index, row).map_err(|_| "the row is over the limit")?;
            } else if nulls_given && self.is_null(index, row) {
                if !self.stored[index].nullable {
                    return Err("a NOT NULL column is NULL");
                }
                self.put_null(index, row);
            } else {
                clear_bit(&mut row[self.layout.nulls..], index);
                self.take_field(index, input, row)?;
            }
        }
        if input.at != input.bytes.len() {
            return Err("bytes are left over after the last column");
        }
        if row.len() > ROW_BYTES_MAX {
            return Err("the row is over the limit");
        }
        Ok(())
    }

    fn take_field(
        &self,
        index: usize,
        input: &mut Input<'_>,
        row: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        match (self.stored[index].data_type, self.stored[index].field) {
            (DataType::Char(limit), Field::Fixed { offset, width }) => {
                let length = if limit <= 255 {
                    usize::from(input.take(1)?[0])
                } else {
                    input.take_length()?
                };
                if length > width {
                    return Err("a char value is longer than declared");
                }
                let text = input.take(length)?;
                row[offset..offset + length].copy_from_slice(text);
                row[offset + length..offset + width].fill(b' ');
            }
            (_, Field::Fixed { offset, width }) => {
                row[offset..offset + width].copy_from_slice(input.take(width)?);
            }
            (_, Field::Variable { ordinal }) => {
                let length = input.take_length()?;
                row.extend_from_slice(input.take(length)?);
                super::field::set_end(&self.layout, row, ordinal);
            }
        }
        Ok(())
    }
}

/// Why an elided row is none.
enum ExpandFault {
    Damaged(&'static str),
    /// It is of this version, which there never was.
    Version(u16),
}

impl From<&'static str> for ExpandFault {
    fn from(reason: &'static str) -> ExpandFault {
        ExpandFault::Damaged(reason)
    }
}

/// Whether two fields are equal. The usual widths are compared without a call.
#[inline]
fn same(left: &[u8], right: &[u8]) -> bool {
    match (left.as_array::<8>(), right.as_array::<8>()) {
        (Some(left), Some(right)) => left == right,
        _ => match (left.as_array::<4>(), right.as_array::<4>()) {
            (Some(left), Some(right)) => left == right,
            _ => left == right,
        },
    }
}

#[inline]
fn push_elided(stored: &StoredColumn, bytes: &[u8], elided: &mut Vec<u8>) {
    match (stored.data_type, stored.field) {
        (DataType::Char(width), _) => {
            let text = &bytes[..convert::length_without_blanks(bytes)];
            // Both lengths are at most the declared width.
            if width <= 255 {
                elided.push(text.len() as u8);
            } else {
                elided.extend_from_slice(&(text.len() as u16).to_le_bytes());
            }
            elided.extend_from_slice(text);
        }
        (_, Field::Fixed { .. }) => elided.extend_from_slice(bytes),
        (_, Field::Variable { .. }) => {
            elided.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
            elided.extend_from_slice(bytes);
        }
    }
}

struct Input<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Input<'b> {
    #[inline]
    fn take(&mut self, count: usize) -> Result<&'b [u8], &'static str> {
        let taken = self.bytes[self.at..].get(..count).ok_or("the bytes end inside a column")?;
        self.at += count;
        Ok(taken)
    }

    fn take_length(&mut self) -> Result<usize, &'static str> {
        let bytes = self.take(2)?;
        Ok(usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
    }
}
