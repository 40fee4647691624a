//! `pg_stat_progress_create_index`: indexes that are being built, and how far they are.

use onrush::{Database, IndexBuildPhase, IndexBuildState, Row, Value};
use onrush_query::{ColumnType, MadeRows, Statement};

use super::kinds::{INT4, INT8, NAME, OID, TEXT};
use super::{names, oid};

pub(super) const NAME_OF_VIEW: &str = "pg_stat_progress_create_index";

/// Blocks are leaves of the table, about; tuples are its rows, of which nobody knows how many there are.
const COLUMNS: &[(&str, ColumnType)] = &[
    ("pid", INT4),
    ("datid", OID),
    ("datname", NAME),
    ("relid", OID),
    ("index_relid", OID),
    ("command", TEXT),
    ("phase", TEXT),
    ("lockers_total", INT8),
    ("lockers_done", INT8),
    ("current_locker_pid", INT8),
    ("blocks_total", INT8),
    ("blocks_done", INT8),
    ("tuples_total", INT8),
    ("tuples_done", INT8),
    ("partitions_total", INT8),
    ("partitions_done", INT8),
];

/// The view, and what it tells about.
pub(super) struct IndexProgressView {
    pub(super) database: Database,
}

impl std::fmt::Debug for IndexProgressView {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(NAME_OF_VIEW)
    }
}

impl MadeRows for IndexProgressView {
    fn columns(&self) -> Vec<(&str, ColumnType)> {
        COLUMNS.to_vec()
    }

    fn rows(&self, statement: &Statement) -> Vec<Row> {
        self.database.index_builds().iter().map(|build| of_build(build, statement)).collect()
    }
}

fn of_build(build: &IndexBuildState, statement: &Statement) -> Row {
    let count = |count: u64| Value::Int64(i64::try_from(count).unwrap_or(i64::MAX));
    vec![
        Value::Int32(i32::try_from(build.session).unwrap_or_default()),
        oid(names::DATABASE_OID),
        statement.client.database.to_string().into(),
        oid(names::oid_of(build.table)),
        oid(names::entries_oid(build.entries)),
        if build.is_again { "REINDEX CONCURRENTLY" } else { "CREATE INDEX CONCURRENTLY" }.into(),
        match build.phase {
            IndexBuildPhase::Beginning => "waiting for writers before build",
            IndexBuildPhase::Filling => "building index: scanning table",
            IndexBuildPhase::Finishing => "waiting for writers before validation",
        }
        .into(),
        count(0),
        count(0),
        count(0),
        count(build.leaves),
        count(build.leaves_done),
        count(0),
        count(build.rows_done),
        count(0),
        count(0),
    ]
}
