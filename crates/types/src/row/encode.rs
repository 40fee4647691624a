//! From values to bytes: the row, its key, and its elided form.
//!
//! Fast path: an insert of all defaults copies the row made at compile time and patches only the
//! columns whose default is computed. No path allocates once the buffers have grown.

use super::field::{self, bit};
use super::{EncodedRow, ROW_BYTES_MAX};
use crate::schema::{AllDefaults, DefaultKind, Field, Place};
use crate::{DefaultValue, Schema, TypeError, Value};

impl Schema {
    /// Encodes one row for an insert.
    ///
    /// `values`: one for each column in declared order, [`Value::Default`] where the default is
    /// wanted; an empty slice means all defaults. `generate` is asked, with the column and its
    /// default, for every default that is computed ([`DefaultValue::Now`], [`DefaultValue::Key`]).
    ///
    /// # Errors
    /// A value that its column cannot hold, a missing value, a key or row over its limit; or the
    /// error of `generate`. `out` then holds nothing of use.
    #[inline]
    pub fn encode_row<E, F>(
        &self,
        values: &[Value<'_>],
        generate: F,
        out: &mut EncodedRow,
    ) -> Result<(), E>
    where
        E: From<TypeError>,
        F: FnMut(usize, &DefaultValue) -> Result<Value<'static>, E>,
    {
        match &self.all_defaults {
            Some(plan) if values.is_empty() => self.encode_all_defaults(plan, generate, out),
            _ => self.encode_values(values, generate, out),
        }
    }

    fn encode_all_defaults<E, F>(
        &self,
        plan: &AllDefaults,
        mut generate: F,
        out: &mut EncodedRow,
    ) -> Result<(), E>
    where
        E: From<TypeError>,
        F: FnMut(usize, &DefaultValue) -> Result<Value<'static>, E>,
    {
        out.clear();
        let columns = self.definition.columns();
        for (position, key) in self.keys.iter().enumerate() {
            match &columns[key.column].default {
                DefaultValue::Constant(value) => self.push_key(position, value, &mut out.key)?,
                // The value is used where it was made: moving it costs more than encoding it.
                default => match generate(key.column, default) {
                    Ok(ref value) => self.push_key(position, value, &mut out.key)?,
                    Err(error) => return Err(error),
                },
            }
        }
        out.row.extend_from_slice(&self.template);
        let mut some_null = false;
        for &index in &plan.computed {
            let column = self.stored[index].column;
            match generate(column, &columns[column].default) {
                Ok(Value::Null) => {
                    self.put_nullable::<false>(index, &Value::Null, &mut out.row)?;
                    some_null = true;
                }
                Ok(ref value) => self.put(index, value, &mut out.row)?,
                Err(error) => return Err(error),
            }
        }
        if !self.fits_or_widens(out)? {
            return Ok(());
        }
        if some_null {
            self.elide_row(&out.row, &mut out.elided);
        } else {
            self.push_elided_version(&mut out.elided);
            out.elided.extend_from_slice(&plan.bitmap);
            for &index in &plan.computed {
                out.elided.extend_from_slice(self.field_bytes(index, &out.row));
            }
        }
        Ok(())
    }

    fn encode_values<E, F>(
        &self,
        values: &[Value<'_>],
        mut generate: F,
        out: &mut EncodedRow,
    ) -> Result<(), E>
    where
        E: From<TypeError>,
        F: FnMut(usize, &DefaultValue) -> Result<Value<'static>, E>,
    {
        out.clear();
        self.check_count(values.len(), self.column_count(), true)?;
        let columns = self.definition.columns();
        for (position, key) in self.keys.iter().enumerate() {
            let value = values.get(key.column).unwrap_or(&Value::Default);
            match (value, &columns[key.column].default) {
                (Value::Default, DefaultValue::None) => {
                    return Err(TypeError::MissingValue(self.column_name(key.column)).into());
                }
                (Value::Default, DefaultValue::Constant(value)) => {
                    self.push_key(position, value, &mut out.key)?;
                }
                (Value::Default, default) => match generate(key.column, default) {
                    Ok(ref value) => self.push_key(position, value, &mut out.key)?,
                    Err(error) => return Err(error),
                },
                (value, _) => self.push_key(position, value, &mut out.key)?,
            }
        }
        // Constant defaults of fixed width are in place; variable columns are appended in order.
        out.row.extend_from_slice(&self.template[..self.layout.variable]);
        let columns = (0, None);
        let left = self.put_columns::<false, _, _>(columns, values, &mut generate, &mut out.row)?;
        if let Some(left) = left {
            return self.encode_wide(left, values, generate, out);
        }
        if self.fits_or_widens(out)? {
            self.elide_row(&out.row, &mut out.elided);
        }
        Ok(())
    }

    /// Writes the columns from one on, of which a computed default may be known. Comes to the one for which there is no
    /// space in a row that is not wide, and its computed default, if it has one.
    #[inline]
    fn put_columns<const WIDE: bool, E, F>(
        &self,
        (first, mut computed): (usize, Option<Value<'static>>),
        values: &[Value<'_>],
        generate: &mut F,
        row: &mut Vec<u8>,
    ) -> Result<Option<(usize, Option<Value<'static>>)>, E>
    where
        E: From<TypeError>,
        F: FnMut(usize, &DefaultValue) -> Result<Value<'static>, E>,
    {
        let columns = self.definition.columns();
        for (index, stored) in self.stored.iter().enumerate().skip(first) {
            let value = values.get(stored.column).unwrap_or(&Value::Default);
            let put = match (value, stored.default) {
                (Value::Default, DefaultKind::Constant) => self.put_constant_in::<WIDE>(index, row),
                (Value::Default, DefaultKind::Generated) => {
                    self.put_null_in::<WIDE>(index, row);
                    Ok(())
                }
                (Value::Default, DefaultKind::Missing) => {
                    return Err(TypeError::MissingValue(self.column_name(stored.column)).into());
                }
                (Value::Default, DefaultKind::Computed) => {
                    let made = match computed.take() {
                        Some(known) => Ok(known),
                        None => generate(stored.column, &columns[stored.column].default),
                    };
                    match made {
                        Ok(ref value) => match self.put_nullable::<WIDE>(index, value, row) {
                            Err(TypeError::RowTooLarge { .. }) if !WIDE => {
                                return Ok(Some((index, Some(value.clone()))));
                            }
                            put => put,
                        },
                        Err(error) => return Err(error),
                    }
                }
                (value, _) => self.put_nullable::<WIDE>(index, value, row),
            };
            match put {
                Ok(()) => {}
                Err(TypeError::RowTooLarge { .. }) if !WIDE => return Ok(Some((index, None))),
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(None)
    }

    /// Goes on with a row that has got too long for its form, from a column on.
    #[cold]
    fn encode_wide<E, F>(
        &self,
        left: (usize, Option<Value<'static>>),
        values: &[Value<'_>],
        mut generate: F,
        out: &mut EncodedRow,
    ) -> Result<(), E>
    where
        E: From<TypeError>,
        F: FnMut(usize, &DefaultValue) -> Result<Value<'static>, E>,
    {
        if self.definition.long_values().is_none() {
            // What did not fit, at least.
            return Err(self.row_too_large(usize::from(u16::MAX), ROW_BYTES_MAX).into());
        }
        self.widen(out)?;
        self.put_columns::<true, _, _>(left, values, &mut generate, &mut out.row)?;
        Ok(())
    }

    /// Encodes a row of which `value` knows every column: first it is asked for those of the key, in key order, then
    /// for the others. The key ends with `key_end`, which is encoded already: the columns of the key from the position
    /// that stands before it on.
    ///
    /// # Errors
    /// As [`Schema::encode_row`], or the error of `value`. `out` then holds nothing of use.
    pub fn encode_columns<'v, E: From<TypeError>>(
        &self,
        mut value: impl FnMut(usize) -> Result<Value<'v>, E>,
        (asked, key_end): (usize, &[u8]),
        out: &mut EncodedRow,
    ) -> Result<(), E> {
        out.clear();
        for (position, key) in self.keys.iter().enumerate().take(asked) {
            self.push_key(position, &value(key.column)?, &mut out.key)?;
        }
        out.key.extend_from_slice(key_end);
        self.check_key_size(&out.key)?;
        out.row.extend_from_slice(&self.template[..self.layout.variable]);
        for (index, stored) in self.stored.iter().enumerate() {
            self.put_nullable::<false>(index, &value(stored.column)?, &mut out.row)?;
        }
        if self.fits_or_widens(out)? {
            self.elide_row(&out.row, &mut out.elided);
        }
        Ok(())
    }

    /// Encodes the row that results from an update: the stored row with `assignments` (column,
    /// value) applied. Returns whether the key changed; then the caller deletes the old key and
    /// inserts the new one.
    ///
    /// # Errors
    /// As [`Schema::encode_row`]; [`TypeError::ComputedDefault`] for DEFAULT on a column whose
    /// default is computed; damage in the stored row.
    pub fn update_row(
        &self,
        key: &[u8],
        row: &[u8],
        assignments: &[(usize, Value<'_>)],
        out: &mut EncodedRow,
    ) -> Result<bool, TypeError> {
        let mut values = self.view(key, row)?.values()?;
        for (column, value) in assignments {
            let Some(target) = values.get_mut(*column) else {
                self.check_count(*column + 1, self.column_count(), false)?;
                continue;
            };
            *target = value.borrowed();
        }
        self.encode_values(
            &values,
            |column, _| Err(TypeError::ComputedDefault(self.column_name(column))),
            out,
        )?;
        Ok(out.key != key)
    }

    #[inline]
    fn put_nullable<const WIDE: bool>(
        &self,
        index: usize,
        value: &Value<'_>,
        row: &mut Vec<u8>,
    ) -> Result<(), TypeError> {
        if value.is_null() {
            self.check_nullable(index)?;
            self.put_null_in::<WIDE>(index, row);
            Ok(())
        } else {
            self.put_in::<WIDE>(index, value, row)
        }
    }

    /// The constant default: fixed columns have it already.
    #[inline]
    pub(super) fn put_constant(&self, index: usize, row: &mut Vec<u8>) -> Result<(), TypeError> {
        self.put_constant_in::<false>(index, row)
    }

    #[inline]
    fn put_constant_in<const WIDE: bool>(
        &self,
        index: usize,
        row: &mut Vec<u8>,
    ) -> Result<(), TypeError> {
        if let Field::Variable { ordinal } = self.stored[index].field {
            let bytes = self.field_bytes(index, &self.template);
            if !WIDE && row.len() + bytes.len() > usize::from(u16::MAX) {
                return Err(self.row_too_large(row.len() + bytes.len(), ROW_BYTES_MAX));
            }
            row.extend_from_slice(bytes);
            field::set_end_in::<WIDE>(&self.layout, row, ordinal);
        }
        Ok(())
    }

    #[inline]
    fn check_nullable(&self, index: usize) -> Result<(), TypeError> {
        let stored = &self.stored[index];
        if stored.nullable {
            Ok(())
        } else {
            Err(TypeError::NullValue(self.column_name(stored.column)))
        }
    }

    pub(crate) fn check_count(
        &self,
        given: usize,
        expected: usize,
        empty_allowed: bool,
    ) -> Result<(), TypeError> {
        if given == expected || (given == 0 && empty_allowed) {
            return Ok(());
        }
        Err(TypeError::ValueCount { table: self.name().into(), given, expected })
    }

    /// Whether key and row are within the limit. Else the row is a wide one now, if the table may have such.
    #[inline]
    fn fits_or_widens(&self, out: &mut EncodedRow) -> Result<bool, TypeError> {
        if out.key.len() + out.row.len() <= ROW_BYTES_MAX {
            return Ok(true);
        }
        self.widen(out).map(|()| false)
    }

    /// Whether a column of a sound row is NULL.
    #[inline]
    pub(super) fn is_null(&self, index: usize, row: &[u8]) -> bool {
        bit(&row[self.layout.nulls..], index)
    }

    /// Where a column is found.
    pub(super) fn place(&self, column: usize) -> Option<Place> {
        self.places.get(column).copied()
    }
}
