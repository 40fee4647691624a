//! A statement whose WITH changes rows: its steps, in one transaction and as one view of the database has it.
//!
//! Invariants
//! 1. All steps and what comes last see the rows as they were before the statement; of each other they see what
//!    RETURNING sends.
//! 2. No row is changed by two of them: who comes first has it.

use std::fmt;
use std::sync::Arc;

use onrush::{Row, Snapshot, Transaction};
use onrush_query::{ColumnType, MadeRows, Statement};
use parking_lot::Mutex;

use super::changed_rows::ChangedRows;
use super::insert::{Way, Written};
use super::plan::{StepPlan, StepsPlan, WritePlan};
use super::query::{Finder, steps_of};
use super::returning::answer;
use super::write::FoundWay;
use super::{Answer, Backend, RowStream, merge, tag};
use crate::error::{Result, SqlError};
use crate::sql::{Bound, DeletePlan, MergePlan, OutputColumn, QueryPlan, RowsToChange, UpdatePlan};

/// The rows that the steps of one execution gave, by the number of the step.
#[derive(Debug, Default)]
pub(crate) struct StepsDone(Mutex<Vec<Arc<Vec<Row>>>>);

impl StepsDone {
    fn begin_again(&self, steps: usize) {
        *self.0.lock() = vec![Arc::default(); steps];
    }

    fn put(&self, step: usize, rows: Vec<Row>) {
        if let Some(place) = self.0.lock().get_mut(step) {
            *place = Arc::new(rows);
        }
    }

    fn rows(&self, step: usize) -> Arc<Vec<Row>> {
        self.0.lock().get(step).cloned().unwrap_or_default()
    }
}

/// What a step gives, as a relation.
pub(crate) struct StepRows {
    pub(crate) step: usize,
    pub(crate) columns: Vec<OutputColumn>,
}

impl fmt::Debug for StepRows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StepRows").field("step", &self.step).finish_non_exhaustive()
    }
}

impl MadeRows for StepRows {
    fn columns(&self) -> Vec<(&str, ColumnType)> {
        self.columns.iter().map(|column| (&*column.name, column.column_type)).collect()
    }

    fn rows(&self, statement: &Statement) -> Vec<Row> {
        let Some(done) = steps_of(&statement.client) else { return Vec::new() };
        let shown = |row: &Row| -> Row {
            self.columns.iter().map(|column| row[column.source].clone()).collect()
        };
        done.rows(self.step).iter().map(shown).collect()
    }
}

/// How one execution does a step.
enum Doing<'p> {
    Insert(Way<'p>),
    Update(FoundWay, &'p UpdatePlan, &'p QueryPlan),
    Delete(FoundWay, &'p DeletePlan, &'p QueryPlan),
    Merge(&'p MergePlan),
    Query(&'p QueryPlan),
}

/// What a step has come to.
struct Done {
    count: u64,
    rows: Vec<Row>,
}

impl Backend {
    pub(super) fn run_steps(&mut self, plan: &StepsPlan, bound: &Bound) -> Result<Answer> {
        let results = Arc::new(StepsDone::default());
        let ways = plan.steps.iter().map(|step| self.doing(step, &results, bound));
        let ways: Vec<Doing<'_>> = ways.collect::<Result<_>>()?;
        let finder = self.finder_beside(Some(Arc::clone(&results)));
        let last = self.change_rows(|transaction| {
            results.begin_again(ways.len());
            let (snapshot, mut changed) = (transaction.snapshot(), ChangedRows::default());
            let mut last = None;
            for (step, way) in ways.iter().enumerate() {
                let done = way.run(transaction, (&finder, snapshot.same()), bound, &mut changed)?;
                if step == plan.last {
                    last = Some(done);
                } else {
                    results.put(step, done.rows);
                }
            }
            last.ok_or_else(|| SqlError::protocol("a statement without an end".to_owned()))
        })?;
        Ok(match &plan.steps[plan.last] {
            StepPlan::Query(query) => {
                Answer::rows(RowStream::of_rows(Arc::clone(&query.columns), last.rows, "SELECT"))
            }
            StepPlan::Merge(_) => Answer::Done(tag("MERGE", last.count)),
            StepPlan::Write(write) => {
                answer(write.verb(), write.returning(), last.rows, last.count)
            }
        })
    }

    fn doing<'p>(
        &self,
        step: &'p StepPlan,
        results: &Arc<StepsDone>,
        bound: &'p Bound,
    ) -> Result<Doing<'p>> {
        let found_way = |write: &WritePlan| -> Result<FoundWay> {
            let finder = self.finder_beside(Some(Arc::clone(results)));
            Ok(FoundWay { finder, returner: self.returner(write.returning(), bound)? })
        };
        let query_of = |rows: &'p RowsToChange| match rows {
            RowsToChange::Found(query) => Ok(&**query),
            RowsToChange::WithKey { .. } => {
                Err(SqlError::protocol("a step that looks for no rows".to_owned()))
            }
        };
        Ok(match step {
            StepPlan::Query(query) => Doing::Query(query),
            StepPlan::Merge(plan) => Doing::Merge(plan),
            StepPlan::Write(write) => match &**write {
                WritePlan::Insert(insert) => Doing::Insert(self.way(insert, bound)?),
                WritePlan::Update(update) => {
                    Doing::Update(found_way(write)?, update, query_of(&update.rows)?)
                }
                WritePlan::Delete(delete) => {
                    Doing::Delete(found_way(write)?, delete, query_of(&delete.rows)?)
                }
            },
        })
    }
}

impl Doing<'_> {
    fn run(
        &self,
        transaction: &mut Transaction<'_>,
        (finder, snapshot): (&Finder, Snapshot),
        bound: &Bound,
        changed: &mut ChangedRows,
    ) -> Result<Done> {
        let (count, rows) = match self {
            Doing::Query(query) => (0, finder.all(query, bound, snapshot)?),
            Doing::Merge(plan) => {
                let count = merge::run(transaction, (plan, bound), (finder, snapshot), changed)?;
                (count, Vec::new())
            }
            Doing::Insert(way) => {
                let mut written = Written {
                    changed: std::mem::take(changed),
                    is_one_of_several: true,
                    ..Written::default()
                };
                written.place_all(transaction, way, (finder, snapshot))?;
                *changed = written.changed;
                (written.count, written.rows)
            }
            Doing::Update(way, plan, query) => {
                way.update(transaction, (plan, query, bound), snapshot, Some(changed))?
            }
            Doing::Delete(way, plan, query) => {
                way.delete(transaction, (plan, query, bound), snapshot, Some(changed))?
            }
        };
        Ok(Done { count, rows })
    }
}
