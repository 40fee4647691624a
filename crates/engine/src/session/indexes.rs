//! Indexes that a transaction makes, renames and drops.
//!
//! An index is made while nobody else writes to its table: the table is locked, its rows are read, and their entries
//! are the transaction's own changes until it commits. So after a crash the index is there as a whole or not at all.

use std::sync::Arc;

use onrush_types::{
    DeferrableUnique, IndexDefinition, Indexed, IndexedColumn, IndexedExpression, KeyOrder,
    RowExpression, TableChange, TableDefinition, TypeError, Uniqueness,
};

use super::ScanOptions;
use super::session::Session;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::catalog::{Table, TableEntry};
use crate::error::{Error, Result};

/// What the name of an index ends with that is built in the place of another one.
const ANEW_SUFFIX: &str = "_ccnew";

/// An index that is to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewIndex {
    /// Its name, which no table and no other index has.
    pub name: String,
    /// What it is ordered by, and how.
    pub columns: Vec<(NewIndexed, KeyOrder)>,
    /// Columns that its entries carry besides, so that a query need not read the rows.
    pub included: Vec<String>,
    /// Which rows have entries; none: all.
    pub predicate: Option<RowExpression>,
    /// Whether rows may have the same indexed columns.
    pub uniqueness: Uniqueness,
    /// Whether they may only for a while, though it is not unique: of a UNIQUE constraint that is DEFERRABLE.
    pub deferrable: Option<DeferrableUnique>,
    /// Whether it is made for a UNIQUE constraint.
    pub is_constraint: bool,
    /// The definition that its expressions and its predicate were made of. If the table has got another one since,
    /// which may number its columns anew, they follow their columns by name. None: the caller knows that it has not.
    pub made_of: Option<Arc<TableDefinition>>,
}

/// What a new index is ordered by.
#[derive(Debug, Clone, PartialEq)]
pub enum NewIndexed {
    /// A column, by its name.
    Column(String),
    /// An expression over the rows of the table.
    Expression(RowExpression),
}

impl NewIndex {
    /// An index of these columns, ascending, whose values may be there more than once.
    pub fn new<I>(name: impl Into<String>, columns: I) -> NewIndex
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let ascending = |name: I::Item| (NewIndexed::Column(name.into()), KeyOrder::ASCENDING);
        NewIndex {
            name: name.into(),
            columns: columns.into_iter().map(ascending).collect(),
            included: Vec::new(),
            predicate: None,
            uniqueness: Uniqueness::NotUnique,
            deferrable: None,
            is_constraint: false,
            made_of: None,
        }
    }

    /// It is ordered, behind what was named before, by an expression over the rows of its table.
    #[must_use]
    pub fn expression(mut self, expression: RowExpression) -> NewIndex {
        self.columns.push((NewIndexed::Expression(expression), KeyOrder::ASCENDING));
        self
    }

    /// Only rows for which the condition is true have entries.
    #[must_use]
    pub fn only_where(mut self, predicate: RowExpression) -> NewIndex {
        self.predicate = Some(predicate);
        self
    }

    /// No two rows may have the same values in its columns, but where one of them is NULL.
    #[must_use]
    pub fn unique(mut self) -> NewIndex {
        self.uniqueness = Uniqueness::NullsDistinct;
        self
    }

    /// No two rows may have the same values in its columns when a statement ends, or when the transaction commits; it
    /// is the index of a UNIQUE constraint then. It is made with its table locked, not beside those who write.
    #[must_use]
    pub fn unique_at_last(mut self, deferrable: DeferrableUnique) -> NewIndex {
        (self.uniqueness, self.is_constraint) = (Uniqueness::NotUnique, true);
        self.deferrable = Some(deferrable);
        self
    }

    /// Its expressions are of this definition of its table.
    #[must_use]
    pub fn made_of(mut self, table: &TableDefinition) -> NewIndex {
        self.made_of = Some(Arc::new(table.clone()));
        self
    }

    /// The same index as `from` has, for another table. None if that lacks a column of the same name, or has it of
    /// another type where an expression looks at it.
    ///
    /// # Errors
    /// An index of another table.
    pub fn again(
        index: &IndexDefinition,
        from: &TableDefinition,
        to: &TableDefinition,
    ) -> Result<Option<NewIndex>> {
        let unknown = || Error::UnknownIndex { name: index.name.clone() };
        let name = |number: u16| -> Result<Option<String>> {
            let column = from.column_with_number(number).ok_or_else(unknown)?;
            let name = &from.columns()[column].name;
            Ok(to.column_index(name).is_ok().then(|| name.clone()))
        };
        let mut again = NewIndex {
            name: index.name.clone(),
            columns: Vec::new(),
            included: Vec::new(),
            predicate: None,
            uniqueness: index.uniqueness,
            deferrable: index.deferrable,
            is_constraint: index.is_constraint,
            made_of: None,
        };
        for column in &index.columns {
            let indexed = match column.of {
                Indexed::Column(number) => name(number)?.map(NewIndexed::Column),
                Indexed::Expression(at) => {
                    let expression = index.expressions.get(usize::from(at)).ok_or_else(unknown)?;
                    expression.of.over(from, to).map(NewIndexed::Expression)
                }
            };
            let Some(indexed) = indexed else { return Ok(None) };
            again.columns.push((indexed, column.order));
        }
        for number in &index.included {
            let Some(name) = name(*number)? else { return Ok(None) };
            again.included.push(name);
        }
        if let Some(predicate) = &index.predicate {
            let Some(moved) = predicate.over(from, to) else { return Ok(None) };
            again.predicate = Some(moved);
        }
        Ok(Some(again))
    }

    /// Whether the table has an index of its name and form that is whole. In a table that was written anew columns may
    /// have other numbers, so expressions are not compared.
    pub(crate) fn is_made(&self, table: &TableDefinition) -> bool {
        let is_it = |made: &IndexDefinition| {
            made.name == self.name
                && !made.is_building
                && (made.uniqueness, made.is_constraint) == (self.uniqueness, self.is_constraint)
                && made.deferrable == self.deferrable
                && made.columns.len() == self.columns.len()
                && made.predicate.is_some() == self.predicate.is_some()
        };
        table.indexes().iter().any(is_it)
    }

    fn definition(&self, table: &TableDefinition) -> Result<IndexDefinition> {
        // There are at most 1,024 columns.
        let number = |name: &String| Ok(table.column_number(table.column_index(name)?) as u16);
        let of_table = |of: &RowExpression| match &self.made_of {
            Some(before) => of
                .over(before, table)
                .ok_or_else(|| Error::TableChanged { name: table.name().to_owned() }),
            None => Ok(of.clone()),
        };
        let (mut columns, mut expressions) = (Vec::new(), Vec::new());
        for (indexed, order) in &self.columns {
            let of = match indexed {
                NewIndexed::Column(name) => Indexed::Column(number(name)?),
                NewIndexed::Expression(of) => {
                    let reason = "an indexed expression has no type of its own: cast it";
                    let untyped = || TypeError::Expression { reason: reason.into() };
                    let data_type = of.data_type().ok_or_else(untyped)?;
                    expressions.push(IndexedExpression { of: of_table(of)?, data_type });
                    Indexed::Expression((expressions.len() - 1) as u16)
                }
            };
            columns.push(IndexedColumn { of, order: *order });
        }
        Ok(IndexDefinition {
            name: self.name.clone(),
            entries: 0,
            columns,
            expressions,
            predicate: self.predicate.as_ref().map(of_table).transpose()?,
            included: self.included.iter().map(number).collect::<Result<_>>()?,
            uniqueness: self.uniqueness,
            deferrable: self.deferrable,
            is_constraint: self.is_constraint,
            is_building: false,
        })
    }
}

impl Transaction<'_> {
    /// Makes an index of a table, for everyone else when the transaction commits. Until then nobody else writes to
    /// the table. Returns the handle of the table by which this transaction goes on.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    /// # let mail = ColumnDefinition::new("mail", DataType::Text);
    /// # let people = TableDefinition::builder("people").column(id).column(mail).primary_key(["id"]);
    /// # let people = db.create_table(people.build()?)?;
    /// let mut session = db.session()?;
    /// session.insert(&people, &[1i64.into(), "a@example.com".into()])?;
    /// let mut transaction = session.begin()?;
    /// let people = transaction.create_index("people", &NewIndex::new("people_mail", ["mail"]).unique())?;
    /// transaction.commit()?;
    /// let again = session.insert(&people, &[2i64.into(), "a@example.com".into()]);
    /// assert!(matches!(again, Err(Error::UniqueViolated { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`UniqueViolated`](Error::UniqueViolated) by the rows that there are; [`TableExists`](Error::TableExists) for a
    /// name that is taken; columns that are not there or have no order; [`TableChanged`](Error::TableChanged) where an
    /// expression was [made of](NewIndex::made_of) a definition that the table's does not suit; those of waiting for
    /// who uses the table. Nothing of it is left then.
    pub fn create_index(&mut self, table: &str, index: &NewIndex) -> Result<Table> {
        let entry = self.lock_for_index(table)?;
        check_is_table(&entry)?;
        let definition = index.definition(entry.schema.definition())?;
        self.lock_free_name(&index.name)?;
        let before = self.savepoint();
        let made = self.make_index(&entry, definition).and_then(|altered| {
            self.fill_index(&entry, &altered)?;
            Ok(altered)
        });
        if made.is_err() {
            self.rollback_to(before)?;
        }
        self.release(before)?;
        made
    }

    /// The table gets an index without entries.
    fn make_index(
        &mut self,
        entry: &Arc<TableEntry>,
        mut definition: IndexDefinition,
    ) -> Result<Table> {
        let table = entry.schema.definition();
        let entries = self.make_table(Arc::new(definition.entries_definition(table, entry.id)?))?;
        definition.entries = entries.id;
        self.own_definitions().add_new(&entries);
        self.put_definition(entry, |table| Ok(table.with_index(definition)?))
    }

    /// Makes an index that is to be filled beside those who write to the table, from the commit on. Returns the number
    /// of its entries: others may give it another name meanwhile.
    pub(crate) fn begin_index(&mut self, table: &str, index: &NewIndex) -> Result<u32> {
        let entry = self.lock_entry(table)?;
        check_is_table(&entry)?;
        let definition = index.definition(entry.schema.definition())?;
        self.lock_free_name(&index.name)?;
        self.make_building(&entry, definition)
    }

    /// The same for one that is to take the place of an index.
    pub(crate) fn begin_index_again(&mut self, index: &str) -> Result<BuiltAgain> {
        let entry = self.lock_indexed(index)?;
        let definition = entry.schema.definition();
        let known = definition.indexes()[definition.index_position(index)?].clone();
        let (replaced, name) = (known.entries, self.lock_name_like(index)?);
        let built = self.make_building(&entry, IndexDefinition { name, ..known })?;
        Ok(BuiltAgain { built, replaced })
    }

    fn make_building(
        &mut self,
        entry: &Arc<TableEntry>,
        definition: IndexDefinition,
    ) -> Result<u32> {
        let definition = IndexDefinition { is_building: true, ..definition };
        let table = self.make_index(entry, definition)?;
        let made = table.definition().indexes().last();
        made.map(|index| index.entries)
            .ok_or_else(|| Error::Internal("an index was made, and is not there".into()))
    }

    /// Makes the entries of an index anew, for everyone else when the transaction commits. Until then nobody else
    /// writes to the table. Returns the handle of the table by which this transaction goes on.
    ///
    /// # Errors
    /// [`UnknownIndex`](Error::UnknownIndex); those of waiting for who uses the table.
    pub fn rebuild_index(&mut self, index: &str) -> Result<Table> {
        let entry = self.lock_indexed(index)?;
        let BuiltAgain { built, replaced } = self.begin_index_again(index)?;
        let altered = self.entry(entry.name())?;
        self.fill_index(&entry, &self.handle(altered))?;
        self.finish_index(entry.name(), built, Some(replaced))
    }

    /// A free name for what is built in the place of an index.
    fn lock_name_like(&mut self, index: &str) -> Result<String> {
        for number in 0.. {
            let suffix = if number == 0 { String::new() } else { number.to_string() };
            let name = format!("{index}{ANEW_SUFFIX}{suffix}");
            match self.lock_free_name(&name) {
                Err(Error::TableExists { .. }) => {}
                free => return free.map(|()| name),
            }
        }
        Err(Error::Internal("all names are taken".into()))
    }

    /// The index with these entries is whole from the commit on, and stands in the place of another one if it was made
    /// for that. The table is locked.
    pub(crate) fn finish_index(
        &mut self,
        table: &str,
        built: u32,
        replaced: Option<u32>,
    ) -> Result<Table> {
        let entry = self.lock_entry(table)?;
        let definition = entry.schema.definition();
        let name = |entries| {
            index_with(definition, entries).map(|at| definition.indexes()[at].name.as_str())
        };
        let (index, in_place_of) = (name(built)?, replaced.map(name).transpose()?);
        if let Some(name) = in_place_of {
            self.rename_entries(index, name)?;
        }
        self.put_definition(&entry, |table| Ok(table.with_index_built(index, in_place_of)?))
    }

    /// The name of the table that the index with these entries is of.
    pub(crate) fn table_of_entries(&self, entries: u32) -> Result<String> {
        let known = self.as_seen(entries);
        let of = known.and_then(|known| known.schema.definition().entries_of().map(|of| of.table));
        let table = of.and_then(|table| self.as_seen(table));
        table.map(|table| table.name().to_owned()).ok_or_else(|| unknown_entries(entries))
    }

    /// Drops the index with these entries.
    pub(crate) fn drop_index_with(&mut self, entries: u32) -> Result<Table> {
        let entry = self.lock_entry(&self.table_of_entries(entries)?)?;
        let definition = entry.schema.definition();
        let index = &definition.indexes()[index_with(definition, entries)?].name;
        self.put_definition(&entry, |table| Ok(table.without_index(index)?))
    }

    fn rename_entries(&mut self, index: &str, to: &str) -> Result<()> {
        let entries = self.entry(index)?;
        let renamed = TableChange::Rename { to: to.to_owned() };
        let renamed = entries.schema.definition().altered(&renamed, 0)?;
        let renamed = Arc::new(entries.altered_privately(Arc::new(renamed))?);
        self.own_definitions().put(&entries, Some(renamed));
        Ok(())
    }

    /// Makes the entries of the rows that there are in the newest index of a table.
    fn fill_index(&mut self, before: &Arc<TableEntry>, table: &Table) -> Result<()> {
        let rows = self.handle(Arc::clone(before));
        let mut scan = self.newest_snapshot().scan(&rows, &ScanOptions::default())?;
        let engine = Arc::clone(self.engine());
        let indexes = table.entry.indexes(|id| engine.catalog.by_id(id))?;
        let Some(index) = indexes.last() else { return Ok(()) };
        let mut make_entry = |key: &[u8], value: &[u8]| -> Result<()> {
            let change = self.entry_change(table, index, None, Some((key, value)))?;
            self.put_entries(change.into_iter().collect())?;
            self.spill_if_large()
        };
        while let Some(done) = scan.with_next(&mut make_entry)? {
            done?;
        }
        match index.deferrable() {
            Some(_) => self.check_keys_differ(index),
            None => Ok(()),
        }
    }

    /// Drops an index, for everyone else when the transaction commits. Returns the handle of the table by which
    /// this transaction goes on.
    ///
    /// # Errors
    /// [`UnknownIndex`](Error::UnknownIndex); those of waiting for who uses the table.
    pub fn drop_index(&mut self, index: &str) -> Result<Table> {
        let entry = self.lock_indexed(index)?;
        self.put_definition(&entry, |table| Ok(table.without_index(index)?))
    }

    /// Gives an index another name, for everyone else when the transaction commits. Returns the handle of the table
    /// by which this transaction goes on.
    ///
    /// # Errors
    /// [`UnknownIndex`](Error::UnknownIndex); [`TableExists`](Error::TableExists) for a name that is taken; those of
    /// waiting for who uses the table.
    pub fn rename_index(&mut self, index: &str, to: &str) -> Result<Table> {
        let entry = self.lock_indexed(index)?;
        self.lock_free_name(to)?;
        self.rename_entries(index, to)?;
        self.put_definition(&entry, |table| Ok(table.with_index_renamed(index, to)?))
    }

    /// The table of this name, locked. One that the transaction has created nobody else knows, and nothing of its rows
    /// changes with its indexes.
    pub(super) fn lock_for_index(&mut self, table: &str) -> Result<Arc<TableEntry>> {
        let entry = self.entry(table)?;
        match self.has_created(&entry) {
            true => Ok(entry),
            false => self.lock_entry(table),
        }
    }

    fn has_created(&self, entry: &TableEntry) -> bool {
        self.definitions.as_ref().is_some_and(|own| own.has_created(entry.id))
    }

    /// The table of an index, locked.
    fn lock_indexed(&mut self, index: &str) -> Result<Arc<TableEntry>> {
        let unknown = || Error::UnknownIndex { name: index.to_owned() };
        loop {
            let table = self.indexed_table(index)?;
            let entry = self.lock_for_index(&table)?;
            if entry.schema.definition().index_position(index).is_ok() {
                return Ok(entry);
            }
            // It was dropped, or moved, while it was waited for.
            if self.indexed_table(index).is_err() {
                return Err(unknown());
            }
        }
    }

    /// The name of the table that an index is of.
    ///
    /// # Errors
    /// [`UnknownIndex`](Error::UnknownIndex).
    pub fn indexed_table(&self, index: &str) -> Result<String> {
        let unknown = || Error::UnknownIndex { name: index.to_owned() };
        let entries = self.entry(index).map_err(|_| unknown())?;
        let of = entries.schema.definition().entries_of().ok_or_else(unknown)?.table;
        let entry = self.as_seen(of).ok_or_else(unknown)?;
        Ok(entry.name().to_owned())
    }

    /// The table has another definition, and the indexes that this names; entries of others go.
    pub(super) fn put_definition(
        &mut self,
        entry: &Arc<TableEntry>,
        change: impl FnOnce(TableDefinition) -> Result<TableDefinition>,
    ) -> Result<Table> {
        let mut definition = change(TableDefinition::clone(entry.schema.definition()))?;
        if !self.has_created(entry) {
            // Versions that were taken back are not given again.
            definition = definition.raised_to(entry.tree.highest_version()).as_next_version()?;
        }
        let altered = Arc::new(entry.altered_privately(Arc::new(definition))?);
        self.put_indexed(entry, &altered)?;
        Ok(self.handle(altered))
    }

    /// A table is another one now; its indexes are those of its definition.
    pub(super) fn put_indexed(
        &mut self,
        entry: &Arc<TableEntry>,
        now: &Arc<TableEntry>,
    ) -> Result<()> {
        let kept = now.schema.definition().indexes();
        for gone in entry.schema.definition().indexes() {
            if !kept.iter().any(|kept| kept.entries == gone.entries) {
                self.drop_entries(gone.entries);
            }
        }
        self.check_referenced_keys(now)?;
        self.own_definitions().put(entry, Some(Arc::clone(now)));
        now.indexes(|id| self.as_seen(id))?;
        if now.has_long_values() {
            now.long_values(|id| self.as_seen(id))?;
        }
        Ok(())
    }

    /// Changes the entries of all indexes of a table as it is changed itself.
    pub(super) fn alter_entries(&mut self, entry: &TableEntry, change: &TableChange) -> Result<()> {
        for index in entry.schema.definition().indexes() {
            let Some(entries) = self.as_seen(index.entries) else { continue };
            let altered = entries.schema.definition().altered(change, 0)?;
            let altered = Arc::new(entries.altered_privately(Arc::new(altered))?);
            self.own_definitions().put(&entries, Some(altered));
        }
        Ok(())
    }

    /// The entries of an index are nobody's any more.
    pub(super) fn drop_entries(&mut self, entries: u32) {
        if let Some(entry) = self.as_seen(entries) {
            self.own_definitions().put(&entry, None);
        }
    }

    /// The table of this number as the transaction has defined it, else as it was committed last. None for one that the
    /// transaction has dropped.
    pub(super) fn as_seen(&self, table: u32) -> Option<Arc<TableEntry>> {
        match self.definitions.as_ref().filter(|own| own.defines(table)) {
            Some(own) => own.by_id(table),
            None => self.engine().catalog.by_id(table),
        }
    }

    /// Makes the indexes of a table anew for the one that takes its place.
    pub(super) fn move_indexes(&mut self, from: &Arc<TableEntry>, to: &str) -> Result<()> {
        let definition = from.schema.definition();
        for index in definition.indexes() {
            self.drop_entries(index.entries);
        }
        // What was to take the place of an index is not needed any more: that one is made anew here.
        let is_spare = |index: &IndexDefinition| {
            let is_of = |other: &IndexDefinition| {
                other.name != index.name
                    && index.name.starts_with(&format!("{}{ANEW_SUFFIX}", other.name))
            };
            index.is_building && definition.indexes().iter().any(is_of)
        };
        for index in definition.indexes().iter().filter(|index| !is_spare(index)) {
            let now = self.entry(to)?;
            if let Some(index) = NewIndex::again(index, definition, now.schema.definition())? {
                self.create_index(to, &index)?;
            }
        }
        Ok(())
    }
}

/// The numbers of the entries of an index that is built, and of the one whose place it takes.
pub(crate) struct BuiltAgain {
    pub(crate) built: u32,
    pub(crate) replaced: u32,
}

/// The position of the index with these entries.
pub(crate) fn index_with(table: &TableDefinition, entries: u32) -> Result<usize> {
    let position = table.indexes().iter().position(|index| index.entries == entries);
    position.ok_or_else(|| unknown_entries(entries))
}

fn unknown_entries(entries: u32) -> Error {
    Error::UnknownIndex { name: format!("with the entries of table {entries}") }
}

impl Session {
    /// Begins a transaction that reads nothing, so that nothing is kept for it however long it is open.
    pub(crate) fn begin_unseeing(&mut self) -> Transaction<'_> {
        Transaction::new(self, None)
    }
}

impl Snapshot {
    /// The entries of a table's index, at its position among them, as a table that can be read.
    ///
    /// # Errors
    /// [`TableChanged`](Error::TableChanged) for a table that was altered since, and for an index that was whole later
    /// than what this sees, or is not whole yet; an index that the table does not have.
    pub fn index_entries(&self, table: &Table, position: usize) -> Result<Table> {
        let engine = &self.worker.engine;
        let indexes = table.entry.indexes(|id| engine.catalog.by_id(id))?;
        let index = indexes.get(position).ok_or_else(|| Error::UnknownIndex {
            name: format!("number {position} of table {}", table.name()),
        })?;
        let entries = Table { entry: Arc::clone(&index.entries), database_id: table.database_id };
        self.held.check_sees(&entries)?;
        match index.is_building() || !entries.entry.tree.is_whole_at(self.held.lsn()) {
            true => Err(Error::TableChanged { name: table.name().to_owned() }),
            false => Ok(entries),
        }
    }
}

/// The entries of an index are defined with their table alone.
pub(super) fn check_is_table(entry: &TableEntry) -> Result<()> {
    match entry.is_index() {
        true => Err(Error::IsIndex { name: entry.name().to_owned() }),
        false => Ok(()),
    }
}
