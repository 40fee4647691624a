//! What a copy holds.

use std::fmt;
use std::path::PathBuf;

use onrush_check::{TableReport, checkpoint_words};
use onrush_lsn::Lsn;
use serde::Serialize;

/// See the module. It also stands in the copy, as `backup.json`, for people.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BackupReport {
    /// The folder of the copy.
    pub folder: PathBuf,
    /// Id of the database, which the copy shares.
    pub database_id: String,
    /// Number of the history that goes on in the copy: a backup has that of its database, a restore draws its own.
    pub history: String,
    /// The checkpoint that was copied; none before the first.
    pub checkpoint: Option<u64>,
    /// Where the copy's log begins.
    pub redo_from_lsn: Lsn,
    /// The log segment in which it begins: of kept segments, this one and later ones can follow this
    /// copy.
    pub redo_from_segment: u64,
    /// What the images of the copy reach to: it can be restored to no earlier moment.
    pub must_reach_lsn: Lsn,
    /// When that was durable at the latest, in UTC by the clock of its machine; none if nobody knows.
    pub must_reach_time: Option<String>,
    /// Every commit below is in the copy.
    pub end_lsn: Lsn,
    /// When the last of them was written, in UTC by the clock of its machine; none if that was before
    /// the checkpoint.
    pub end_time: Option<String>,
    /// What was seen of each table in the images; what the log changes on top is not counted.
    pub tables: Vec<TableReport>,
    /// Log records in the copy.
    pub log_records: u64,
    /// Whether the rows were looked at, not only checksums and structure.
    pub rows_checked: bool,
    /// Bytes written.
    pub written_bytes: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Millions of bytes written a second.
    pub mb_per_s: f64,
}

impl fmt::Display for BackupReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for table in &self.tables {
            writeln!(
                formatter,
                "table {}: {} images, {} rows",
                table.name, table.images, table.rows
            )?;
        }
        writeln!(
            formatter,
            "{} and {} log records, up to LSN {}{}",
            checkpoint_words(self.checkpoint),
            self.log_records,
            self.end_lsn,
            self.end_time.as_ref().map_or_else(String::new, |time| format!(" ({time})"))
        )?;
        write!(
            formatter,
            "{}: {:.1} MB in {:.2} s, {:.0} MB/s; sound: {} checked. Later log begins with segment {}",
            self.folder.display(),
            self.written_bytes as f64 / 1e6,
            self.seconds,
            self.mb_per_s,
            if self.rows_checked { "everything" } else { "checksums and structure" },
            self.redo_from_segment
        )
    }
}
