//! SELECT: one row by its whole key, and values without a table, take a short way; everything else is
//! the query engine's. For a short way there is no plan to make, so it costs some hundredths of what
//! the query engine takes for the same row.

use std::sync::{Arc, LazyLock};

use onrush::{DataType, KeyStrategy, Table, TableDefinition, Value};
use onrush_query::ColumnType;
use sqlparser::ast::{
    Expr, LimitClause, Query, Select, SelectItem, SetExpr, Statement, TableAlias, TableFactor,
    TableWithJoins, WildcardAdditionalOptions,
};

use super::functions::{self, Function};
use super::names;
use super::operand::{Operand, Parameters};
use super::query::QueryPlan;
use super::{Planner, condition, locking, range, sequence, setting};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::SelectPlan;
use crate::schemas;

/// One column of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OutputColumn {
    pub(crate) name: String,
    pub(crate) column_type: ColumnType,
    /// Position in the row that is read.
    pub(crate) source: usize,
}

/// A SELECT of the row with a key.
#[derive(Clone)]
pub(crate) struct GetPlan {
    pub(crate) table: Table,
    /// A value for each column of the key, in key order.
    pub(crate) key: Vec<Operand>,
    pub(crate) columns: Arc<[OutputColumn]>,
    pub(crate) limit: Option<Operand>,
}

/// One value of a SELECT without a table.
#[derive(Clone, Debug)]
pub(crate) enum Scalar {
    Value(Operand),
    Function(Function),
    /// `nextval` of the sequence of this name.
    NextValue(Operand),
    /// `current_setting`: the name, and whether there need be none.
    Setting(Operand, Option<Operand>),
    /// `set_config`: the name, the value, and whether it is for the transaction alone.
    SetSetting(Box<[Operand; 3]>),
}

/// A statement without any clause, to compare with.
static BARE: LazyLock<Option<(Query, Select)>> =
    LazyLock::new(|| match super::parse("SELECT 1").ok()?.pop()? {
        Statement::Query(query) => match (*query.body).clone() {
            SetExpr::Select(select) => Some((*query, *select)),
            _ => None,
        },
        _ => None,
    });

/// Plans a query.
pub(super) fn plan(
    planner: &Planner<'_>,
    query: &Query,
    parameters: &mut Parameters,
) -> Result<SelectPlan> {
    if !query.locks.is_empty() {
        return locking::plan(planner, query, parameters);
    }
    if let Some(select) = only_select(query) {
        let mut tried = parameters.clone();
        let short = match select.from.is_empty() {
            true => scalars(query, select, &mut tried)?,
            false => get(planner, query, select, &mut tried)?,
        };
        if let Some(plan) = short {
            *parameters = tried;
            return Ok(plan);
        }
    }
    if let Some(select) = only_range(query)
        && let Some((table, relation)) = only_table(planner, select)
        && let Some(plan) = range::plan(&table, &relation, (query, select), parameters)?
    {
        return Ok(SelectPlan::Range(Arc::new(plan)));
    }
    Ok(SelectPlan::Query(Arc::new(QueryPlan::new(planner, query.clone(), parameters)?)))
}

/// The SELECT of a query that has nothing else than a limit.
fn only_select(query: &Query) -> Option<&Select> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let (bare_query, bare_select) = BARE.as_ref()?;
    let mut rest = query.clone();
    rest.limit_clause = None;
    rest.body = bare_query.body.clone();
    let mut rest_of_select = (**select).clone();
    rest_of_select.projection = bare_select.projection.clone();
    rest_of_select.from = Vec::new();
    rest_of_select.selection = None;
    (rest == *bare_query && rest_of_select == *bare_select).then_some(select)
}

/// The same of one that has also ORDER BY or DISTINCT.
fn only_range(query: &Query) -> Option<&Select> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let mut rest = Query { order_by: None, ..query.clone() };
    *rest.body = SetExpr::Select(Box::new(Select { distinct: None, ..(**select).clone() }));
    only_select(&rest).map(|_| &**select)
}

/// A query of these items from a table, and nothing else.
pub(super) fn query_of(
    projection: Vec<SelectItem>,
    from: Vec<TableWithJoins>,
    selection: Option<Expr>,
) -> Result<Query> {
    let Some((query, select)) = BARE.as_ref() else {
        return Err(SqlError::new(state::INTERNAL, "a plain SELECT cannot be read"));
    };
    let (mut query, mut select) = (query.clone(), select.clone());
    select.projection = projection;
    select.from = from;
    select.selection = selection;
    *query.body = SetExpr::Select(Box::new(select));
    Ok(query)
}

/// A query of this body, and nothing else.
pub(super) fn query_of_body(body: SetExpr) -> Result<Query> {
    let mut query = query_of(Vec::new(), Vec::new(), None)?;
    *query.body = body;
    Ok(query)
}

/// A SELECT of columns of the row with a key.
fn get(
    planner: &Planner<'_>,
    query: &Query,
    select: &Select,
    parameters: &mut Parameters,
) -> Result<Option<SelectPlan>> {
    let Some((table, relation)) = only_table(planner, select) else { return Ok(None) };
    let Some(selection) = &select.selection else { return Ok(None) };
    let Some(columns) = columns_of(table.definition(), &relation, &select.projection)? else {
        return Ok(None);
    };
    let limit = match &query.limit_clause {
        None => None,
        Some(LimitClause::LimitOffset { limit: Some(limit), offset: None, limit_by })
            if limit_by.is_empty() =>
        {
            match Operand::if_simple(limit, DataType::Int64, parameters)? {
                Some(limit) => Some(limit),
                None => return Ok(None),
            }
        }
        Some(_) => return Ok(None),
    };
    let Some(key) = condition::whole_key(table.definition(), &relation, selection, parameters)?
    else {
        return Ok(None);
    };
    Ok(Some(SelectPlan::Get(GetPlan { table, key, columns: columns.into(), limit })))
}

/// The table that is read, if it is one and nothing else, and what it is called in the query.
fn only_table(planner: &Planner<'_>, select: &Select) -> Option<(Table, String)> {
    let [TableWithJoins { relation, joins }] = select.from.as_slice() else { return None };
    // Of all else the query engine tells whether there is such a thing.
    let TableFactor::Table {
        name,
        alias,
        args: None,
        with_hints,
        version: None,
        with_ordinality: false,
        partitions,
        json_path: None,
        sample: None,
        index_hints,
    } = relation
    else {
        return None;
    };
    if !(with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty()) {
        return None;
    }
    let alias = match alias {
        Some(TableAlias { explicit: _, name, columns, at: None }) if columns.is_empty() => {
            Some(names::identifier(name))
        }
        Some(_) => return None,
        None => None,
    };
    let name = planner.lookup().table_named(name).ok()?;
    let table = planner.seen.table(&name).ok()?;
    // Whether a materialized view has rows yet is looked at the long way.
    let is_view = table.definition().materialized_view().is_some();
    if !joins.is_empty() || !table.definition().is_table() || is_view {
        return None;
    }
    let relation = alias.unwrap_or_else(|| schemas::own_name(&name).to_owned());
    Some((table, relation))
}

/// The items as columns of the table; none if one is more than that.
pub(super) fn columns_of(
    definition: &TableDefinition,
    relation: &str,
    items: &[SelectItem],
) -> Result<Option<Vec<OutputColumn>>> {
    let all = definition.columns();
    let mut columns = Vec::new();
    for item in items {
        let (expression, alias) = match item {
            SelectItem::Wildcard(options) if *options == WildcardAdditionalOptions::default() => {
                columns.extend(definition.shown_columns().map(|source| OutputColumn {
                    name: all[source].name.clone(),
                    column_type: all[source].data_type.into(),
                    source,
                }));
                continue;
            }
            SelectItem::UnnamedExpr(expression) => (expression, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(names::identifier(alias))),
            _ => return Ok(None),
        };
        let Some(name) = condition::column_name(expression, relation) else { return Ok(None) };
        let Ok(source) = definition.shown_column_index(&name) else { return Ok(None) };
        let column_type = all[source].data_type.into();
        columns.push(OutputColumn { name: alias.unwrap_or(name), column_type, source });
    }
    let is_sent = |column: &OutputColumn| is_sent_as_kept(all[column.source].data_type);
    Ok(columns.iter().all(is_sent).then_some(columns))
}

/// Whether values of the type are sent as the engine has them. Arrays are kept as they were written, and elements of
/// some types are shown otherwise.
fn is_sent_as_kept(data_type: DataType) -> bool {
    let DataType::Array(element) = data_type else { return true };
    matches!(
        element,
        DataType::Boolean
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Text
            | DataType::Varchar(_)
            | DataType::Uuid
    )
}

/// `SELECT 1`, `SELECT now()`: one row of values.
fn scalars(
    query: &Query,
    select: &Select,
    parameters: &mut Parameters,
) -> Result<Option<SelectPlan>> {
    if select.selection.is_some() || query.limit_clause.is_some() {
        return Ok(None);
    }
    let mut columns = Vec::new();
    let mut values = Vec::new();
    for (source, item) in select.projection.iter().enumerate() {
        let (expression, alias) = match item {
            SelectItem::UnnamedExpr(expression) => (expression, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(names::identifier(alias))),
            _ => return Ok(None),
        };
        let Some((scalar, data_type, name)) = scalar(expression, parameters)? else {
            return Ok(None);
        };
        let name = alias.unwrap_or(name);
        columns.push(OutputColumn { name, column_type: data_type.into(), source });
        values.push(scalar);
    }
    Ok(Some(SelectPlan::Scalars { columns: columns.into(), values }))
}

fn scalar(
    expression: &Expr,
    parameters: &mut Parameters,
) -> Result<Option<(Scalar, DataType, String)>> {
    if let Expr::Function(call) = expression {
        if let Some(scalar) = setting::function(call, parameters)? {
            let name = names::parts(&call.name)?.pop().unwrap_or_default();
            return Ok(Some((scalar, DataType::Text, name)));
        }
        if let Some(sequence) = sequence::next_of(call) {
            let sequence = Operand::if_simple(sequence, DataType::Text, parameters)?;
            let next = |it| (Scalar::NextValue(it), DataType::Int64, "nextval".to_owned());
            return Ok(sequence.map(next));
        }
        let Ok(function) = functions::of(call) else { return Ok(None) };
        let data_type = match function {
            Function::Now | Function::Clock => DataType::TimestampTz,
            Function::RandomUuid => DataType::Uuid,
            Function::WaitDurable | Function::BackendNumber => DataType::Int32,
            Function::Version
            | Function::CurrentDatabase
            | Function::CurrentUser
            | Function::SessionUser
            | Function::CurrentSchema
            | Function::UnlockAll => DataType::Text,
            Function::Key(KeyStrategy::UuidV7) => return Ok(None),
            Function::Key(_) | Function::OwnNodeOffset => {
                return Err(SqlError::not_supported(
                    format!("{call} in a query"),
                    "Key generators stand in DEFAULT of a column.",
                ));
            }
        };
        let name = names::parts(&call.name)?.pop().unwrap_or_default();
        return Ok(Some((Scalar::Function(function), data_type, name)));
    }
    let (data_type, name) = match expression {
        Expr::Value(value) => match (&value.value, parameters.declared_type(&value.value)) {
            (_, Some(ColumnType::Stored(declared))) => (declared, "?column?"),
            (_, Some(_)) => return Ok(None),
            (constant, None) => (type_of(constant), "?column?"),
        },
        _ => return Ok(None),
    };
    let operand = Operand::new(expression, data_type, parameters)?;
    Ok(Some((Scalar::Value(operand), data_type, name.to_owned())))
}

/// The type of a constant by itself, as PostgreSQL takes it.
fn type_of(constant: &sqlparser::ast::Value) -> DataType {
    use sqlparser::ast::Value as Literal;
    match constant {
        Literal::Boolean(_) => DataType::Boolean,
        Literal::Number(digits, _) if digits.parse::<i32>().is_ok() => DataType::Int32,
        Literal::Number(digits, _) if digits.parse::<i64>().is_ok() => DataType::Int64,
        Literal::Number(..) => DataType::Numeric(None),
        _ => DataType::Text,
    }
}

/// LIMIT and OFFSET: a number that is not negative; NULL is none.
pub(crate) fn count_of(value: &Value<'_>, what: &str) -> Result<Option<u64>> {
    match value.as_i64() {
        Some(count) => u64::try_from(count).map(Some).map_err(|_| {
            SqlError::new(state::NEGATIVE_COUNT, format!("{what} must not be negative"))
        }),
        None if value.is_null() => Ok(None),
        None => Err(SqlError::new(state::DATATYPE_MISMATCH, format!("{what} must be a number"))),
    }
}
