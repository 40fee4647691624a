//! CREATE, DROP and TRUNCATE TABLE. Each takes effect at once and is durable when it is answered.

use onrush::{Error, TableDefinition};

use super::{Answer, Backend};
use crate::error::{Result, SqlError, state};

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
            tokio::task::block_in_place(|| self.access.forget_table(name))?;
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
