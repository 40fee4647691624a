//! From bytes to values: all columns, or only those wanted.

use super::field::{self, bit};
use super::wide::WIDE;
use crate::schema::{Earlier, Place, Source};
use crate::{Schema, TypeError, Value};

/// In front of the columns: the version.
const VERSION_BYTES: usize = 2;

/// A stored row, checked once, from which columns are read one by one without copying text.
#[derive(Debug, Clone, Copy)]
pub struct RowView<'r> {
    schema: &'r Schema,
    key: &'r [u8],
    row: &'r [u8],
    form: Form<'r>,
}

/// How the columns stand in a row.
#[derive(Debug, Clone, Copy)]
enum Form<'r> {
    /// As in every other row of the schema.
    Usual,
    /// In a wide row.
    Wide,
    /// In a row of an earlier version, which may be wide.
    Earlier { of: &'r Earlier, is_wide: bool },
}

/// What [`RowView::stored_bytes`] finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredBytes<'r> {
    /// NULL.
    Null,
    /// The bytes as the row holds them; numbers are little-endian.
    Here(&'r [u8]),
    /// They are not there as they are: a column of the key, or a row of another form.
    Elsewhere,
}

impl Schema {
    /// The schema version that a row was written with; None when the row is cut off.
    pub fn row_version(row: &[u8]) -> Option<u16> {
        Some(u16::from_le_bytes([*row.first()?, *row.get(1)?]) & !WIDE)
    }

    /// Whether two rows are the same behind the versions that they were written with.
    #[must_use]
    pub fn is_same_row(one: &[u8], other: &[u8]) -> bool {
        one.get(VERSION_BYTES..) == other.get(VERSION_BYTES..)
    }

    /// Looks into a stored row, also one of an earlier version of the table, which is seen as one of
    /// this. Checks the version and that all parts are there.
    ///
    /// # Errors
    /// [`TypeError::RowDamaged`]; [`TypeError::WrongSchemaVersion`] for a version that the table never
    /// had, or not yet.
    #[inline]
    pub fn view<'r>(&'r self, key: &'r [u8], row: &'r [u8]) -> Result<RowView<'r>, TypeError> {
        // Made at one place, so that its parts can stay in registers.
        let form = if row.get(..2) == self.template.get(..2) {
            match self.row_fault(row) {
                None => Form::Usual,
                Some(fault) => return Err(fault),
            }
        } else {
            self.form_of(row)?
        };
        Ok(RowView { schema: self, key, row, form })
    }

    /// The form of a row that is wide, or of another version.
    #[cold]
    fn form_of(&self, row: &[u8]) -> Result<Form<'_>, TypeError> {
        let is_wide = Schema::is_wide(row);
        let of = self.schema_of(row)?;
        let fault = if is_wide { of.wide_fault(row) } else { of.row_fault(row) };
        match fault {
            Some(fault) => Err(fault),
            None if std::ptr::eq(of, self) => Ok(Form::Wide),
            None => {
                let of = self.earlier_of(row)?;
                Ok(Form::Earlier { of, is_wide })
            }
        }
    }

    /// The schema that a row was written by: this, or an earlier one.
    pub(super) fn schema_of(&self, row: &[u8]) -> Result<&Schema, TypeError> {
        if Schema::row_version(row) == Some(self.version()) {
            return Ok(self);
        }
        self.earlier_of(row).map(|earlier| &earlier.schema)
    }

    /// The earlier version that a row is of.
    fn earlier_of(&self, row: &[u8]) -> Result<&Earlier, TypeError> {
        let Some(version) = Schema::row_version(row) else {
            return Err(self.row_damaged(row.len(), "the row ends inside its fixed part"));
        };
        self.earlier(version).ok_or_else(|| self.wrong_version(version))
    }

    #[cold]
    pub(super) fn wrong_version(&self, found: u16) -> TypeError {
        let expected = self.version();
        TypeError::WrongSchemaVersion { table: self.name().into(), found, expected }
    }

    /// Whether the parts of a row are there; its version is not looked at.
    #[inline]
    fn row_fault(&self, row: &[u8]) -> Option<TypeError> {
        if row.len() < self.layout.variable {
            return Some(self.row_damaged(row.len(), "the row ends inside its fixed part"));
        }
        let mut start = self.layout.variable;
        for at in (self.layout.ends..self.layout.variable).step_by(2) {
            let end =
                self.layout.variable + usize::from(u16::from_le_bytes([row[at], row[at + 1]]));
            if end < start || end > row.len() {
                return Some(self.row_damaged(at, "an end lies outside the row"));
            }
            start = end;
        }
        if start != row.len() {
            return Some(self.row_damaged(start, "bytes are left over after the last column"));
        }
        None
    }

    #[cold]
    pub(super) fn row_damaged(&self, at: usize, reason: &'static str) -> TypeError {
        TypeError::RowDamaged { table: self.name().into(), at, reason }
    }

    /// All values of a stored row in column order, owned.
    ///
    /// # Errors
    /// Damage in key or row.
    pub fn decode_row(&self, key: &[u8], row: &[u8]) -> Result<Vec<Value<'static>>, TypeError> {
        let values = self.view(key, row)?.values()?;
        Ok(values.into_iter().map(Value::into_owned).collect())
    }
}

impl<'r> RowView<'r> {
    /// One column, borrowing its text from the row. Columns outside the key cost the same wherever
    /// they stand; a key column costs a walk over the key columns before it.
    ///
    /// # Errors
    /// Damage in the column's bytes; [`TypeError::ValueCount`] for a column past the last.
    pub fn column(&self, column: usize) -> Result<Value<'r>, TypeError> {
        match self.schema.place(column) {
            Some(Place::Stored(index)) => self.stored(index),
            Some(Place::Key(position)) => self.schema.decode_key_column(self.key, position),
            None => {
                let count = self.schema.column_count();
                self.schema.check_count(column + 1, count, false).map(|()| Value::Null)
            }
        }
    }

    /// A column's bytes, for who turns millions of them into something else than a [`Value`]. Where
    /// they are [`Elsewhere`](StoredBytes::Elsewhere), [`RowView::column`] has the value.
    #[inline]
    pub fn stored_bytes(&self, column: usize) -> StoredBytes<'r> {
        let (Some(Place::Stored(index)), Form::Usual) = (self.schema.place(column), self.form)
        else {
            return StoredBytes::Elsewhere;
        };
        if bit(&self.row[self.schema.layout.nulls..], index) {
            return StoredBytes::Null;
        }
        StoredBytes::Here(self.schema.field_bytes(index, self.row))
    }

    /// All columns in order, borrowing from key and row.
    ///
    /// # Errors
    /// Damage in key or row.
    pub fn values(&self) -> Result<Vec<Value<'r>>, TypeError> {
        let mut values = Vec::new();
        self.values_into(&mut values)?;
        Ok(values)
    }

    /// As [`RowView::values`], into a buffer that is cleared first: for scans.
    ///
    /// # Errors
    /// Damage in key or row.
    pub fn values_into(&self, values: &mut Vec<Value<'r>>) -> Result<(), TypeError> {
        values.clear();
        values.resize(self.schema.column_count(), Value::Null);
        self.visit(|column, value| values[column] = value)
    }

    /// Calls `visit` with each column and its value: the key columns first, in key order, then the
    /// others in declared order.
    ///
    /// # Errors
    /// Damage in key or row; columns before the damage have been visited.
    pub fn visit(&self, mut visit: impl FnMut(usize, Value<'r>)) -> Result<(), TypeError> {
        self.schema.visit_key(self.key, &mut visit)?;
        for index in 0..self.schema.stored.len() {
            visit(self.schema.stored[index].column, self.stored(index)?);
        }
        Ok(())
    }

    #[inline]
    fn stored(&self, index: usize) -> Result<Value<'r>, TypeError> {
        match self.form {
            Form::Usual => self.schema.stored_value(index, self.row),
            Form::Wide => self.schema.wide_value(index, self.row),
            Form::Earlier { of, is_wide } => self.stored_earlier(of, is_wide, index),
        }
    }

    #[cold]
    fn stored_earlier(
        &self,
        earlier: &'r Earlier,
        is_wide: bool,
        index: usize,
    ) -> Result<Value<'r>, TypeError> {
        match &earlier.sources[self.schema.stored[index].column] {
            Source::Missing(value) => Ok(value.borrowed()),
            Source::Column(column) => match earlier.schema.place(*column) {
                Some(Place::Stored(index)) if is_wide => earlier.schema.wide_value(index, self.row),
                Some(Place::Stored(index)) => earlier.schema.stored_value(index, self.row),
                _ => Err(self.schema.row_damaged(0, "a column stood in the key before")),
            },
        }
    }
}

impl Schema {
    /// The value of a column outside the key in a row of this version whose parts are there.
    #[inline]
    fn stored_value<'r>(&'r self, index: usize, row: &'r [u8]) -> Result<Value<'r>, TypeError> {
        if bit(&row[self.layout.nulls..], index) {
            return Ok(Value::Null);
        }
        let bytes = self.field_bytes(index, row);
        field::read(self.stored[index].data_type, bytes)
            .map_err(|reason| self.row_damaged(offset_of(row, bytes), reason))
    }
}

/// Where `part` starts inside `whole`, for messages.
pub(super) fn offset_of(whole: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr().saturating_sub(whole.as_ptr().addr())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    #[test]
    fn text_is_borrowed_from_the_row() {
        let text = field::read(crate::DataType::Text, b"abc");
        assert!(matches!(text, Ok(Value::Text(Cow::Borrowed("abc")))));
    }
}
