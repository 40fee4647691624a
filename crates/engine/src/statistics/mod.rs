//! What the database did and does, as plain data: snapshot, difference, rates, history.
//!
//! Beside the life of an insert. The numbers come from the recorders of `onrush-waits`, from the
//! log, and from the parts of the engine that know how full they are.

mod history;
mod memory;
mod observer;
mod prometheus;
mod rates;

use onrush_log::LogStatistics;
use onrush_waits::Totals;
use serde::{Deserialize, Serialize};

pub use memory::MemoryPart;
pub(crate) use observer::Observer;
pub use rates::{Rates, SplitRates, WaitRate};

use crate::checkpoint::CheckpointProgress;
use crate::recovery::RecoveryReport;

/// What a database has done since it was opened, or since the last reset; and how it is now.
///
/// ```
/// # use onrush::*;
/// # let folder = tempfile::tempdir()?;
/// # let db = Database::create(folder.path().join("db"), Options::small())?;
/// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
/// # let notes = TableDefinition::builder("notes").column(id).primary_key(["id"]);
/// # let notes = db.create_table(notes.build()?)?;
/// let before = db.statistics();
/// let mut session = db.session()?;
/// for id in 0..100i64 {
///     session.insert(&notes, &[id.into()])?;
/// }
/// let load = db.statistics().since(&before);
/// println!("{}", load.totals.wait_report()); // the waits that make up 95 %
/// println!("{:.1?} commits per sync", load.rates().commits_per_sync);
/// for session in db.sessions() {
///     println!("{} waits for {:?}", session.name, session.waits_now);
/// }
/// let json = serde_json::to_string(&load)?; // every name and number
/// let page = load.to_prometheus(); // the same for a scraper
/// # assert!(!json.is_empty() && !page.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// When it was taken, in milliseconds since 1970.
    pub unix_millis: u64,
    /// Time that it covers, in nanoseconds.
    pub elapsed_nanos: u64,
    /// Waits, latches, spins, counters and phases, summed over all sessions and threads.
    pub totals: Totals,
    /// The log.
    pub log: LogStatistics,
    /// Now: bytes of log that a checkpoint has not made superfluous yet, and the capacity.
    pub log_space_bytes: (u64, u64),
    /// Now: sessions that wait for the log to be written.
    pub log_queue: u64,
    /// Now: leaves of all tables, in memory or not.
    pub leaves: u64,
    /// Now: leaves' frames in memory, in use and in all.
    pub frames: (u64, u64),
    /// Now: what memory the parts of the process take.
    #[serde(default)]
    pub memory: Vec<MemoryPart>,
    /// Now: the memory that was divided among them; none if each has a bound of its own.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    /// Now: large transactions that are open, and bytes of log that their pieces take.
    #[serde(default)]
    pub large_transactions: (u64, u64),
    /// Now: slots of 16 KiB in the data files.
    pub slots: u64,
    /// Now: how far the running checkpoint is.
    pub checkpoint: CheckpointProgress,
    /// What opening the database had to do.
    pub recovery: RecoveryReport,
}

impl Statistics {
    /// What happened since an earlier snapshot. What is *now* stays as it is.
    #[must_use]
    pub fn since(&self, earlier: &Statistics) -> Statistics {
        Statistics {
            elapsed_nanos: self.elapsed_nanos.saturating_sub(earlier.elapsed_nanos),
            totals: self.totals.since(&earlier.totals),
            log: self.log.since(&earlier.log),
            ..self.clone()
        }
    }

    /// What memory all counted parts take now.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory.iter().map(|part| part.used_bytes).sum()
    }

    /// All of it as a second's worth.
    #[must_use]
    pub fn rates(&self) -> Rates {
        Rates::of(self)
    }

    /// All of it in the text format of Prometheus.
    #[must_use]
    pub fn to_prometheus(&self) -> String {
        prometheus::page(self)
    }
}
