//! EXPLAIN: which way a statement takes, a line a row.

use std::time::Instant;

use onrush::Table;
use onrush_query::Want;

use super::plan::{Explained, SelectPlan, WritePlan};
use super::{Backend, RowStream};
use crate::error::Result;
use crate::sql::{
    Bound, Conflict, GetPlan, InsertRows, LockedRows, LockingPlan, QueryPlan, RowsToChange,
};

const COLUMN: &str = "QUERY PLAN";

impl Backend {
    pub(super) fn explain(
        &mut self,
        explained: &Explained,
        analyze: bool,
        bound: &Bound,
    ) -> Result<RowStream> {
        match explained {
            Explained::Select(SelectPlan::Query(query)) => {
                self.query(query, bound, if analyze { Want::Analysis } else { Want::Plan })
            }
            Explained::Select(SelectPlan::Get(get)) => self.explain_get(get, bound, analyze),
            // How the query engine would do it, and does where there are many rows.
            Explained::Select(SelectPlan::Range(range)) => {
                self.long_way(range, bound, if analyze { Want::Analysis } else { Want::Plan })
            }
            Explained::Select(SelectPlan::Locking(plan)) => self.explain_locking(plan, bound),
            Explained::Select(SelectPlan::Scalars { .. }) => Ok(lines(vec!["Result".to_owned()])),
            Explained::Write(plan) => self.explain_write(plan, bound),
        }
    }

    fn explain_get(&mut self, plan: &GetPlan, bound: &Bound, analyze: bool) -> Result<RowStream> {
        let mut lines = vec![format!("OnrushGet: {}", with_key(&plan.table))];
        if analyze {
            let began = Instant::now();
            let rows = usize::from(self.found(plan, bound)?.is_some());
            let millis = began.elapsed().as_secs_f64() * 1e3;
            lines.push(format!("Rows: {rows}"));
            lines.push(format!("Execution Time: {millis:.3} ms"));
        }
        Ok(self::lines(lines))
    }

    /// Which rows are locked; what finds them comes behind it.
    fn explain_locking(&mut self, plan: &LockingPlan, bound: &Bound) -> Result<RowStream> {
        let names: Vec<&str> = plan.tables.iter().map(|locked| locked.table.name()).collect();
        let line = format!("OnrushLockRows: {}, {}", names.join(", "), plan.verb);
        match &plan.rows {
            LockedRows::Get(get) => Ok(self.explain_get(get, bound, false)?.behind(line)),
            LockedRows::Query { query, .. } => {
                Ok(self.query(query, bound, Want::Plan)?.behind(line))
            }
        }
    }

    /// How rows are written; what finds them comes behind it.
    fn explain_write(&mut self, plan: &WritePlan, bound: &Bound) -> Result<RowStream> {
        let (line, query) = match plan {
            WritePlan::Insert(insert) => {
                let name = insert.table.name();
                let conflict = match &insert.conflict {
                    Conflict::Fail => "",
                    Conflict::Nothing(_) => ", taken keys=nothing",
                    Conflict::Update(..) => ", taken keys=update",
                };
                match &insert.rows {
                    InsertRows::Given(rows) => {
                        let count = rows.len();
                        (format!("OnrushInsert: {name}, rows={count}{conflict}"), None)
                    }
                    InsertRows::Found { query, .. } => {
                        (format!("OnrushInsert: {name}{conflict}"), Some(&**query))
                    }
                }
            }
            WritePlan::Update(update) => way("OnrushUpdate", &update.table, &update.rows),
            WritePlan::Delete(delete) => way("OnrushDelete", &delete.table, &delete.rows),
        };
        let Some(query) = query else { return Ok(lines(vec![line])) };
        Ok(self.query(query, bound, Want::Plan)?.behind(line))
    }
}

fn way<'p>(verb: &str, table: &Table, rows: &'p RowsToChange) -> (String, Option<&'p QueryPlan>) {
    match rows {
        RowsToChange::WithKey { .. } => (format!("{verb}: {}", with_key(table)), None),
        RowsToChange::Found(query) => (format!("{verb}: {}", table.name()), Some(query)),
    }
}

/// The table, and that the row is found by its key.
fn with_key(table: &Table) -> String {
    let definition = table.definition();
    let key = definition.primary_key().iter().map(|column| &*definition.columns()[*column].name);
    let key: Vec<&str> = key.collect();
    format!("{}, key=[{}]", definition.name(), key.join(", "))
}

fn lines(lines: Vec<String>) -> RowStream {
    RowStream::texts(COLUMN, lines, "EXPLAIN")
}
