//! Creating, dropping and emptying tables: each a transaction of its own, durable before it is told.

use onrush_types::TableDefinition;

use super::{Database, Table};
use crate::error::Result;
use crate::fault::{Fault, planted};
use crate::options::Durability;
use crate::session::{Session, Transaction};

impl Database {
    /// Creates a table. Durable when this returns.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// let price = DataType::Decimal { precision: 10, scale: 2 };
    /// let sales = TableDefinition::builder("sales")
    ///     .column(ColumnDefinition::new("id", DataType::Uuid).default_key(KeyStrategy::UuidV7))
    ///     .column(ColumnDefinition::new("shop", DataType::Char(4)).not_null())
    ///     .column(ColumnDefinition::new("day", DataType::Date))
    ///     .column(ColumnDefinition::new("at", DataType::Time))
    ///     .column(ColumnDefinition::new("price", price))
    ///     .primary_key(["id"]);
    /// let sales = db.create_table(sales.build()?)?;
    ///
    /// let (day, at) = (Value::Date(19_844), Value::Time(36_000_000_000)); // 2024-05-01, 10:00
    /// let cents = Value::Decimal(Decimal::new(1999, 2)); // 19.99
    /// let mut session = db.session()?;
    /// let key = session.insert_returning_key(
    ///     &sales,
    ///     &[Value::Default, "N1".into(), day, at, cents.clone()],
    /// )?;
    /// let row = session.get(&sales, &key)?.expect("inserted above");
    /// assert_eq!(row[1], "N1  ".into()); // as wide as declared
    /// assert_eq!((row[2].to_string(), row[3].to_string()), ("2024-05-01".into(), "10:00:00".into()));
    /// assert_eq!(row[4], cents);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Each strategy for keys, with the type it is for:
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// for strategy in KeyStrategy::ALL {
    ///     let id = ColumnDefinition::new("id", strategy.natural_type()).default_key(strategy);
    ///     let table = TableDefinition::builder(strategy.name()).column(id).primary_key(["id"]);
    ///     let table = db.create_table(table.build()?)?;
    ///     let mut session = db.session()?;
    ///     let first = session.insert_returning_key(&table, &[Value::Default])?;
    ///     let second = session.insert_returning_key(&table, &[])?; // the same: nothing is a default
    ///     assert_ne!(first, second);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`TableExists`](crate::Error::TableExists); a definition that is not possible.
    pub fn create_table(&self, definition: TableDefinition) -> Result<Table> {
        self.define(|transaction| transaction.create_table(definition))
    }

    /// The next table that is created gets this number, unless a higher one was given already: for a database that is
    /// made of another one, where definitions and rows name tables by their numbers.
    pub fn raise_table_number(&self, number: u32) {
        self.engine().catalog.raise_next_object(number);
    }

    /// Drops a table and its rows. Durable when this returns.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    /// # let note = ColumnDefinition::new("note", DataType::Text);
    /// # let notes = TableDefinition::builder("notes").column(id).column(note).primary_key(["id"]);
    /// # let notes = db.create_table(notes.build()?)?;
    /// assert_eq!(db.tables().len(), 1);
    /// db.drop_table("notes")?;
    /// assert!(matches!(db.table("notes"), Err(Error::UnknownTable { .. })));
    /// assert!(matches!(db.session()?.get(&notes, &[1i64.into()]), Err(Error::TableChanged { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`UnknownTable`](crate::Error::UnknownTable).
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.define(|transaction| transaction.drop_table(name))
    }

    /// Removes all rows of a table. Generated keys go on where they were. Durable when this
    /// returns.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    /// # let note = ColumnDefinition::new("note", DataType::Text);
    /// # let notes = TableDefinition::builder("notes").column(id).column(note).primary_key(["id"]);
    /// # let notes = db.create_table(notes.build()?)?;
    /// db.session()?.insert(&notes, &[1i64.into(), "one".into()])?;
    /// db.truncate_table("notes")?;
    /// let notes = db.table("notes")?;
    /// assert_eq!(db.session()?.scan(&notes, &ScanOptions::default())?.count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`UnknownTable`](crate::Error::UnknownTable).
    pub fn truncate_table(&self, name: &str) -> Result<()> {
        self.define(|transaction| transaction.truncate_table(name).map(drop))
    }

    /// A transaction of one definition, durable when this returns.
    pub(super) fn define<T>(
        &self,
        define: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        self.define_by(&mut Session::for_definitions(self.engine()), define)
    }

    /// The same, by a session.
    pub(super) fn define_by<T>(
        &self,
        session: &mut Session,
        define: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut transaction = session.begin()?;
        let defined = define(&mut transaction).inspect_err(|_| {
            // That a table is there, or is not, rests on who has made it so.
            let engine = self.engine();
            if let Some(changed_at) = engine.catalog.changed_at() {
                let _ = engine.log.wait_durable(changed_at, &engine.recorder);
            }
        })?;
        if planted(Fault::TableNotDurable) {
            transaction.commit_token()?;
        } else {
            transaction.commit_as(Durability::Durable)?;
        }
        Ok(defined)
    }
}
