//! CREATE, ALTER, DROP and TRUNCATE TABLE, and COMMENT. Each takes effect at once and is durable when it is answered.

use onrush::{Error, TableChange, TableDefinition};

use super::{Answer, Backend};
use crate::comments;
use crate::error::{Result, SqlError, state};
use crate::sql::{AlterPlan, CommentPlan};

impl Backend {
    pub(super) fn create_table(
        &mut self,
        definition: &TableDefinition,
        if_not_exists: bool,
    ) -> Result<Answer> {
        self.outside_transaction("CREATE TABLE")?;
        let create = || self.database.create_table(definition.clone());
        match tokio::task::block_in_place(create) {
            Err(Error::TableExists { name }) if if_not_exists => {
                let message = format!("table {name} is there already, skipping");
                self.notices.push(SqlError::new(state::DUPLICATE_TABLE, message).warning());
            }
            other => {
                other?;
            }
        }
        Ok(Answer::Done("CREATE TABLE".into()))
    }

    pub(super) fn alter_table(&mut self, plan: &AlterPlan) -> Result<Answer> {
        self.outside_transaction("ALTER TABLE")?;
        let done = || Answer::Done("ALTER TABLE".into());
        let table = match self.database.table(&plan.table) {
            Err(Error::UnknownTable { name }) if plan.if_exists => {
                let message = format!("there is no table {name}, skipping");
                self.notices.push(SqlError::new(state::UNDEFINED_TABLE, message).warning());
                return Ok(done());
            }
            other => other?,
        };
        let mut columns: Vec<&str> =
            table.definition().columns().iter().map(|column| column.name.as_str()).collect();
        let mut changes = Vec::new();
        for planned in &plan.changes {
            let known = |name: &String| columns.contains(&name.as_str());
            let (is_needed, note) = match &planned.change {
                TableChange::AddColumn(column) => (
                    !known(&column.name),
                    format!("there is a column {} already, skipping", column.name),
                ),
                TableChange::DropColumn { name } => {
                    (known(name), format!("there is no column {name}, skipping"))
                }
                _ => (true, String::new()),
            };
            if planned.if_needed && !is_needed {
                self.notices.push(SqlError::new(state::UNDEFINED_COLUMN, note).warning());
                continue;
            }
            match &planned.change {
                TableChange::AddColumn(column) => columns.push(&column.name),
                TableChange::DropColumn { name } => columns.retain(|known| known != name),
                _ => {}
            }
            changes.push(planned.change.clone());
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

    /// Grants and comments go with what they are of.
    fn follow(&self, table: &str, change: &TableChange) -> Result<()> {
        let of_column = |column: &str| {
            let column = column.to_owned();
            move |its_table: &str, its: &str| its_table == table && its == column
        };
        match change {
            TableChange::AddColumn(_) => {}
            TableChange::DropColumn { name } => {
                comments::follow(&self.database, of_column(name), None)?;
            }
            TableChange::RenameColumn { from, to } => {
                let moved = |_: &str| (table.to_owned(), to.clone());
                comments::follow(&self.database, of_column(from), Some(&moved))?;
            }
            TableChange::Rename { to } => {
                self.access.rename_table(table, to)?;
                let moved = |column: &str| (to.clone(), column.to_owned());
                comments::follow(&self.database, |own, _| own == table, Some(&moved))?;
            }
        }
        Ok(())
    }

    pub(super) fn comment(&mut self, plan: &CommentPlan) -> Result<Answer> {
        self.outside_transaction("COMMENT")?;
        let CommentPlan { table, column, text } = plan;
        tokio::task::block_in_place(|| {
            comments::put(&self.database, table, column, text.as_deref())
        })?;
        Ok(Answer::Done("COMMENT".into()))
    }

    pub(super) fn drop_tables(&mut self, names: &[String], if_exists: bool) -> Result<Answer> {
        self.outside_transaction("DROP TABLE")?;
        for name in names {
            match tokio::task::block_in_place(|| self.database.drop_table(name)) {
                Err(Error::UnknownTable { name }) if if_exists => {
                    let message = format!("there is no table {name}, skipping");
                    self.notices.push(SqlError::new(state::UNDEFINED_TABLE, message).warning());
                }
                other => other?,
            }
            tokio::task::block_in_place(|| {
                self.access.forget_table(name)?;
                Ok::<_, SqlError>(comments::follow(&self.database, |table, _| table == name, None)?)
            })?;
        }
        Ok(Answer::Done("DROP TABLE".into()))
    }

    pub(super) fn truncate(&mut self, names: &[String]) -> Result<Answer> {
        self.outside_transaction("TRUNCATE")?;
        for name in names {
            tokio::task::block_in_place(|| self.database.truncate_table(name))?;
        }
        Ok(Answer::Done("TRUNCATE TABLE".into()))
    }
}
