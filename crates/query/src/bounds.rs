//! Conditions on columns as ranges of a key: of a table's own, or of the entries of an index.
//!
//! For a key of columns a, b, c: conditions that give `a` one of a few values and `b` a range are
//! used, one range of keys for each value of `a`; then `c` cannot shorten the scan any more. A
//! condition that is used is used whole: rows outside are never read, so nobody has to look again.
//!
//! In an index NULL stands among the values of a column, before or behind all of them. A range of values never takes
//! it in: where the range has no end of its own on the side where NULL stands, NULL is the end.

use std::cmp::Ordering;
use std::ops::Bound;

use datafusion::common::Column;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator, expr::InList};
use datafusion::scalar::ScalarValue;
use onrush::{DataType, Direction, KeyOrder, ScanOptions, Schema, TableDefinition, Value};
use onrush_types::has_more_characters;

use crate::types::{ColumnType, arrow_type};
use crate::values::of_scalar;

/// Most ranges of one scan; a list that makes more is left to a filter.
const RANGES_MAX: usize = 10_000;

/// A column of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyPart {
    /// Its position in the table of the rows; none where that has no such column.
    pub(crate) column: Option<usize>,
    /// How it is ordered; none for one that is never NULL and ascends.
    pub(crate) order: Option<KeyOrder>,
}

impl KeyPart {
    /// The key of a table.
    pub(crate) fn of_table(table: &TableDefinition) -> Vec<KeyPart> {
        let part = |column: &usize| KeyPart { column: Some(*column), order: None };
        table.primary_key().iter().map(part).collect()
    }
}

/// The columns that filters may be about.
pub(crate) trait FilteredColumns {
    /// Position and type of the column of this name.
    fn find(&self, name: &str) -> Option<(usize, DataType)>;

    /// Whether the column is never NULL, since it is of the key.
    fn is_of_key(&self, position: usize) -> bool;
}

impl FilteredColumns for TableDefinition {
    fn find(&self, name: &str) -> Option<(usize, DataType)> {
        let position = self.column_index(name).ok()?;
        Some((position, self.columns()[position].data_type))
    }

    fn is_of_key(&self, position: usize) -> bool {
        self.primary_key().contains(&position)
    }
}

/// For each of some filters what it says of a column, if it says something of one column.
pub(crate) struct Conditions(Vec<Option<(usize, Condition)>>);

/// One condition on one column.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    /// Equal to one of these, ascending; NULL among them stands for `IS NULL`.
    Points(Vec<Value<'static>>),
    /// From and to.
    Range(Bound<Value<'static>>, Bound<Value<'static>>),
}

impl Conditions {
    pub(crate) fn new(table: &dyn FilteredColumns, filters: &[&Expr]) -> Conditions {
        Conditions(filters.iter().map(|filter| condition(table, filter)).collect())
    }

    /// Those that there are, with their columns.
    pub(crate) fn into_found(self) -> impl Iterator<Item = (usize, Condition)> {
        self.0.into_iter().flatten()
    }

    /// The column that each filter is about, if it is one that bounds may be made of.
    pub(crate) fn columns(&self) -> impl Iterator<Item = Option<usize>> {
        self.0.iter().map(|condition| condition.as_ref().map(|(column, _)| *column))
    }
}

/// The part of a key that conditions leave to be read.
pub(crate) struct KeyBounds {
    /// In key order; they do not meet. None at all: nothing can be found.
    pub(crate) ranges: Vec<ScanOptions<'static>>,
    /// For each condition, whether it is part of the ranges.
    pub(crate) used: Vec<bool>,
    /// How many of the first columns are equal to one of a few values.
    pub(crate) points: usize,
    /// How many of the first columns have one value in all ranges.
    pub(crate) constants: usize,
    /// Whether the column behind `points` has a range.
    pub(crate) has_range: bool,
    /// Whether one of the values is NULL.
    pub(crate) has_null: bool,
}

impl KeyBounds {
    /// What conditions, all of which hold, leave of a key.
    pub(crate) fn new(schema: &Schema, key: &[KeyPart], conditions: &Conditions) -> KeyBounds {
        let conditions = &conditions.0;
        let mut bounds = KeyBounds::none(conditions.len());
        let mut prefixes: Vec<Vec<Value<'static>>> = vec![Vec::new()];
        let mut last = (Bound::Unbounded, Bound::Unbounded);
        for part in key {
            let Some(column) = part.column else { break };
            let on_column =
                |index: &usize| conditions[*index].as_ref().is_some_and(|(own, _)| *own == column);
            let mine: Vec<usize> = (0..conditions.len()).filter(on_column).collect();
            let points = mine.iter().find_map(|index| match &conditions[*index] {
                Some((_, Condition::Points(values))) => Some((*index, values)),
                _ => None,
            });
            if let Some((index, values)) = points
                && prefixes.len() * values.len() <= RANGES_MAX
            {
                bounds.used[index] = true;
                bounds.constants +=
                    usize::from(bounds.constants == bounds.points && values.len() == 1);
                bounds.points += 1;
                bounds.has_null |= values.iter().any(Value::is_null);
                prefixes = extended(&prefixes, &in_key_order(values, part.order));
                continue;
            }
            for index in mine {
                let Some((_, Condition::Range(from, to))) = &conditions[index] else { continue };
                let fits = |own: &Bound<_>, new: &Bound<_>| {
                    matches!(new, Bound::Unbounded) || matches!(own, Bound::Unbounded)
                };
                if fits(&last.0, from) && fits(&last.1, to) {
                    bounds.used[index] = true;
                    bounds.has_range = true;
                    take(&mut last.0, from);
                    take(&mut last.1, to);
                }
            }
            if let Some(order) = part.order
                && bounds.has_range
            {
                last = without_null(last, order);
            }
            break;
        }
        bounds.ranges = prefixes.iter().map(|prefix| range(prefix, &last)).collect();
        match bounds.ranges.iter().all(|range| is_encodable(schema, range)) {
            true => bounds,
            false => KeyBounds::none(conditions.len()),
        }
    }

    /// The whole key.
    fn none(conditions: usize) -> KeyBounds {
        KeyBounds {
            ranges: vec![ScanOptions::default()],
            used: vec![false; conditions],
            points: 0,
            constants: 0,
            has_range: false,
            has_null: false,
        }
    }
}

/// Values of a column as its key has them one after the other.
fn in_key_order(values: &[Value<'static>], order: Option<KeyOrder>) -> Vec<Value<'static>> {
    let mut values = values.to_vec();
    if let Some(KeyOrder { descending, nulls_first }) = order {
        values.sort_by(|left, right| match (left.is_null(), right.is_null()) {
            (false, false) if descending => right.total_cmp(left),
            (false, false) => left.total_cmp(right),
            (true, true) => Ordering::Equal,
            (left_is_null, _) if left_is_null == nulls_first => Ordering::Less,
            _ => Ordering::Greater,
        });
    }
    values
}

/// A range of values as a range of their key, which has NULL at one end.
fn without_null(
    (from, to): (Bound<Value<'static>>, Bound<Value<'static>>),
    order: KeyOrder,
) -> (Bound<Value<'static>>, Bound<Value<'static>>) {
    let (mut low, mut high) = if order.descending { (to, from) } else { (from, to) };
    let end = if order.nulls_first { &mut low } else { &mut high };
    if matches!(end, Bound::Unbounded) {
        *end = Bound::Excluded(Value::Null);
    }
    (low, high)
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

/// A filter that is a condition on one column.
fn condition(table: &dyn FilteredColumns, filter: &Expr) -> Option<(usize, Condition)> {
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
            let (position, _) = table.find(&column.name)?;
            let value = |item: &Expr| match item {
                Expr::Literal(value, _) => Some(key_value(table, column, value)?.1),
                _ => None,
            };
            let values: Option<Vec<Value<'static>>> = list.iter().map(value).collect();
            Some((position, points(values?)))
        }
        Expr::IsNull(inner) => {
            let Expr::Column(column) = &**inner else { return None };
            let (position, _) = table.find(&column.name)?;
            // A key of a table has no NULL to look for.
            (!table.is_of_key(position)).then(|| (position, Condition::Points(vec![Value::Null])))
        }
        // What the planner makes of a comparison with TRUE or FALSE.
        Expr::Column(column) => boolean(table, column, true),
        Expr::Not(inner) => match &**inner {
            Expr::Column(column) => boolean(table, column, false),
            _ => None,
        },
        _ => None,
    }
}

fn boolean(
    table: &dyn FilteredColumns,
    column: &Column,
    value: bool,
) -> Option<(usize, Condition)> {
    compared(table, column, Operator::Eq, &ScalarValue::Boolean(Some(value)))
}

fn points(mut values: Vec<Value<'static>>) -> Condition {
    values.sort_by(Value::total_cmp);
    values.dedup_by(|left, right| left.total_cmp(right).is_eq());
    Condition::Points(values)
}

fn compared(
    table: &dyn FilteredColumns,
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

/// The constant as a value of the column, if the order of keys is that of the comparison.
fn key_value(
    table: &dyn FilteredColumns,
    column: &Column,
    constant: &ScalarValue,
) -> Option<(usize, Value<'static>)> {
    let (position, data_type) = table.find(&column.name)?;
    if constant.is_null() || constant.data_type() != arrow_type(ColumnType::Stored(data_type)) {
        return None;
    }
    let value = of_scalar(constant).ok()?;
    let fits = match (&value, data_type) {
        // Keys leave out the blanks at the end, and -0 and NaN have one form: comparisons differ.
        (Value::Text(text), DataType::Char(bytes)) => {
            text.len() <= usize::from(bytes) && !text.ends_with(' ')
        }
        (Value::Text(text), DataType::Varchar(limit)) => !has_more_characters(text, limit),
        (Value::Int64(number), DataType::Oid) => u32::try_from(*number).is_ok(),
        (Value::Float32(value), _) => *value != 0.0 && !value.is_nan(),
        (Value::Float64(value), _) => *value != 0.0 && !value.is_nan(),
        _ => true,
    };
    fits.then_some((position, value))
}

/// Whether keys can be as long as the range's ends.
fn is_encodable(schema: &Schema, range: &ScanOptions<'static>) -> bool {
    let mut bytes = Vec::new();
    [&range.from, &range.to].into_iter().all(|end| match end {
        Bound::Included(values) | Bound::Excluded(values) => {
            schema.encode_key_prefix(values, &mut bytes).is_ok()
        }
        Bound::Unbounded => true,
    })
}
