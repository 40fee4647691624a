//! SELECT the short way: one table or view, conditions on its columns, the order of the key.

use std::sync::{Arc, LazyLock};

use onrush::{DataType, Database, Direction, Table, Value};
use sqlparser::ast::{
    Expr, LimitClause, OrderBy, OrderByKind, OrderByOptions, OrderBySort, Query, Select,
    SelectItem, SetExpr, Statement, TableFactor, WildcardAdditionalOptions,
};

use super::condition::{self, Columns, Comparison, TableColumns};
use super::functions::{self, Function};
use super::names::{self, TableName};
use super::operand::{Operand, Parameters};
use super::plan::{self, Plan};
use crate::error::{Result, SqlError, state};
use crate::execute::View;

/// One column of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OutputColumn {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    /// Position in the row that is read.
    pub(crate) source: usize,
}

/// What rows come from.
#[derive(Clone)]
pub(crate) enum Relation {
    Table(Table),
    View(View),
}

/// What is made of the rows.
#[derive(Clone, Debug)]
pub(crate) enum Output {
    Columns,
    CountRows,
}

/// A SELECT from one table or view.
#[derive(Clone)]
pub(crate) struct SelectPlan {
    pub(crate) relation: Relation,
    pub(crate) output: Output,
    pub(crate) columns: Arc<[OutputColumn]>,
    pub(crate) conditions: Vec<Comparison>,
    /// By the key of a table.
    pub(crate) direction: Direction,
    /// By columns of a view: position, and whether it descends.
    pub(crate) sort: Vec<(usize, bool)>,
    pub(crate) limit: Option<Operand>,
    pub(crate) offset: Option<Operand>,
}

/// One value of a SELECT without a table.
#[derive(Clone, Debug)]
pub(crate) enum Scalar {
    Value(Operand),
    Function(Function),
}

const THE_SHORT_WAY: &str = "Write SELECT columns or count(*) FROM one table [WHERE column = value AND ...] \
     [ORDER BY the primary key [DESC]] [LIMIT n] [OFFSET n].";

/// A statement without any clause, to compare with.
static BARE: LazyLock<Option<(Query, Select)>> =
    LazyLock::new(|| match super::parse("SELECT 1").ok()?.pop()? {
        Statement::Query(query) => match (*query.body).clone() {
            SetExpr::Select(select) => Some((*query, *select)),
            _ => None,
        },
        _ => None,
    });

impl Relation {
    pub(crate) fn name(&self) -> &str {
        match self {
            Relation::Table(table) => table.name(),
            Relation::View(view) => view.name(),
        }
    }

    /// The type of a column, by position.
    pub(crate) fn data_type(&self, column: usize) -> DataType {
        match self {
            Relation::Table(table) => table.definition().columns()[column].data_type,
            Relation::View(view) => view.columns()[column].1,
        }
    }

    fn columns(&self) -> Vec<(&str, DataType)> {
        match self {
            Relation::Table(table) => {
                let columns = table.definition().columns().iter();
                columns.map(|column| (column.name.as_str(), column.data_type)).collect()
            }
            Relation::View(view) => view.columns().to_vec(),
        }
    }
}

impl Columns for Relation {
    fn find(&self, name: &str) -> Result<(usize, DataType)> {
        if let Relation::Table(table) = self {
            return TableColumns(table.definition()).find(name);
        }
        let columns = self.columns();
        match columns.iter().position(|(known, _)| *known == name) {
            Some(position) => Ok((position, columns[position].1)),
            None => {
                let known = columns.iter().map(|(known, _)| *known);
                Err(condition::unknown_column(self.name(), name, known))
            }
        }
    }
}

/// Plans a query.
pub(super) fn plan(
    database: &Database,
    query: &Query,
    parameters: &mut Parameters,
) -> Result<Plan> {
    let select = only_select(query)?;
    if select.from.is_empty() {
        return scalars(query, select, parameters);
    }
    let relation = relation(database, select)?;
    let (output, columns) = output(&relation, &select.projection)?;
    let conditions = match &select.selection {
        Some(selection) => condition::conjunction(&relation, selection, parameters)?,
        None => Vec::new(),
    };
    let (direction, sort) = order(&relation, query.order_by.as_ref())?;
    let (limit, offset) = limits(query, parameters)?;
    let columns = columns.into();
    let select =
        SelectPlan { relation, output, columns, conditions, direction, sort, limit, offset };
    Ok(Plan::Select(select))
}

/// The SELECT of a query that has nothing else than order and limits.
fn only_select(query: &Query) -> Result<&Select> {
    let SetExpr::Select(select) = &*query.body else {
        return Err(SqlError::not_supported("this form of query", THE_SHORT_WAY));
    };
    let Some((bare_query, bare_select)) = BARE.as_ref() else { return Ok(select) };
    let mut rest = query.clone();
    rest.order_by = None;
    rest.limit_clause = None;
    rest.body = bare_query.body.clone();
    let mut rest_of_select = (**select).clone();
    rest_of_select.projection = bare_select.projection.clone();
    rest_of_select.from = Vec::new();
    rest_of_select.selection = None;
    if rest == *bare_query && rest_of_select == *bare_select {
        return Ok(select);
    }
    Err(SqlError::not_supported("this form of SELECT", THE_SHORT_WAY))
}

fn relation(database: &Database, select: &Select) -> Result<Relation> {
    let [from] = select.from.as_slice() else {
        return Err(SqlError::not_supported("SELECT from several tables", THE_SHORT_WAY));
    };
    let name = match &from.relation {
        TableFactor::Table { name, args: None, version: None, sample: None, .. }
            if from.joins.is_empty() =>
        {
            name
        }
        _ => return Err(SqlError::not_supported("SELECT from more than a table", THE_SHORT_WAY)),
    };
    match names::table(name)? {
        TableName::User(table) => Ok(Relation::Table(plan::table(database, &table)?)),
        TableName::System(view) => View::of(&view).map(Relation::View).ok_or_else(|| {
            SqlError::new(state::UNDEFINED_TABLE, format!("there is no view onrush.{view}"))
                .with_hint(format!("There are: {}.", View::names()))
        }),
    }
}

fn output(relation: &Relation, items: &[SelectItem]) -> Result<(Output, Vec<OutputColumn>)> {
    if let [
        SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. },
    ] = items
        && let Expr::Function(call) = expression
        && functions::of(call)? == Function::CountRows
    {
        let name = match &items[0] {
            SelectItem::ExprWithAlias { alias, .. } => names::identifier(alias),
            _ => "count".to_owned(),
        };
        let column = OutputColumn { name, data_type: DataType::Int64, source: 0 };
        return Ok((Output::CountRows, vec![column]));
    }
    Ok((Output::Columns, columns_of(relation, items)?))
}

fn columns_of(relation: &Relation, items: &[SelectItem]) -> Result<Vec<OutputColumn>> {
    let mut columns = Vec::new();
    for item in items {
        let (expression, alias) = match item {
            SelectItem::Wildcard(options) if *options == WildcardAdditionalOptions::default() => {
                let all = relation.columns();
                columns.extend(all.iter().enumerate().map(|(source, (name, data_type))| {
                    OutputColumn { name: (*name).to_owned(), data_type: *data_type, source }
                }));
                continue;
            }
            SelectItem::UnnamedExpr(expression) => (expression, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(names::identifier(alias))),
            other => return Err(SqlError::not_supported(other, THE_SHORT_WAY)),
        };
        let Some(name) = condition::column_name(expression) else {
            let what: String = expression.to_string().chars().take(80).collect();
            return Err(SqlError::not_supported(format!("the expression {what}"), THE_SHORT_WAY));
        };
        let (source, data_type) = relation.find(&name)?;
        columns.push(OutputColumn { name: alias.unwrap_or(name), data_type, source });
    }
    Ok(columns)
}

/// The columns of RETURNING.
pub(super) fn returning(
    table: &Table,
    items: Option<&[SelectItem]>,
) -> Result<Option<Vec<OutputColumn>>> {
    items.map(|items| columns_of(&Relation::Table(table.clone()), items)).transpose()
}

/// The order of rows: of a table by its key, of a view by any columns.
fn order(relation: &Relation, order: Option<&OrderBy>) -> Result<(Direction, Vec<(usize, bool)>)> {
    let mut sort = Vec::new();
    if let Some(order) = order {
        let OrderByKind::Expressions(expressions) = &order.kind else {
            return Err(SqlError::not_supported(order, THE_SHORT_WAY));
        };
        for item in expressions {
            let OrderByOptions { sort: way, nulls_first } = &item.options;
            let name = condition::column_name(&item.expr);
            let descends = match way {
                None | Some(OrderBySort::Asc) => false,
                Some(OrderBySort::Desc) => true,
                Some(_) => return Err(SqlError::not_supported(item, THE_SHORT_WAY)),
            };
            let (Some(name), None, None) = (name, nulls_first, &item.with_fill) else {
                return Err(SqlError::not_supported(format!("ORDER BY {item}"), THE_SHORT_WAY));
            };
            sort.push((relation.find(&name)?.0, descends));
        }
    }
    let Relation::Table(table) = relation else { return Ok((Direction::Forward, sort)) };
    let key = table.definition().primary_key();
    let descends = sort.first().is_some_and(|(_, descends)| *descends);
    let by_key = sort.iter().zip(key).all(|((column, way), key)| column == key && *way == descends);
    if !by_key || sort.len() > key.len() {
        return Err(SqlError::not_supported(
            "ORDER BY other than the columns of the primary key, all one way",
            THE_SHORT_WAY,
        ));
    }
    let direction = if descends { Direction::Backward } else { Direction::Forward };
    Ok((direction, Vec::new()))
}

fn limits(
    query: &Query,
    parameters: &mut Parameters,
) -> Result<(Option<Operand>, Option<Operand>)> {
    let mut number = |expression: &Expr| Operand::new(expression, DataType::Int64, parameters);
    match &query.limit_clause {
        None => Ok((None, None)),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
            let limit = limit.as_ref().map(&mut number).transpose()?;
            let offset = offset.as_ref().map(|offset| number(&offset.value)).transpose()?;
            Ok((limit, offset))
        }
        Some(other) => Err(SqlError::not_supported(other, THE_SHORT_WAY)),
    }
}

/// `SELECT 1`, `SELECT now()`: one row of values.
fn scalars(query: &Query, select: &Select, parameters: &mut Parameters) -> Result<Plan> {
    if select.selection.is_some() || query.order_by.is_some() || query.limit_clause.is_some() {
        return Err(SqlError::not_supported("a condition without a table", THE_SHORT_WAY));
    }
    let mut columns = Vec::new();
    let mut values = Vec::new();
    for (source, item) in select.projection.iter().enumerate() {
        let (expression, alias) = match item {
            SelectItem::UnnamedExpr(expression) => (expression, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(names::identifier(alias))),
            other => return Err(SqlError::not_supported(other, THE_SHORT_WAY)),
        };
        let (scalar, data_type, name) = scalar(expression, parameters)?;
        columns.push(OutputColumn { name: alias.unwrap_or(name), data_type, source });
        values.push(scalar);
    }
    Ok(Plan::Scalars { columns: columns.into(), values })
}

fn scalar(expression: &Expr, parameters: &mut Parameters) -> Result<(Scalar, DataType, String)> {
    if let Expr::Function(call) = expression {
        let function = functions::of(call)?;
        let data_type = match function {
            Function::Now => DataType::TimestampTz,
            Function::RandomUuid => DataType::Uuid,
            Function::WaitDurable | Function::BackendNumber => DataType::Int32,
            Function::Version
            | Function::CurrentDatabase
            | Function::CurrentUser
            | Function::CurrentSchema => DataType::Text,
            Function::Key(_) | Function::CountRows => {
                return Err(SqlError::not_supported(
                    format!("{call} without a table"),
                    "Key generators stand in DEFAULT of a column.",
                ));
            }
        };
        let name = names::parts(&call.name)?.pop().unwrap_or_default();
        return Ok((Scalar::Function(function), data_type, name));
    }
    let data_type = type_of(expression)?;
    let operand = Operand::new(expression, data_type, parameters)?;
    Ok((Scalar::Value(operand), data_type, "?column?".to_owned()))
}

/// The type of a value by itself, as PostgreSQL takes it.
fn type_of(expression: &Expr) -> Result<DataType> {
    use sqlparser::ast::Value as Literal;
    match expression {
        Expr::Nested(inner) => type_of(inner),
        Expr::UnaryOp { expr, .. } => type_of(expr),
        Expr::Cast { data_type, .. } => super::create::data_type("the cast", data_type),
        Expr::TypedString(typed) => super::create::data_type("the constant", &typed.data_type),
        Expr::Value(value) => Ok(match &value.value {
            Literal::Boolean(_) => DataType::Boolean,
            Literal::Number(digits, _) => {
                let is_32 = digits.parse::<i32>().is_ok();
                let is_64 = digits.parse::<i64>().is_ok();
                match (is_32, is_64) {
                    (true, _) => DataType::Int32,
                    (_, true) => DataType::Int64,
                    _ => DataType::Float64,
                }
            }
            _ => DataType::Text,
        }),
        _ => Ok(DataType::Text),
    }
}

/// LIMIT and OFFSET: a number that is not negative; NULL is none.
pub(crate) fn count_of(value: &Value<'_>, what: &str) -> Result<Option<u64>> {
    match value.as_i64() {
        Some(count) => u64::try_from(count)
            .map(Some)
            .map_err(|_| SqlError::new("2201W", format!("{what} must not be negative"))),
        None if value.is_null() => Ok(None),
        None => Err(SqlError::new(state::DATATYPE_MISMATCH, format!("{what} must be a number"))),
    }
}
