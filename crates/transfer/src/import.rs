//! Rows into a table, one transaction each or many rows a transaction.
//!
//! Commits are not waited for one by one: the engine orders them, and at the end everything is made
//! durable. If the engine stops in the middle, the error says up to which line all is safe.
//!
//! Invariants
//! 1. A row is imported or rejected, never both, never neither (unless the import stops).
//! 2. When [`import`] returns a report, every imported row is durable.
//! 3. A row that the engine refuses costs only itself: the others of its transaction are inserted
//!    one by one.

use std::collections::VecDeque;
use std::io::BufRead;

use onrush::expression::EvaluationError;
use onrush::{Database, Durability, Error, Lsn, Row, Session, Table, Value};

use crate::csv::CsvOptions;
use crate::csv::rows::CsvRows;
use crate::error::TransferError;
use crate::json::JsonRows;
use crate::length_of;
use crate::rejects::Rejects;

/// A batch is committed where its values take so many bytes, whatever rows it has.
const BATCH_BYTES: usize = 16 << 20;
/// Rows between two notes of how far the log is, and two reports of progress.
const NOTE_ROWS: u64 = 1024;
/// A conflict with another transaction is tried again so often.
const CONFLICT_TRIES: usize = 10;

/// The form of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportFormat {
    /// See [`crate::csv`].
    Csv(CsvOptions),
    /// One object a line; see [`crate::json`].
    Json,
}

/// How to import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportOptions {
    /// The form of the input.
    pub format: ImportFormat,
    /// Rows of each transaction, at least 1.
    pub rows_per_commit: usize,
    /// The line to begin with, where a row begins; 0 and 1 are the first. The header is read all the same.
    pub from_line: u64,
    /// A row whose key is taken replaces the one that is there.
    pub is_upsert: bool,
}

impl ImportOptions {
    /// All rows, each a transaction of its own, none of which is there already.
    #[must_use]
    pub fn new(format: ImportFormat) -> ImportOptions {
        ImportOptions { format, rows_per_commit: 1, from_line: 1, is_upsert: false }
    }
}

/// Who sees how far an import is, and may end it.
pub trait Watcher {
    /// Called every thousand rows or so, and at the end.
    fn advanced(&mut self, report: &ImportReport);

    /// Whether to end it: what was read is imported, and the report says where to go on.
    fn is_enough(&self) -> bool {
        false
    }
}

/// Looks on.
impl<F: FnMut(&ImportReport)> Watcher for F {
    fn advanced(&mut self, report: &ImportReport) {
        self(report);
    }
}

/// How far an import is, and in the end what it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Rows read, good and bad.
    pub rows_read: u64,
    /// Rows imported: inserted, or put in the place of others.
    pub rows_imported: u64,
    /// Rows rejected.
    pub rows_rejected: u64,
    /// Bytes of input read.
    pub bytes_read: u64,
    /// All rows in front of this line are durable or rejected: another import may go on here.
    pub next_line: u64,
    /// Somebody ended it before the end of the input.
    pub is_interrupted: bool,
}

/// A row of the input.
#[derive(Clone, Debug)]
pub struct SourceRow {
    /// Its first line.
    pub line: u64,
    /// As it stood in the input.
    pub raw: String,
    /// A value for each column of the table, or why it is no row.
    pub values: Result<Row, String>,
}

/// Where rows come from.
pub trait RowSource {
    /// The next row; None at the end.
    ///
    /// # Errors
    /// An input that cannot be read further.
    fn next_row(&mut self) -> Result<Option<SourceRow>, TransferError>;

    /// The line behind the row returned last.
    fn next_line(&self) -> u64;

    /// Passes over lines until the next one has this number. A row must begin there.
    ///
    /// # Errors
    /// An input that cannot be read further.
    fn skip_to(&mut self, line: u64) -> Result<(), TransferError>;

    /// Bytes of input read so far.
    fn bytes_read(&self) -> u64;
}

/// Imports `input` into `table`, up to its end or until the watcher has seen enough.
///
/// # Errors
/// An input that cannot be read, a header that does not fit the table, a side file that cannot be
/// written, and whatever stops the engine; never a single bad row.
pub fn import<R: BufRead>(
    database: &Database,
    table: &Table,
    input: R,
    options: &ImportOptions,
    rejects: &mut Rejects,
    watcher: &mut dyn Watcher,
) -> Result<ImportReport, TransferError> {
    let mut session = database.session()?;
    session.set_durability(Durability::Delayed);
    rejects.begin()?;
    let importer = Importer {
        database,
        table,
        session,
        options,
        rejects,
        report: ImportReport { next_line: options.from_line.max(1), ..ImportReport::default() },
        notes: VecDeque::new(),
        durable: (0, options.from_line.max(1)),
    };
    match &options.format {
        ImportFormat::Csv(csv) => {
            importer.run(&mut CsvRows::new(input, table.schema(), csv)?, watcher)
        }
        ImportFormat::Json => importer.run(&mut JsonRows::new(input, table.schema()), watcher),
    }
}

/// All up to here is durable once the log is durable up to `lsn`; with none it is.
struct Note {
    lsn: Option<Lsn>,
    rows: u64,
    /// The line to go on with.
    next_line: u64,
}

struct Importer<'i> {
    database: &'i Database,
    table: &'i Table,
    session: Session,
    options: &'i ImportOptions,
    rejects: &'i mut Rejects,
    report: ImportReport,
    notes: VecDeque<Note>,
    durable: (u64, u64), // rows and next line of the last note that came true
}

impl Importer<'_> {
    fn run(
        mut self,
        source: &mut dyn RowSource,
        watcher: &mut dyn Watcher,
    ) -> Result<ImportReport, TransferError> {
        let rows_per_commit = self.options.rows_per_commit.max(1);
        let mut batch: Vec<(SourceRow, Row)> = Vec::with_capacity(rows_per_commit.min(4096));
        source.skip_to(self.options.from_line)?;
        let (mut line, mut batch_bytes) = (0, 0);
        loop {
            if watcher.is_enough() {
                self.report.is_interrupted = true;
                break;
            }
            let Some(mut row) = source.next_row()? else { break };
            self.report.rows_read += 1;
            line = row.line;
            match std::mem::replace(&mut row.values, Ok(Row::new())) {
                Ok(values) => {
                    batch_bytes += values.iter().map(length_of).sum::<usize>();
                    batch.push((row, values));
                }
                Err(reason) => self.reject(&row, &reason)?,
            }
            if batch.len() >= rows_per_commit || batch_bytes >= BATCH_BYTES {
                self.commit(&batch)?;
                batch.clear();
                batch_bytes = 0;
            }
            if self.report.rows_read.is_multiple_of(NOTE_ROWS) {
                self.report.bytes_read = source.bytes_read();
                // Rows of a batch that is not full yet are not in.
                let next_line = batch.first().map_or(source.next_line(), |(row, _)| row.line);
                self.rejects.finish()?;
                self.note(next_line);
                watcher.advanced(&self.report);
            }
        }
        self.commit(&batch)?;
        self.database.barrier().map_err(|cause| self.stopped(line, cause))?;
        self.rejects.finish()?;
        self.report.bytes_read = source.bytes_read();
        self.report.next_line = source.next_line();
        watcher.advanced(&self.report);
        Ok(self.report)
    }

    /// Inserts the rows as one transaction; if it is refused, one by one.
    fn commit(&mut self, batch: &[(SourceRow, Row)]) -> Result<(), TransferError> {
        let Some((first, _)) = batch.first() else { return Ok(()) };
        if batch.len() > 1 {
            match self.write_all(batch) {
                Ok(()) => {
                    self.report.rows_imported += batch.len() as u64;
                    return Ok(());
                }
                Err(error) if is_about_a_row(&error) || error.is_retryable() => {}
                Err(cause) => return Err(self.stopped(first.line, cause)),
            }
        }
        batch.iter().try_for_each(|(row, values)| self.insert(row, values))
    }

    /// All rows, or none.
    fn write_all(&mut self, batch: &[(SourceRow, Row)]) -> onrush::Result<()> {
        if !self.options.is_upsert {
            let rows = batch.iter().map(|(_, values)| values.as_slice());
            return self.session.insert_many(self.table, rows);
        }
        let mut transaction = self.session.begin()?;
        for (_, values) in batch {
            transaction.upsert(self.table, values)?;
        }
        transaction.commit()
    }

    fn write(&mut self, values: &[Value<'_>]) -> onrush::Result<()> {
        match self.options.is_upsert {
            true => self.session.upsert(self.table, values),
            false => self.session.insert(self.table, values),
        }
    }

    fn insert(&mut self, row: &SourceRow, values: &[Value<'_>]) -> Result<(), TransferError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.write(values) {
                Ok(()) => {
                    self.report.rows_imported += 1;
                    return Ok(());
                }
                Err(Error::Conflict { .. }) if tries < CONFLICT_TRIES => {}
                Err(error) if is_about_a_row(&error) => {
                    return self.reject(row, &error.to_string());
                }
                Err(cause) => return Err(self.stopped(row.line, cause)),
            }
        }
    }

    fn reject(&mut self, row: &SourceRow, reason: &str) -> Result<(), TransferError> {
        self.report.rows_rejected += 1;
        self.rejects.reject(row.line, reason, &row.raw)
    }

    /// Notes where the log is when everything in front of a line is in, and which earlier notes have come true.
    fn note(&mut self, next_line: u64) {
        self.notes.push_back(Note {
            lsn: self.session.last_commit_lsn(),
            rows: self.report.rows_imported,
            next_line,
        });
        self.settle();
    }

    fn settle(&mut self) {
        let durable_lsn = self.database.durable_lsn();
        while let Some(note) = self.notes.pop_front_if(|note| note.lsn <= Some(durable_lsn)) {
            self.durable = (note.rows, note.next_line);
            self.report.next_line = note.next_line;
        }
    }

    fn stopped(&mut self, line: u64, cause: Error) -> TransferError {
        self.settle();
        let (rows_durable, next_line) = self.durable;
        TransferError::Stopped { line, rows_durable, next_line, cause }
    }
}

/// Whether the row is to blame, and not the engine or the disk.
fn is_about_a_row(error: &Error) -> bool {
    match error {
        Error::Type(error) => !error.is_damage(),
        Error::DuplicateKey { .. }
        | Error::CheckViolated { .. }
        | Error::DomainViolated(_)
        | Error::TransactionTooLarge { .. } => true,
        Error::CheckFailed(cause) => cause.is::<EvaluationError>(),
        _ => false,
    }
}
