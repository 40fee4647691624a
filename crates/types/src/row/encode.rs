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
                    self.put_nullable(index, &Value::Null, &mut out.row)?;
                    some_null = true;
                }
                Ok(ref value) => self.put(index, value, &mut out.row)?,
                Err(error) => return Err(error),
            }
        }
        self.check_row_size(out)?;
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
        for (index, stored) in self.stored.iter().enumerate() {
            let value = values.get(stored.column).unwrap_or(&Value::Default);
            match (value, stored.default) {
                (Value::Default, DefaultKind::Constant) => self.put_constant(index, &mut out.row),
                (Value::Default, DefaultKind::Generated) => self.put_null(index, &mut out.row),
                (Value::Default, DefaultKind::Missing) => {
                    return Err(TypeError::MissingValue(self.column_name(stored.column)).into());
                }
                (Value::Default, DefaultKind::Computed) => {
                    match generate(stored.column, &columns[stored.column].default) {
                        Ok(ref value) => self.put_nullable(index, value, &mut out.row)?,
                        Err(error) => return Err(error),
                    }
                }
                (value, _) => self.put_nullable(index, value, &mut out.row)?,
            }
        }
        self.check_row_size(out)?;
        self.elide_row(&out.row, &mut out.elided);
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
            self.put_nullable(index, &value(stored.column)?, &mut out.row)?;
        }
        self.check_row_size(out)?;
        self.elide_row(&out.row, &mut out.elided);
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
    fn put_nullable(
        &self,
        index: usize,
        value: &Value<'_>,
        row: &mut Vec<u8>,
    ) -> Result<(), TypeError> {
        if value.is_null() {
            self.check_nullable(index)?;
            self.put_null(index, row);
            Ok(())
        } else {
            self.put(index, value, row)
        }
    }

    /// The constant default: fixed columns have it already.
    #[inline]
    pub(super) fn put_constant(&self, index: usize, row: &mut Vec<u8>) {
        if let Field::Variable { ordinal } = self.stored[index].field {
            row.extend_from_slice(self.field_bytes(index, &self.template));
            field::set_end(&self.layout, row, ordinal);
        }
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

    #[inline]
    fn check_row_size(&self, out: &EncodedRow) -> Result<(), TypeError> {
        let bytes = out.key.len() + out.row.len();
        if bytes <= ROW_BYTES_MAX {
            return Ok(());
        }
        Err(TypeError::RowTooLarge { table: self.name().into(), bytes, limit: ROW_BYTES_MAX })
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
