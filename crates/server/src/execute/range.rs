//! Rows of one table between two keys, the short way: see `sql/range`.

use std::cmp::Ordering;
use std::ops::Bound as End;
use std::sync::Arc;

use onrush::{Direction, EntrySource, Error, ScanOptions, Snapshot, Table, Value};
use onrush_query::Want;

use super::rows::Source;
use super::stored_rows::StoredRows;
use super::{Backend, RowStream};
use crate::error::{Result, SqlError, state};
use crate::sql::{
    Bound, Form, Next, Operand, Parameters, QueryPlan, RangePlan, SortKey, Total, compare,
    count_of, key_of,
};

/// So many rows are read at a time, and so many bytes of rows with long values.
const ROWS_AT_A_TIME: u64 = 256;
const LONG_BYTES_AT_A_TIME: usize = 1 << 20;

/// The bounds of one scan, of columns behind each other.
struct KeyBounds<'b> {
    from: End<Vec<Value<'b>>>,
    to: End<Vec<Value<'b>>>,
}

impl Backend {
    pub(super) fn range(&mut self, plan: &RangePlan, bound: &Bound) -> Result<RowStream> {
        let limit = match &plan.limit {
            Some(limit) => count_of(&limit.value(bound)?, "LIMIT")?,
            None => None,
        };
        let Some(ranges) = ranges(plan, bound)? else {
            return self.long_way(plan, bound, Want::Rows);
        };
        let snapshot = self.snapshot_here()?;
        if let (Form::Rows { is_backward }, [range]) = (&plan.form, ranges.as_slice()) {
            let direction = if *is_backward { Direction::Backward } else { Direction::Forward };
            let options = ScanOptions { direction, limit, ..range.options() };
            let scan = snapshot.into_scan(&plan.table, &options)?;
            let source = Source::Scan(Box::new(scan), plan.table.clone());
            return Ok(RowStream::new(Arc::clone(&plan.columns), source, "SELECT"));
        }
        let enough = match &plan.form {
            Form::Sorted { by, is_distinct: false } if by.is_empty() => limit,
            _ => None,
        };
        let Some(rows) = collected(plan, snapshot, &ranges, enough)? else {
            return self.long_way(plan, bound, Want::Rows);
        };
        let (columns, verb) = (Arc::clone(&plan.columns), "SELECT");
        let rows = match &plan.form {
            Form::Totals(totals) => {
                let row =
                    totals.iter().map(|total| total_of(*total, &rows)).collect::<Result<_>>()?;
                return Ok(RowStream::of_rows(columns, vec![row], verb));
            }
            Form::Sorted { by, is_distinct } => sorted(rows, by, *is_distinct, limit)?,
            Form::Rows { .. } => rows,
        };
        Ok(RowStream::new(columns, Source::Stored(rows), verb))
    }

    /// By the query engine.
    pub(super) fn long_way(
        &mut self,
        plan: &RangePlan,
        bound: &Bound,
        want: Want,
    ) -> Result<RowStream> {
        let mut parameters = Parameters::declared(bound.oids.to_vec());
        let query = QueryPlan::new(&self.planner(), (*plan.query).clone(), &mut parameters)?;
        // Another table may have its name now, as other schemas are looked at.
        if query.tables().any(|table| table.id() != plan.table.id()) {
            return Err(Error::TableChanged { name: plan.table.name().to_owned() }.into());
        }
        self.query(&query, bound, want)
    }
}

impl KeyBounds<'_> {
    fn options(&self) -> ScanOptions<'_> {
        let borrowed = |end: &End<Vec<Value<'_>>>| {
            end.as_ref()
                .map(|values| values.iter().map(|value| value.clone().into_owned()).collect())
        };
        ScanOptions { from: borrowed(&self.from), to: borrowed(&self.to), ..ScanOptions::default() }
    }
}

/// What is to be read, in any order; none where the values are others than columns have.
fn ranges<'b>(plan: &'b RangePlan, bound: &'b Bound) -> Result<Option<Vec<KeyBounds<'b>>>> {
    let Some(equal) = key_of(&plan.equal, bound)? else {
        // Nothing equals NULL, nor what no column has.
        return Ok(Some(Vec::new()));
    };
    let with = |value: Value<'b>| equal.iter().cloned().chain([value]).collect();
    let behind = |end: End<Value<'b>>| match end {
        End::Included(value) => End::Included(with(value)),
        End::Excluded(value) => End::Excluded(with(value)),
        End::Unbounded if equal.is_empty() => End::Unbounded,
        End::Unbounded => End::Included(equal.clone()),
    };
    Ok(Some(match &plan.next {
        Next::Anything => {
            vec![KeyBounds { from: End::Included(equal.clone()), to: End::Included(equal) }]
        }
        Next::OneOf(pairs) => {
            let mut found = Vec::with_capacity(pairs.len());
            for (from, to) in pairs {
                match (end(from, bound)?, end(to, bound)?) {
                    (Found::Null, _) | (_, Found::Null) => {}
                    (Found::Value(from), Found::Value(to)) => found.push((from, to)),
                    // Nothing equals it.
                    _ if from == to => {}
                    _ => return Ok(None),
                }
            }
            let bounds = |(from, to)| KeyBounds { from: behind(from), to: behind(to) };
            merged(found).into_iter().map(bounds).collect()
        }
        Next::Between(from, to) => {
            let (from, to) = match (end(from, bound)?, end(to, bound)?) {
                (Found::Null, _) | (_, Found::Null) => return Ok(Some(Vec::new())),
                (Found::Value(from), Found::Value(to)) => (from, to),
                _ => return Ok(None),
            };
            vec![KeyBounds { from: behind(from), to: behind(to) }]
        }
    }))
}

enum Found<'b> {
    Value(End<Value<'b>>),
    Null,
    /// No value of the column is it.
    Nothing,
}

fn end<'b>(end: &'b End<Operand>, bound: &'b Bound) -> Result<Found<'b>> {
    let operand = match end {
        End::Included(operand) | End::Excluded(operand) => operand,
        End::Unbounded => return Ok(Found::Value(End::Unbounded)),
    };
    if operand.is_null(bound) {
        return Ok(Found::Null);
    }
    let Some(mut key) = key_of(std::slice::from_ref(operand), bound)? else {
        return Ok(Found::Nothing);
    };
    let Some(value) = key.pop() else { return Ok(Found::Nothing) };
    Ok(Found::Value(match end {
        End::Included(_) => End::Included(value),
        _ => End::Excluded(value),
    }))
}

/// The same values between ends of which no two have a value in common, from the lowest on.
fn merged<'b>(
    mut pairs: Vec<(End<Value<'b>>, End<Value<'b>>)>,
) -> Vec<(End<Value<'b>>, End<Value<'b>>)> {
    pairs.sort_by(|(left, _), (right, _)| match (left, right) {
        (End::Unbounded, End::Unbounded) => Ordering::Equal,
        (End::Unbounded, _) => Ordering::Less,
        (_, End::Unbounded) => Ordering::Greater,
        (End::Included(left), End::Included(right))
        | (End::Excluded(left), End::Excluded(right)) => compare(left, right),
        (End::Included(left), End::Excluded(right)) => compare(left, right).then(Ordering::Less),
        (End::Excluded(left), End::Included(right)) => compare(left, right).then(Ordering::Greater),
    });
    let mut apart: Vec<(End<Value<'b>>, End<Value<'b>>)> = Vec::with_capacity(pairs.len());
    for (from, to) in pairs {
        match apart.last_mut() {
            Some((_, last)) if meets(last, &from) => {
                if is_beyond(&to, last) {
                    *last = to;
                }
            }
            _ => apart.push((from, to)),
        }
    }
    apart
}

/// Whether nothing lies between an upper end and the lower end of what comes behind it.
fn meets(last: &End<Value<'_>>, from: &End<Value<'_>>) -> bool {
    match (last, from) {
        (End::Unbounded, _) | (_, End::Unbounded) => true,
        (End::Excluded(last), End::Excluded(from)) => compare(last, from).is_gt(),
        (End::Included(last) | End::Excluded(last), End::Included(from) | End::Excluded(from)) => {
            compare(last, from).is_ge()
        }
    }
}

/// Whether an upper end is above another one.
fn is_beyond(end: &End<Value<'_>>, other: &End<Value<'_>>) -> bool {
    match (end, other) {
        (_, End::Unbounded) => false,
        (End::Unbounded, _) => true,
        (End::Included(end), End::Excluded(other)) => compare(end, other).is_ge(),
        (End::Included(end) | End::Excluded(end), End::Included(other) | End::Excluded(other)) => {
            compare(end, other).is_gt()
        }
    }
}

/// The rows; none if they are too many.
fn collected(
    plan: &RangePlan,
    snapshot: Snapshot,
    ranges: &[KeyBounds<'_>],
    enough: Option<u64>,
) -> Result<Option<StoredRows>> {
    let enough = enough.unwrap_or(u64::MAX);
    let Some(position) = plan.index else {
        return Ok(scanned(&plan.table, snapshot, ranges, enough)?.map(|(rows, _)| rows));
    };
    let entries = match snapshot.index_entries(&plan.table, position) {
        Ok(entries) => entries,
        // It was whole later than what the statement sees.
        Err(Error::TableChanged { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let places = key_places(plan, position)?;
    let Some((found, mut snapshot)) = scanned(&entries, snapshot, ranges, enough)? else {
        return Ok(None);
    };
    let mut rows = StoredRows::of(&plan.table);
    let mut key = Vec::new();
    for at in 0..found.len() {
        let entry = found.view(at)?;
        let values = places.iter().map(|place| entry.column(*place));
        let values = values.collect::<std::result::Result<Vec<_>, _>>()?;
        key.clear();
        plan.table.schema().encode_key(&values, &mut key)?;
        let row = snapshot.get_raw(&plan.table, &key)?.ok_or_else(|| lost_row(plan))?;
        if !rows.add(&key, &row) {
            return Ok(None);
        }
    }
    Ok(Some(rows))
}

/// Rows of a table or entries of an index, and the snapshot that they were found in; none if they are too many.
fn scanned(
    table: &Table,
    mut snapshot: Snapshot,
    ranges: &[KeyBounds<'_>],
    enough: u64,
) -> Result<Option<(StoredRows, Snapshot)>> {
    let mut found = StoredRows::of(table);
    for range in ranges {
        let mut scan = snapshot.into_scan(table, &range.options())?;
        let mut has_space = true;
        // A few at a time: no more are read than have space.
        while has_space && (found.len() as u64) < enough {
            let wanted = (enough - found.len() as u64).min(ROWS_AT_A_TIME);
            let read = scan.visit_part(wanted, LONG_BYTES_AT_A_TIME, |key, value| {
                has_space &= found.add(key, value);
            })?;
            if read.is_over {
                break;
            }
        }
        if !has_space {
            return Ok(None);
        }
        snapshot = scan.into_snapshot();
    }
    Ok(Some((found, snapshot)))
}

fn lost_row(plan: &RangePlan) -> SqlError {
    let message =
        format!("an index of {} has an entry without its row: run onrush check", plan.table.name());
    SqlError::new(state::INTERNAL, message)
}

/// Where the columns of the primary key stand in the entries of an index.
fn key_places(plan: &RangePlan, position: usize) -> Result<Vec<usize>> {
    let definition = plan.table.definition();
    let damaged =
        || SqlError::new(state::INTERNAL, "an index has entries without the key of their row");
    let index = definition.indexes().get(position).ok_or_else(damaged)?;
    let sources = index.sources(definition).map_err(Error::from)?;
    let place = |column: &usize| {
        let is_it = |source: &EntrySource| *source == EntrySource::Column(*column);
        sources.iter().position(is_it).ok_or_else(damaged)
    };
    definition.primary_key().iter().map(place).collect()
}

fn sorted(
    rows: StoredRows,
    by: &[SortKey],
    is_distinct: bool,
    limit: Option<u64>,
) -> Result<StoredRows> {
    let mut keyed = Vec::with_capacity(rows.len());
    for at in 0..rows.len() {
        let row = rows.view(at)?;
        let key = by.iter().map(|key| row.column(key.column));
        keyed.push((key.collect::<std::result::Result<Vec<_>, _>>()?, at));
    }
    let order = |left: &[Value<'_>], right: &[Value<'_>]| {
        let mut orders = by
            .iter()
            .zip(left.iter().zip(right))
            .map(|(by, (left, right))| by.compare(left, right));
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    keyed.sort_by(|(left, _), (right, _)| order(left, right));
    if is_distinct {
        keyed.dedup_by(|(left, _), (right, _)| order(left, right).is_eq());
    }
    keyed.truncate(limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX)));
    let positions: Vec<usize> = keyed.iter().map(|(_, at)| *at).collect();
    drop(keyed);
    Ok(rows.in_order(&positions))
}

fn total_of(total: Total, rows: &StoredRows) -> Result<Value<'static>> {
    let count = |count: usize| Value::Int64(i64::try_from(count).unwrap_or(i64::MAX));
    let (Total::Values(column)
    | Total::Sum(column)
    | Total::Least(column)
    | Total::Greatest(column)) = total
    else {
        return Ok(count(rows.len()));
    };
    let mut values = Vec::with_capacity(rows.len());
    for at in 0..rows.len() {
        let value = rows.view(at)?.column(column)?;
        if !value.is_null() {
            values.push(value);
        }
    }
    let value = match total {
        Total::Rows | Total::Values(_) => return Ok(count(values.len())),
        // So many 32-bit numbers are no more than 64 bits.
        Total::Sum(_) => {
            let sum = values.iter().filter_map(Value::as_i64).reduce(|sum, value| sum + value);
            sum.map(Value::Int64)
        }
        Total::Least(_) => values.into_iter().min_by(compare),
        Total::Greatest(_) => values.into_iter().max_by(compare),
    };
    Ok(value.map_or(Value::Null, Value::into_owned))
}
