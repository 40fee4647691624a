//! CREATE and DROP SCHEMA. Each takes effect at once and is durable when it is answered.

use super::{Answer, Backend};
use crate::error::{Result, SqlError, state};
use crate::schemas;
use crate::sql::{SchemaPlan, is_builtin, no_schema};

impl Backend {
    pub(super) fn change_schemas(&mut self, plan: &SchemaPlan) -> Result<Answer> {
        match plan {
            SchemaPlan::Create { name, if_not_exists } => self.create_schema(name, *if_not_exists),
            SchemaPlan::Drop { names, if_exists, cascade } => {
                self.outside_transaction("DROP SCHEMA")?;
                for name in names {
                    self.drop_schema(name, *if_exists, *cascade)?;
                }
                Ok(Answer::Done("DROP SCHEMA".into()))
            }
        }
    }

    fn create_schema(&mut self, name: &str, if_not_exists: bool) -> Result<Answer> {
        self.outside_transaction("CREATE SCHEMA")?;
        if is_builtin(name) || schemas::is_there(&self.database, name)? {
            let told =
                SqlError::new(state::DUPLICATE_SCHEMA, format!("schema {name:?} already exists"));
            if !if_not_exists {
                return Err(told);
            }
            self.notices.push(told.warning());
        } else {
            tokio::task::block_in_place(|| schemas::create(&self.database, name))?;
        }
        Ok(Answer::Done("CREATE SCHEMA".into()))
    }

    fn drop_schema(&mut self, name: &str, if_exists: bool, cascade: bool) -> Result<()> {
        if !schemas::is_there(&self.database, name)? {
            if if_exists {
                self.notices.push(no_schema(name).warning());
                return Ok(());
            }
            return Err(no_schema(name));
        }
        let tables = schemas::tables_of(&self.database, name);
        if !cascade && !tables.is_empty() {
            let message = format!("cannot drop schema {name} because other objects depend on it");
            return Err(SqlError::new(state::DEPENDENT_OBJECTS, message).with_hint(format!(
                "There are: {}. DROP ... CASCADE drops them.",
                tables.join(", ")
            )));
        }
        self.drop_tables(&tables, true)?;
        Ok(tokio::task::block_in_place(|| schemas::forget(&self.database, name))?)
    }
}
