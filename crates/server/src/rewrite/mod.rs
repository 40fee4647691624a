//! ALTER TABLE ... ADD PRIMARY KEY and ALTER COLUMN: the key orders the rows, and what a column is tells how they are
//! written, so the table is copied into another one, which takes its place. It is one transaction: a crash leaves the
//! one or the other, and nobody else sees both.
//!
//! | phase | what it does | who waits |
//! |---|---|---|
//! | copying | rows are read from a snapshot and written to the copy | other definitions of the table |
//! | catching up | what was changed since is done to the copy, again and again while it becomes less | the same |
//! | waiting for the lock | those who are in the middle of a change end it | writers too |
//! | switching | the last changes, and the commit | writers too |
//!
//! In a transaction block the table is locked first, and there is the first and the last phase alone.
//!
//! Invariants
//! 1. What was granted on the table and said of it goes with its rows.
//! 2. The snapshot behind one phase's reading is the one that the next phase's changes count from, and the last one
//!    is taken under the lock: no change is lost or done twice.

mod copy;
mod progress;

use onrush::{
    ColumnDefinition, Database, DefaultValue, RowExpression, Table, TableBuilder, TableDefinition,
    Transaction,
};
use onrush_query::{Client, QueryEngine};

use crate::error::{Result, SqlError, state};
use crate::execute::add_index;
use crate::sql::{ColumnChange, IndexPlan, NewCheck, NewGenerated, NewKey};
use crate::{access, column_change, comments, domains, schemas, sequences, views};
use copy::Copy;
pub(crate) use progress::{Phase, Progress, RewriteEntry, Rewrites};

/// So few changes are left for the time under the lock.
const LAST_ROUND_CHANGES: u64 = 2_000;

/// What becomes of a table.
pub(crate) enum Form<'f> {
    /// It was made without a key, and gets this one.
    Key(&'f NewKey),
    /// It loses its key, and nothing tells any more which row of the copy is which: only a table that is
    /// [locked](Rewrite::locked) can.
    NoKey,
    /// These columns become others.
    Columns(&'f [(&'f str, &'f ColumnChange)]),
    /// It gets a column that is computed of others.
    Generated(&'f ColumnDefinition, &'f NewGenerated),
}

/// What it takes to copy a table into one of another form.
pub(crate) struct Rewrite<'r> {
    pub(crate) database: &'r Database,
    pub(crate) queries: &'r QueryEngine,
    /// Who asks for it.
    pub(crate) client: &'r Client,
    /// Where others see how far it is.
    pub(crate) progress: &'r Progress,
    /// Called now and then; may refuse to go on.
    pub(crate) check: &'r dyn Fn() -> Result<()>,
}

impl Rewrite<'_> {
    /// Gives the table this form while others go on writing to it. The transaction has done nothing else.
    ///
    /// # Errors
    /// Two rows with one key, a NULL in it, a value that does not fit.
    pub(crate) fn online(
        &self,
        transaction: &mut Transaction<'_>,
        name: &str,
        form: &Form<'_>,
    ) -> Result<()> {
        let table = transaction.reserve_table(name)?;
        let definition = self.definition(&table, form)?;
        let definition = domains::settled(transaction, definition)?;
        let substitute = transaction.create_substitute(definition)?;
        let mut copy = Copy::new(self, (&table, &substitute), form)?;
        self.progress.enter(Phase::Copying);
        transaction.refresh();
        let mut seen = transaction.committed_snapshot();
        copy.fill(transaction, &seen)?;
        self.progress.enter(Phase::CatchingUp);
        let mut before = u64::MAX;
        loop {
            transaction.refresh();
            let now = transaction.committed_snapshot();
            let changes = copy.catch_up(transaction, (&seen, &now))?;
            seen = now;
            if changes <= LAST_ROUND_CHANGES || changes >= before {
                break;
            }
            before = changes;
        }
        self.progress.enter(Phase::Waiting);
        transaction.lock_table(name)?;
        self.progress.enter(Phase::Switching);
        // What the transaction reads of grants and comments is read from here on.
        transaction.refresh();
        let last = transaction.committed_snapshot();
        copy.catch_up(transaction, (&seen, &last))?;
        copy.go_on_with_numbers(transaction)?;
        self.replace(transaction, (&table, &substitute))
    }

    /// Gives the table this form while nobody else writes to it, whatever the transaction has done to it before.
    ///
    /// # Errors
    /// As [`online`](Self::online).
    pub(crate) fn locked(
        &self,
        transaction: &mut Transaction<'_>,
        name: &str,
        form: &Form<'_>,
    ) -> Result<()> {
        self.progress.enter(Phase::Waiting);
        let table = transaction.lock_table(name)?;
        let definition = self.definition(&table, form)?;
        let definition = domains::settled(transaction, definition)?;
        let substitute = transaction.create_substitute(definition)?;
        self.progress.enter(Phase::Copying);
        let newest = transaction.newest_snapshot();
        let mut copy = Copy::new(self, (&table, &substitute), form)?;
        copy.fill(transaction, &newest)?;
        copy.go_on_with_numbers(transaction)?;
        self.progress.enter(Phase::Switching);
        self.replace(transaction, (&table, &substitute))
    }

    fn replace(
        &self,
        transaction: &mut Transaction<'_>,
        (table, substitute): (&Table, &Table),
    ) -> Result<()> {
        transaction.replace_table(table, substitute)?;
        sequences::move_owned(transaction, (table, substitute))?;
        views::move_table(transaction, (table, substitute))?;
        access::move_table(self.database, transaction, (table, substitute))?;
        // With the indexes that were made for it. Where an expression looks at a column that has another type now it
        // is read anew.
        let mut replaced = transaction.table(table.name())?;
        for index in table.definition().indexes() {
            if replaced.definition().index_position(&index.name).is_err() {
                let again = IndexPlan::again(index, table.definition())?;
                replaced = add_index(transaction, table.name(), &again)?;
            }
        }
        Ok(comments::move_table(self.database, transaction, (table, &replaced))?)
    }

    /// The definition of the table in its new form.
    fn definition(&self, table: &Table, form: &Form<'_>) -> Result<TableDefinition> {
        let old = table.definition();
        let mut columns = shown_columns(old);
        let builder = TableDefinition::builder(table.name());
        let old_key = old.primary_key().iter().map(|at| old.columns()[*at].name.clone());
        let mut builder = match (form, old.row_id()) {
            (Form::Key(_), None) => return Err(has_key_already(table.name())),
            (Form::Key(key), Some(_)) => {
                let keyed = builder.primary_key(&key.columns).key_included(&key.included);
                key.name.iter().fold(keyed, TableBuilder::key_name)
            }
            (Form::NoKey, _) => builder.keyed_by_row_id(),
            (Form::Columns(_) | Form::Generated(..), None) => {
                let included = old.key_included().iter();
                let included = included.filter_map(|number| old.column_with_number(*number));
                let included = included.map(|at| old.columns()[at].name.clone());
                let keyed = builder.primary_key(old_key).key_included(included);
                old.key_name().into_iter().fold(keyed, TableBuilder::key_name)
            }
            (Form::Columns(_) | Form::Generated(..), Some(_)) => builder.keyed_by_row_id(),
        };
        if let Form::Columns(changes) = form {
            check_types_stay(old, changes)?;
            change_columns(old, &mut columns, changes)?;
        }
        let mut generated = NewGenerated::again(old)?;
        for column in &mut columns {
            if matches!(column.default, DefaultValue::Generated(_)) {
                column.default = DefaultValue::None;
                column.is_always_generated = false;
            }
        }
        if let Form::Generated(column, new) = form {
            columns.push((*column).clone());
            generated.push((*new).clone());
        }
        builder = columns.into_iter().fold(builder, TableBuilder::column);
        if !old.is_logged() {
            builder = builder.unlogged();
        }
        let bare = builder.clone().build()?;
        let mut checks = Vec::new();
        for check in old.checks() {
            // All rows of the copy must meet it.
            if !check.is_validated {
                return Err(SqlError::not_supported(
                    format!(
                        "writing the rows of a table anew beside the constraint {}, which is NOT VALID,",
                        check.name
                    ),
                    "VALIDATE CONSTRAINT it, or drop it, before.",
                ));
            }
            checks.push(NewCheck::again(old, check)?.kept(self.queries, &bare, &checks)?);
        }
        let checked = checks.into_iter().fold(builder, TableBuilder::check_constraint).build()?;
        NewGenerated::applied(&generated, checked)
    }
}

/// What a column is computed of keeps its type, and so does what is computed.
fn check_types_stay(old: &TableDefinition, changes: &[(&str, &ColumnChange)]) -> Result<()> {
    for (name, change) in changes {
        let at = old.shown_column_index(name)?;
        let number = old.column_number(at);
        let uses = |(own, generated): (usize, &RowExpression)| {
            own == at || generated.columns.iter().any(|used| usize::from(*used) == number)
        };
        if matches!(change, ColumnChange::Type { .. }) && old.generated_columns().any(uses) {
            return Err(SqlError::new(
                state::FEATURE_NOT_SUPPORTED,
                "cannot alter type of a column used by a generated column",
            )
            .with_detail(format!("Column \"{name}\" is used by a generated column.")));
        }
    }
    Ok(())
}

fn change_columns(
    old: &TableDefinition,
    columns: &mut [ColumnDefinition],
    changes: &[(&str, &ColumnChange)],
) -> Result<()> {
    for (name, change) in changes {
        let at = old.shown_column_index(name)?;
        let name = &old.columns()[at].name;
        let is_key = old.primary_key().contains(&at);
        if let Some(column) = columns.iter_mut().find(|column| column.name == *name) {
            column_change::apply(column, change, (old.name(), is_key))?;
        }
    }
    Ok(())
}

pub(crate) fn has_key_already(table: &str) -> SqlError {
    let table = schemas::own_name(table);
    let message = format!("multiple primary keys for table {table:?} are not allowed");
    SqlError::new(state::INVALID_TABLE_DEFINITION, message)
}

/// The columns that SQL shows.
fn shown_columns(table: &TableDefinition) -> Vec<ColumnDefinition> {
    table.shown_columns().map(|at| table.columns()[at].clone()).collect()
}
