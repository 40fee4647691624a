//! The extended protocol: statements that are planned once, parameters, portals.

use std::sync::Arc;

use bytes::Bytes;
use onrush::Table;
use onrush_query::ColumnType;
use onrush_query::style::Style;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete};
use tokio::io::{AsyncRead, AsyncWrite};

use super::memory::{Part, parsed_bytes};
use super::message::{self, Bind, Execute, Named, Parse};
use super::portal::{Portal, State};
use super::run::Manner;
use super::{Connection, Stop, pipeline};
use crate::error::{Result, SqlError, state};
use crate::execute::Backend;
use crate::execute::plan::{CursorPlan, Plan, RowsPlan, SessionPlan, WritePlan};
use crate::session_objects::{SessionObjects, ShownStatement};
use crate::sql::{self, Bound, OutputColumn, Parameters, Parsed, PreparePlan};
use crate::values::Formats;
use crate::{catalog, clients};

/// Most prepared statements of one client.
const STATEMENTS_MAX: usize = 10_000;

/// A statement that was planned, to be run with other parameters again and again.
pub(super) struct Prepared {
    /// What it was made of; none for a text without a statement.
    pub(super) parsed: Option<Parsed>,
    /// Its text, as others may see it.
    pub(super) text: Arc<str>,
    /// What all of its text takes, about.
    pub(super) parsed_bytes: usize,
    pub(super) plan: Plan,
    /// The schemas where its tables were looked for.
    path: Arc<[String]>,
    /// How its constants were read.
    pub(super) style: Arc<Style>,
    /// The domains that it casts to.
    domains: Vec<Table>,
    /// The type of each parameter.
    pub(super) oids: Arc<[u32]>,
}

/// Shorter texts are read without being asked for.
const TEXT_BYTES_UNASKED: usize = 16 << 10;

/// The parameters of the portal without a name are counted, not asked for, up to here.
const BIND_BYTES_UNASKED: usize = 4 << 10;

/// What a plan takes, beside what its text became.
const PLAN_BYTES: usize = 12 << 10;

impl Prepared {
    /// What it takes in memory, about.
    pub(super) fn bytes(&self) -> usize {
        PLAN_BYTES + self.parsed_bytes
    }

    /// The columns of the answer as clients are told of them. Where in a row each comes from may change.
    pub(super) fn described(&self) -> Option<Vec<(String, ColumnType)>> {
        let column = |column: &OutputColumn| (column.name.clone(), column.column_type);
        Some(self.plan.columns()?.iter().map(column).collect())
    }

    /// Whether its names may mean something else now.
    pub(super) fn is_stale(&self, backend: &Backend) -> bool {
        let path = &backend.settings.path;
        let is_same = Arc::ptr_eq(path, &self.path) || *path == self.path;
        let is_other = |domain: &Table| !backend.seen.is_current(domain);
        !is_same || self.plan.is_stale(&backend.seen) || self.domains.iter().any(is_other)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(super) fn parse(&mut self, body: &[u8]) -> std::result::Result<(), Stop> {
        let Parse { name, text, oids } = Parse::read(body)?;
        self.check_new(name)?;
        self.backend.look_if_old();
        let prepared = match self.known_plan(text, &oids) {
            Some(known) => known,
            None => {
                self.ask_for_text(text)?;
                let prepared = self.prepare_new(text, oids);
                self.wire.memory.note(Part::Text, 0);
                prepared?
            }
        };
        let shown = (!name.is_empty()).then(|| ShownStatement::new(text, &prepared.oids, false));
        self.keep_statement(name.to_owned(), prepared)?;
        if let Some(shown) = shown {
            self.objects().statements.lock().insert(name.to_owned(), shown);
        }
        self.wire.put(&ParseComplete::new());
        Ok(())
    }

    /// Space for what a text becomes when it is read.
    pub(super) fn ask_for_text(&mut self, text: &str) -> Result<()> {
        match text.len() > TEXT_BYTES_UNASKED {
            true => self.wire.memory.ask(Part::Text, parsed_bytes(text)),
            false => Ok(()),
        }
    }

    /// The plan of a statement that was prepared before, if its names mean what they meant then.
    fn known_plan(&self, text: &str, oids: &[u32]) -> Option<Arc<Prepared>> {
        // Names may mean a transaction's own tables in it, and in it only.
        if self.backend.seen.is_own() {
            return None;
        }
        let known = self.known.get(text, oids, self.backend.definitions_version())?;
        // Constants in it were read as the session's style said then.
        let is_same_style = *known.style == *self.backend.settings.style;
        (is_same_style && !known.is_stale(&self.backend)).then(|| Arc::clone(known))
    }

    fn prepare_new(
        &mut self,
        text: &str,
        oids: Vec<u32>,
    ) -> std::result::Result<Arc<Prepared>, Stop> {
        // Before the names are looked up: a table that is created meanwhile makes the plan an old one.
        let version = self.backend.definitions_version();
        let mut statements = sql::read(text)?.into_iter();
        let parsed = statements.next();
        if statements.next().is_some() {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(SqlError::new(state::SYNTAX_ERROR, message).into());
        }
        let shown = (clients::shown(text), parsed_bytes(text));
        let prepared = self.prepare(parsed, shown, Parameters::declared(oids.clone()));
        let prepared = Arc::new(prepared.map_err(|error| error.placed_in(text))?);
        if prepared.plan.is_of_rows() && !self.backend.seen.is_own() {
            self.known.insert(text, oids, version, &prepared);
            self.note_known();
        }
        Ok(prepared)
    }

    /// Whether there can be another prepared statement, of this name.
    fn check_new(&self, name: &str) -> Result<()> {
        if !name.is_empty() && self.statements.contains_key(name) {
            let message = format!("prepared statement {name:?} already exists");
            return Err(SqlError::new(state::DUPLICATE_STATEMENT, message));
        }
        if self.statements.len() >= STATEMENTS_MAX {
            let message = format!("there are {STATEMENTS_MAX} prepared statements already");
            let hint = "Close those that are not needed any more, or DISCARD ALL.";
            return Err(SqlError::new(state::LIMIT_EXCEEDED, message).with_hint(hint));
        }
        Ok(())
    }

    /// Keeps a statement for the client, in the place of one of the same name.
    pub(super) fn keep_statement(&mut self, name: String, prepared: Arc<Prepared>) -> Result<()> {
        let more = prepared.bytes();
        self.wire.memory.ask(Part::Statements, self.statement_bytes + more)?;
        let before = self.statements.insert(name, prepared);
        self.statement_bytes += more;
        self.statement_bytes -= before.map_or(0, |before| before.bytes());
        self.wire.memory.note(Part::Statements, self.statement_bytes);
        Ok(())
    }

    /// What the client's prepared statements and cursors are shown as.
    pub(super) fn objects(&self) -> &SessionObjects {
        &self.backend.control.objects
    }

    fn drop_statement(&mut self, name: &str) {
        if let Some(dropped) = self.statements.remove(name) {
            self.statement_bytes -= dropped.bytes();
            self.objects().statements.lock().remove(name);
            self.wire.memory.note(Part::Statements, self.statement_bytes);
        }
    }

    /// PREPARE.
    pub(super) fn prepare_text(&mut self, plan: PreparePlan) -> Result<()> {
        self.check_new(&plan.name)?;
        let text = (clients::shown(&plan.text), parsed_bytes(&plan.text));
        let prepared = self.prepare(Some(plan.statement), text, Parameters::declared(plan.oids))?;
        // As the client has sent it, where that was kept whole.
        let sent = self.backend.presence.entry().activity().statement;
        let whole = if sent.len() < clients::STATEMENT_BYTES_MAX { &sent } else { &*plan.text };
        let shown = ShownStatement::new(whole, &prepared.oids, true);
        self.keep_statement(plan.name.clone(), Arc::new(prepared))?;
        self.objects().statements.lock().insert(plan.name, shown);
        self.complete("PREPARE".into());
        Ok(())
    }

    /// Plans a statement. `text` is what others may see of it, and what all of it takes.
    pub(super) fn prepare(
        &self,
        parsed: Option<Parsed>,
        text: (Arc<str>, usize),
        mut parameters: Parameters,
    ) -> Result<Prepared> {
        parameters.find_enums(|oid| catalog::own_type_with(&self.backend.seen, oid));
        let plan = match &parsed {
            Some(parsed) => parsed.plan(self.backend.planner(), &mut parameters)?,
            None => SessionPlan::Nothing("").into(),
        };
        let path = Arc::clone(&self.backend.settings.path);
        let (text, parsed_bytes) = text;
        let domains = parameters.take_domains();
        let oids = parameters.into_oids()?.into();
        let style = Arc::clone(&self.backend.settings.style);
        Ok(Prepared { parsed, text, parsed_bytes, plan, path, style, domains, oids })
    }

    pub(super) fn bind(&mut self, body: Bytes) -> std::result::Result<(), Stop> {
        let bind = Bind::read(&body)?;
        let statement = Arc::clone(self.statement(bind.statement)?);
        if bind.values.len() != statement.oids.len() {
            let (given, needed) = (bind.values.len(), statement.oids.len());
            let message = format!("{given} parameters are given, the statement has {needed}");
            return Err(SqlError::new(state::PROTOCOL_VIOLATION, message).into());
        }
        let columns = self.columns(&statement).map_or(0, |columns| columns.len());
        let (values, oids) = (bind.values, Arc::clone(&statement.oids));
        let encoding = self.backend.settings.style.encoding;
        let bound = Bound { message: body.clone(), values, formats: bind.formats, oids, encoding };
        let formats = message::for_each(bind.result_formats, columns)?;
        let portal = Portal { statement, bound, formats, state: State::New };
        if !bind.portal.is_empty() || body.len() > BIND_BYTES_UNASKED {
            self.wire.memory.ask(Part::Portals, self.portals.bytes() + portal.bytes())?;
        }
        self.portals.insert(bind.portal, portal)?;
        self.wire.put(&BindComplete::new());
        Ok(())
    }

    pub(super) fn statement(&self, name: &str) -> Result<&Arc<Prepared>> {
        self.statements.get(name).ok_or_else(|| {
            let message = format!("prepared statement {name:?} does not exist");
            SqlError::new(state::UNKNOWN_STATEMENT, message)
        })
    }

    pub(super) fn describe(&mut self, body: &[u8]) -> std::result::Result<(), Stop> {
        let (columns, formats) = match Named::read(body)? {
            Named::Statement(name) => {
                let statement = Arc::clone(self.statement(name)?);
                self.wire.put(&ParameterDescription::new(statement.oids.to_vec()));
                (self.columns(&statement), Formats::TEXT)
            }
            Named::Portal(name) => match self.cursors.columns(name) {
                Some(columns) => (Some(columns), Formats::TEXT),
                None => {
                    let portal = self.portals.get(name)?;
                    (self.columns(&portal.statement), portal.formats.clone())
                }
            },
        };
        match columns {
            Some(columns) => self.row_description(&columns, &formats)?,
            None => self.wire.put(&NoData::new()),
        }
        Ok(())
    }

    /// The columns of the answer; those of EXECUTE and FETCH are of what they name.
    fn columns(&self, prepared: &Prepared) -> Option<Arc<[OutputColumn]>> {
        match &prepared.plan {
            Plan::Session(SessionPlan::Execute(plan)) => {
                self.statements.get(&plan.name)?.plan.columns()
            }
            Plan::Cursor(CursorPlan::Fetch(plan)) if plan.is_move => None,
            Plan::Cursor(CursorPlan::Fetch(plan)) => self.cursors.columns(&plan.name),
            plan => plan.columns(),
        }
    }

    /// DISCARD ALL, DEALLOCATE ALL.
    pub(super) fn forget_statements(&mut self) {
        self.statements.clear();
        self.objects().statements.lock().clear();
        self.statement_bytes = 0;
        self.wire.memory.note(Part::Statements, 0);
        self.known.clear();
        self.shapes.clear();
        self.wire.memory.note(Part::Known, 0);
    }

    /// DEALLOCATE, which unlike Close wants the statement to be there.
    pub(super) fn deallocate(&mut self, name: &str) -> Result<()> {
        self.statement(name)?;
        self.drop_statement(name);
        self.complete("DEALLOCATE".into());
        Ok(())
    }

    pub(super) fn close(&mut self, body: &[u8]) -> std::result::Result<(), Stop> {
        match Named::read(body)? {
            Named::Statement(name) => self.drop_statement(name),
            Named::Portal(name) => drop(self.portals.take(name)),
        }
        self.wire.put(&CloseComplete::new());
        Ok(())
    }

    /// Runs a portal that inserts rows, if it is one. Nothing is waited for, and many such may have come
    /// at once. False, and nothing has been done, if something else is to be run.
    pub(super) fn run_insert(&mut self, body: &[u8]) -> std::result::Result<bool, Stop> {
        let Execute { portal: name, .. } = Execute::read(body)?;
        let is_last = self.wire.has_sync_next();
        let portal =
            self.portals.get_mut(name).map_err(|error| self.backend.after_failure(error))?;
        let statement = &portal.statement;
        let insert = match (&statement.plan, &portal.state) {
            (Plan::Rows(RowsPlan::Write(WritePlan::Insert(insert))), State::New)
                if insert.returning.is_none() =>
            {
                insert
            }
            _ => return Ok(false),
        };
        // Whoever has to wait does so where it can be planned anew.
        if statement.is_stale(&self.backend) || insert.table.is_being_defined() {
            return Ok(false);
        }
        self.backend.begin_statement(&statement.text);
        pipeline::enter(&mut self.backend, statement, is_last)?;
        match self.backend.execute_insert(insert, &portal.bound) {
            Ok(tag) => {
                portal.state = State::Done;
                self.complete(tag);
                Ok(true)
            }
            // Altered at this very moment: it is planned anew.
            Err(error) if error.is_table_changed() && !self.backend.is_in_transaction() => {
                Ok(false)
            }
            Err(error) => {
                self.portals.take(name)?;
                Err(error.into())
            }
        }
    }

    pub(super) async fn run_portal(&mut self, body: &[u8]) -> std::result::Result<(), Stop> {
        let Execute { portal: name, rows_max } = Execute::read(body)?;
        // Taken out while it runs: a portal whose statement fails is gone.
        let mut portal =
            self.portals.take(name).map_err(|error| self.backend.after_failure(error))?;
        self.backend.begin_statement(&portal.statement.text);
        if matches!(portal.state, State::New) {
            pipeline::enter(&mut self.backend, &portal.statement, self.wire.has_sync_next())?;
        }
        let state = match std::mem::replace(&mut portal.state, State::Done) {
            State::New => {
                let Portal { statement, bound, formats, .. } = &mut portal;
                let manner = Manner { formats, rows_max, is_simple: false };
                self.run(statement, bound, &manner).await?
            }
            State::Open(rows) => self.go_on(rows, &portal.formats, rows_max).await?,
            State::Done => {
                let message = format!("portal {name:?} has been run already");
                return Err(SqlError::new(state::NOT_IN_PREREQUISITE_STATE, message).into());
            }
        };
        portal.state = state;
        self.portals.insert(name, portal)?;
        Ok(())
    }
}
