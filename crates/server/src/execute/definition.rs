//! CREATE, ALTER, DROP and TRUNCATE TABLE, and COMMENT: changes of a transaction, which come and go with it. Outside
//! of one each is a transaction of its own.
//!
//! Invariants
//! 1. What is granted on a table and said of it is written by the transaction that defines the table.
//! 2. Who meets a table or a name that another transaction defines waits for that one's end.

use std::sync::Arc;

use onrush::{Database, Error, ForeignKey, Table, TableChange, TableDefinition, Transaction};
use onrush_types::ReferencedKey;

use super::Backend;
use super::table_changes::{self, Changed};
use super::temporary::OnCommit;
use super::transaction::Work;
use super::{comment, foreign_key, index, sequence, view};
use crate::error::{Result, SqlError, state};
use crate::rewrite::{Form, Rewrite};
use crate::seen::Seen;
use crate::sql::{AlterPlan, Change, ColumnChange, KeyChange, NewTable, PlannedChange};
use crate::{access, column_change, comments, domains, schemas, sequences, views};

/// What a statement changes beside tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Touched {
    /// Comments, schemas, roles or grants.
    pub(super) kept: bool,
    /// Roles or grants.
    pub(super) roles: bool,
}

impl Touched {
    pub(super) const NOTHING: Touched = Touched { kept: false, roles: false };
    pub(super) const KEPT: Touched = Touched { kept: true, roles: false };
    pub(super) const ROLES: Touched = Touched { kept: true, roles: true };
}

impl Backend {
    /// Does `work` in the open transaction, or in one of its own, and lets the client see it. It may be done
    /// again when another transaction came first.
    pub(super) fn define<T>(
        &mut self,
        touched: Touched,
        mut work: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        tokio::task::block_in_place(|| {
            let done = self.in_transaction(|transaction| {
                let done = work(transaction)?;
                // What it has waited for before its first row is seen.
                transaction.refresh();
                Ok(done)
            });
            if done.is_err() && matches!(self.work, Work::Idle(_)) {
                self.sequences.end_transaction();
            }
            let done = done?;
            self.touched.kept |= touched.kept;
            self.touched.roles |= touched.roles;
            self.has_defined = true;
            if matches!(self.work, Work::Idle(_)) {
                self.end_definitions()?;
            } else {
                self.look_again()?;
            }
            Ok(done)
        })
    }

    /// A transaction that may have defined something has committed: everyone's next statement is allowed
    /// what it says, and it is durable before it is answered, whatever the session's commits are.
    pub(super) fn end_definitions(&mut self) -> Result<()> {
        let (touched, has_defined) = (self.touched, self.has_defined);
        self.forget_definitions();
        if let (true, Work::Idle(session)) = (has_defined, &mut self.work) {
            self.newest = Some(session.newest_token());
            if touched.roles {
                self.access.read_again(&mut **session)?;
            }
        }
        Ok(())
    }

    /// The transaction is over: the client sees what everyone sees.
    pub(super) fn forget_definitions(&mut self) {
        self.touched = Touched::NOTHING;
        self.has_defined = false;
        self.seen = Seen::committed(&self.database);
        self.sees_roles(None);
        self.sequences.end_transaction();
    }

    /// What the client sees if it, or somebody else, has defined something.
    pub(super) fn look_again(&mut self) -> Result<()> {
        if !self.has_defined {
            return Ok(());
        }
        let (database, has_kept) = (&self.database, self.touched.kept);
        if let Work::Open(open) = &mut self.work {
            let look =
                |transaction: &mut Transaction<'_>| Seen::within(database, transaction, has_kept);
            let seen = open
                .with_dependent_mut(|_, transaction| transaction.as_mut().map(look).transpose())?;
            self.seen = seen.unwrap_or_else(|| Seen::committed(database));
        }
        if self.touched.roles {
            let roles = self.seen.roles()?;
            self.sees_roles(Some(Arc::new(roles)));
        }
        Ok(())
    }

    pub(super) fn create_table(&mut self, table: &NewTable) -> Result<()> {
        let name = table.definition.name();
        let database = self.database.clone();
        let touched = if table.comments.is_empty() { Touched::NOTHING } else { Touched::KEPT };
        let made = self.define_own(touched, |transaction| {
            let made = new_table(transaction, &table.definition, table.if_not_exists)?;
            if let Some(made) = &made {
                for (column, text) in &table.comments {
                    let column = made.definition().shown_column_index(column)?;
                    let place = comments::place(made, Some(column));
                    comments::put(&database, transaction, place, Some(text))?;
                }
                for index in &table.indexes {
                    index::add_index(transaction, name, index)?;
                }
                for (column, options) in &table.sequences {
                    sequence::add_to_column(transaction, name, column, options)?;
                }
                for foreign_key in &table.foreign_keys {
                    foreign_key::add_foreign_key(transaction, name, foreign_key)?;
                }
            }
            Ok(made)
        })?;
        self.note_made(made.map(|table| table.id()), name, table.on_commit);
        Ok(())
    }

    /// A table was made; or, with IF NOT EXISTS, its name was taken.
    pub(super) fn note_made(
        &mut self,
        number: Option<u32>,
        name: &str,
        on_commit: Option<OnCommit>,
    ) {
        match number {
            Some(number) => self.temporaries.note(number, name, on_commit),
            None => {
                let name = schemas::own_name(name);
                let message = format!("relation {name:?} already exists, skipping");
                self.notices.push(SqlError::new(state::DUPLICATE_TABLE, message).notice());
            }
        }
    }

    pub(super) fn alter_table(&mut self, plan: &AlterPlan) -> Result<()> {
        let columns = column_changes(plan);
        let is_rewritten = columns.iter().any(|(_, change)| column_change::rewrites(change));
        match &plan.key {
            Some(KeyChange::Add(key)) => self.rewrite_table(plan, &Form::Key(key))?,
            Some(KeyChange::Drop { .. }) => self.rewrite_table(plan, &Form::NoKey)?,
            None if is_rewritten => self.rewrite_table(plan, &Form::Columns(&columns))?,
            None if self.adds_generated(plan)? => {}
            None => self.alter_definition(plan)?,
        }
        Ok(())
    }

    /// Copies the rows: online, unless the client's transaction may have changed the table.
    pub(super) fn rewrite_table(&mut self, plan: &AlterPlan, form: &Form<'_>) -> Result<()> {
        let (database, queries) = (self.database.clone(), self.queries.clone());
        let patience = self.patience.clone();
        patience.end_with_client();
        let is_alone = matches!(self.work, Work::Idle(_));
        // Seen by others until the commit is over.
        let progress = self.clients.rewrites.begin(self.client.number, &plan.table);
        let check = || patience.check();
        let (queries, progress, check) = (&*queries, &progress, &check);
        let client = &self.finder().client.clone();
        let rewrite = Rewrite { database: &database, queries, client, progress, check };
        let notices = self.define(Touched::ROLES, |transaction| {
            check_types_may_change(transaction, &plan.table, form)?;
            let mut notices = Vec::new();
            free_key(transaction, plan, &mut notices)?;
            let rewritten = match is_alone && !matches!(form, Form::NoKey) {
                true => rewrite.online(transaction, &plan.table, form),
                false => rewrite.locked(transaction, &plan.table, form),
            };
            match rewritten {
                Err(error) if plan.if_exists && error.is_unknown_table(&plan.table) => {
                    notices.push(skipped("relation", &plan.table));
                }
                other => other?,
            }
            Ok(notices)
        })?;
        self.notices.extend(notices);
        Ok(())
    }

    /// Changes what the table is, and no row.
    fn alter_definition(&mut self, plan: &AlterPlan) -> Result<()> {
        let (database, queries) = (self.database.clone(), self.queries.clone());
        let notices = self.define(Touched::KEPT, |transaction| {
            let table = match transaction.lock_table(&plan.table) {
                Err(Error::UnknownTable { name }) if plan.if_exists => {
                    return Ok(vec![skipped("relation", &name)]);
                }
                other => other?,
            };
            let Changed { changes, gone, renamed, added, foreign, mut notices } =
                table_changes::changed(&queries, &table, &plan.changes)?;
            free_keys(transaction, &table, &plan.changes, &mut notices)?;
            free_views(&database, transaction, &table, &plan.changes, &mut notices)?;
            forget_columns(&database, transaction, &table, &changes)?;
            comment::follow_constraints(&database, transaction, &table, &plan.changes)?;
            for index in &gone {
                transaction.drop_index(index)?;
            }
            for (index, to) in &renamed {
                transaction.rename_index(index, to)?;
            }
            changes.iter().try_for_each(|change| check_key_name(transaction, &table, change))?;
            let changes = domains::settled_changes(transaction, table.definition(), changes)?;
            let table = transaction.alter_table(&plan.table, &changes)?;
            index::follow_schema(transaction, &table)?;
            for index in &added {
                index::add_index(transaction, table.name(), index)?;
            }
            for change in &foreign {
                change.make(transaction, table.name())?;
            }
            Ok(notices)
        })?;
        self.notices.extend(notices);
        Ok(())
    }

    pub(super) fn drop_tables(
        &mut self,
        names: &[String],
        if_exists: bool,
        cascades: bool,
    ) -> Result<()> {
        let database = self.database.clone();
        let notices = self.define(Touched::ROLES, |transaction| {
            let mut notices = Vec::new();
            for name in names {
                if let Ok(known) = transaction.table(name) {
                    check_is_table(&known)?;
                }
            }
            foreign_key::drop_references(transaction, names, cascades, &mut notices)?;
            view::drop_dependents(&database, transaction, names, cascades, &mut notices)?;
            for name in names {
                match drop_table(&database, transaction, name) {
                    Err(Error::UnknownTable { name }) if if_exists => {
                        notices.push(skipped("table", &name));
                    }
                    Err(Error::UnknownTable { name }) => {
                        let message = format!("table \"{name}\" does not exist");
                        return Err(SqlError::new(state::UNDEFINED_TABLE, message));
                    }
                    other => other?,
                }
            }
            Ok(notices)
        })?;
        self.notices.extend(notices);
        Ok(())
    }
}

/// Creates a table. None if its name is taken and that is no error.
pub(super) fn new_table(
    transaction: &mut Transaction<'_>,
    definition: &TableDefinition,
    if_not_exists: bool,
) -> Result<Option<Table>> {
    let definition = domains::settled(transaction, definition.clone())?;
    match transaction.create_table(definition) {
        Err(Error::TableExists { .. }) if if_not_exists => Ok(None),
        other => Ok(Some(other?)),
    }
}

/// Refuses a sequence or a view where a table is meant.
fn check_is_table(table: &Table) -> Result<()> {
    if views::is_plain_table(table.definition()) {
        return Ok(());
    }
    let message = format!("{:?} is not a table", schemas::own_name(table.name()));
    Err(SqlError::new(state::WRONG_OBJECT_TYPE, message).with_hint(view::way_to_drop(table)))
}

/// Drops a table with what was granted on it and said of it, and the sequences that it owns.
pub(crate) fn drop_table(
    database: &Database,
    transaction: &mut Transaction<'_>,
    name: &str,
) -> onrush::Result<()> {
    let table = transaction.lock_table(name)?;
    transaction.drop_table(name)?;
    sequences::drop_owned(database, transaction, table.id(), None)?;
    access::forget_table(database, transaction, table.id())?;
    comments::forget_table(database, transaction, &table)
}

/// Refuses other types for columns that views use.
fn check_types_may_change(
    transaction: &Transaction<'_>,
    table: &str,
    form: &Form<'_>,
) -> Result<()> {
    let (Form::Columns(changes), Ok(table)) = (form, transaction.table(table)) else {
        return Ok(());
    };
    for (name, change) in *changes {
        if let ColumnChange::Type { .. } = change
            && let Ok(column) = table.definition().shown_column_index(name)
        {
            view::check_type_may_change(transaction, &table, column)?;
        }
    }
    Ok(())
}

/// Changes of columns that are there.
fn column_changes(plan: &AlterPlan) -> Vec<(&str, &ColumnChange)> {
    let mut columns = Vec::new();
    for PlannedChange { change, .. } in &plan.changes {
        if let Change::Column(name, change) = change {
            columns.push((name.as_str(), change));
        }
    }
    columns
}

pub(super) fn skipped(kind: &str, name: &str) -> SqlError {
    let message = format!("{kind} \"{name}\" does not exist, skipping");
    SqlError::new(state::UNDEFINED_TABLE, message).notice()
}

/// Foreign keys to what is dropped of a table go, too, or keep it.
fn free_keys(
    transaction: &mut Transaction<'_>,
    table: &Table,
    planned: &[PlannedChange],
    notices: &mut Vec<SqlError>,
) -> Result<()> {
    let definition = table.definition();
    let own = schemas::own_name(table.name());
    for PlannedChange { change, cascades, .. } in planned {
        match change {
            Change::Other(TableChange::DropColumn { name }) => {
                let Ok(column) = definition.shown_column_index(name) else { continue };
                let number = definition.column_number(column) as u16;
                let what = format!("column {name} of table {own}");
                let is_meant = |key: &ForeignKey| {
                    let is_own = key.referenced_table == table.id()
                        && definition.foreign_keys().contains(key);
                    key.referenced_columns.contains(&number)
                        && !(is_own && key.columns.contains(&number))
                };
                let how = (what.as_str(), *cascades);
                foreign_key::drop_references_to_key(transaction, table, how, is_meant, notices)?;
            }
            Change::Other(TableChange::DropCheck { name }) => {
                let Some(index) = index::constraint_named(table, name) else { continue };
                let what = format!("constraint {name} on table {own}");
                let is_meant = |key: &ForeignKey| match key.referenced_key(definition) {
                    Some(ReferencedKey::Unique(referenced)) => referenced.name == index,
                    _ => false,
                };
                let how = (what.as_str(), *cascades);
                foreign_key::drop_references_to_key(transaction, table, how, is_meant, notices)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Foreign keys to a primary key that is dropped go, too, or keep it.
fn free_key(
    transaction: &mut Transaction<'_>,
    plan: &AlterPlan,
    notices: &mut Vec<SqlError>,
) -> Result<()> {
    let Some(KeyChange::Drop { name, cascades }) = &plan.key else { return Ok(()) };
    let table = transaction.table(&plan.table)?;
    let what = format!("constraint {name} on table {}", schemas::own_name(table.name()));
    let is_meant = |key: &ForeignKey| {
        matches!(key.referenced_key(table.definition()), Some(ReferencedKey::Primary))
    };
    let how = (what.as_str(), *cascades);
    foreign_key::drop_references_to_key(transaction, &table, how, is_meant, notices)
}

/// Refuses a name for the primary key that another relation has.
fn check_key_name(
    transaction: &Transaction<'_>,
    table: &Table,
    change: &TableChange,
) -> Result<()> {
    let TableChange::RenameKey { to } = change else { return Ok(()) };
    let name = schemas::joined(schemas::parts(table.name()).0, to);
    match transaction.table(&name) {
        Err(Error::UnknownTable { .. }) => Ok(()),
        _ => Err(SqlError::new(state::DUPLICATE_TABLE, format!("relation {to:?} already exists"))),
    }
}

/// Views of columns that are dropped go, too, or keep them.
fn free_views(
    database: &Database,
    transaction: &mut Transaction<'_>,
    table: &Table,
    planned: &[PlannedChange],
    notices: &mut Vec<SqlError>,
) -> Result<()> {
    for PlannedChange { change, cascades, .. } in planned {
        if let Change::Other(TableChange::DropColumn { name }) = change
            && let Ok(column) = table.definition().shown_column_index(name)
        {
            let place = (table, column);
            view::drop_dependents_of_column(database, transaction, place, *cascades, notices)?;
        }
    }
    Ok(())
}

/// Comments go with the columns that are dropped.
fn forget_columns(
    database: &Database,
    transaction: &mut Transaction<'_>,
    table: &Table,
    changes: &[TableChange],
) -> Result<()> {
    for change in changes {
        if let TableChange::DropColumn { name } = change
            && let Ok(column) = table.definition().column_index(name)
        {
            let place = comments::place(table, Some(column));
            comments::forget(database, transaction, |other| other == place)?;
            let number = u16::try_from(table.definition().column_number(column)).ok();
            sequences::drop_owned(database, transaction, table.id(), number)?;
        }
    }
    Ok(())
}
