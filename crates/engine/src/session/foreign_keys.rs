//! Foreign keys that a transaction makes, changes and drops.
//!
//! A foreign key is made while nobody else writes to either table: both are locked, and both get a new version. So
//! whoever has changed rows by a definition that did not know of it is refused.

use std::sync::Arc;

use onrush_types::{
    DataType, Deferral, ForeignKey, ReferencedKey, ReferentialAction, TableDefinition,
};

use super::ScanOptions;
use super::transaction::Transaction;
use crate::catalog::{Reference, Referenced, Table, TableEntry};
use crate::error::{Error, Result};

/// A foreign key that is to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewForeignKey {
    /// Its name, which no other constraint of the table has.
    pub name: String,
    /// The referencing columns.
    pub columns: Vec<String>,
    /// The referenced table.
    pub referenced_table: String,
    /// The referenced columns, one for each; none for those of the primary key, in its order.
    pub referenced_columns: Vec<String>,
    /// What happens to rows whose referenced row is deleted.
    pub on_delete: ReferentialAction,
    /// What happens to rows whose referenced key is changed.
    pub on_update: ReferentialAction,
    /// When it is looked at.
    pub deferral: Deferral,
    /// Whether either all columns are NULL or none.
    pub is_match_full: bool,
    /// Whether the rows that there are must meet it; else only those that come or change.
    pub is_validated: bool,
}

impl NewForeignKey {
    /// A foreign key of these columns to the primary key of a table, whose rows stay while they are referenced.
    pub fn new<I>(
        name: impl Into<String>,
        columns: I,
        referenced_table: impl Into<String>,
    ) -> NewForeignKey
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        NewForeignKey {
            name: name.into(),
            columns: columns.into_iter().map(Into::into).collect(),
            referenced_table: referenced_table.into(),
            referenced_columns: Vec::new(),
            on_delete: ReferentialAction::NoAction,
            on_update: ReferentialAction::NoAction,
            deferral: Deferral::NotDeferrable,
            is_match_full: false,
            is_validated: true,
        }
    }

    /// What happens to rows whose referenced row is deleted.
    #[must_use]
    pub fn on_delete(self, on_delete: ReferentialAction) -> NewForeignKey {
        NewForeignKey { on_delete, ..self }
    }

    /// What happens to rows whose referenced key is changed.
    #[must_use]
    pub fn on_update(self, on_update: ReferentialAction) -> NewForeignKey {
        NewForeignKey { on_update, ..self }
    }

    /// The same foreign key as `table` has, for other tables that have columns of the same names.
    ///
    /// # Errors
    /// A foreign key of other tables.
    pub fn again(
        foreign_key: &ForeignKey,
        table: &TableDefinition,
        referenced: &TableDefinition,
    ) -> Result<NewForeignKey> {
        let names = |of: &TableDefinition, numbers: &[u16]| {
            let name = |number: &u16| {
                let column = of.column_with_number(*number);
                let changed = || Error::TableChanged { name: of.name().to_owned() };
                column.map(|column| of.columns()[column].name.clone()).ok_or_else(changed)
            };
            numbers.iter().map(name).collect::<Result<Vec<_>>>()
        };
        Ok(NewForeignKey {
            name: foreign_key.name.clone(),
            columns: names(table, &foreign_key.columns)?,
            referenced_table: referenced.name().to_owned(),
            referenced_columns: names(referenced, &foreign_key.referenced_columns)?,
            on_delete: foreign_key.on_delete,
            on_update: foreign_key.on_update,
            deferral: foreign_key.deferral,
            is_match_full: foreign_key.is_match_full,
            is_validated: foreign_key.is_validated,
        })
    }

    fn definition(
        &self,
        table: &TableDefinition,
        (referenced, id): (&TableDefinition, u32),
    ) -> Result<ForeignKey> {
        // There are at most 1,024 columns.
        let number = |of: &TableDefinition, column: usize| of.column_number(column) as u16;
        let named = |of: &TableDefinition, names: &[String]| {
            let column = |name: &String| Ok(number(of, of.column_index(name)?));
            names.iter().map(column).collect::<Result<Vec<u16>>>()
        };
        let referenced_columns = match self.referenced_columns.as_slice() {
            [] => referenced.primary_key().iter().map(|key| number(referenced, *key)).collect(),
            names => named(referenced, names)?,
        };
        Ok(ForeignKey {
            name: self.name.clone(),
            columns: named(table, &self.columns)?,
            referenced_table: id,
            referenced_columns,
            on_delete: self.on_delete,
            on_update: self.on_update,
            deferral: self.deferral,
            is_match_full: self.is_match_full,
            is_validated: self.is_validated,
        })
    }
}

impl Transaction<'_> {
    /// Makes a foreign key of a table, for everyone else when the transaction commits. Until then nobody else writes
    /// to either table. Returns the handle of the table by which this transaction goes on.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// let id = || ColumnDefinition::new("id", DataType::Int64).not_null();
    /// let authors = TableDefinition::builder("authors").column(id()).primary_key(["id"]);
    /// let author = ColumnDefinition::new("author", DataType::Int64);
    /// let books = TableDefinition::builder("books").column(id()).column(author).primary_key(["id"]);
    /// db.create_table(authors.build()?)?;
    /// db.create_table(books.build()?)?;
    /// let books = db.add_foreign_key("books", &NewForeignKey::new("books_author", ["author"], "authors"))?;
    ///
    /// let mut session = db.session()?;
    /// let orphan = session.insert(&books, &[1i64.into(), 7i64.into()]);
    /// assert!(matches!(orphan, Err(Error::ReferenceMissing { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ReferenceMissing`](Error::ReferenceMissing) by the rows that there are;
    /// [`NoReferencedKey`](Error::NoReferencedKey), [`ReferenceTypes`](Error::ReferenceTypes); a name that is taken;
    /// columns that are not there; those of waiting for who uses the tables. Nothing of it is left then.
    pub fn add_foreign_key(&mut self, table: &str, foreign_key: &NewForeignKey) -> Result<Table> {
        let before = self.savepoint();
        let made = self.make_foreign_key(table, foreign_key);
        if made.is_err() {
            self.rollback_to(before)?;
        }
        self.release(before)?;
        made
    }

    fn make_foreign_key(&mut self, table: &str, new: &NewForeignKey) -> Result<Table> {
        let child = self.lock_for_index(table)?;
        let parent = self.lock_for_index(&new.referenced_table)?;
        super::indexes::check_is_table(&child)?;
        super::indexes::check_is_table(&parent)?;
        let parent_definition = parent.schema.definition();
        let definition =
            new.definition(child.schema.definition(), (parent_definition, parent.id))?;
        check_key(child.schema.definition(), &definition, parent_definition)?;
        let (child_id, is_validated) = (child.id, new.is_validated);
        let is_own = child.id == parent.id;
        if !is_own {
            self.put_definition(&parent, |parent| Ok(parent.with_reference_by(child_id)))?;
        }
        let child = self.put_definition(&child, |child| {
            let child = child.with_foreign_key(definition)?;
            Ok(if is_own { child.with_reference_by(child_id) } else { child })
        })?;
        if is_validated {
            self.check_references(&child, &new.name)?;
        }
        Ok(child)
    }

    /// Whether all rows of a locked table meet a foreign key of it.
    fn check_references(&mut self, table: &Table, name: &str) -> Result<()> {
        let definition = table.definition();
        let position = definition.foreign_key_position(name)?;
        let foreign_key = &definition.foreign_keys()[position];
        let gone = || Error::TableChanged { name: table.name().to_owned() };
        let parent = self.as_seen(foreign_key.referenced_table).ok_or_else(gone)?;
        let reference = Reference::new(definition, foreign_key, &parent, |id| self.as_seen(id))?;
        let (mut snapshot, keys) =
            (self.newest_snapshot(), self.handle(Arc::clone(&reference.keys)));
        let mut scan = snapshot.scan(table, &ScanOptions::default())?;
        let mut check = |key: &[u8], row: &[u8]| -> Result<()> {
            let is_met = match reference.of_row(table.schema(), (key, row))? {
                Referenced::Nothing => true,
                Referenced::Mixed => false,
                Referenced::Key(None) => false,
                Referenced::Key(Some(referenced)) => {
                    snapshot.get_raw(&keys, &referenced)?.is_some()
                }
            };
            if is_met {
                return Ok(());
            }
            let row = table.schema().decode_row(key, row)?;
            let name = |position: &usize| definition.columns()[*position].name.clone();
            let columns = foreign_key.positions(definition)?;
            let words = columns.iter().map(|at| (name(at), row[*at].to_string())).collect();
            Err(Error::ReferenceMissing {
                table: table.name().into(),
                constraint: foreign_key.name.as_str().into(),
                key: crate::error::KeyInWords(words),
                referenced: parent.name().into(),
            })
        };
        while let Some(checked) = scan.with_next(&mut check)? {
            checked?;
        }
        Ok(())
    }

    /// Looks whether all rows of a table meet a foreign key that was made without such a look.
    ///
    /// # Errors
    /// As [`add_foreign_key`](Self::add_foreign_key).
    pub fn validate_foreign_key(&mut self, table: &str, name: &str) -> Result<Table> {
        self.change_foreign_key(table, name, |key| key.is_validated = true).and_then(|table| {
            self.check_references(&table, name)?;
            Ok(table)
        })
    }

    /// Gives a foreign key another name, for everyone else when the transaction commits. Returns the handle of the
    /// table by which this transaction goes on.
    ///
    /// # Errors
    /// No such foreign key; a name that is taken; those of waiting for who uses the table.
    pub fn rename_foreign_key(&mut self, table: &str, name: &str, to: &str) -> Result<Table> {
        self.change_foreign_key(table, name, |key| to.clone_into(&mut key.name))
    }

    /// Changes when a foreign key is looked at, for everyone else when the transaction commits. Returns the handle of
    /// the table by which this transaction goes on.
    ///
    /// # Errors
    /// No such foreign key; those of waiting for who uses the table.
    pub fn defer_foreign_key(
        &mut self,
        table: &str,
        name: &str,
        deferral: Deferral,
    ) -> Result<Table> {
        self.change_foreign_key(table, name, |key| key.deferral = deferral)
    }

    fn change_foreign_key(
        &mut self,
        table: &str,
        name: &str,
        change: impl FnOnce(&mut ForeignKey),
    ) -> Result<Table> {
        let entry = self.lock_for_index(table)?;
        self.put_definition(&entry, |table| Ok(table.with_foreign_key_changed(name, change)?))
    }

    /// Drops a foreign key, for everyone else when the transaction commits. Returns the handle of the table by which
    /// this transaction goes on.
    ///
    /// # Errors
    /// No such foreign key; those of waiting for who uses the table.
    pub fn drop_foreign_key(&mut self, table: &str, name: &str) -> Result<Table> {
        let entry = self.lock_for_index(table)?;
        self.put_definition(&entry, |table| Ok(table.without_foreign_key(name)?))
    }

    /// The foreign keys by which other tables reference the one of this name, as the transaction sees them: each the
    /// name of its table, and its own.
    ///
    /// # Errors
    /// [`UnknownTable`](Error::UnknownTable).
    pub fn references_to(&self, table: &str) -> Result<Vec<(String, String)>> {
        let entry = self.entry(table)?;
        let mut references = Vec::new();
        for child in self.children_of(&entry) {
            for foreign_key in child.schema.definition().foreign_keys() {
                if foreign_key.referenced_table == entry.id {
                    references.push((child.name().to_owned(), foreign_key.name.clone()));
                }
            }
        }
        Ok(references)
    }

    /// Other tables that reference this one.
    pub(super) fn children_of(&self, entry: &TableEntry) -> Vec<Arc<TableEntry>> {
        let definition = entry.schema.definition();
        let children = definition.referenced_by().iter().filter(|child| **child != entry.id);
        let references = |child: &Arc<TableEntry>| {
            let mut foreign_keys = child.schema.definition().foreign_keys().iter();
            foreign_keys.any(|key| key.referenced_table == entry.id)
        };
        children.filter_map(|child| self.as_seen(*child)).filter(references).collect()
    }

    /// Whether no other table references this one, which is to go.
    pub(super) fn check_unreferenced(&self, entry: &TableEntry) -> Result<()> {
        match self.children_of(entry).first() {
            Some(child) => Err(referenced(entry, child)),
            None => Ok(()),
        }
    }

    /// Whether no row of another table references this one, which is to be emptied, but of those that are emptied with
    /// it.
    pub(super) fn check_rows_unreferenced(
        &self,
        entry: &TableEntry,
        emptied: &[String],
    ) -> Result<()> {
        for child in self.children_of(entry) {
            let is_emptied = emptied.iter().any(|name| name == child.name());
            if !is_emptied && self.has_rows(&child)? {
                return Err(referenced(entry, &child));
            }
        }
        Ok(())
    }

    /// Whether a table that is defined anew has the keys still by which it is referenced.
    pub(super) fn check_referenced_keys(&self, now: &TableEntry) -> Result<()> {
        for child in self.children_of(now) {
            for key in child.schema.definition().foreign_keys() {
                let is_to_it = key.referenced_table == now.id;
                if is_to_it && key.referenced_key(now.schema.definition()).is_none() {
                    return Err(referenced(now, &child));
                }
            }
        }
        let own = now.schema.definition();
        let is_to_itself = |key: &&ForeignKey| key.referenced_table == now.id;
        match own
            .foreign_keys()
            .iter()
            .filter(is_to_itself)
            .find(|key| key.referenced_key(own).is_none())
        {
            Some(_) => Err(referenced(now, now)),
            None => Ok(()),
        }
    }

    /// Makes foreign keys that were taken away, for a table that has taken the place of theirs.
    pub(super) fn make_foreign_keys_again(
        &mut self,
        foreign_keys: Vec<(String, NewForeignKey)>,
    ) -> Result<()> {
        for (table, foreign_key) in foreign_keys {
            // The rows meet it already, as far as they must.
            let is_validated = foreign_key.is_validated;
            let unlooked = NewForeignKey { is_validated: false, ..foreign_key };
            let moved = self.make_foreign_key(&table, &unlooked)?;
            if is_validated {
                self.change_foreign_key(moved.name(), &unlooked.name, |key| {
                    key.is_validated = true
                })?;
            }
        }
        Ok(())
    }

    /// Takes the foreign keys of a table, and those to it, away, and returns how to make them again.
    pub(super) fn take_foreign_keys(
        &mut self,
        entry: &Arc<TableEntry>,
    ) -> Result<Vec<(String, NewForeignKey)>> {
        let mut taken = Vec::new();
        for foreign_key in entry.schema.definition().foreign_keys() {
            taken.push((entry.name().to_owned(), self.again(entry, foreign_key)?));
        }
        for child in self.children_of(entry) {
            for foreign_key in child.schema.definition().foreign_keys() {
                if foreign_key.referenced_table == entry.id {
                    taken.push((child.name().to_owned(), self.again(&child, foreign_key)?));
                    self.drop_foreign_key(child.name(), &foreign_key.name)?;
                }
            }
        }
        Ok(taken)
    }

    /// How to make a foreign key again.
    fn again(&self, table: &TableEntry, foreign_key: &ForeignKey) -> Result<NewForeignKey> {
        let changed = || Error::TableChanged { name: table.name().to_owned() };
        let parent = self.as_seen(foreign_key.referenced_table).ok_or_else(changed)?;
        NewForeignKey::again(foreign_key, table.schema.definition(), parent.schema.definition())
    }
}

fn referenced(table: &TableEntry, by: &TableEntry) -> Error {
    let mut foreign_keys = by.schema.definition().foreign_keys().iter();
    let foreign_key = foreign_keys.find(|key| key.referenced_table == table.id);
    Error::TableReferenced {
        table: table.name().to_owned(),
        constraint: foreign_key.map_or_else(String::new, |key| key.name.clone()),
        referencing: by.name().to_owned(),
    }
}

/// Whether a foreign key names a key of the referenced table, whose columns have the types of its own.
fn check_key(
    table: &TableDefinition,
    foreign_key: &ForeignKey,
    referenced: &TableDefinition,
) -> Result<()> {
    let name = |number: &u16| {
        let column = referenced.column_with_number(*number);
        column.map_or("?", |column| referenced.columns()[column].name.as_str())
    };
    let no_key = || {
        let columns: Vec<&str> = foreign_key.referenced_columns.iter().map(name).collect();
        Error::NoReferencedKey { table: referenced.name().to_owned(), columns: columns.join(", ") }
    };
    if foreign_key.columns.len() != foreign_key.referenced_columns.len() {
        return Err(no_key());
    }
    let key: ReferencedKey<'_> = foreign_key.referenced_key(referenced).ok_or_else(no_key)?;
    foreign_key.in_key_order(referenced, key)?;
    for (own, other) in foreign_key.columns.iter().zip(&foreign_key.referenced_columns) {
        let (Some(own), Some(other)) =
            (table.column_with_number(*own), referenced.column_with_number(*other))
        else {
            return Err(no_key());
        };
        let (own, other) = (&table.columns()[own], &referenced.columns()[other]);
        if !is_comparable(own.data_type, other.data_type) {
            return Err(Error::ReferenceTypes {
                constraint: foreign_key.name.as_str().into(),
                column: own.name.as_str().into(),
                data_type: own.data_type,
                referenced: other.name.as_str().into(),
                referenced_type: other.data_type,
            });
        }
    }
    Ok(())
}

/// Whether values of one type are found among keys of the other.
fn is_comparable(one: DataType, other: DataType) -> bool {
    let is_integer =
        |data_type| matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64);
    let is_text = |data_type| matches!(data_type, DataType::Varchar(_) | DataType::Text);
    if let (DataType::Enum(one), DataType::Enum(other)) = (one, other) {
        // Labels of two types may share their codes, and mean nothing to each other.
        return one.id() == other.id();
    }
    std::mem::discriminant(&one) == std::mem::discriminant(&other)
        || is_integer(one) && is_integer(other)
        || is_text(one) && is_text(other)
}
