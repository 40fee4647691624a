//! SELECT the short way: one row by its key, or a scan between keys.

use std::ops::Bound as End;
use std::sync::Arc;

use onrush::{Row, Scan, ScanOptions, Table, Value};

use super::rows::{Filter, Source, Step};
use super::transaction::Work;
use super::{Answer, Backend, RowStream, in_failed_transaction};
use crate::error::Result;
use crate::sql::{
    Bound, CopyPlan, Function, Operand, Operator, Output, OutputColumn, Relation, Scalar,
    SelectPlan, count_of, unix_micros,
};

/// What PostgreSQL clients are told about their server.
pub(crate) const VERSION: &str =
    concat!("Onrush ", env!("CARGO_PKG_VERSION"), ", speaking as PostgreSQL 15");

impl Backend {
    pub(super) fn select(&mut self, plan: &SelectPlan, bound: &Bound) -> Result<Answer> {
        let number = |operand: &Option<Operand>, what: &str| match operand {
            Some(operand) => count_of(&operand.value(bound)?, what),
            None => Ok(None),
        };
        let left = number(&plan.limit, "LIMIT")?.unwrap_or(u64::MAX);
        let skip = number(&plan.offset, "OFFSET")?.unwrap_or(0);
        let filters = filters(plan, bound)?;
        let rows = match &plan.relation {
            Relation::View(view) => {
                let mut rows = view.rows(self);
                rows.retain(|row| filters.iter().all(|filter| filter.takes(row)));
                sort(&mut rows, &plan.sort);
                if matches!(plan.output, Output::CountRows) {
                    rows = count_row(rows.len() as u64);
                }
                Source::Rows(rows.into_iter())
            }
            Relation::Table(table) => return self.select_from(plan, table, filters, (skip, left)),
        };
        let columns = Arc::clone(&plan.columns);
        Ok(Answer::Rows(RowStream::new(columns, rows, Vec::new(), (skip, left))))
    }

    fn select_from(
        &mut self,
        plan: &SelectPlan,
        table: &Table,
        filters: Vec<Filter>,
        limits: (u64, u64),
    ) -> Result<Answer> {
        let columns = Arc::clone(&plan.columns);
        let nothing_equals = filters.iter().any(|filter| {
            filter.value.is_null()
                && !matches!(filter.operator, Operator::IsNull | Operator::IsNotNull)
        });
        let (source, filters) = match (whole_key(table, &filters), nothing_equals) {
            (_, true) => (Source::Rows(Vec::new().into_iter()), Vec::new()),
            (Some(key), _) => {
                let row = self.get(table, &key)?;
                (Source::Rows(row.into_iter().collect::<Vec<_>>().into_iter()), filters)
            }
            (None, _) => {
                let (from, to, is_exact) = bounds(table, &filters);
                let options = ScanOptions { from, to, direction: plan.direction, limit: None };
                let scan = self.scan(table, &options)?;
                if matches!(plan.output, Output::CountRows) && is_exact {
                    let count = tokio::task::block_in_place(|| scan.visit_raw(|_, _| ()))?;
                    let rows = Source::Rows(count_row(count).into_iter());
                    return Ok(Answer::Rows(RowStream::new(columns, rows, Vec::new(), limits)));
                }
                let filters = if is_exact { Vec::new() } else { filters };
                (Source::Scan(Box::new(scan)), filters)
            }
        };
        if matches!(plan.output, Output::CountRows) {
            let everything = (0, u64::MAX);
            let stream = RowStream::new(Arc::clone(&columns), source, filters, everything);
            let count = tokio::task::block_in_place(|| self.count(stream))?;
            let rows = Source::Rows(count_row(count).into_iter());
            return Ok(Answer::Rows(RowStream::new(columns, rows, Vec::new(), limits)));
        }
        Ok(Answer::Rows(RowStream::new(columns, source, filters, limits)))
    }

    fn count(&self, mut stream: RowStream) -> Result<u64> {
        let mut rows = 0u64;
        loop {
            match stream.next()? {
                Step::Row(_) => rows += 1,
                Step::Pause => self.check_deadline()?,
                Step::End => return Ok(rows),
            }
        }
    }

    fn get(&mut self, table: &Table, key: &[Value<'_>]) -> Result<Option<Row>> {
        match &mut self.work {
            Work::Idle(session) => Ok(session.get(table, key)?),
            Work::Open(open) => open.with_dependent_mut(|_, slot| {
                let transaction = slot.as_mut().ok_or_else(in_failed_transaction)?;
                Ok(transaction.get(table, key)?)
            }),
            _ => Err(in_failed_transaction()),
        }
    }

    fn scan(&mut self, table: &Table, options: &ScanOptions<'_>) -> Result<Scan> {
        match &mut self.work {
            Work::Idle(session) => Ok(session.scan(table, options)?),
            Work::Open(open) => open.with_dependent_mut(|_, slot| {
                let transaction = slot.as_mut().ok_or_else(in_failed_transaction)?;
                Ok(transaction.scan(table, options)?)
            }),
            _ => Err(in_failed_transaction()),
        }
    }

    /// All rows of a table, for COPY.
    pub(super) fn copy_out(&mut self, copy: &CopyPlan) -> Result<Answer> {
        let scan = self.scan(&copy.table, &ScanOptions::default())?;
        let all = copy.table.definition().columns();
        let column = |source: &usize| OutputColumn {
            name: all[*source].name.clone(),
            data_type: all[*source].data_type,
            source: *source,
        };
        let columns: Arc<[OutputColumn]> = copy.columns.iter().map(column).collect();
        let source = Source::Scan(Box::new(scan));
        let stream = RowStream::new(columns, source, Vec::new(), (0, u64::MAX));
        Ok(Answer::CopyOut(copy.clone(), stream))
    }

    /// One row of values without a table.
    pub(super) fn scalars(
        &mut self,
        columns: &Arc<[OutputColumn]>,
        scalars: &[Scalar],
        bound: &Bound,
    ) -> Result<Answer> {
        let mut row = Vec::with_capacity(scalars.len());
        for scalar in scalars {
            row.push(match scalar {
                Scalar::Value(operand) => operand.value(bound)?.into_owned(),
                Scalar::Function(function) => self.function(*function)?,
            });
        }
        Ok(Answer::Rows(RowStream::of_rows(Arc::clone(columns), vec![row], "SELECT")))
    }

    fn function(&mut self, function: Function) -> Result<Value<'static>> {
        Ok(match function {
            Function::Now => Value::TimestampTz(unix_micros()),
            Function::RandomUuid => Value::Uuid(onrush::Uuid::new_v4()),
            Function::WaitDurable => {
                self.newest = Some(self.idle_for_barrier()?.newest_token());
                Value::Null
            }
            Function::BackendNumber => Value::Int32(self.number),
            Function::Version => VERSION.into(),
            Function::CurrentDatabase | Function::CurrentUser => "onrush".into(),
            Function::CurrentSchema => "public".into(),
            Function::Key(_) | Function::CountRows => Value::Null,
        })
    }

    fn idle_for_barrier(&mut self) -> Result<&mut onrush::Session> {
        self.outside_transaction("onrush.wait_durable()")?;
        self.idle()
    }
}

fn count_row(count: u64) -> Vec<Row> {
    vec![vec![Value::Int64(i64::try_from(count).unwrap_or(i64::MAX))]]
}

fn filters(plan: &SelectPlan, bound: &Bound) -> Result<Vec<Filter>> {
    let mut filters = Vec::with_capacity(plan.conditions.len());
    for condition in &plan.conditions {
        filters.push(Filter {
            column: condition.column,
            data_type: plan.relation.data_type(condition.column),
            operator: condition.operator,
            value: condition.operand.value(bound)?.into_owned(),
        });
    }
    Ok(filters)
}

/// The key, where each of its columns is compared with one value.
fn whole_key(table: &Table, filters: &[Filter]) -> Option<Vec<Value<'static>>> {
    let equal = |column: &usize| {
        let found = filters
            .iter()
            .find(|filter| filter.column == *column && filter.operator == Operator::Equal);
        found.map(|filter| filter.value.clone())
    };
    table.definition().primary_key().iter().map(equal).collect()
}

type KeyEnd = End<Vec<Value<'static>>>;

/// Where to begin and to end, and whether every row between is wanted: then nothing is left to filter.
fn bounds(table: &Table, filters: &[Filter]) -> (KeyEnd, KeyEnd, bool) {
    let mut prefix: Vec<Value<'static>> = Vec::new();
    let mut used = 0;
    for column in table.definition().primary_key() {
        let of_column = |operators: [Operator; 2]| {
            let takes =
                |filter: &&Filter| filter.column == *column && operators.contains(&filter.operator);
            filters.iter().find(takes)
        };
        if let Some(equal) = of_column([Operator::Equal; 2]) {
            prefix.push(equal.value.clone());
            used += 1;
            continue;
        }
        let with = |filter: &Filter| {
            let mut key = prefix.clone();
            key.push(filter.value.clone());
            key
        };
        let low = of_column([Operator::Greater, Operator::GreaterOrEqual]);
        let high = of_column([Operator::Less, Operator::LessOrEqual]);
        used += usize::from(low.is_some()) + usize::from(high.is_some());
        let from = match low {
            Some(filter) if filter.operator == Operator::Greater => End::Excluded(with(filter)),
            Some(filter) => End::Included(with(filter)),
            None => whole_prefix(&prefix),
        };
        let to = match high {
            Some(filter) if filter.operator == Operator::Less => End::Excluded(with(filter)),
            Some(filter) => End::Included(with(filter)),
            None => whole_prefix(&prefix),
        };
        return (from, to, used == filters.len());
    }
    (whole_prefix(&prefix), whole_prefix(&prefix), used == filters.len())
}

fn whole_prefix(prefix: &[Value<'static>]) -> KeyEnd {
    if prefix.is_empty() { End::Unbounded } else { End::Included(prefix.to_vec()) }
}

fn sort(rows: &mut [Row], by: &[(usize, bool)]) {
    rows.sort_by(|left, right| {
        let differs = by.iter().map(|(column, descends)| {
            let order = left[*column].total_cmp(&right[*column]);
            if *descends { order.reverse() } else { order }
        });
        differs.into_iter().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
}
