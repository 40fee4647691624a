//! Row groups in which no row can be wanted, by the least and greatest values that the file notes of them.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, UInt64Array};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType as ArrowType, SchemaRef};
use datafusion::arrow::util::display::FormatOptions;
use datafusion::common::Column;
use datafusion::common::pruning::PruningStatistics;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder};
use datafusion::scalar::ScalarValue;
use parquet_59::arrow::arrow_reader::ArrowReaderMetadata;
use parquet_59::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet_59::file::metadata::RowGroupMetaData;

/// Conditions, for columns that are found in files by the ids of fields.
#[derive(Debug)]
pub(super) struct Pruning {
    predicate: Arc<PruningPredicate>,
    schema: SchemaRef,
    /// Of the columns of the schema.
    field_ids: Vec<i32>,
}

impl Pruning {
    /// None where the condition can leave nothing out.
    pub(super) fn new(
        condition: Arc<dyn PhysicalExpr>,
        schema: &SchemaRef,
        field_ids: &[i32],
    ) -> Option<Pruning> {
        let builder = PruningPredicateBuilder::new().with_file_schema(Arc::clone(schema));
        let (schema, field_ids) = (Arc::clone(schema), field_ids.to_vec());
        builder.build(condition).map(|predicate| Pruning { predicate, schema, field_ids })
    }

    /// The row groups that may have rows that are wanted. `places`: those of columns, by the ids of fields.
    pub(super) fn kept(
        &self,
        metadata: &ArrowReaderMetadata,
        places: &HashMap<i32, usize>,
    ) -> Result<Vec<usize>> {
        let groups = metadata.metadata().row_groups();
        let kept = self.predicate.prune(&Groups { of: self, metadata, places, groups })?;
        Ok(kept.into_iter().enumerate().filter(|(_, kept)| *kept).map(|(at, _)| at).collect())
    }
}

/// What a file notes of its row groups.
struct Groups<'f> {
    of: &'f Pruning,
    metadata: &'f ArrowReaderMetadata,
    places: &'f HashMap<i32, usize>,
    groups: &'f [RowGroupMetaData],
}

impl Groups<'_> {
    /// The column of the file, if its order is that of the relation's values whoever wrote it, and the type that the
    /// values have in the relation.
    fn converter(&self, column: &Column) -> Option<(StatisticsConverter<'_>, ArrowType)> {
        let at = self.of.schema.index_of(&column.name).ok()?;
        let wanted = self.of.schema.field(at).data_type().clone();
        let is_ordered = matches!(
            wanted,
            ArrowType::Boolean
                | ArrowType::Int16
                | ArrowType::Int32
                | ArrowType::Int64
                | ArrowType::Decimal128(..)
                | ArrowType::Utf8
                | ArrowType::Date32
                | ArrowType::Time64(_)
                | ArrowType::Timestamp(..)
        );
        let place = self.places.get(self.of.field_ids.get(at)?).filter(|_| is_ordered)?;
        let (arrow, parquet) = (self.metadata.schema(), self.metadata.parquet_schema());
        let name = arrow.field(*place).name();
        let converter = StatisticsConverter::try_new(name, arrow, parquet).ok()?;
        // A file that does not say how many NULLs there are may have some.
        Some((converter.with_missing_null_counts_as_zero(false), wanted))
    }

    fn ends(
        &self,
        column: &Column,
        ends: impl Fn(&StatisticsConverter<'_>, &[RowGroupMetaData]) -> Option<ArrayRef>,
    ) -> Option<ArrayRef> {
        let (converter, wanted) = self.converter(column)?;
        let found = ends(&converter, self.groups)?;
        let options = CastOptions { safe: false, format_options: FormatOptions::default() };
        cast_with_options(&found, &wanted, &options).ok()
    }
}

impl PruningStatistics for Groups<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.ends(column, |of, groups| of.row_group_mins(groups).ok())
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.ends(column, |of, groups| of.row_group_maxes(groups).ok())
    }

    fn num_containers(&self) -> usize {
        self.groups.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let (converter, _) = self.converter(column)?;
        Some(Arc::new(converter.row_group_null_counts(self.groups).ok()?))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let rows = self.groups.iter().map(|group| u64::try_from(group.num_rows()).ok());
        Some(Arc::new(UInt64Array::from_iter(rows)))
    }

    fn contained(
        &self,
        _: &Column,
        _: &std::collections::HashSet<ScalarValue>,
    ) -> Option<datafusion::arrow::array::BooleanArray> {
        None
    }
}
