//! What one execution of a statement sees and knows.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::config::SessionConfig;
use onrush::{Direction, KeyRange, Lsn, Scan, ScanOptions, Snapshot, Table, WrittenRows};
use parking_lot::Mutex;

/// Who asks.
#[derive(Clone, Debug, Default)]
pub struct Client {
    /// The number that a cancel request names.
    pub number: i32,
    /// The name of the user whose rights count.
    pub user: Arc<str>,
    /// The name of the user whose session it is.
    pub session_user: Arc<str>,
    /// The database's name.
    pub database: Arc<str>,
    /// What the server calls itself.
    pub version: Arc<str>,
    /// What is set in its session.
    pub settings: Option<Arc<dyn SessionSettings>>,
}

impl Client {
    /// The schemas where tables are looked for that have none in front, in this order.
    #[must_use]
    pub fn schemas(&self) -> Vec<String> {
        self.settings.as_ref().map(|settings| settings.schemas()).unwrap_or_default()
    }
}

/// The settings of a session, for `current_setting` and the like.
pub trait SessionSettings: fmt::Debug + Send + Sync {
    /// What a setting is now; none if there is none of this name.
    fn setting(&self, name: &str) -> Option<String>;

    /// The schemas where tables are looked for that have none in front, in this order.
    fn schemas(&self) -> Vec<String>;

    /// The schema that new tables are made in; none if there is none.
    fn current_schema(&self) -> Option<String>;

    /// What else of the session its own functions and views want to know.
    fn as_any(&self) -> &dyn Any;
}

/// One execution of a statement: a view of the database that does not change, who asks, and when.
pub struct Statement {
    snapshot: Mutex<Snapshot>,
    /// Who asks.
    pub client: Client,
    /// The moment of the statement, in microseconds since 1970.
    pub now_micros: i64,
}

impl Statement {
    /// A statement that reads from this view.
    #[must_use]
    pub fn new(snapshot: Snapshot, client: Client, now_micros: i64) -> Statement {
        Statement { snapshot: Mutex::new(snapshot), client, now_micros }
    }

    pub(crate) fn key_ranges(
        &self,
        table: &Table,
        options: &ScanOptions<'_>,
        parts: usize,
    ) -> onrush::Result<Vec<KeyRange>> {
        self.snapshot.lock().key_ranges(table, options, parts)
    }

    pub(crate) fn scan(
        &self,
        table: &Table,
        range: &KeyRange,
        direction: Direction,
    ) -> onrush::Result<Scan> {
        self.snapshot.lock().scan_range(table, range, direction)
    }

    /// The rows of a range that it sees and that were written at `since` or later.
    pub(crate) fn written_in(
        &self,
        table: &Table,
        range: &KeyRange,
        since: Lsn,
    ) -> onrush::Result<WrittenRows> {
        self.snapshot.lock().written_in(table, range, since)
    }

    /// Committed rows are seen that were written below.
    pub(crate) fn lsn(&self) -> Lsn {
        self.snapshot.lock().lsn()
    }

    /// The same view, for a thread that reads rows one by one.
    pub(crate) fn view(&self) -> Snapshot {
        self.snapshot.lock().same()
    }

    /// The entries of a table's index, if the statement sees them.
    pub(crate) fn index_entries(&self, table: &Table, index: usize) -> onrush::Result<Table> {
        self.snapshot.lock().index_entries(table, index)
    }

    /// Whether there are at most so many rows in all these ranges, as far as that is known.
    pub(crate) fn has_at_most(&self, table: &Table, ranges: &[ScanOptions<'_>], most: u64) -> bool {
        if ranges.len() as u64 > most {
            return false;
        }
        let mut left = most + 1;
        for range in ranges {
            let scan = self.snapshot.lock().scan(table, range);
            let visit = |scan: Scan| scan.only_columns([]).visit_some(left, |_, _| ());
            let Ok(rows) = scan.and_then(visit) else {
                return false;
            };
            left -= rows;
            if left == 0 {
                return false;
            }
        }
        true
    }

    /// About how many leaves hold the rows of a range; none if that is not known.
    pub(crate) fn leaves_about(&self, table: &Table, range: &ScanOptions<'_>) -> u64 {
        self.snapshot.lock().leaves_about(table, range).unwrap_or_default()
    }

    /// The statement that a plan is run for.
    pub(crate) fn of(config: &SessionConfig) -> Result<Arc<Statement>> {
        config.get_extension::<Statement>().ok_or_else(|| {
            DataFusionError::Internal("a plan is run without its statement".to_owned())
        })
    }
}

impl fmt::Debug for Statement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Statement").field("client", &self.client).finish_non_exhaustive()
    }
}
