//! What a check has seen and found.

use std::fmt;
use std::time::Duration;

use onrush_lsn::Lsn;

use serde::Serialize;

use crate::finding::Finding;
use crate::invariant::Severity;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CheckReport {
    /// Everything found, by invariant, file and offset.
    pub findings: Vec<Finding>,
    /// False when the check gave up after too many findings, or could not go on behind one.
    pub complete: bool,
    /// The checkpoint that was checked; none before the first.
    pub checkpoint: Option<u64>,
    /// Threads that checked.
    pub dop: usize,
    /// Whether only checksums and structure were checked.
    pub physical_only: bool,
    /// What was seen of each table.
    pub tables: Vec<TableReport>,
    /// Log records seen, from the checkpoint on.
    pub log_records: u64,
    /// Bytes of log blocks read.
    pub log_bytes: u64,
    /// Where the last whole record of the log ends.
    pub log_end_lsn: Lsn,
    /// When the last block of the log was built, by the clock of its machine: microseconds since
    /// 1970; none if the log has no block behind the checkpoint.
    pub log_end_time_us: Option<u64>,
    /// Whether the log was read to a limit, not to its end.
    pub log_is_cut: bool,
    /// Bytes read in all.
    pub read_bytes: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Billions of bytes read a second.
    pub gb_per_s: f64,
}

/// What was seen of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TableReport {
    /// The name.
    pub name: String,
    /// Leaves that the directory names, and ranges with a stock.
    pub leaves: u64,
    /// Images read.
    pub images: u64,
    /// Rows in them that count: those inside their leaf's fences, of several runs those of the newest. 0 when only
    /// structure was checked. What the log changes on top is not in it.
    pub rows: u64,
    /// Changes in them, not among the rows, of large transactions that were not committed when the checkpoint
    /// began: the log tells what became of those, and nothing if it does not tell of their commit.
    pub undecided: u64,
}

/// A checkpoint by its number.
#[must_use]
pub fn checkpoint_words(number: Option<u64>) -> String {
    number.map_or_else(|| "no checkpoint".to_owned(), |number| format!("checkpoint {number}"))
}

impl CheckReport {
    /// How many findings are damage.
    #[must_use]
    pub fn damage(&self) -> usize {
        self.findings.iter().filter(|finding| finding.severity == Severity::Damage).count()
    }

    /// How many findings are warnings.
    #[must_use]
    pub fn warnings(&self) -> usize {
        self.findings.len() - self.damage()
    }

    /// Whether everything was checked and no damage found.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.complete && self.damage() == 0
    }

    pub(crate) fn set_duration(&mut self, duration: Duration) {
        self.seconds = duration.as_secs_f64();
        self.gb_per_s = self.read_bytes as f64 / 1e9 / self.seconds.max(1e-9);
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(formatter, "{finding}\n")?;
        }
        for table in &self.tables {
            write!(
                formatter,
                "table {}: {} leaves, {} images",
                table.name, table.leaves, table.images
            )?;
            if self.physical_only {
                writeln!(formatter)?;
            } else {
                write!(formatter, ", {} rows", table.rows)?;
                match table.undecided {
                    0 => writeln!(formatter)?,
                    some => writeln!(
                        formatter,
                        ", {some} changes of transactions not committed at the checkpoint"
                    )?,
                }
            }
        }
        writeln!(
            formatter,
            "{} and {} log records: {:.1} MB in {:.2} s, {:.2} GB/s, {} threads",
            checkpoint_words(self.checkpoint),
            self.log_records,
            self.read_bytes as f64 / 1e6,
            self.seconds,
            self.gb_per_s,
            self.dop
        )?;
        let what = if self.physical_only { "checksums and structure" } else { "everything" };
        match (self.damage(), self.complete) {
            (0, true) => write!(formatter, "sound: {what} checked")?,
            (0, false) => write!(formatter, "not complete")?,
            (damage, true) => write!(formatter, "DAMAGED: {damage} findings")?,
            (damage, false) => write!(formatter, "DAMAGED: {damage} findings, and not complete")?,
        }
        match self.warnings() {
            0 => Ok(()),
            warnings => write!(formatter, ", {warnings} warnings"),
        }
    }
}
