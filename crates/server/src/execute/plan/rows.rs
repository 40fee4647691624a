//! Rows are read or written.

use std::sync::Arc;

use onrush::Table;
use onrush_query::Want;

use super::super::{Answer, Backend, RowStream};
use crate::access::Right;
use crate::error::{Result, SqlError};
use crate::lake_table::cut_columns;
use crate::seen::Seen;
use crate::sql::plan::text_column;
use crate::sql::{
    Action, Bound, Conflict, CopyFormat, CopyPlan, DeletePlan, GetPlan, InsertPlan, InsertRows,
    LockedRows, LockingPlan, MergePlan, Operand, OutputColumn, QueryPlan, RangePlan, Returning,
    RowsToChange, Scalar, Through, UpdatePlan,
};

/// A procedure and its arguments.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    /// Checks everything stored, with so many threads.
    Check { threads: Operand },
    /// Inserts rows of defaults.
    InsertLoop { table: Operand, rows: Operand, rows_per_commit: Operand },
    /// Attaches a table to an Iceberg table, whose rows are to wait for so many seconds at most.
    LakeAttach { table: Operand, lake_table: Operand, lag_seconds: Operand },
    /// Detaches a table.
    LakeDetach { table: Operand },
    /// Makes a backup into the archive.
    ArchiveBackup,
    /// Waits until what is durable of a table is in the lake.
    LakeFlush { table: Operand },
    /// How far each node's rows are in the lake.
    LakeCut { table: Operand },
    /// A statement by which another engine has all rows of a table.
    LakeView { table: Operand, engine: Operand },
}

#[derive(Clone)]
pub(crate) enum RowsPlan {
    Select(SelectPlan),
    Write(WritePlan),
    /// Its WITH changes rows.
    Steps(Arc<StepsPlan>),
    /// How a statement would be done; with true, how it was.
    Explain(Explained, bool),
    CopyIn(CopyPlan),
    CopyOut(CopyPlan),
    /// The rows of another plan go out.
    CopyRows(Box<RowsPlan>, CopyFormat),
    Call(Call),
}

/// A query, by the way it takes.
#[derive(Clone)]
pub(crate) enum SelectPlan {
    /// Of the row with a key.
    Get(GetPlan),
    /// Of rows between two keys.
    Range(Arc<RangePlan>),
    /// Without a table.
    Scalars { columns: Arc<[OutputColumn]>, values: Vec<Scalar> },
    /// Any other.
    Query(Arc<QueryPlan>),
    /// One that locks rows.
    Locking(Arc<LockingPlan>),
}

#[derive(Clone)]
pub(crate) enum WritePlan {
    Insert(InsertPlan),
    Update(UpdatePlan),
    Delete(DeletePlan),
}

/// One step of a statement.
pub(crate) enum StepPlan {
    Query(Box<QueryPlan>),
    Write(Box<WritePlan>),
    Merge(Box<MergePlan>),
}

/// A statement of several steps, in their order.
pub(crate) struct StepsPlan {
    pub(crate) steps: Vec<StepPlan>,
    /// The one whose rows are the answer.
    pub(crate) last: usize,
}

impl StepsPlan {
    fn last(&self) -> &StepPlan {
        &self.steps[self.last]
    }
}

impl StepPlan {
    /// The columns of its rows; none where it sends none.
    pub(crate) fn columns(&self) -> Option<Arc<[OutputColumn]>> {
        match self {
            StepPlan::Query(query) => Some(Arc::clone(&query.columns)),
            StepPlan::Write(write) => write.returned(),
            StepPlan::Merge(_) => None,
        }
    }

    fn is_stale(&self, seen: &Seen) -> bool {
        match self {
            StepPlan::Query(query) => query.is_stale(seen),
            StepPlan::Write(write) => write.is_stale(seen),
            StepPlan::Merge(merge) => {
                !seen.is_current(&merge.table)
                    || merge.queries().any(|found| found.query.is_stale(seen))
            }
        }
    }

    fn check_rights(&self, backend: &Backend) -> Result<()> {
        match self {
            StepPlan::Query(query) => backend.check_reads(query),
            StepPlan::Write(write) => write.check_rights(backend),
            StepPlan::Merge(merge) => merge.queries().try_for_each(|found| {
                backend.check_reads(&found.query)?;
                found.actions.iter().try_for_each(|action| {
                    let right = match action {
                        Action::Nothing => return Ok(()),
                        Action::Insert(_) => Right::Insert,
                        Action::Update(_) => Right::Update,
                        Action::Delete => Right::Delete,
                    };
                    backend.check_right(right, &merge.table)
                })
            }),
        }
    }
}

/// A statement that EXPLAIN tells about.
#[derive(Clone)]
pub(crate) enum Explained {
    Select(SelectPlan),
    Write(Box<WritePlan>),
}

impl RowsPlan {
    pub(crate) fn columns(&self) -> Option<Arc<[OutputColumn]>> {
        match self {
            RowsPlan::Select(select) => Some(Arc::clone(select.columns())),
            RowsPlan::Write(write) => write.returned(),
            RowsPlan::Steps(plan) => plan.last().columns(),
            RowsPlan::Explain(..) => Some([text_column("QUERY PLAN")].into()),
            RowsPlan::Call(Call::Check { .. }) => Some([text_column("check")].into()),
            RowsPlan::Call(Call::LakeCut { .. }) => Some(cut_columns()),
            RowsPlan::Call(Call::LakeView { .. }) => Some([text_column("statement")].into()),
            RowsPlan::CopyIn(_)
            | RowsPlan::CopyOut(_)
            | RowsPlan::CopyRows(..)
            | RowsPlan::Call(_) => None,
        }
    }

    pub(super) fn is_stale(&self, seen: &Seen) -> bool {
        match self {
            RowsPlan::Select(select) | RowsPlan::Explain(Explained::Select(select), _) => {
                select.is_stale(seen)
            }
            RowsPlan::Write(write) => write.is_stale(seen),
            RowsPlan::Steps(plan) => plan.steps.iter().any(|step| step.is_stale(seen)),
            RowsPlan::Explain(Explained::Write(write), _) => write.is_stale(seen),
            RowsPlan::CopyIn(copy) | RowsPlan::CopyOut(copy) => !seen.is_current(&copy.table),
            RowsPlan::CopyRows(rows, _) => rows.is_stale(seen),
            RowsPlan::Call(_) => false,
        }
    }

    pub(super) fn written_table(&self) -> Option<&Table> {
        match self {
            RowsPlan::Write(write) => Some(write.table()),
            RowsPlan::CopyIn(copy) => Some(&copy.table),
            RowsPlan::CopyRows(rows, _) => rows.written_table(),
            _ => None,
        }
    }

    pub(super) fn writes(&self) -> Option<&'static str> {
        match self {
            RowsPlan::Write(write) => Some(write.verb()),
            RowsPlan::Steps(plan) => Some(match plan.last() {
                StepPlan::Query(_) => "SELECT",
                StepPlan::Merge(_) => "MERGE",
                StepPlan::Write(write) => write.verb(),
            }),
            RowsPlan::CopyIn(_) => Some("COPY FROM"),
            RowsPlan::CopyRows(rows, _) => rows.writes(),
            RowsPlan::Call(Call::Check { .. } | Call::LakeCut { .. } | Call::LakeView { .. }) => {
                None
            }
            RowsPlan::Call(_) => Some("CALL"),
            RowsPlan::Select(SelectPlan::Locking(plan)) => Some(match plan.verb {
                "FOR UPDATE" => "SELECT FOR UPDATE",
                "FOR NO KEY UPDATE" => "SELECT FOR NO KEY UPDATE",
                "FOR SHARE" => "SELECT FOR SHARE",
                _ => "SELECT FOR KEY SHARE",
            }),
            RowsPlan::Select(_) | RowsPlan::Explain(..) | RowsPlan::CopyOut(_) => None,
        }
    }

    pub(super) fn check_rights(&self, backend: &Backend) -> Result<()> {
        match self {
            RowsPlan::Select(select) | RowsPlan::Explain(Explained::Select(select), _) => {
                select.check_rights(backend)
            }
            RowsPlan::Write(write) => write.check_rights(backend),
            RowsPlan::Steps(plan) => {
                plan.steps.iter().try_for_each(|step| step.check_rights(backend))
            }
            RowsPlan::Explain(Explained::Write(write), _) => write.check_rights(backend),
            RowsPlan::CopyIn(copy) => backend.check_right(Right::Insert, &copy.table),
            RowsPlan::CopyOut(copy) => backend.check_right(Right::Select, &copy.table),
            RowsPlan::CopyRows(rows, _) => rows.check_rights(backend),
            // Who may read the table may.
            RowsPlan::Call(Call::LakeCut { .. } | Call::LakeView { .. }) => Ok(()),
            RowsPlan::Call(_) => backend.check_superuser("CALL"),
        }
    }

    pub(super) async fn run(&self, backend: &mut Backend, bound: &Bound) -> Result<Answer> {
        match self {
            RowsPlan::Select(select) => Ok(Answer::rows(select.run(backend, bound)?)),
            RowsPlan::Write(write) => write.run(backend, bound),
            RowsPlan::Steps(plan) => backend.run_steps(plan, bound),
            RowsPlan::CopyRows(rows, format) => {
                let answer = match rows.as_ref() {
                    RowsPlan::Select(select) => Answer::rows(select.run(backend, bound)?),
                    RowsPlan::Write(write) => write.run(backend, bound)?,
                    RowsPlan::Steps(plan) => backend.run_steps(plan, bound)?,
                    _ => return Err(SqlError::protocol("a copy of what has no rows".to_owned())),
                };
                Ok(match answer {
                    Answer::Rows(rows) => Answer::CopyOut(format.clone(), rows),
                    other => other,
                })
            }
            RowsPlan::Explain(explained, analyze) => {
                Ok(Answer::rows(backend.explain(explained, *analyze, bound)?))
            }
            RowsPlan::CopyIn(copy) => Ok(Answer::CopyIn(Box::new(copy.clone()))),
            RowsPlan::CopyOut(copy) => backend.copy_out(copy),
            RowsPlan::Call(call) => backend.call(call, bound).await,
        }
    }
}

impl SelectPlan {
    fn columns(&self) -> &Arc<[OutputColumn]> {
        match self {
            SelectPlan::Get(get) => &get.columns,
            SelectPlan::Range(range) => &range.columns,
            SelectPlan::Scalars { columns, .. } => columns,
            SelectPlan::Query(query) => &query.columns,
            SelectPlan::Locking(plan) => &plan.columns,
        }
    }

    pub(super) fn is_stale(&self, seen: &Seen) -> bool {
        match self {
            SelectPlan::Get(get) => !seen.is_current(&get.table),
            SelectPlan::Range(range) => !seen.is_current(&range.table),
            SelectPlan::Scalars { .. } => false,
            SelectPlan::Query(query) => query.is_stale(seen),
            SelectPlan::Locking(plan) => {
                let is_query_stale = match &plan.rows {
                    LockedRows::Get(_) => false,
                    LockedRows::Query { query, .. } => query.is_stale(seen),
                };
                is_query_stale || plan.tables.iter().any(|it| !seen.is_current(&it.table))
            }
        }
    }

    pub(super) fn check_rights(&self, backend: &Backend) -> Result<()> {
        match self {
            SelectPlan::Get(get) => backend.check_right(Right::Select, &get.table),
            SelectPlan::Range(range) => backend.check_right(Right::Select, &range.table),
            SelectPlan::Scalars { .. } => Ok(()),
            SelectPlan::Query(query) => backend.check_reads(query),
            SelectPlan::Locking(plan) => {
                match &plan.rows {
                    LockedRows::Get(get) => backend.check_right(Right::Select, &get.table)?,
                    LockedRows::Query { query, .. } => backend.check_reads(query)?,
                }
                let mut tables = plan.tables.iter().map(|locked| &locked.table);
                tables.try_for_each(|table| backend.check_right(Right::Update, table))
            }
        }
    }

    pub(super) fn run(&self, backend: &mut Backend, bound: &Bound) -> Result<RowStream> {
        match self {
            SelectPlan::Get(get) => backend.get(get, bound),
            SelectPlan::Range(range) => backend.range(range, bound),
            SelectPlan::Scalars { columns, values } => backend.scalars(columns, values, bound),
            SelectPlan::Query(query) => backend.query(query, bound, Want::Rows),
            SelectPlan::Locking(plan) => backend.lock_rows(plan, bound),
        }
    }
}

impl WritePlan {
    fn run(&self, backend: &mut Backend, bound: &Bound) -> Result<Answer> {
        match self {
            WritePlan::Insert(insert) => backend.insert(insert, bound),
            WritePlan::Update(update) => backend.update(update, bound),
            WritePlan::Delete(delete) => backend.delete(delete, bound),
        }
    }

    fn table(&self) -> &Table {
        match self {
            WritePlan::Insert(insert) => &insert.table,
            WritePlan::Update(update) => &update.table,
            WritePlan::Delete(delete) => &delete.table,
        }
    }

    pub(in crate::execute) fn verb(&self) -> &'static str {
        match self {
            WritePlan::Insert(_) => "INSERT",
            WritePlan::Update(_) => "UPDATE",
            WritePlan::Delete(_) => "DELETE",
        }
    }

    pub(in crate::execute) fn returning(&self) -> &Option<Returning> {
        match self {
            WritePlan::Insert(insert) => &insert.returning,
            WritePlan::Update(update) => &update.returning,
            WritePlan::Delete(delete) => &delete.returning,
        }
    }

    /// The columns of RETURNING.
    fn returned(&self) -> Option<Arc<[OutputColumn]>> {
        let returning = self.returning();
        returning.as_ref().map(|Returning { columns, .. }| Arc::clone(columns))
    }

    fn is_stale(&self, seen: &Seen) -> bool {
        let of_rows = match self {
            WritePlan::Insert(insert) => match &insert.rows {
                InsertRows::Found { query, .. } => query.is_stale(seen),
                InsertRows::Given(_) => false,
            },
            WritePlan::Update(update) => update.rows.is_stale(seen),
            WritePlan::Delete(delete) => delete.rows.is_stale(seen),
        };
        of_rows || self.through().is_stale(seen) || !seen.is_current(self.table())
    }

    fn check_rights(&self, backend: &Backend) -> Result<()> {
        let right = match self {
            WritePlan::Insert(insert) => return backend.check_insert(insert),
            WritePlan::Update(_) => Right::Update,
            WritePlan::Delete(_) => Right::Delete,
        };
        for asked in &self.through().asked {
            backend.check_right(right, asked)?;
            backend.check_right(Right::Select, asked)?;
        }
        match self.rows() {
            Some(RowsToChange::Found(query)) => backend.check_reads(query),
            _ => Ok(()),
        }
    }

    fn rows(&self) -> Option<&RowsToChange> {
        match self {
            WritePlan::Insert(_) => None,
            WritePlan::Update(update) => Some(&update.rows),
            WritePlan::Delete(delete) => Some(&delete.rows),
        }
    }

    fn through(&self) -> &Through {
        match self {
            WritePlan::Insert(insert) => &insert.through,
            WritePlan::Update(update) => &update.through,
            WritePlan::Delete(delete) => &delete.through,
        }
    }
}

impl Backend {
    /// Refuses an INSERT that the client's role may not run.
    pub(in crate::execute) fn check_insert(&self, insert: &InsertPlan) -> Result<()> {
        for asked in &insert.through.asked {
            self.check_right(Right::Insert, asked)?;
            if let Conflict::Update(_, update) = &insert.conflict {
                self.check_right(Right::Update, asked)?;
                // What comes of it tells what is there.
                if update.computed.is_some() {
                    self.check_right(Right::Select, asked)?;
                }
            }
            if insert.returning.is_some() {
                self.check_right(Right::Select, asked)?;
            }
        }
        if let InsertRows::Found { query, .. } = &insert.rows {
            self.check_reads(query)?;
        }
        Ok(())
    }

    pub(super) fn check_reads(&self, query: &QueryPlan) -> Result<()> {
        query.asked_tables().try_for_each(|table| self.check_right(Right::Select, table))
    }

    pub(in crate::execute) fn check_right(&self, right: Right, table: &Table) -> Result<()> {
        self.access.check(&self.who, right, table)?;
        self.check_owner_of_view(right, table)
    }
}
