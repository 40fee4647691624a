//! CREATE, ALTER, DROP and TRUNCATE TABLE, and COMMENT. Outside of transactions each takes effect at once and
//! is durable when it is answered.

use onrush::{Error, Row, ScanOptions, Table, TableChange, TableDefinition};

use super::{Answer, Backend};
use crate::definitions::Note;
use crate::error::{Result, SqlError, state};
use crate::sql::{AlterPlan, Change, CommentPlan, PlannedChange};
use crate::{comments, definitions, rekey};

impl Backend {
    pub(super) fn create_table(
        &mut self,
        definition: &TableDefinition,
        if_not_exists: bool,
    ) -> Result<Answer> {
        rekey::check_not_copied(&self.database, definition.name())?;
        self.definitions.check_free(self.client.number, definition.name())?;
        let created = match self.is_in_transaction() {
            true => self.create_with_transaction(definition)?,
            false => {
                let create = || self.database.create_table(definition.clone());
                tokio::task::block_in_place(create).map(drop)
            }
        };
        match created {
            Err(Error::TableExists { name }) if if_not_exists => {
                let message = format!("table {name} is there already, skipping");
                self.notices.push(SqlError::new(state::DUPLICATE_TABLE, message).warning());
            }
            other => other?,
        }
        Ok(Answer::Done("CREATE TABLE".into()))
    }

    /// The inner error is that of the engine.
    fn create_with_transaction(
        &mut self,
        definition: &TableDefinition,
    ) -> Result<onrush::Result<()>> {
        if self.own.has_been_through(definition.name()) {
            let what = format!("CREATE TABLE {} twice in a transaction", definition.name());
            return Err(SqlError::not_supported(what, "COMMIT in between."));
        }
        match tokio::task::block_in_place(|| self.own.create(definition)) {
            Ok(note) => self.note(&note).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    /// The transaction inserts what tells that it has committed.
    fn note(&mut self, (notes, note): &Note) -> Result<()> {
        self.in_transaction(|transaction| Ok(transaction.insert(notes, note)?))
    }

    /// The table, where the client may change what it is.
    fn table_to_define(&self, name: &str) -> Result<onrush::Result<Table>> {
        self.definitions.check_free(self.client.number, name)?;
        Ok(match self.definitions.is_seen(self.client.number, name) {
            true => self.database.table(name),
            false => Err(Error::UnknownTable { name: name.to_owned() }),
        })
    }

    /// Tables that the transaction has created are nobody else's; what happens to them goes with them. But
    /// no savepoint would go back.
    fn outside_transaction_or_new(&self, what: &str, table: &str) -> Result<()> {
        match self.own.has_created(table) && self.savepoints.is_empty() {
            true => Ok(()),
            false => self.outside_transaction(what),
        }
    }

    pub(super) fn alter_table(&mut self, plan: &AlterPlan) -> Result<Answer> {
        let is_renamed = |planned: &PlannedChange| {
            matches!(planned.change, Change::Other(TableChange::Rename { .. }))
        };
        match plan.key.is_some() || plan.changes.iter().any(is_renamed) {
            true => self.outside_transaction("ALTER TABLE")?,
            false => self.outside_transaction_or_new("ALTER TABLE", &plan.table)?,
        }
        let done = || Answer::Done("ALTER TABLE".into());
        let table = match self.table_to_define(&plan.table)? {
            Err(Error::UnknownTable { name }) if plan.if_exists => {
                let message = format!("there is no table {name}, skipping");
                self.notices.push(SqlError::new(state::UNDEFINED_TABLE, message).warning());
                return Ok(done());
            }
            other => other?,
        };
        if let Some(key) = &plan.key {
            let add = || {
                let check = || self.patience.check();
                rekey::add_key(&self.database, &self.queries, &table, key, check)
            };
            tokio::task::block_in_place(add)?;
            return Ok(done());
        }
        let changes = self.changes(&table, &plan.changes)?;
        for change in &changes {
            if let TableChange::Rename { to } = change {
                self.definitions.check_free(self.client.number, to)?;
            }
        }
        tokio::task::block_in_place(|| self.database.alter_table(&plan.table, &changes))?;
        let mut name = plan.table.as_str();
        for change in &changes {
            tokio::task::block_in_place(|| self.follow(name, change))?;
            if let TableChange::Rename { to } = change {
                name = to;
            }
        }
        Ok(done())
    }

    /// What is to be changed of a table as it is now.
    fn changes(&mut self, table: &Table, planned: &[PlannedChange]) -> Result<Vec<TableChange>> {
        let mut definition = table.definition().clone();
        let mut changes = Vec::new();
        for PlannedChange { change, if_needed } in planned {
            if let (true, Some(skipping)) = (*if_needed, nothing_to_do(&definition, change)) {
                self.notices.push(skipping.warning());
                continue;
            }
            let checks = match change {
                Change::AddColumn(column, checks) => {
                    let change = TableChange::AddColumn(column.clone());
                    definition = definition.altered(&change, 0)?;
                    changes.push(change);
                    checks.as_slice()
                }
                Change::AddCheck(check) => std::slice::from_ref(check),
                Change::Other(change) => {
                    definition = definition.altered(change, 0)?;
                    changes.push(change.clone());
                    &[]
                }
            };
            for check in checks {
                let check = check.kept(&self.queries, &definition, definition.checks())?;
                let change = TableChange::AddCheck(check);
                definition = definition.altered(&change, 0)?;
                changes.push(change);
            }
        }
        Ok(changes)
    }

    /// Grants and comments go with what they are of.
    fn follow(&self, table: &str, change: &TableChange) -> Result<()> {
        let of_column = |column: &str| {
            let column = column.to_owned();
            move |its_table: &str, its: &str| its_table == table && its == column
        };
        match change {
            TableChange::AddColumn(_)
            | TableChange::AddCheck(_)
            | TableChange::DropCheck { .. }
            | TableChange::RenameCheck { .. } => {}
            TableChange::DropColumn { name } => {
                comments::follow(&self.database, of_column(name), None)?;
            }
            TableChange::RenameColumn { from, to } => {
                let moved = |_: &str| (table.to_owned(), to.clone());
                comments::follow(&self.database, of_column(from), Some(&moved))?;
            }
            TableChange::Rename { to } => {
                definitions::renamed(&self.database, &self.access, table, to)?;
            }
        }
        Ok(())
    }

    pub(super) fn comment(&mut self, plan: &CommentPlan) -> Result<Answer> {
        let CommentPlan { table, column, text } = plan;
        self.outside_transaction_or_new("COMMENT", table)?;
        tokio::task::block_in_place(|| {
            comments::put(&self.database, table, column, text.as_deref())
        })?;
        Ok(Answer::Done("COMMENT".into()))
    }

    pub(super) fn drop_tables(&mut self, names: &[String], if_exists: bool) -> Result<Answer> {
        for name in names {
            let dropped = match (self.table_to_define(name)?, self.is_in_transaction()) {
                (Err(error), _) => Err(error),
                (Ok(table), true) => {
                    let note = tokio::task::block_in_place(|| self.own.drop_table(&table))?;
                    self.note(&note)?;
                    Ok(())
                }
                (Ok(_), false) => {
                    let drop = || definitions::drop_table(&self.database, &self.access, name);
                    tokio::task::block_in_place(drop)
                }
            };
            match dropped {
                Err(Error::UnknownTable { name }) if if_exists => {
                    let message = format!("there is no table {name}, skipping");
                    self.notices.push(SqlError::new(state::UNDEFINED_TABLE, message).warning());
                }
                other => other?,
            }
        }
        Ok(Answer::Done("DROP TABLE".into()))
    }

    /// Inside a transaction, which may be rolled back, a table is made empty row by row.
    fn delete_all(&mut self, table: &Table) -> Result<()> {
        let delete = || {
            self.in_transaction(|transaction| {
                for row in transaction.scan(table, &ScanOptions::default())? {
                    transaction.delete(table, &key_of_row(table, &row?))?;
                }
                Ok(())
            })
        };
        tokio::task::block_in_place(delete)
    }

    pub(super) fn truncate(&mut self, names: &[String]) -> Result<Answer> {
        for name in names {
            let table = self.table_to_define(name)??;
            if self.is_in_transaction() {
                self.delete_all(&table)?;
            } else {
                tokio::task::block_in_place(|| self.database.truncate_table(name))?;
            }
        }
        Ok(Answer::Done("TRUNCATE TABLE".into()))
    }
}

fn key_of_row(table: &Table, row: &Row) -> Row {
    table.definition().primary_key().iter().map(|column| row[*column].clone()).collect()
}

/// Why a change need not be made.
fn nothing_to_do(table: &TableDefinition, change: &Change) -> Option<SqlError> {
    let has_column = |name: &str| table.columns().iter().any(|column| column.name == name);
    let told = |state, message| Some(SqlError::new(state, format!("{message}, skipping")));
    match change {
        Change::AddColumn(column, _) if has_column(&column.name) => {
            told(state::DUPLICATE_COLUMN, format!("there is a column {} already", column.name))
        }
        Change::Other(TableChange::DropColumn { name }) if !has_column(name) => {
            told(state::UNDEFINED_COLUMN, format!("there is no column {name}"))
        }
        Change::Other(TableChange::DropCheck { name })
            if !table.checks().iter().any(|check| check.name == *name) =>
        {
            told(state::UNDEFINED_OBJECT, format!("there is no constraint {name}"))
        }
        _ => None,
    }
}
