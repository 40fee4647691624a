//! The rows of a scan into a file, in key order.

use std::io::Write;

use onrush::{DataType, Scan, Table};

use crate::csv::CsvOptions;
use crate::csv::writer::CsvWriter;
use crate::error::TransferError;
use crate::json::RowWriter;
use crate::parquet::ParquetRows;

/// Rows between two reports of progress.
const REPORT_ROWS: u64 = 4096;

/// The form of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// See [`crate::csv`].
    Csv(CsvOptions),
    /// One object a line; see [`crate::json`].
    Json,
    /// See [`crate::parquet`].
    Parquet,
}

/// How to export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportOptions {
    /// The form of the output.
    pub format: ExportFormat,
}

/// Writes the rows of `scan`, which is one of `table`, and returns how many there were. `progress`
/// is called with the rows written so far.
///
/// # Errors
/// The output cannot be written; the engine cannot read.
pub fn export<W: Write + Send>(
    table: &Table,
    scan: Scan,
    mut out: W,
    options: &ExportOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, TransferError> {
    let definition = table.definition();
    let mut rows = 0_u64;
    let mut each = |scan: Scan, write: &mut dyn FnMut(onrush::Row) -> Result<(), TransferError>| {
        for row in scan {
            write(row?)?;
            rows += 1;
            if rows.is_multiple_of(REPORT_ROWS) {
                progress(rows);
            }
        }
        Ok::<(), TransferError>(())
    };
    match &options.format {
        ExportFormat::Csv(csv) => {
            let mut writer = CsvWriter::new(definition, csv.clone());
            out.write_all(writer.header())?;
            each(scan, &mut |row| Ok(out.write_all(writer.line(&row))?))?;
            out.flush()?;
        }
        ExportFormat::Json => {
            let mut writer = RowWriter::new(definition);
            each(scan, &mut |row| Ok(out.write_all(writer.line(&row))?))?;
            out.flush()?;
        }
        ExportFormat::Parquet => {
            let mut writer = ParquetRows::new(definition, out)?;
            each(scan, &mut |row| writer.row(&row))?;
            writer.finish()?;
        }
    }
    progress(rows);
    Ok(rows)
}

/// Whether values of the type are filled up with blanks that do not count.
pub(crate) fn is_char(data_type: DataType) -> bool {
    matches!(data_type, DataType::Char(_))
}
