//! The side file: rows that could not be imported, each with its line number and the reason.
//!
//! CSV with the columns `line`, `reason`, `row`; the last is the row as it stood in the input.
//! The file is made at the first rejected row, so that a clean import leaves none; what an earlier import
//! rejected is removed when the next one begins.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::csv::writer::quoted;
use crate::error::TransferError;

/// The first line.
const HEADER: &str = "line,reason,row";
/// So many are kept for messages.
const EXAMPLES: usize = 3;

/// The rejected rows of one import.
#[derive(Debug)]
pub struct Rejects {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    count: u64,
    examples: Vec<(u64, String)>,
}

impl Rejects {
    /// For a side file at `path`; a file that is there is replaced when the first row is rejected.
    pub fn new(path: impl Into<PathBuf>) -> Rejects {
        Rejects { path: path.into(), file: None, count: 0, examples: Vec::new() }
    }

    /// Rows rejected.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Line and reason of the first few.
    pub fn examples(&self) -> &[(u64, String)] {
        &self.examples
    }

    /// Where they are.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what an earlier import has left at the path. Another file is left as it is until a row is
    /// rejected.
    ///
    /// # Errors
    /// It cannot be removed.
    pub(crate) fn begin(&self) -> Result<(), TransferError> {
        let mut start = [0; HEADER.len()];
        let read = File::open(&self.path).and_then(|mut file| file.read_exact(&mut start));
        if read.is_err() || start != *HEADER.as_bytes() {
            return Ok(());
        }
        std::fs::remove_file(&self.path).map_err(|source| self.failed(source))
    }

    /// Rejects one row.
    ///
    /// # Errors
    /// The side file cannot be written.
    pub fn reject(&mut self, line: u64, reason: &str, row: &str) -> Result<(), TransferError> {
        self.count += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push((line, reason.to_owned()));
        }
        self.write(line, reason, row).map_err(|source| self.failed(source))
    }

    /// Hands everything to the system.
    ///
    /// # Errors
    /// The side file cannot be written.
    pub fn finish(&mut self) -> Result<(), TransferError> {
        let outcome = self.file.as_mut().map_or(Ok(()), Write::flush);
        outcome.map_err(|source| self.failed(source))
    }

    fn write(&mut self, line: u64, reason: &str, row: &str) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let mut file = BufWriter::new(File::create(&self.path)?);
                writeln!(file, "{HEADER}")?;
                self.file.insert(file)
            }
        };
        writeln!(file, "{line},{},{}", quoted(reason), quoted(row))
    }

    fn failed(&self, source: io::Error) -> TransferError {
        TransferError::Rejects { path: self.path.display().to_string(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_rejected_rows_there_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rejected.csv");
        let mut rejects = Rejects::new(&path);
        rejects.finish().unwrap();
        assert!(!path.exists());
        rejects.reject(7, "column t.id: \"x\" is not integer", "x,\"a, b\"").unwrap();
        rejects.finish().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "line,reason,row\n7,\"column t.id: \"\"x\"\" is not integer\",\"x,\"\"a, b\"\"\"\n"
        );
        assert_eq!(rejects.count(), 1);
    }
}
