//! SELECT of the rows of one table between two keys, the short way: rows as they are, sorted, without those that are
//! there twice, or counted and summed up. No plan is made, and no other thread asked.
//!
//! ```text
//! SELECT [DISTINCT] column [, ...] | { count | sum | min | max }(column) [, ...] FROM table
//!   WHERE { column = value AND ... } column { = | < | <= | > | >= | BETWEEN | IN } value(s)
//!   [ORDER BY column [, ...]] [LIMIT n]
//! ```
//!
//! Invariants
//! 1. The columns that are compared are the first ones of the primary key, or of an index, and each condition is one of
//!    the bounds: no row between them is left out, and none is to be looked at again.
//! 2. A value is compared as of the column's type: what is none, or of a type whose order is more than that of its
//!    values, goes the long way. So does whatever turns out to have too many rows to be kept.

use std::cmp::Ordering;
use std::ops::Bound as End;
use std::sync::Arc;

use onrush::{DataType, IndexDefinition, Indexed, KeyOrder, Table, TableDefinition, Value};
use onrush_query::ColumnType;
use sqlparser::ast::{
    BinaryOperator, CastKind, Distinct, Expr, FunctionArg, FunctionArgExpr, FunctionArguments,
    LimitClause, OrderByExpr, OrderByKind, Query, Select, SelectItem, UnaryOperator,
};

use super::condition::{self, column_name};
use super::names;
use super::operand::{Operand, Parameters};
use super::select::{OutputColumn, columns_of};
use crate::error::Result;

/// See the module.
#[derive(Clone)]
pub(crate) struct RangePlan {
    pub(crate) table: Table,
    /// The position of the index that rows are found by; none: the primary key.
    pub(crate) index: Option<usize>,
    /// What the first columns equal.
    pub(crate) equal: Vec<Operand>,
    pub(crate) next: Next,
    pub(crate) form: Form,
    pub(crate) columns: Arc<[OutputColumn]>,
    pub(crate) limit: Option<Operand>,
    /// For the long way.
    pub(crate) query: Arc<Query>,
}

/// What is asked of the next column.
#[derive(Clone)]
pub(crate) enum Next {
    Anything,
    Between(End<Operand>, End<Operand>),
    /// One of these.
    In(Vec<Operand>),
}

/// What is made of the rows.
#[derive(Clone)]
pub(crate) enum Form {
    /// Those in the order of the primary key, or from its end on.
    Rows {
        is_backward: bool,
    },
    Sorted {
        by: Vec<SortKey>,
        is_distinct: bool,
    },
    Totals(Vec<Total>),
}

#[derive(Clone, Copy)]
pub(crate) struct SortKey {
    /// Position in the row of the table.
    pub(crate) column: usize,
    pub(crate) order: KeyOrder,
    /// Blanks at the end do not count, as of `char(n)`.
    pub(crate) is_padded: bool,
}

impl SortKey {
    fn new(definition: &TableDefinition, column: usize, order: KeyOrder) -> SortKey {
        let is_padded = matches!(definition.columns()[column].data_type, DataType::Char(_));
        SortKey { column, order, is_padded }
    }

    /// How two values of the column stand to each other in this order.
    pub(crate) fn compare(&self, left: &Value<'_>, right: &Value<'_>) -> Ordering {
        let SortKey { order, is_padded, .. } = self;
        match (left.is_null(), right.is_null()) {
            (true, true) => return Ordering::Equal,
            (true, false) if order.nulls_first => return Ordering::Less,
            (true, false) => return Ordering::Greater,
            (false, true) if order.nulls_first => return Ordering::Greater,
            (false, true) => return Ordering::Less,
            (false, false) => {}
        }
        let compared = match (left, right) {
            (Value::Text(left), Value::Text(right)) if *is_padded => {
                left.trim_end_matches(' ').cmp(right.trim_end_matches(' '))
            }
            _ => compare(left, right),
        };
        if order.descending { compared.reverse() } else { compared }
    }
}

/// One value of all rows; of a column, by its position in the table.
#[derive(Clone, Copy)]
pub(crate) enum Total {
    Rows,
    /// Those that are not NULL.
    Values(usize),
    Sum(usize),
    Least(usize),
    Greatest(usize),
}

/// The plan of a query of one table, whose name there is `relation`; none if it is more than that.
pub(super) fn plan(
    table: &Table,
    relation: &str,
    (query, select): (&Query, &Select),
    parameters: &mut Parameters,
) -> Result<Option<RangePlan>> {
    let definition = table.definition();
    let Some(selection) = &select.selection else { return Ok(None) };
    let mut tried = parameters.clone();
    let Some(conditions) = conditions(definition, relation, selection, &mut tried)? else {
        return Ok(None);
    };
    let Some((index, equal, next)) = way(definition, conditions) else { return Ok(None) };
    let Some((columns, form)) = form(definition, relation, query, select)? else { return Ok(None) };
    let is_few = matches!(form, Form::Totals(_));
    let limit = match &query.limit_clause {
        None => None,
        Some(LimitClause::LimitOffset { limit: Some(limit), offset: None, limit_by })
            if limit_by.is_empty() && !is_few =>
        {
            match Operand::if_simple(limit, DataType::Int64, &mut tried)? {
                Some(limit) => Some(limit),
                None => return Ok(None),
            }
        }
        Some(_) => return Ok(None),
    };
    // Found one by one: not in the order of the key.
    let is_in_order = index.is_none() && !matches!(next, Next::In(_));
    let form = match form {
        Form::Sorted { by, is_distinct: false } if is_in_order && by.is_empty() => {
            Form::Rows { is_backward: false }
        }
        Form::Sorted { by, is_distinct: false } if is_in_order => {
            match of_key(definition, equal.len(), &by) {
                Some(is_backward) => Form::Rows { is_backward },
                None => Form::Sorted { by, is_distinct: false },
            }
        }
        other => other,
    };
    *parameters = tried;
    let (table, query) = (table.clone(), Arc::new(query.clone()));
    Ok(Some(RangePlan { table, index, equal, next, form, columns: columns.into(), limit, query }))
}

/// Whether the order is that of the key behind `equal` columns, or that from its end on.
fn of_key(definition: &TableDefinition, equal: usize, by: &[SortKey]) -> Option<bool> {
    let key = &definition.primary_key()[equal..];
    let is_backward = by.first()?.order.descending;
    let is_it = |(by, column): (&SortKey, &usize)| {
        by.column == *column && by.order.descending == is_backward
    };
    (by.len() <= key.len() && by.iter().zip(key).all(is_it)).then_some(is_backward)
}

/// A condition that a column has to meet.
struct Condition {
    column: usize,
    asked: Asked,
}

enum Asked {
    Equal(Operand),
    Above(End<Operand>),
    Below(End<Operand>),
    In(Vec<Operand>),
}

fn conditions(
    definition: &TableDefinition,
    relation: &str,
    selection: &Expr,
    parameters: &mut Parameters,
) -> Result<Option<Vec<Condition>>> {
    let mut found = Vec::new();
    let mut left = vec![selection];
    while let Some(expression) = left.pop() {
        let (of, asked): (&Expr, Vec<(BinaryOperator, &Expr)>) = match expression {
            Expr::Nested(inner) => {
                left.push(inner);
                continue;
            }
            Expr::BinaryOp { left: first, op: BinaryOperator::And, right: second } => {
                left.push(first);
                left.push(second);
                continue;
            }
            Expr::BinaryOp { left: first, op, right: second } => match column_name(first, relation)
            {
                Some(_) => (first, vec![(op.clone(), second)]),
                None => match turned(op) {
                    Some(op) => (second, vec![(op, first)]),
                    None => return Ok(None),
                },
            },
            Expr::Between { expr, negated: false, low, high } => {
                (expr, vec![(BinaryOperator::GtEq, low), (BinaryOperator::LtEq, high)])
            }
            Expr::InList { expr, list, negated: false } => {
                let Some((column, data_type)) = column_of(definition, relation, expr) else {
                    return Ok(None);
                };
                let mut values = Vec::with_capacity(list.len());
                for value in list {
                    let Some(value) = operand(value, data_type, parameters)? else {
                        return Ok(None);
                    };
                    values.push(value);
                }
                found.push(Condition { column, asked: Asked::In(values) });
                continue;
            }
            _ => return Ok(None),
        };
        let Some((column, data_type)) = column_of(definition, relation, of) else {
            return Ok(None);
        };
        for (op, value) in asked {
            let Some(value) = operand(value, data_type, parameters)? else { return Ok(None) };
            let asked = match op {
                BinaryOperator::Eq => Asked::Equal(value),
                BinaryOperator::Gt => Asked::Above(End::Excluded(value)),
                BinaryOperator::GtEq => Asked::Above(End::Included(value)),
                BinaryOperator::Lt => Asked::Below(End::Excluded(value)),
                BinaryOperator::LtEq => Asked::Below(End::Included(value)),
                _ => return Ok(None),
            };
            found.push(Condition { column, asked });
        }
    }
    Ok(Some(found))
}

/// The operator with its sides changed.
fn turned(op: &BinaryOperator) -> Option<BinaryOperator> {
    Some(match op {
        BinaryOperator::Eq => BinaryOperator::Eq,
        BinaryOperator::Lt => BinaryOperator::Gt,
        BinaryOperator::LtEq => BinaryOperator::GtEq,
        BinaryOperator::Gt => BinaryOperator::Lt,
        BinaryOperator::GtEq => BinaryOperator::LtEq,
        _ => return None,
    })
}

/// A column whose order is that of its values.
fn column_of(
    definition: &TableDefinition,
    relation: &str,
    expression: &Expr,
) -> Option<(usize, DataType)> {
    let name = column_name(expression, relation)?;
    let column = definition.shown_column_index(&name).ok()?;
    let data_type = definition.columns()[column].data_type;
    let is_plain = matches!(
        data_type,
        DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Text
            | DataType::Varchar(_)
            | DataType::Uuid
            | DataType::Date
            | DataType::Timestamp
            | DataType::TimestampTz
    );
    is_plain.then_some((column, data_type))
}

/// A value of the column's own type; none of another one, which may lie between two of the column.
fn operand(
    expression: &Expr,
    target: DataType,
    parameters: &mut Parameters,
) -> Result<Option<Operand>> {
    match expression {
        Expr::Nested(inner) => return operand(inner, target, parameters),
        Expr::Value(_) => {}
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } if matches!(**expr, Expr::Value(_)) => {}
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, data_type, .. }
            if super::create::data_type("the cast", data_type)
                .is_ok_and(|through| through == target) => {}
        _ => return Ok(None),
    }
    let found = condition::to_compare(expression, target, parameters)?;
    let is_whole =
        |data_type| matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64);
    let is_of_type = match &found {
        Some(Operand::Constant(_)) => true,
        Some(Operand::Parameter(index, _)) => match parameters.column_types().get(*index) {
            Some(Some(ColumnType::Stored(declared))) => {
                *declared == target
                    || is_whole(*declared) && is_whole(target)
                    || matches!(
                        (declared, target),
                        (
                            DataType::Text | DataType::Varchar(_),
                            DataType::Text | DataType::Varchar(_)
                        )
                    )
            }
            _ => false,
        },
        _ => false,
    };
    Ok(found.filter(|_| is_of_type))
}

/// By what the rows are found: the primary key, or the index with the most columns that equal something.
fn way(
    definition: &TableDefinition,
    conditions: Vec<Condition>,
) -> Option<(Option<usize>, Vec<Operand>, Next)> {
    if let Some((equal, next)) = bounds(definition.primary_key(), &conditions) {
        return Some((None, equal, next));
    }
    let of_index = |(position, index): (usize, &IndexDefinition)| {
        let is_usable = index.is_plain() && !index.is_building;
        let columns = index_columns(definition, index).filter(|_| is_usable)?;
        let (equal, next) = bounds(&columns, &conditions)?;
        // NULLs have a place among its entries, and what goes down lies from its end on.
        let is_bounded = match &next {
            Next::Anything | Next::In(_) => true,
            Next::Between(from, to) => {
                !matches!((from, to), (End::Unbounded, _) | (_, End::Unbounded))
                    && index.columns.get(equal.len()).is_some_and(|column| !column.order.descending)
            }
        };
        is_bounded.then_some((Some(position), equal, next))
    };
    definition
        .indexes()
        .iter()
        .enumerate()
        .filter_map(of_index)
        .max_by_key(|(_, equal, _)| equal.len())
}

/// Positions of the columns of an index.
fn index_columns(definition: &TableDefinition, index: &IndexDefinition) -> Option<Vec<usize>> {
    let position = |of: Indexed| match of {
        Indexed::Column(number) => definition.column_with_number(number),
        Indexed::Expression(_) => None,
    };
    index.columns.iter().map(|column| position(column.of)).collect()
}

/// The conditions as bounds of these columns; none if one is left.
fn bounds(columns: &[usize], conditions: &[Condition]) -> Option<(Vec<Operand>, Next)> {
    let mut equal = Vec::new();
    let mut met = 0;
    let mut next = Next::Anything;
    for column in columns {
        let own: Vec<&Asked> =
            conditions.iter().filter(|it| it.column == *column).map(|it| &it.asked).collect();
        met += own.len();
        match own.as_slice() {
            [Asked::Equal(value)] => {
                equal.push(value.clone());
                continue;
            }
            [] => {}
            [Asked::In(values)] => next = Next::In(values.clone()),
            [Asked::Above(from)] => next = Next::Between(from.clone(), End::Unbounded),
            [Asked::Below(to)] => next = Next::Between(End::Unbounded, to.clone()),
            [Asked::Above(from), Asked::Below(to)] | [Asked::Below(to), Asked::Above(from)] => {
                next = Next::Between(from.clone(), to.clone());
            }
            _ => return None,
        }
        break;
    }
    (met == conditions.len() && met > 0).then_some((equal, next))
}

/// The columns of the answer, and how it is made of the rows.
fn form(
    definition: &TableDefinition,
    relation: &str,
    query: &Query,
    select: &Select,
) -> Result<Option<(Vec<OutputColumn>, Form)>> {
    let is_distinct = match &select.distinct {
        None => false,
        Some(Distinct::Distinct) => true,
        Some(_) => return Ok(None),
    };
    let order: &[OrderByExpr] = match &query.order_by {
        None => &[],
        Some(order) if order.interpolate.is_none() => match &order.kind {
            OrderByKind::Expressions(expressions) => expressions,
            OrderByKind::All(_) => return Ok(None),
        },
        Some(_) => return Ok(None),
    };
    let Some(columns) = columns_of(definition, relation, &select.projection)? else {
        let is_plain = order.is_empty() && !is_distinct;
        let totals = totals(definition, relation, &select.projection).filter(|_| is_plain);
        return Ok(totals.map(|(columns, totals)| (columns, Form::Totals(totals))));
    };
    let mut by = Vec::new();
    for item in order {
        let Some(key) = sort_key(definition, relation, &columns, item, is_distinct) else {
            return Ok(None);
        };
        by.push(key);
    }
    let orders = |column: usize| is_ordered(definition.columns()[column].data_type);
    if is_distinct {
        // Those that are alike come together.
        for OutputColumn { source, .. } in &columns {
            if !by.iter().any(|key| key.column == *source) {
                by.push(SortKey::new(definition, *source, KeyOrder::ASCENDING));
            }
        }
    }
    let can_sort = by.iter().all(|key| orders(key.column));
    Ok(can_sort.then_some((columns, Form::Sorted { by, is_distinct })))
}

/// Types that [`compare`] orders.
fn is_ordered(data_type: DataType) -> bool {
    matches!(
        data_type,
        DataType::Boolean
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Char(_)
            | DataType::Varchar(_)
            | DataType::Text
            | DataType::Uuid
            | DataType::Date
            | DataType::Timestamp
            | DataType::TimestampTz
    )
}

/// How two values of a column stand to each other; NULL is above all others.
pub(crate) fn compare(left: &Value<'_>, right: &Value<'_>) -> Ordering {
    match (left, right) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Greater,
        (_, Value::Null) => Ordering::Less,
        (Value::Boolean(left), Value::Boolean(right)) => left.cmp(right),
        (Value::Text(left), Value::Text(right)) => left.cmp(right),
        (Value::Uuid(left), Value::Uuid(right)) => left.cmp(right),
        (Value::Date(left), Value::Date(right)) => left.cmp(right),
        (Value::Timestamp(left), Value::Timestamp(right))
        | (Value::TimestampTz(left), Value::TimestampTz(right)) => left.cmp(right),
        (left, right) => left.as_i64().cmp(&right.as_i64()),
    }
}

fn sort_key(
    definition: &TableDefinition,
    relation: &str,
    columns: &[OutputColumn],
    item: &OrderByExpr,
    is_distinct: bool,
) -> Option<SortKey> {
    if item.with_fill.is_some() {
        return None;
    }
    let descending = item.options.asc == Some(false);
    let nulls_first = item.options.nulls_first.unwrap_or(descending);
    let column = match &item.expr {
        // The name of a column of the answer comes first.
        Expr::Identifier(name) => {
            let name = names::identifier(name);
            let mut sources = columns.iter().filter(|it| it.name == name).map(|it| it.source);
            match sources.next() {
                Some(source) if sources.all(|other| other == source) => source,
                Some(_) => return None,
                None => definition.shown_column_index(&name).ok()?,
            }
        }
        Expr::CompoundIdentifier(_) => {
            definition.shown_column_index(&column_name(&item.expr, relation)?).ok()?
        }
        _ => return None,
    };
    let is_there = columns.iter().any(|it| it.source == column);
    let order = KeyOrder { descending, nulls_first };
    (is_there || !is_distinct).then(|| SortKey::new(definition, column, order))
}

/// The items as values of all rows.
fn totals(
    definition: &TableDefinition,
    relation: &str,
    items: &[SelectItem],
) -> Option<(Vec<OutputColumn>, Vec<Total>)> {
    let mut columns = Vec::new();
    let mut totals = Vec::new();
    for (source, item) in items.iter().enumerate() {
        let (expression, alias) = match item {
            SelectItem::UnnamedExpr(expression) => (expression, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(names::identifier(alias))),
            _ => return None,
        };
        let Expr::Function(call) = expression else { return None };
        let FunctionArguments::List(list) = &call.args else { return None };
        let is_plain = call.over.is_none()
            && call.filter.is_none()
            && call.null_treatment.is_none()
            && call.within_group.is_empty()
            && matches!(call.parameters, FunctionArguments::None)
            && list.duplicate_treatment.is_none()
            && list.clauses.is_empty();
        let ([part], [FunctionArg::Unnamed(argument)], true) =
            (call.name.0.as_slice(), list.args.as_slice(), is_plain)
        else {
            return None;
        };
        let name = names::identifier(part.as_ident()?);
        let column = match argument {
            FunctionArgExpr::Wildcard if name == "count" => None,
            FunctionArgExpr::Expr(expression) => {
                Some(definition.shown_column_index(&column_name(expression, relation)?).ok()?)
            }
            _ => return None,
        };
        let own = column.map(|column| definition.columns()[column].data_type);
        let is_whole = matches!(own, Some(DataType::Int16 | DataType::Int32 | DataType::Int64));
        let (total, data_type) = match (name.as_str(), column, own) {
            ("count", None, _) => (Total::Rows, DataType::Int64),
            ("count", Some(column), _) => (Total::Values(column), DataType::Int64),
            ("sum", Some(column), Some(DataType::Int16 | DataType::Int32)) => {
                (Total::Sum(column), DataType::Int64)
            }
            ("min", Some(column), Some(own)) if is_whole => (Total::Least(column), own),
            ("max", Some(column), Some(own)) if is_whole => (Total::Greatest(column), own),
            _ => return None,
        };
        columns.push(OutputColumn {
            name: alias.unwrap_or(name),
            column_type: data_type.into(),
            source,
        });
        totals.push(total);
    }
    (!totals.is_empty()).then_some((columns, totals))
}
