//! What ALTER DATABASE says of settings: sessions begin with it. Kept in a table of the database
//! itself, so that a backup has it too; all of it is in memory while the server runs.
//!
//! Invariants
//! 1. The table cannot be named in SQL, as those of roles.
//! 2. A change is durable before the statement that made it is answered, and counts for clients
//!    that come in later.

use std::collections::BTreeMap;
use std::sync::Arc;

use onrush::{ColumnDefinition, DataType, Database, Result, ScanOptions, Table, TableDefinition};
use parking_lot::{Mutex, RwLock};

use crate::kept::{durable_session, existing, made};

const DEFAULTS: &str = "onrush.defaults";

/// Values by the names of settings.
pub(crate) type Values = BTreeMap<String, String>;

/// See the module.
pub(crate) struct DatabaseDefaults {
    database: Database,
    values: RwLock<Arc<Values>>,
    /// Held while they are changed, on disk and then in memory.
    changing: Mutex<()>,
}

impl DatabaseDefaults {
    /// Reads those of a database.
    pub(crate) fn load(database: &Database) -> Result<DatabaseDefaults> {
        let mut values = Values::new();
        if let Some(table) = existing(database, DEFAULTS)? {
            for row in database.session()?.scan(&table, &ScanOptions::default())? {
                let row = row?;
                let text = |at: usize| row[at].as_str().unwrap_or_default().to_owned();
                values.insert(text(0), text(1));
            }
        }
        let values = RwLock::new(Arc::new(values));
        Ok(DatabaseDefaults { database: database.clone(), values, changing: Mutex::new(()) })
    }

    pub(crate) fn all(&self) -> Arc<Values> {
        Arc::clone(&self.values.read())
    }

    /// Puts a value in place of what there was.
    pub(crate) fn put(&self, name: &str, value: &str) -> Result<()> {
        let _changing = self.changing.lock();
        let table = self.table()?;
        durable_session(&self.database)?.upsert(&table, &[name.into(), value.into()])?;
        let mut values = Values::clone(&self.all());
        values.insert(name.to_owned(), value.to_owned());
        *self.values.write() = Arc::new(values);
        Ok(())
    }

    /// Forgets what is said of one setting, or without a name of all.
    pub(crate) fn forget(&self, name: Option<&str>) -> Result<()> {
        let _changing = self.changing.lock();
        let (meant, left): (Values, Values) = Values::clone(&self.all())
            .into_iter()
            .partition(|(known, _)| name.is_none_or(|name| name == known));
        if !meant.is_empty() {
            let (table, mut session) = (self.table()?, durable_session(&self.database)?);
            for known in meant.keys() {
                session.delete(&table, &[known.as_str().into()])?;
            }
        }
        *self.values.write() = Arc::new(left);
        Ok(())
    }

    /// The table, made if there is none.
    fn table(&self) -> Result<Table> {
        let text = |name: &str| ColumnDefinition::new(name, DataType::Text).not_null();
        let table = TableDefinition::builder(DEFAULTS).column(text("name")).column(text("value"));
        made(&self.database, table.primary_key(["name"]).build()?)
    }
}
