//! Expressions of rows that a statement writes, for the query engine to evaluate, and RETURNING, which
//! has them or columns alone.

use std::sync::Arc;

use onrush::{DataType, TableDefinition};
use onrush_query::{ColumnType, NamedRow, Place, QueryColumn, RowExpressions};
use sqlparser::ast::SelectItem;

use super::Planner;
use super::operand::Parameters;
use super::select::{OutputColumn, columns_of};
use crate::error::Result;
use crate::schemas;

/// Expressions, ready to be bound.
#[derive(Debug)]
pub(crate) struct Computed {
    pub(crate) expressions: RowExpressions,
    /// What each parameter is read as.
    pub(crate) parameters: Vec<DataType>,
}

impl Computed {
    /// Expressions of these rows.
    pub(super) fn new(
        planner: &Planner<'_>,
        rows: &[NamedRow],
        items: Vec<SelectItem>,
        place: Place,
        parameters: &mut Parameters,
    ) -> Result<Computed> {
        let known = parameters.column_types();
        let expressions = planner.queries.row_expressions(rows, items, place, &known)?;
        let parameters = read_as(parameters, expressions.parameters())?;
        Ok(Computed { expressions, parameters })
    }

    /// The types of what is computed.
    pub(super) fn types(&self) -> Vec<ColumnType> {
        self.expressions.columns().iter().map(|column| column.column_type).collect()
    }
}

/// A row of a table that a statement calls so: by its own name it may be called with its schema in front.
pub(super) fn row_of(definition: &TableDefinition, relation: &str) -> NamedRow {
    let (schema, own) = schemas::parts(definition.name());
    let schema = (own == relation).then(|| schema.to_owned());
    NamedRow { schema, ..NamedRow::of_table(relation, definition) }
}

/// What each parameter of a part of a statement is read as.
pub(super) fn read_as(
    parameters: &mut Parameters,
    types: Vec<ColumnType>,
) -> Result<Vec<DataType>> {
    let mut read_as = Vec::with_capacity(types.len());
    for (index, column_type) in types.into_iter().enumerate() {
        parameters.note_index(index, column_type)?;
        read_as.push(match column_type {
            // Whether it fits the column it is compared with does not matter.
            ColumnType::Stored(DataType::Char(_) | DataType::Varchar(_)) => DataType::Text,
            ColumnType::Stored(data_type) => data_type,
            ColumnType::Char | ColumnType::Array(_) | ColumnType::Vector(_) => DataType::Text,
        });
    }
    Ok(read_as)
}

/// The columns of a query's answer.
pub(super) fn output_columns(columns: &[QueryColumn]) -> Arc<[OutputColumn]> {
    let column = |(source, column): (usize, &QueryColumn)| OutputColumn {
        name: column.name.clone(),
        column_type: column.column_type,
        source,
    };
    columns.iter().enumerate().map(column).collect()
}

/// RETURNING.
#[derive(Clone, Debug)]
pub(crate) struct Returning {
    pub(crate) columns: Arc<[OutputColumn]>,
    /// What the columns are of; none where they are those of the row.
    pub(crate) computed: Option<Arc<Computed>>,
    /// How many rows beside the one that is changed they may be of.
    pub(crate) beside: usize,
}

impl Returning {
    /// `relation` is what stands in front of the table's columns; `others` are what its row was found with.
    pub(super) fn new(
        planner: &Planner<'_>,
        (definition, relation): (&TableDefinition, &str),
        others: Vec<NamedRow>,
        items: Option<&[SelectItem]>,
        parameters: &mut Parameters,
    ) -> Result<Option<Returning>> {
        let Some(items) = items else { return Ok(None) };
        if others.is_empty()
            && let Some(columns) = columns_of(definition, relation, items)?
        {
            return Ok(Some(Returning { columns: columns.into(), computed: None, beside: 0 }));
        }
        let mut rows = vec![row_of(definition, relation)];
        let beside = others.len();
        rows.extend(others);
        let place = Place { one: "RETURNING", many: "RETURNING" };
        let items = items.to_vec();
        let computed = Computed::new(planner, &rows, items, place, parameters)?;
        let columns = output_columns(computed.expressions.columns());
        Ok(Some(Returning { columns, computed: Some(Arc::new(computed)), beside }))
    }
}
