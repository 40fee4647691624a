//! CREATE TABLE ... AS and SELECT INTO: a table of the columns and the rows of a query. It has no key. WITH NO DATA has
//! the columns alone.

use std::sync::Arc;

use onrush::{ColumnDefinition, Table, TableBuilder, TableDefinition};
use sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;
use sqlparser::ast::{CreateTable, Query, Select, SelectInto, SetExpr};

use super::create::{Kind, built, on_commit, place};
use super::operand::Parameters;
use super::rewrite::UNTYPED;
use super::select::OutputColumn;
use super::{Planner, QueryPlan, names};
use crate::error::{Result, SqlError, state};
use crate::execute::OnCommit;
use crate::execute::plan::DefinitionPlan;
use crate::values;

/// What a table is made of.
pub(crate) struct CreateAsPlan {
    pub(crate) definition: TableDefinition,
    pub(crate) if_not_exists: bool,
    pub(crate) on_commit: Option<OnCommit>,
    pub(crate) query: QueryPlan,
    /// Whether the query is to be asked.
    pub(crate) has_data: bool,
    /// The types of users that it casts its columns to.
    pub(crate) types: Vec<Table>,
}

impl CreateAsPlan {
    /// As it stands in the answer where that does not count rows.
    pub(crate) fn tag(&self) -> &'static str {
        match self.definition.materialized_view() {
            None => "CREATE TABLE AS",
            Some(_) => "CREATE MATERIALIZED VIEW",
        }
    }
}

/// Plans CREATE TABLE ... AS.
pub(super) fn plan(
    planner: &Planner<'_>,
    statement: &CreateTable,
    query: &Query,
    (kind, has_data): (Kind, bool),
    parameters: &mut Parameters,
) -> Result<DefinitionPlan> {
    if !statement.constraints.is_empty() {
        return Err(SqlError::not_supported(
            "a constraint of CREATE TABLE ... AS",
            "Create the table, then INSERT ... SELECT.",
        ));
    }
    let (name, kind) = place(planner, &statement.name, kind.or_temporary(statement.temporary))?;
    let query = QueryPlan::new(planner, query.clone(), parameters)?;
    for column in &statement.columns {
        if column.data_type.to_string() != format!("\"{UNTYPED}\"") || !column.options.is_empty() {
            let message = "the columns of CREATE TABLE ... AS have names only";
            return Err(SqlError::new(state::SYNTAX_ERROR, message));
        }
    }
    let given: Vec<String> = statement
        .columns
        .iter()
        .map(|column| names::own_column(&column.name))
        .collect::<Result<_>>()?;
    let columns = columns_of(&query, &given)?;
    let settings = super::create::settings(&statement.table_options)?;
    let mut builder = TableDefinition::builder(&name).keyed_by_row_id();
    builder = columns.into_iter().fold(builder, TableBuilder::column);
    if kind != Kind::Logged || settings.is_unlogged {
        builder = builder.unlogged();
    }
    Ok(DefinitionPlan::CreateAs(Arc::new(CreateAsPlan {
        definition: built(builder)?,
        if_not_exists: statement.if_not_exists,
        on_commit: on_commit(statement.on_commit.as_ref(), kind)?,
        query,
        has_data,
        types: parameters.take_column_types(),
    })))
}

/// The columns of a query as those of a table, the first of which get the names that are `given`.
pub(super) fn columns_of(query: &QueryPlan, given: &[String]) -> Result<Vec<ColumnDefinition>> {
    if given.len() > query.columns.len() {
        return Err(SqlError::new(state::SYNTAX_ERROR, "too many column names were specified"));
    }
    let column = |(at, column): (usize, &OutputColumn)| {
        let name = given.get(at).map_or(column.name.as_str(), String::as_str);
        column_of(name, column)
    };
    query.columns.iter().enumerate().map(column).collect()
}

/// A SELECT INTO, and the query without that.
pub(super) fn into_of(query: &Query) -> Option<(&SelectInto, Query)> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let into = select.into.as_ref()?;
    let select = Select { into: None, ..(**select).clone() };
    Some((into, Query { body: Box::new(SetExpr::Select(Box::new(select))), ..query.clone() }))
}

/// Plans SELECT INTO.
pub(super) fn select_into(
    planner: &Planner<'_>,
    into: &SelectInto,
    query: Query,
    parameters: &mut Parameters,
) -> Result<DefinitionPlan> {
    let kind = if into.unlogged { Kind::Unlogged } else { Kind::Logged };
    let create = CreateTableBuilder::new(into.name.clone()).temporary(into.temporary).build();
    plan(planner, &create, &query, (kind, true), parameters)
}

fn column_of(name: &str, column: &OutputColumn) -> Result<ColumnDefinition> {
    names::check_new_column(name)?;
    let data_type = column.column_type.in_table().ok_or_else(|| {
        SqlError::not_supported(
            format!("the type {} of column {name}", values::name_of(column.column_type)),
            "Cast it to a type that columns of tables have.",
        )
    })?;
    Ok(ColumnDefinition::new(name, data_type))
}
