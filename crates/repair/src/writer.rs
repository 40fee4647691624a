//! Writes what is salvaged into a new database: rows of images in batches, changes of the log one by
//! one, all delayed; a barrier and a checkpoint at the end. Entries of indexes are not taken over: the indexes are
//! made anew of the rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use onrush::{
    Database, Durability, Error, NewForeignKey, NewIndex, Options, Row, ScanOptions, Schema,
    Session, Table, TableDefinition,
};
use onrush_check::{Loss, SalvageTarget, SalvagedTable};
use onrush_files::{Disk, Unfinished};

use crate::error::RepairError;
use crate::long_values::{self, LongValues};
use crate::progress::RepairProgress;
use crate::report::RepairedTable;

/// Most rows of a batch.
const BATCH_ROWS: usize = 1000;
/// A batch is written once it takes more than this part of the log's memory; a record may take an
/// eighth of it.
const BATCH_PART: usize = 32;

/// See the module.
pub(crate) struct Writer<'a> {
    disk: Arc<dyn Disk>,
    mark: Unfinished,
    options: Options,
    progress: &'a RepairProgress,
    open: Option<Open>,
}

/// The new database.
struct Open {
    database: Database,
    session: Session,
    tables: Vec<Written>,
    long_values: LongValues,
    /// Rows of images that wait, all of one table.
    batch: Vec<Row>,
    batch_table: usize,
    batch_bytes: usize,
}

struct Written {
    /// By which others name the table.
    number: u32,
    schema: Schema,
    /// None for the entries of an index, and for the pieces of long values.
    table: Option<Table>,
    rows: u64,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        mark: Unfinished,
        options: &Options,
        progress: &'a RepairProgress,
    ) -> Writer<'a> {
        Writer { disk, mark, options: options.clone(), progress, open: None }
    }

    /// Makes all durable and closes the new database, which keeps its mark; what it has. None if there was no
    /// beginning.
    pub(crate) fn finish(
        mut self,
        losses: &mut Vec<Loss>,
    ) -> Result<Option<Vec<RepairedTable>>, RepairError> {
        self.write_batch()?;
        let Some(mut open) = self.open else { return Ok(None) };
        open.write_long_rows(losses)?;
        open.make_indexes()?;
        open.make_foreign_keys()?;
        open.database.barrier()?;
        drop(open.session);
        open.database.close()?;
        let repaired = |written: &Written| RepairedTable {
            name: written.schema.name().to_owned(),
            rows: written.rows,
            is_logged: written.schema.definition().is_logged(),
            is_index: written.table.is_none(),
        };
        let is_shown = |written: &&Written| !written.schema.definition().is_long_values();
        Ok(Some(open.tables.iter().filter(is_shown).map(repaired).collect()))
    }

    fn write_batch(&mut self) -> Result<(), RepairError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        if open.batch.is_empty() {
            return Ok(());
        }
        let written = &mut open.tables[open.batch_table];
        let Some(table) = &written.table else { return Ok(()) };
        let rows = open.batch.iter().map(Vec::as_slice);
        match open.session.insert_many(table, rows) {
            Ok(()) => written.rows += open.batch.len() as u64,
            // Two leaves of a damaged directory have the same key: the later one counts.
            Err(Error::DuplicateKey { .. }) => {
                for row in &open.batch {
                    written.put(&mut open.session, row)?;
                }
            }
            Err(cause) => return Err(written.refused(cause)),
        }
        self.progress.add_rows(open.batch.len() as u64);
        open.batch.clear();
        open.batch_bytes = 0;
        Ok(())
    }

    fn open(&mut self) -> Result<&mut Open, RepairError> {
        let missing = || RepairError::NotVerified("rows came before their tables".to_owned());
        self.open.as_mut().ok_or_else(missing)
    }
}

impl Open {
    /// Writes the rows that were kept aside, whose long values are there now.
    fn write_long_rows(&mut self, losses: &mut Vec<Loss>) -> Result<(), RepairError> {
        let Open { database, session, tables, long_values, .. } = self;
        while let Some(((at, key), row)) = long_values.next() {
            let written = &mut tables[at];
            let Some(table) = written.table.clone() else { continue };
            match long_values.whole(session, &written.schema, &row)? {
                Some(whole) => {
                    let row = written.row(&key, &whole)?;
                    written.put(session, &row)?;
                }
                None => {
                    let finding = long_values::lost(database, &table, &key);
                    losses.push(Loss { finding, images: Some(0), bytes: None });
                }
            }
        }
        Ok(long_values.drop_pieces(database)?)
    }

    /// Makes the indexes of all tables of their rows, and tells of each how many entries it has.
    fn make_indexes(&mut self) -> Result<(), RepairError> {
        for at in 0..self.tables.len() {
            let Written { schema, table: Some(_), rows, .. } = &self.tables[at] else { continue };
            let (definition, rows) = (Arc::clone(schema.definition()), *rows);
            for index in definition.indexes().iter().filter(|index| !index.is_building) {
                let new = NewIndex::again(index, &definition, &definition)?;
                let unknown = || Error::UnknownIndex { name: index.name.clone() };
                let table =
                    self.database.create_index(definition.name(), &new.ok_or_else(unknown)?)?;
                let rows = match index.predicate {
                    None => rows,
                    Some(_) => self.count_entries(&table)?,
                };
                let entries =
                    self.tables.iter_mut().find(|other| other.schema.name() == index.name);
                entries.into_iter().for_each(|entries| entries.rows = rows);
            }
        }
        Ok(())
    }

    /// Keeps a piece of a long value, or forgets it. Of entries of indexes nothing is kept.
    fn put_piece(
        &mut self,
        table: usize,
        key: &[u8],
        row: Option<&[u8]>,
    ) -> Result<(), RepairError> {
        let written = &self.tables[table];
        let Some(pieces) = self.long_values.pieces(written.number) else { return Ok(()) };
        let put = match row {
            Some(row) => {
                let piece = written.row(key, row)?;
                self.session.upsert(pieces, &piece)
            }
            None => {
                let key = written.schema.decode_key(key).map_err(Error::from)?;
                self.session.delete(pieces, &key).map(drop)
            }
        };
        put.map_err(|cause| written.refused(cause))
    }

    /// The entries of the index of a table that was made last.
    fn count_entries(&mut self, table: &Table) -> Result<u64, RepairError> {
        let newest = table.definition().indexes().len() - 1;
        let snapshot = self.session.snapshot()?;
        let entries = snapshot.index_entries(table, newest)?;
        let mut count = 0;
        for entry in snapshot.scan(&entries, &ScanOptions::default())? {
            entry?;
            count += 1;
        }
        Ok(count)
    }

    /// Makes the foreign keys between tables. One that rows do not meet any more, as some are lost, is made for those
    /// rows that come.
    fn make_foreign_keys(&mut self) -> Result<(), RepairError> {
        let definitions = self.tables.iter().map(|written| Arc::clone(written.schema.definition()));
        let by_number: BTreeMap<u32, Arc<TableDefinition>> =
            self.tables.iter().map(|written| written.number).zip(definitions).collect();
        for definition in by_number.values() {
            for foreign_key in definition.foreign_keys() {
                let Some(referenced) = by_number.get(&foreign_key.referenced_table) else {
                    continue;
                };
                let new = NewForeignKey::again(foreign_key, definition, referenced)?;
                match self.database.add_foreign_key(definition.name(), &new) {
                    Err(Error::ReferenceMissing { .. }) => {
                        let unmet = NewForeignKey { is_validated: false, ..new };
                        self.database.add_foreign_key(definition.name(), &unmet)?;
                    }
                    other => drop(other?),
                }
            }
        }
        Ok(())
    }
}

impl Written {
    /// Removes the row with this key.
    fn remove(&mut self, session: &mut Session, key: &[u8]) -> Result<(), RepairError> {
        let Some(table) = &self.table else { return Ok(()) };
        let key = self.schema.decode_key(key).map_err(|error| self.refused(error.into()))?;
        let removed = session.delete(table, &key).map_err(|cause| self.refused(cause))?;
        self.rows -= u64::from(removed);
        Ok(())
    }

    fn row(&self, key: &[u8], row: &[u8]) -> Result<Row, RepairError> {
        let decoded = self.schema.decode_row(key, row);
        decoded.map_err(|error| self.refused(error.into()))
    }

    /// Inserts a row or replaces the one with its key, and counts.
    fn put(&mut self, session: &mut Session, row: &Row) -> Result<(), RepairError> {
        let Some(table) = &self.table else { return Ok(()) };
        let put = match session.insert(table, row) {
            Ok(()) => {
                self.rows += 1;
                Ok(())
            }
            Err(Error::DuplicateKey { .. }) => session.upsert(table, row),
            Err(error) => Err(error),
        };
        put.map_err(|cause| self.refused(cause))
    }

    fn refused(&self, cause: Error) -> RepairError {
        match cause {
            Error::Type(_) => RepairError::Refused { table: self.schema.name().to_owned(), cause },
            // The disk or the like: nothing that the row is to blame for.
            other => RepairError::Write(other),
        }
    }
}

impl SalvageTarget for Writer<'_> {
    type Error = RepairError;

    fn begin(&mut self, tables: &[SalvagedTable]) -> Result<(), RepairError> {
        let database =
            Database::create_marked_on(Arc::clone(&self.disk), &self.mark, self.options.clone())?;
        // Rows that come out of the same table meet its conditions, or need not.
        database.ask_no_checks();
        let mut session = database.session()?;
        session.set_durability(Durability::Delayed);
        let mut written = Vec::with_capacity(tables.len());
        // Numbers of what is made besides are behind all others.
        let mut transaction = session.begin()?;
        for table in tables {
            let definition = TableDefinition::from_bytes(&table.definition).map_err(Error::from)?;
            let schema = Schema::new(Arc::new(definition.clone())).map_err(Error::from)?;
            let number = table.number;
            if definition.entries_of().is_none() {
                database.raise_table_number(number);
                transaction.create_table_alone(definition)?;
            }
            written.push(Written { number, schema, table: None, rows: 0 });
        }
        for written in written.iter().filter(|it| it.schema.definition().entries_of().is_none()) {
            transaction.add_long_values(written.schema.name())?;
        }
        transaction.commit()?;
        let mut long_values = LongValues::default();
        for written in &mut written {
            let definition = written.schema.definition();
            if definition.entries_of().is_none() {
                written.table = Some(database.table(definition.name())?);
            } else if definition.is_long_values() {
                long_values.add_pieces(&database, written.number)?;
            }
        }
        self.open = Some(Open {
            database,
            session,
            tables: written,
            long_values,
            batch: Vec::with_capacity(BATCH_ROWS),
            batch_table: 0,
            batch_bytes: 0,
        });
        Ok(())
    }

    fn expand(
        &mut self,
        table: usize,
        elided: &[u8],
        names_version: bool,
        row: &mut Vec<u8>,
    ) -> bool {
        let open = self.open.as_ref();
        let Some(written) = open.and_then(|open| open.tables.get(table)) else { return false };
        written.schema.expand_elided(elided, names_version, row).is_ok()
    }

    fn image_row(&mut self, table: usize, key: &[u8], row: &[u8]) -> Result<(), RepairError> {
        let most_bytes = self.options.log_ring_bytes / BATCH_PART;
        let open = self.open()?;
        if open.tables[table].table.is_none() {
            return open.put_piece(table, key, Some(row));
        }
        if Schema::is_wide(row) {
            open.long_values.keep(table, key, row);
            return Ok(());
        }
        let is_full = open.batch.len() == BATCH_ROWS || open.batch_bytes >= most_bytes;
        if is_full || open.batch_table != table {
            self.write_batch()?;
        }
        let open = self.open()?;
        open.batch_table = table;
        open.batch_bytes += key.len() + row.len();
        open.batch.push(open.tables[table].row(key, row)?);
        Ok(())
    }

    fn put(&mut self, table: usize, key: &[u8], row: &[u8]) -> Result<(), RepairError> {
        self.write_batch()?;
        let open = self.open()?;
        if open.tables[table].table.is_none() {
            return open.put_piece(table, key, Some(row));
        }
        let Open { session, tables, long_values, .. } = open;
        if Schema::is_wide(row) {
            tables[table].remove(session, key)?;
            long_values.keep(table, key, row);
        } else {
            long_values.forget(table, key);
            let row = tables[table].row(key, row)?;
            tables[table].put(session, &row)?;
        }
        self.progress.add_rows(1);
        Ok(())
    }

    fn remove(&mut self, table: usize, key: &[u8]) -> Result<(), RepairError> {
        self.write_batch()?;
        let open = self.open()?;
        if open.tables[table].table.is_none() {
            return open.put_piece(table, key, None);
        }
        let Open { session, tables, long_values, .. } = open;
        match long_values.forget(table, key) {
            true => Ok(()),
            false => tables[table].remove(session, key),
        }
    }

    fn counter(&mut self, table: usize, column: &str, next: u64) -> Result<(), RepairError> {
        self.write_batch()?;
        let Open { session, tables, .. } = self.open()?;
        let Some(table) = &tables[table].table else { return Ok(()) };
        session.skip_numbers(table, column, next)?;
        Ok(())
    }
}
