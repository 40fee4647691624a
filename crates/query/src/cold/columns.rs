//! Columns of a file as columns of the relation.
//!
//! Files say less of types than the database: a smallint is an integer there, a label a text. Others who write files
//! may choose narrower or wider forms of the same type, which Iceberg allows, too.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, FixedSizeBinaryBuilder, new_null_array};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType as ArrowType, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::util::display::FormatOptions;
use onrush::{DataType, EnumType};

use crate::enumeration::{self, ENUM_BYTES};
use crate::error::{QueryError, Result};
use crate::types::{ColumnType, column_type};

/// Columns of the relation, and where they are in batches of a file.
#[derive(Clone, Debug)]
pub(super) struct FromFile {
    schema: SchemaRef,
    /// For each column its place in a batch; none if the file has no such field.
    places: Vec<Option<usize>>,
    /// What the file is called.
    name: String,
}

impl FromFile {
    pub(super) fn new(schema: SchemaRef, places: Vec<Option<usize>>, name: String) -> FromFile {
        FromFile { schema, places, name }
    }

    pub(super) fn batch(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = Vec::with_capacity(self.places.len());
        for (field, place) in self.schema.fields().iter().zip(&self.places) {
            let found = match place {
                None => Ok(new_null_array(field.data_type(), batch.num_rows())),
                Some(place) => match column_type(field) {
                    ColumnType::Stored(DataType::Enum(of)) => labels(of, batch.column(*place)),
                    _ => as_type(batch.column(*place), field.data_type()),
                },
            };
            let found = found.map_err(|cause| self.refused(field.name(), &cause.to_string()))?;
            if found.null_count() > 0 && !field.is_nullable() {
                return Err(self.refused(field.name(), "it has NULL where there can be none"));
            }
            columns.push(found);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    fn refused(&self, column: &str, cause: &str) -> QueryError {
        let message = format!("column \"{column}\" of file {} cannot be read: {cause}", self.name);
        QueryError::refused("58030", message)
    }
}

fn as_type(column: &ArrayRef, wanted: &ArrowType) -> Result<ArrayRef> {
    if column.data_type() == wanted {
        return Ok(Arc::clone(column));
    }
    // What does not fit is an error, and not NULL.
    let options = CastOptions { safe: false, format_options: FormatOptions::default() };
    Ok(cast_with_options(column, wanted, &options)?)
}

fn labels(of: EnumType, column: &ArrayRef) -> Result<ArrayRef> {
    let column = as_type(column, &ArrowType::Utf8)?;
    let labels = column.as_string::<i32>();
    let mut values = FixedSizeBinaryBuilder::with_capacity(labels.len(), ENUM_BYTES);
    for label in labels {
        let Some(label) = label else {
            values.append_null();
            continue;
        };
        let value = enumeration::to_bytes(of, label).ok_or_else(|| {
            let message = format!("\"{label}\" is no label of {}", of.name());
            QueryError::refused("22P02", message)
        })?;
        values.append_value(value)?;
    }
    Ok(Arc::new(values.finish()))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int16Array, Int32Array, Int64Array, StringArray};
    use datafusion::arrow::datatypes::{Field, Schema};

    use super::*;
    use crate::types::field;

    fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
        let field = |(at, column): (usize, &ArrayRef)| {
            Field::new(at.to_string(), column.data_type().clone(), true)
        };
        let fields: Vec<Field> = columns.iter().enumerate().map(field).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
    }

    #[test]
    fn columns_are_found_by_their_places_and_have_the_types_of_the_relation() {
        let small = field("small", DataType::Int16.into(), false);
        let note = field("note", DataType::Text.into(), true);
        let schema = Arc::new(Schema::new(vec![small, note]));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(vec![Some("a"), None])),
            Arc::new(Int32Array::from(vec![-7, 32_767])),
        ];
        let batch = batch(columns);
        let from = |places| FromFile::new(Arc::clone(&schema), places, "f".to_owned());
        let found = from(vec![Some(1), Some(0)]).batch(&batch).unwrap();
        let expected = Int16Array::from(vec![-7, 32_767]);
        assert_eq!(found.column(0).as_ref(), &expected as &dyn Array);
        assert_eq!(found.column(1).null_count(), 1);
        let without = from(vec![Some(1), None]).batch(&batch).unwrap();
        assert_eq!(without.column(1).null_count(), 2);
    }

    #[test]
    fn what_does_not_fit_is_an_error_that_names_file_and_column() {
        let small = field("small", DataType::Int16.into(), false);
        let schema = Arc::new(Schema::new(vec![small]));
        let from = FromFile::new(schema, vec![Some(0)], "a.parquet".to_owned());
        for column in [
            Arc::new(Int64Array::from(vec![Some(40_000)])) as ArrayRef,
            Arc::new(Int64Array::from(vec![None])),
        ] {
            let told = from.batch(&batch(vec![column])).unwrap_err().to_string();
            assert!(told.contains("a.parquet") && told.contains("small"), "{told}");
        }
    }
}
