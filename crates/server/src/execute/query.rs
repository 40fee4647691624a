//! Queries: what they read, and the rows that they find for others.

use std::any::Any;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use onrush::{DataType, Database, Row, Snapshot, Value};
use onrush_query::clock::now_micros;
use onrush_query::{
    Client, ColumnType, QueryColumn, QueryEngine, RowValues, Rows, SessionSettings, Statement, Want,
};
use tokio::runtime::Handle;

use super::steps::StepsDone;
use super::transaction::Work;
use super::{Backend, Patience, RowStream, Settings, in_failed_transaction};
use crate::advisory::ClientLocks;
use crate::control::ClientControl;
use crate::error::Result;
use crate::lake_table::LakePins;
use crate::seen::Seen;
use crate::sequences::ClientSequences;
use crate::sql::plan::text_column;
use crate::sql::{Bound, Computed, Lookup, QueryPlan};
use crate::values;

impl Backend {
    pub(super) fn query(
        &mut self,
        plan: &QueryPlan,
        bound: &Bound,
        want: Want,
    ) -> Result<RowStream> {
        let snapshot = self.snapshot()?;
        let rows = self.finder().start(plan, bound, want, snapshot)?;
        let columns = match want {
            Want::Rows => Arc::clone(&plan.columns),
            Want::Plan | Want::Analysis => [text_column("QUERY PLAN")].into(),
        };
        Ok(RowStream::of_query(columns, rows))
    }

    /// What the statement sees.
    pub(super) fn snapshot(&mut self) -> Result<Snapshot> {
        match &mut self.work {
            Work::Idle(session) => Ok(session.snapshot()?),
            Work::Open(open) => open.with_dependent_mut(|_, transaction| {
                let transaction = transaction.as_mut().ok_or_else(in_failed_transaction)?;
                Ok(transaction.snapshot())
            }),
            _ => Err(in_failed_transaction()),
        }
    }

    /// What the statement sees, for who reads it in the place of the session, and not beside it.
    pub(super) fn snapshot_here(&mut self) -> Result<Snapshot> {
        match &mut self.work {
            Work::Idle(session) => Ok(session.snapshot_here()?),
            Work::Open(open) => open.with_dependent_mut(|_, transaction| {
                let transaction = transaction.as_mut().ok_or_else(in_failed_transaction)?;
                Ok(transaction.snapshot_here())
            }),
            _ => Err(in_failed_transaction()),
        }
    }

    /// What it takes to run a query while a transaction is at work.
    pub(super) fn finder(&self) -> Finder {
        self.finder_beside(None)
    }

    /// As [`finder`](Self::finder), of a statement of several steps, which gave these rows.
    pub(super) fn finder_beside(&self, steps: Option<Arc<StepsDone>>) -> Finder {
        let (settings, seen) = (self.settings.clone(), self.seen.clone());
        let sequences = Arc::clone(&self.sequences);
        let locks = Arc::clone(&self.locks);
        let (control, pins) = (Arc::clone(&self.control), Arc::clone(&self.pins));
        let schemas = OnceLock::new();
        let session = Session { settings, seen, sequences, locks, control, pins, steps, schemas };
        let settings: Arc<dyn SessionSettings> = Arc::new(session);
        Finder {
            seen: self.seen.clone(),
            queries: Arc::clone(&self.queries),
            client: Client { settings: Some(settings), ..self.client.clone() },
            patience: self.patience.clone(),
        }
    }
}

/// What functions ask about a session.
struct Session {
    settings: Settings,
    seen: Seen,
    sequences: Arc<ClientSequences>,
    locks: Arc<ClientLocks>,
    control: Arc<ClientControl>,
    pins: Arc<LakePins>,
    steps: Option<Arc<StepsDone>>,
    /// Those of its search path that are there: functions that are called for each row ask for them.
    schemas: OnceLock<Vec<String>>,
}

/// What the steps of the statement gave that is executed; none of one without steps.
pub(crate) fn steps_of(client: &Client) -> Option<Arc<StepsDone>> {
    let session = client.settings.as_ref()?.as_any().downcast_ref::<Session>()?;
    session.steps.clone()
}

/// What the statement that is executed reads of the lake; none where nobody asks.
pub(crate) fn pins_of(client: &Client) -> Option<Arc<LakePins>> {
    let session = client.settings.as_ref()?.as_any().downcast_ref::<Session>()?;
    Some(Arc::clone(&session.pins))
}

/// The advisory locks of a client; none where nobody asks.
pub(crate) fn locks_of(client: &Client) -> Option<Arc<ClientLocks>> {
    let session = client.settings.as_ref()?.as_any().downcast_ref::<Session>()?;
    Some(Arc::clone(&session.locks))
}

/// What a client can do to itself and others; none where nobody asks.
pub(crate) fn control_of(client: &Client) -> Option<Arc<ClientControl>> {
    let session = client.settings.as_ref()?.as_any().downcast_ref::<Session>()?;
    Some(Arc::clone(&session.control))
}

/// What a client knows of sequences; none where nobody asks.
pub(crate) fn caller_of(client: &Client) -> Option<Arc<ClientSequences>> {
    let session = client.settings.as_ref()?.as_any().downcast_ref::<Session>()?;
    Some(Arc::clone(&session.sequences))
}

/// What a client sees of definitions, for functions and views of the catalogue.
pub(crate) fn seen_by(client: &Client, database: &Database) -> Seen {
    let settings = client.settings.as_ref().map(|settings| settings.as_any());
    let session = settings.and_then(|settings| settings.downcast_ref::<Session>());
    session.map_or_else(|| Seen::committed(database), |session| session.seen.clone())
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(formatter)
    }
}

impl SessionSettings for Session {
    fn setting(&self, name: &str) -> Option<String> {
        self.settings.show(name).ok()
    }

    fn schemas(&self) -> Vec<String> {
        let look = || {
            let lookup = Lookup { seen: &self.seen, path: &self.settings.path };
            // Of a database that has stopped nothing is told.
            let schemas = lookup.schemas().unwrap_or_default();
            schemas.into_iter().map(str::to_owned).collect()
        };
        self.schemas.get_or_init(look).clone()
    }

    fn current_schema(&self) -> Option<String> {
        let lookup = Lookup { seen: &self.seen, path: &self.settings.path };
        lookup.current().ok().flatten().map(str::to_owned)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Runs queries for statements that write.
pub(super) struct Finder {
    seen: Seen,
    queries: Arc<QueryEngine>,
    pub(super) client: Client,
    patience: Patience,
}

impl Finder {
    fn start(
        &self,
        plan: &QueryPlan,
        bound: &Bound,
        want: Want,
        snapshot: Snapshot,
    ) -> Result<Rows> {
        plan.check_tables(&self.seen)?;
        if !matches!(want, Want::Plan) {
            plan.check_rows_are_there()?;
        }
        let parameters = parameters(&plan.parameters, bound)?;
        let statement = Statement::new(snapshot, self.client.clone(), now_micros());
        Ok(self.queries.run(&plan.query, want, statement, &parameters)?)
    }

    /// Expressions of rows, for one execution.
    pub(super) fn row_values(&self, computed: &Computed, bound: &Bound) -> Result<Arc<RowValues>> {
        let parameters = parameters(&computed.parameters, bound)?;
        Ok(computed.expressions.bind(&self.queries, &self.client, now_micros(), &parameters)?)
    }

    /// Hands each row that the query finds in the snapshot to `use_row`. Blocks the thread, which
    /// others are told of.
    pub(super) fn for_each(
        &self,
        plan: &QueryPlan,
        bound: &Bound,
        snapshot: Snapshot,
        mut use_row: impl FnMut(Row) -> Result<()>,
    ) -> Result<()> {
        self.for_each_until(plan, bound, snapshot, |row| use_row(row).map(ControlFlow::Continue))
    }

    /// As [`for_each`](Self::for_each), until `use_row` has enough.
    pub(super) fn for_each_until(
        &self,
        plan: &QueryPlan,
        bound: &Bound,
        snapshot: Snapshot,
        mut use_row: impl FnMut(Row) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.for_each_plain(plan, bound, snapshot, |mut row| {
            in_style(&mut row, plan.query.columns())?;
            use_row(row)
        })
    }

    /// All rows, as an answer has them.
    pub(super) fn all(
        &self,
        plan: &QueryPlan,
        bound: &Bound,
        snapshot: Snapshot,
    ) -> Result<Vec<Row>> {
        let mut all = Vec::new();
        self.for_each_plain(plan, bound, snapshot, |row| {
            all.push(row);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    fn for_each_plain(
        &self,
        plan: &QueryPlan,
        bound: &Bound,
        snapshot: Snapshot,
        mut use_row: impl FnMut(Row) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut rows = self.start(plan, bound, Want::Rows, snapshot)?;
        tokio::task::block_in_place(|| {
            while Handle::current().block_on(self.patience.wait(&mut rows))? {
                while let Some(row) = rows.next_here()? {
                    if use_row(row)?.is_break() {
                        return Ok(());
                    }
                }
                self.patience.check()?;
            }
            Ok(())
        })
    }
}

/// Arrays are text of the default style; what keeps them has them as they are shown.
fn in_style(row: &mut Row, columns: &[QueryColumn]) -> Result<()> {
    for (value, column) in row.iter_mut().zip(columns) {
        let is_text = matches!(column.column_type, ColumnType::Array(_));
        if is_text && !value.is_null() {
            let mut text = String::new();
            values::write_text_of(value, column.column_type, &mut text)?;
            *value = Value::from(text);
        }
    }
    Ok(())
}

fn parameters<'b>(types: &[DataType], bound: &'b Bound) -> Result<Vec<Value<'b>>> {
    types.iter().enumerate().map(|(index, target)| bound.value(index, *target)).collect()
}
