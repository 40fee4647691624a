//! Rows of a partition, a batch at a time: as they are scanned, or fetched by the keys that entries of an index have.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatchOptions};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::physical_plan::metrics::BaselineMetrics;
use onrush::{Direction, KeyRange, ROW_BYTES_MAX, Scan, Snapshot, Table, Value};

use crate::columns::ColumnBuilder;
use crate::error::{QueryError, Result};
use crate::scan::{FromEntries, IndexSource, ScanSource};
use crate::statement::Statement;

/// Rows of the first batch: few, as the first rows may be all that is asked for.
const FIRST_BATCH_ROWS: usize = 128;

/// Rows that are fetched first before it is looked how long they are.
const FETCHED_AT_FIRST: u64 = 4;

/// Most rows of a batch that are fetched one by one, each of which may have to come from the disk: a query that is
/// not wanted any more ends after a batch.
const FETCHED_BATCH_ROWS_MAX: usize = 1024;

/// A batch ends behind rows with so many bytes of long values.
const LONG_BYTES: usize = 8 << 20;

/// A partition while it is read.
pub(crate) struct Reader {
    statement: Arc<Statement>,
    source: Arc<ScanSource>,
    /// Those left, next one last.
    ranges: Vec<KeyRange>,
    direction: Direction,
    scan: Option<Scan>,
    /// Where rows are fetched from; none before the first.
    rows: Option<Snapshot>,
    /// Rows that are still wanted.
    left: u64,
    batch_rows: usize,
    batch_rows_max: usize,
    /// Rows that are fetched before it is looked how long they are.
    fetched_at_once: u64,
    metrics: BaselineMetrics,
}

impl Reader {
    /// Of `ranges` the last is read first; at most `fetch` rows.
    pub(crate) fn new(
        statement: Arc<Statement>,
        source: Arc<ScanSource>,
        ranges: Vec<KeyRange>,
        direction: Direction,
        fetch: Option<usize>,
        batch_rows_max: usize,
        metrics: BaselineMetrics,
    ) -> Reader {
        let is_fetched = source.fetched().is_some();
        let most = if is_fetched { FETCHED_BATCH_ROWS_MAX } else { usize::MAX };
        Reader {
            statement,
            source,
            ranges,
            direction,
            scan: None,
            rows: None,
            left: fetch.map_or(u64::MAX, |rows| rows as u64),
            batch_rows: FIRST_BATCH_ROWS,
            batch_rows_max: batch_rows_max.min(most),
            fetched_at_once: FETCHED_AT_FIRST,
            metrics,
        }
    }

    pub(crate) fn metrics(&self) -> &BaselineMetrics {
        &self.metrics
    }

    /// There are no more rows.
    pub(crate) fn end(&mut self) {
        self.ranges.clear();
        self.scan = None;
        self.left = 0;
    }

    /// The next rows; none at the end.
    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let rows_max = self.left.min(self.batch_rows as u64);
        self.batch_rows = (self.batch_rows * 4).min(self.batch_rows_max);
        let source = Arc::clone(&self.source);
        let mut columns = ColumnsInTheMaking::new(&source, rows_max as usize)?;
        let (mut rows, mut long_bytes) = (0, 0);
        while rows < rows_max {
            let scan = match &mut self.scan {
                Some(scan) => scan,
                None => {
                    let Some(range) = self.ranges.pop() else { break };
                    let scan = self.statement.scan(source.scanned(), &range, self.direction)?;
                    let scan = match source.fetched() {
                        Some(_) => scan,
                        None => scan.only_columns(source.read().1.iter().copied()),
                    };
                    self.scan.insert(scan)
                }
            };
            let wanted = rows_max - rows;
            let (read, is_over) = if let Some((entries, key)) = source.fetched() {
                let mut keys = RowKeys::new(entries, &source.table, key);
                let wanted = self.fetched_at_once.min(wanted);
                let read = scan.visit_some(wanted, |key, entry| keys.append(key, entry))?;
                let rows = self.rows.get_or_insert_with(|| self.statement.view());
                let bytes = keys.fetch(rows, &mut columns)?;
                long_bytes += bytes;
                // As many as take a part of what a batch may take, if the next are like these.
                self.fetched_at_once = match bytes {
                    0 => (2 * self.fetched_at_once).min(FETCHED_BATCH_ROWS_MAX as u64),
                    _ => 1,
                };
                (read, read < wanted)
            } else if source.columns.is_empty() {
                let read = scan.visit_some(wanted, |_, _| ())?;
                (read, read < wanted)
            } else {
                let append = |key: &[u8], row: &[u8]| columns.append(key, row);
                let part = scan.visit_part(wanted, LONG_BYTES, append)?;
                long_bytes += part.long_bytes;
                (part.rows, part.is_over)
            };
            columns.outcome()?;
            rows += read;
            if is_over {
                self.scan = None;
            }
            if long_bytes >= LONG_BYTES {
                break;
            }
        }
        self.left -= rows;
        if rows == 0 {
            return Ok(None);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows as usize));
        let schema = Arc::clone(&source.schema);
        Ok(Some(RecordBatch::try_new_with_options(schema, columns.finish(), &options)?))
    }
}

impl ScanSource {
    /// Where rows are fetched by their keys: the entries, and where the keys are in them.
    fn fetched(&self) -> Option<(&Table, &[usize])> {
        match &self.index {
            Some(IndexSource { entries, wanted: FromEntries::Key(key) }) => Some((entries, key)),
            _ => None,
        }
    }

    /// The columns to read of what they are read from.
    fn read(&self) -> (&Table, &[usize]) {
        match &self.index {
            Some(IndexSource { entries, wanted: FromEntries::Columns(columns) }) => {
                (entries, columns)
            }
            _ => (&self.table, &self.columns),
        }
    }
}

/// Key bytes of rows, out of entries of an index. Rows are fetched when the scan of the entries stands still.
struct RowKeys<'s> {
    entries: &'s Table,
    table: &'s Table,
    /// Where the columns of the table's key are in an entry.
    key: &'s [usize],
    bytes: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
    error: Option<QueryError>,
}

impl<'s> RowKeys<'s> {
    fn new(entries: &'s Table, table: &'s Table, key: &'s [usize]) -> RowKeys<'s> {
        RowKeys { entries, table, key, bytes: Vec::new(), ends: Vec::new(), error: None }
    }

    /// Takes in the key of one entry's row; after an error it takes in nothing.
    fn append(&mut self, key: &[u8], entry: &[u8]) {
        if self.error.is_none()
            && let Err(error) = self.try_append(key, entry)
        {
            self.error = Some(error);
        }
    }

    fn try_append(&mut self, key: &[u8], entry: &[u8]) -> Result<()> {
        let view = self.entries.schema().view(key, entry)?;
        let mut values: Vec<Value<'_>> = Vec::with_capacity(self.key.len());
        for column in self.key {
            values.push(view.column(*column)?);
        }
        let mut encoded = Vec::new();
        self.table.schema().encode_key(&values, &mut encoded)?;
        self.bytes.append(&mut encoded);
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// The bytes of long values that were read.
    fn fetch(self, rows: &mut Snapshot, columns: &mut ColumnsInTheMaking<'_>) -> Result<usize> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let (mut start, mut long_bytes) = (0, 0);
        for end in self.ends {
            let key = &self.bytes[start..end];
            let Some(row) = rows.get_columns_raw(self.table, key, columns.columns)? else {
                let (index, table) = (self.entries.name(), self.table.name());
                let message =
                    format!("index {index} has an entry of a row that {table} does not have");
                return Err(QueryError::Internal { message });
            };
            columns.append(key, &row);
            long_bytes += if row.len() > ROW_BYTES_MAX { row.len() } else { 0 };
            start = end;
        }
        Ok(long_bytes)
    }
}

/// The columns of one batch.
struct ColumnsInTheMaking<'s> {
    /// What they are columns of.
    table: &'s Table,
    /// Their positions there.
    columns: &'s [usize],
    builders: Vec<ColumnBuilder>,
    error: Option<QueryError>,
}

impl<'s> ColumnsInTheMaking<'s> {
    fn new(source: &'s ScanSource, rows: usize) -> Result<ColumnsInTheMaking<'s>> {
        let (table, columns) = source.read();
        let all = table.definition().columns();
        let builder = |column: &usize| ColumnBuilder::new(all[*column].data_type.into(), rows);
        let builders = columns.iter().map(builder).collect::<std::result::Result<_, _>>()?;
        Ok(ColumnsInTheMaking { table, columns, builders, error: None })
    }

    /// Takes in one row; after an error it takes in nothing.
    fn append(&mut self, key: &[u8], row: &[u8]) {
        if self.error.is_none()
            && let Err(error) = self.try_append(key, row)
        {
            self.error = Some(error);
        }
    }

    fn try_append(&mut self, key: &[u8], row: &[u8]) -> Result<()> {
        let view = self.table.schema().view(key, row).map_err(onrush::Error::from)?;
        for (builder, column) in self.builders.iter_mut().zip(self.columns) {
            builder.append_column(&view, *column)?;
        }
        Ok(())
    }

    fn outcome(&mut self) -> Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    fn finish(&mut self) -> Vec<ArrayRef> {
        self.builders.iter_mut().map(ColumnBuilder::finish).collect()
    }
}
