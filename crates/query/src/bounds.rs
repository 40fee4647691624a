//! Conditions on the key of a table as ranges of keys.
//!
//! For a key of columns a, b, c: conditions that give `a` one of a few values and `b` a range are
//! used, one range of keys for each value of `a`; then `c` cannot shorten the scan any more. A
//! condition that is used is used whole: rows outside are never read, so nobody has to look again.

use std::ops::Bound;

use datafusion::common::Column;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator, expr::InList};
use datafusion::scalar::ScalarValue;
use onrush::{DataType, Direction, ScanOptions, Table, Value};

use crate::types::{ColumnType, arrow_type};
use crate::values::of_scalar;

/// Most ranges of one scan; a list that makes more is left to a filter.
const RANGES_MAX: usize = 10_000;

/// The part of a table that conditions leave to be read.
pub(crate) struct KeyBounds {
    /// In key order; they do not meet. None at all: nothing can be found.
    pub(crate) ranges: Vec<ScanOptions<'static>>,
    /// For each condition, whether it is part of the ranges.
    pub(crate) used: Vec<bool>,
}

/// One condition on one column.
enum Condition {
    /// Equal to one of these, ascending.
    Points(Vec<Value<'static>>),
    /// From and to.
    Range(Bound<Value<'static>>, Bound<Value<'static>>),
}

impl KeyBounds {
    /// What `filters`, all of which hold, leave of the table.
    pub(crate) fn new(table: &Table, filters: &[&Expr]) -> KeyBounds {
        let definition = table.definition();
        let conditions: Vec<Option<(usize, Condition)>> =
            filters.iter().map(|filter| condition(table, filter)).collect();
        let mut used = vec![false; filters.len()];
        let mut prefixes: Vec<Vec<Value<'static>>> = vec![Vec::new()];
        let mut last = (Bound::Unbounded, Bound::Unbounded);
        for column in definition.primary_key() {
            let on_column =
                |index: &usize| conditions[*index].as_ref().is_some_and(|(own, _)| own == column);
            let mine: Vec<usize> = (0..conditions.len()).filter(on_column).collect();
            let points = mine.iter().find_map(|index| match &conditions[*index] {
                Some((_, Condition::Points(values))) => Some((*index, values)),
                _ => None,
            });
            if let Some((index, values)) = points
                && prefixes.len() * values.len() <= RANGES_MAX
            {
                used[index] = true;
                prefixes = extended(&prefixes, values);
                continue;
            }
            for index in mine {
                let Some((_, Condition::Range(from, to))) = &conditions[index] else { continue };
                let fits = |own: &Bound<_>, new: &Bound<_>| {
                    matches!(new, Bound::Unbounded) || matches!(own, Bound::Unbounded)
                };
                if fits(&last.0, from) && fits(&last.1, to) {
                    used[index] = true;
                    take(&mut last.0, from);
                    take(&mut last.1, to);
                }
            }
            break;
        }
        let ranges: Vec<_> = prefixes.iter().map(|prefix| range(prefix, &last)).collect();
        if ranges.iter().all(|range| is_encodable(table, range)) {
            return KeyBounds { ranges, used };
        }
        KeyBounds { ranges: vec![ScanOptions::default()], used: vec![false; filters.len()] }
    }
}

fn take(own: &mut Bound<Value<'static>>, new: &Bound<Value<'static>>) {
    if !matches!(new, Bound::Unbounded) {
        *own = new.clone();
    }
}

fn extended(
    prefixes: &[Vec<Value<'static>>],
    values: &[Value<'static>],
) -> Vec<Vec<Value<'static>>> {
    let with = |prefix: &Vec<Value<'static>>, value: &Value<'static>| {
        let mut longer = prefix.clone();
        longer.push(value.clone());
        longer
    };
    prefixes.iter().flat_map(|prefix| values.iter().map(|value| with(prefix, value))).collect()
}

fn range(
    prefix: &[Value<'static>],
    (from, to): &(Bound<Value<'static>>, Bound<Value<'static>>),
) -> ScanOptions<'static> {
    let bound = |end: &Bound<Value<'static>>| {
        let with = |value: &Value<'static>| {
            let mut key = prefix.to_vec();
            key.push(value.clone());
            key
        };
        match end {
            Bound::Included(value) => Bound::Included(with(value)),
            Bound::Excluded(value) => Bound::Excluded(with(value)),
            Bound::Unbounded if prefix.is_empty() => Bound::Unbounded,
            Bound::Unbounded => Bound::Included(prefix.to_vec()),
        }
    };
    ScanOptions { from: bound(from), to: bound(to), direction: Direction::Forward, limit: None }
}

/// A filter that is a condition on one column of the key.
fn condition(table: &Table, filter: &Expr) -> Option<(usize, Condition)> {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let (column, first) = condition(table, left)?;
            let (other, second) = condition(table, right)?;
            let (Condition::Points(mut values), Condition::Points(more)) = (first, second) else {
                return None;
            };
            values.extend(more);
            (column == other).then(|| (column, points(values)))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (&**left, &**right) {
            (Expr::Column(column), Expr::Literal(value, _)) => compared(table, column, *op, value),
            (Expr::Literal(value, _), Expr::Column(column)) => {
                compared(table, column, op.swap()?, value)
            }
            _ => None,
        },
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let (Expr::Column(column), Expr::Literal(low, _), Expr::Literal(high, _)) =
                (&**expr, &**low, &**high)
            else {
                return None;
            };
            let (position, low) = key_value(table, column, low)?;
            let (_, high) = key_value(table, column, high)?;
            Some((position, Condition::Range(Bound::Included(low), Bound::Included(high))))
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let Expr::Column(column) = &**expr else { return None };
            let position = key_column(table, column)?;
            let value = |item: &Expr| match item {
                Expr::Literal(value, _) => Some(key_value(table, column, value)?.1),
                _ => None,
            };
            let values: Option<Vec<Value<'static>>> = list.iter().map(value).collect();
            Some((position, points(values?)))
        }
        _ => None,
    }
}

fn points(mut values: Vec<Value<'static>>) -> Condition {
    values.sort_by(Value::total_cmp);
    values.dedup_by(|left, right| left.total_cmp(right).is_eq());
    Condition::Points(values)
}

fn compared(
    table: &Table,
    column: &Column,
    operator: Operator,
    value: &ScalarValue,
) -> Option<(usize, Condition)> {
    let (position, value) = key_value(table, column, value)?;
    let condition = match operator {
        Operator::Eq => Condition::Points(vec![value]),
        Operator::Lt => Condition::Range(Bound::Unbounded, Bound::Excluded(value)),
        Operator::LtEq => Condition::Range(Bound::Unbounded, Bound::Included(value)),
        Operator::Gt => Condition::Range(Bound::Excluded(value), Bound::Unbounded),
        Operator::GtEq => Condition::Range(Bound::Included(value), Bound::Unbounded),
        _ => return None,
    };
    Some((position, condition))
}

fn key_column(table: &Table, column: &Column) -> Option<usize> {
    let definition = table.definition();
    let position = definition.column_index(&column.name).ok()?;
    definition.primary_key().contains(&position).then_some(position)
}

/// The constant as a value of the key's column, if the order of keys is that of the comparison.
fn key_value(
    table: &Table,
    column: &Column,
    constant: &ScalarValue,
) -> Option<(usize, Value<'static>)> {
    let position = key_column(table, column)?;
    let data_type = table.definition().columns()[position].data_type;
    if constant.is_null() || constant.data_type() != arrow_type(ColumnType::Stored(data_type)) {
        return None;
    }
    let value = of_scalar(constant).ok()?;
    let fits = match (&value, data_type) {
        // Keys leave out the blanks at the end, and -0 and NaN have one form: comparisons differ.
        (Value::Text(text), DataType::Char(bytes)) => {
            text.len() <= usize::from(bytes) && !text.ends_with(' ')
        }
        (Value::Text(text), DataType::Varchar(bytes)) => text.len() <= usize::from(bytes),
        (Value::Float32(value), _) => *value != 0.0 && !value.is_nan(),
        (Value::Float64(value), _) => *value != 0.0 && !value.is_nan(),
        _ => true,
    };
    fits.then_some((position, value))
}

/// Whether keys can be as long as the range's ends.
fn is_encodable(table: &Table, range: &ScanOptions<'static>) -> bool {
    let mut bytes = Vec::new();
    [&range.from, &range.to].into_iter().all(|end| match end {
        Bound::Included(values) | Bound::Excluded(values) => {
            table.schema().encode_key_prefix(values, &mut bytes).is_ok()
        }
        Bound::Unbounded => true,
    })
}
