//! What was repaired and what is lost.

use std::fmt;
use std::path::PathBuf;

use onrush_check::SalvageReport;
use serde::Serialize;

/// What came of a repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The new database has all rows.
    NothingLost,
    /// The new database has what could be proven good; the losses say what is missing.
    SomethingLost,
    /// No table could be found: there is no new database.
    #[default]
    NothingSalvaged,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RepairReport {
    /// What came of it.
    pub outcome: Outcome,
    /// Where the new database is.
    pub into: PathBuf,
    /// What was found in the damaged database, and what is lost of it.
    #[serde(flatten)]
    pub salvaged: SalvageReport,
    /// What the new database has.
    pub repaired: Vec<RepairedTable>,
    /// Seconds that it took, the check of the new database included.
    pub seconds: f64,
}

/// A table of the new database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RepairedTable {
    /// The name.
    pub name: String,
    /// Its rows, counted in the new database.
    pub rows: u64,
    /// Whether its rows are logged; else it is empty, as at every opening.
    pub is_logged: bool,
    /// Whether it is the entries of an index, which were made anew of its table's rows.
    pub is_index: bool,
}

impl RepairReport {
    /// Rows of the new database.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.repaired.iter().filter(|table| !table.is_index).map(|table| table.rows).sum()
    }
}

impl fmt::Display for RepairReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for note in &self.salvaged.notes {
            writeln!(formatter, "note: {note}\n")?;
        }
        for warning in &self.salvaged.warnings {
            writeln!(
                formatter,
                "warning {}: {} at byte {}\n  found: {}\n",
                warning.invariant.number(),
                warning.file.display(),
                warning.offset,
                warning.found
            )?;
        }
        for loss in &self.salvaged.losses {
            let finding = &loss.finding;
            write!(formatter, "LOST ({})", finding.invariant.number())?;
            if let Some(table) = &finding.table {
                write!(formatter, " of table {table}")?;
            }
            if let Some(keys) = &finding.keys {
                write!(formatter, ": {keys}")?;
            }
            if let Some(images @ 1..) = loss.images {
                write!(formatter, "; {images} images")?;
            }
            if let Some(bytes) = loss.bytes {
                write!(formatter, "; {bytes} bytes")?;
            }
            let (file, offset) = (finding.file.display(), finding.offset);
            writeln!(formatter, "\n  {file} at byte {offset}\n  found: {}\n", finding.found)?;
        }
        for (table, found) in self.repaired.iter().zip(&self.salvaged.tables) {
            if table.is_index {
                writeln!(formatter, "index {}: {} entries, made anew", table.name, table.rows)?;
                continue;
            }
            write!(formatter, "table {}: {} rows", table.name, table.rows)?;
            if !table.is_logged {
                writeln!(formatter, ", not logged and so empty at every opening")?;
                continue;
            }
            writeln!(
                formatter,
                " ({} from {} images; the log put {} and removed {})",
                found.image_rows, found.images, found.log_puts, found.log_removes
            )?;
        }
        let rows_per_s = self.rows() as f64 / self.seconds.max(1e-9);
        writeln!(
            formatter,
            "the log is good up to LSN {}; {} rows in {:.2} s, {rows_per_s:.0} rows/s",
            self.salvaged.log_end_lsn,
            self.rows(),
            self.seconds
        )?;
        let (into, losses) = (self.into.display(), self.salvaged.losses.len());
        match self.outcome {
            Outcome::NothingLost => write!(formatter, "nothing is lost: {into} has all rows"),
            Outcome::SomethingLost => {
                write!(formatter, "SOMETHING IS LOST: {losses} losses; {into} has the rest")
            }
            Outcome::NothingSalvaged => write!(formatter, "NOTHING COULD BE SALVAGED"),
        }
    }
}
