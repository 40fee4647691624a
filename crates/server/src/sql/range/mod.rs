//! SELECT of the rows of one table between two keys, the short way: rows as they are, sorted, without those that are
//! there twice, or counted and summed up. No plan is made, and no other thread asked.
//!
//! ```text
//! SELECT [DISTINCT] column [, ...] | { count | sum | min | max }(column) [, ...] FROM table
//!   WHERE [column = value AND ...] column { = | < | <= | > | >= | BETWEEN | IN } value(s) [OR ...]
//!   [ORDER BY column [, ...]] [LIMIT n]
//! ```
//!
//! Invariants
//! 1. The columns that are compared are the first ones of the primary key, or of an index, and each condition is one of
//!    the bounds: no row between them is left out, and none is to be looked at again.
//! 2. A value is compared as of the column's type: what is none, or of a type whose order is more than that of its
//!    values, goes the long way. So does whatever turns out to have too many rows to be kept.

mod form;

use std::ops::Bound as End;
use std::sync::Arc;

use onrush::{DataType, IndexDefinition, Indexed, Table, TableDefinition};
use onrush_query::ColumnType;
use sqlparser::ast::{BinaryOperator, CastKind, Expr, LimitClause, Query, Select, UnaryOperator};

use super::condition::{self, column_name};
use super::operand::{Operand, Parameters};
use super::select::OutputColumn;
use crate::error::Result;
pub(crate) use form::{Form, SortKey, Total, compare};

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
    /// It lies between one of these pairs of ends.
    OneOf(Vec<Ends>),
}

/// The lower end and the upper one.
pub(crate) type Ends = (End<Operand>, End<Operand>);

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
    let Some((columns, form)) = form::form(definition, relation, query, select)? else {
        return Ok(None);
    };
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
    let is_in_order = index.is_none() && !matches!(next, Next::OneOf(_));
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
    OneOf(Vec<Ends>),
}

fn point(value: Operand) -> Ends {
    (End::Included(value.clone()), End::Included(value))
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
            Expr::BinaryOp { op: BinaryOperator::Or, .. } => {
                let Some(condition) = one_of(definition, relation, expression, parameters)? else {
                    return Ok(None);
                };
                found.push(condition);
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
                    values.push(point(value));
                }
                found.push(Condition { column, asked: Asked::OneOf(values) });
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

/// `a < 1 OR a BETWEEN 3 AND 5 OR a = 7`: conditions of one column.
fn one_of(
    definition: &TableDefinition,
    relation: &str,
    expression: &Expr,
    parameters: &mut Parameters,
) -> Result<Option<Condition>> {
    let (mut of, mut ends, mut left) = (None, Vec::new(), vec![expression]);
    while let Some(expression) = left.pop() {
        if let Expr::BinaryOp { left: first, op: BinaryOperator::Or, right: second } = expression {
            left.push(first);
            left.push(second);
            continue;
        }
        let Some(found) = conditions(definition, relation, expression, parameters)? else {
            return Ok(None);
        };
        let Some(column) = found.first().map(|condition| condition.column) else { return Ok(None) };
        if found
            .iter()
            .any(|condition| condition.column != column || *of.get_or_insert(column) != column)
        {
            return Ok(None);
        }
        match found.into_iter().map(|condition| condition.asked).collect::<Vec<_>>().as_slice() {
            [Asked::Equal(value)] => ends.push(point(value.clone())),
            [Asked::OneOf(more)] => ends.extend_from_slice(more),
            [Asked::Above(from)] => ends.push((from.clone(), End::Unbounded)),
            [Asked::Below(to)] => ends.push((End::Unbounded, to.clone())),
            [Asked::Above(from), Asked::Below(to)] | [Asked::Below(to), Asked::Above(from)] => {
                ends.push((from.clone(), to.clone()));
            }
            _ => return Ok(None),
        }
    }
    Ok(of.map(|column| Condition { column, asked: Asked::OneOf(ends) }))
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
        let is_up = index.columns.get(equal.len()).is_some_and(|it| !it.order.descending);
        let is_bounded = |(from, to): &Ends| match (from, to) {
            (End::Included(from), End::Included(to)) if from == to => true,
            (End::Unbounded, _) | (_, End::Unbounded) => false,
            _ => is_up,
        };
        let is_bounded = match &next {
            Next::Anything => true,
            Next::OneOf(ends) => ends.iter().all(is_bounded),
            Next::Between(from, to) => is_bounded(&(from.clone(), to.clone())),
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
            [Asked::OneOf(values)] => next = Next::OneOf(values.clone()),
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
