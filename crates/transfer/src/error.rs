//! Why an import or export stopped. Bad rows do not stop an import: see [`crate::rejects`].

use std::io;

/// Why an import or export stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The input could not be read.
    #[error("cannot read the input at line {line}: {source}")]
    Read {
        /// The line that was next.
        line: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The output could not be written.
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
    /// The header or the form of the whole input is wrong, so that no row can be read.
    #[error("{0}")]
    Input(String),
    /// The side file for rejected rows could not be written.
    #[error("cannot write the rejected rows to {path}: {source}")]
    Rejects {
        /// Its path.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The engine refused something other than one row.
    #[error("{0}")]
    Engine(#[from] onrush::Error),
    /// The engine stopped the import in the middle.
    #[error(
        "stopped at line {line}: {cause}. {rows_durable} imported rows, in front of line \
         {next_line}, are durable; the rows between may or may not be there"
    )]
    Stopped {
        /// The line being imported.
        line: u64,
        /// Rows known to be durable, from the beginning of the input.
        rows_durable: u64,
        /// The line behind the last of them: where to go on.
        next_line: u64,
        /// What the engine said.
        cause: onrush::Error,
    },
    /// A row cannot be written in this format.
    #[error("cannot write Parquet: {0}")]
    Parquet(String),
}

impl From<parquet::errors::ParquetError> for TransferError {
    fn from(error: parquet::errors::ParquetError) -> TransferError {
        match error {
            parquet::errors::ParquetError::External(cause) => match cause.downcast::<io::Error>() {
                Ok(io_error) => TransferError::Write(*io_error),
                Err(cause) => TransferError::Parquet(cause.to_string()),
            },
            other => TransferError::Parquet(other.to_string()),
        }
    }
}
