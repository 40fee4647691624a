//! The side file: rows that could not be imported, each with its line number and the reason.
//!
//! CSV with the columns `line`, `reason`, `row`; the last is the row as it stood in the input.
//! The file is made at the first rejected row, so that a clean import leaves none. What is there already, of an
//! earlier import or of somebody else, stays as it is: the next free name is taken, unless it is to be overwritten.

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
    overwrites: bool,
    file: Option<BufWriter<File>>,
    count: u64,
    examples: Vec<(u64, String)>,
}

impl Rejects {
    /// For a side file at `path`, or where there is a file already, beside it: `orders.rejected-2.csv`.
    pub fn new(path: impl Into<PathBuf>) -> Rejects {
        let (path, overwrites) = (path.into(), false);
        Rejects { path, overwrites, file: None, count: 0, examples: Vec::new() }
    }

    /// For a side file at `path`; one that is there is replaced when the first row is rejected.
    pub fn overwriting(path: impl Into<PathBuf>) -> Rejects {
        Rejects { overwrites: true, ..Rejects::new(path) }
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

    /// Removes what an earlier import has left at the path, if it is to be overwritten: a clean import leaves
    /// nothing there. Another file is left as it is until a row is rejected.
    ///
    /// # Errors
    /// It cannot be removed.
    pub(crate) fn begin(&self) -> Result<(), TransferError> {
        if !self.overwrites {
            return Ok(());
        }
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
        if self.file.is_none() {
            let mut file = BufWriter::new(self.create()?);
            writeln!(file, "{HEADER}")?;
            self.file = Some(file);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        writeln!(file, "{line},{},{}", quoted(reason), quoted(row))
    }

    /// Makes the file; from then on the path is its own.
    fn create(&mut self) -> io::Result<File> {
        if self.overwrites {
            return File::create(&self.path);
        }
        for number in 1.. {
            let path = numbered(&self.path, number);
            match File::create_new(&path) {
                Ok(file) => {
                    self.path = path;
                    return Ok(file);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn failed(&self, source: io::Error) -> TransferError {
        TransferError::Rejects { path: self.path.display().to_string(), source }
    }
}

/// The path itself, then with -2, -3 and so on in front of its ending.
fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy()));
    path.with_file_name(format!("{stem}-{number}{}", ending.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_overwritten_unless_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("orders.csv.rejected.csv");
        std::fs::write(&path, "of yesterday").unwrap();
        let mut rejects = Rejects::new(&path);
        for round in 2..4 {
            rejects.reject(1, "reason", "row").unwrap();
            rejects.finish().unwrap();
            let name = format!("orders.csv.rejected-{round}.csv");
            assert_eq!(rejects.path(), folder.path().join(name));
            rejects = Rejects::new(&path);
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "of yesterday");
        let mut rejects = Rejects::overwriting(&path);
        rejects.begin().unwrap();
        assert!(path.exists(), "it is of somebody else");
        rejects.reject(1, "reason", "row").unwrap();
        rejects.finish().unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("line,reason,row"));
    }

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
