//! The views of the schema `onrush`: waits, latches, sessions, counters and settings as rows.

use std::sync::Arc;

use onrush::{CheckpointStage, DataType, Database, Row, Value};
use onrush_query::{ColumnType, MadeRows, Statement};

use crate::access::is_reserved;
use crate::archive::Archives;
use crate::clients::Clients;
use crate::lake::Lake;
use crate::rewrite::RewriteEntry;
use crate::sql::Planner;

/// A view of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    WaitStats,
    LatchStats,
    SpinStats,
    PhaseStats,
    Counters,
    Checkpoints,
    Sessions,
    Settings,
    Tables,
    Rewrites,
    Lake,
    Archive,
}

const ALL: [View; 12] = [
    View::WaitStats,
    View::LatchStats,
    View::SpinStats,
    View::PhaseStats,
    View::Counters,
    View::Checkpoints,
    View::Sessions,
    View::Settings,
    View::Tables,
    View::Rewrites,
    View::Lake,
    View::Archive,
];

const NANOS_PER_SECOND: f64 = 1e9;
/// Of one image.
const LEAF_BYTES: u64 = 16 << 10;

impl View {
    /// The view of this name.
    pub(crate) fn of(name: &str) -> Option<View> {
        ALL.into_iter().find(|view| view.name() == name)
    }

    /// All names, for messages.
    pub(crate) fn names() -> String {
        ALL.map(|view| view.name()).join(", ")
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            View::WaitStats => "wait_stats",
            View::LatchStats => "latch_stats",
            View::SpinStats => "spin_stats",
            View::PhaseStats => "phase_stats",
            View::Counters => "counters",
            View::Checkpoints => "checkpoints",
            View::Sessions => "sessions",
            View::Settings => "settings",
            View::Tables => "tables",
            View::Rewrites => "rewrites",
            View::Lake => "lake",
            View::Archive => "archive",
        }
    }

    pub(crate) fn columns(self) -> &'static [(&'static str, DataType)] {
        const TEXT: DataType = DataType::Text;
        const COUNT: DataType = DataType::Int64;
        const SECONDS: DataType = DataType::Float64;
        match self {
            View::WaitStats => &[
                ("wait_type", TEXT),
                ("count", COUNT),
                ("wait_s", SECONDS),
                ("resource_s", SECONDS),
                ("signal_s", SECONDS),
                ("max_s", SECONDS),
                ("about", TEXT),
            ],
            View::LatchStats => &[
                ("latch", TEXT),
                ("requests", COUNT),
                ("collisions", COUNT),
                ("spins", COUNT),
                ("sleeps", COUNT),
                ("wait_s", SECONDS),
                ("max_s", SECONDS),
            ],
            View::SpinStats => &[
                ("spin", TEXT),
                ("collisions", COUNT),
                ("spins", COUNT),
                ("backoffs", COUNT),
                ("sleeps", COUNT),
            ],
            View::PhaseStats => &[("phase", TEXT), ("count", COUNT), ("seconds", SECONDS)],
            View::Counters => &[("counter", TEXT), ("value", COUNT), ("about", TEXT)],
            View::Checkpoints => &[
                ("number", COUNT),
                ("stage", TEXT),
                ("began", DataType::TimestampTz),
                ("ended", DataType::TimestampTz),
                ("duration_us", COUNT),
                ("images", COUNT),
                ("bytes", COUNT),
                ("segments", COUNT),
                ("redo_from_lsn", COUNT),
            ],
            View::Sessions => &[
                ("id", COUNT),
                ("name", TEXT),
                ("kind", TEXT),
                ("waits_now", TEXT),
                ("lifetime_s", SECONDS),
                ("calls", COUNT),
                ("wait_s", SECONDS),
            ],
            View::Settings => &[("name", TEXT), ("value", TEXT)],
            View::Tables => &[
                ("name", TEXT),
                ("columns", COUNT),
                ("key", TEXT),
                ("is_logged", DataType::Boolean),
            ],
            View::Rewrites => &[
                ("client", DataType::Int32),
                ("table_name", TEXT),
                ("phase", TEXT),
                ("rows_done", COUNT),
                ("rows_expected", COUNT),
                ("rounds", COUNT),
                ("rows_caught_up", COUNT),
                ("began", DataType::TimestampTz),
            ],
            View::Lake => &[
                ("table_name", TEXT),
                ("lake_table", TEXT),
                ("node", DataType::Int32),
                ("state", TEXT),
                ("cause", TEXT),
                ("mark_lsn", COUNT),
                ("read_to_lsn", COUNT),
                ("durable_lsn", COUNT),
                ("lag_s", SECONDS),
                ("behind_s", SECONDS),
                ("rows", COUNT),
                ("files", COUNT),
                ("bytes", COUNT),
                ("commits", COUNT),
                ("refusals", COUNT),
                ("drained_at", DataType::TimestampTz),
            ],
            View::Archive => &[
                ("place", TEXT),
                ("history", TEXT),
                ("state", TEXT),
                ("cause", TEXT),
                ("archived_lsn", COUNT),
                ("safe_lsn", COUNT),
                ("durable_lsn", COUNT),
                ("behind_bytes", COUNT),
                ("behind_s", SECONDS),
                ("held_bytes", COUNT),
                ("objects", COUNT),
                ("bytes", COUNT),
                ("backups", COUNT),
                ("newest_backup_lsn", COUNT),
                ("gaps", COUNT),
            ],
        }
    }

    /// The view, for the query engine.
    pub(crate) fn of_server(self, planner: &Planner<'_>) -> Arc<dyn MadeRows> {
        let database = planner.database.clone();
        let (clients, lake) = (Arc::clone(planner.clients), Arc::clone(planner.lake));
        let archives = Arc::clone(planner.archives);
        Arc::new(ViewOfServer { view: self, database, clients, lake, archives })
    }

    /// The rows as things are now.
    fn rows(self, of: &ViewOfServer) -> Vec<Row> {
        let ViewOfServer { database, clients, lake, archives, .. } = of;
        match self {
            View::Lake => lake.rows(database),
            View::Archive => archives.rows(database),
            View::Rewrites => {
                clients.rewrites.all().iter().map(|rewrite| of_rewrite(rewrite)).collect()
            }
            View::Checkpoints => checkpoints(database),
            View::Sessions => sessions(database),
            View::Settings => settings(database),
            View::Tables => tables(database),
            totals => of_totals(totals, &database.statistics().totals),
        }
    }
}

/// A view and what it looks at.
struct ViewOfServer {
    view: View,
    database: Database,
    clients: Arc<Clients>,
    lake: Arc<Lake>,
    archives: Arc<Archives>,
}

impl std::fmt::Debug for ViewOfServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.view.name())
    }
}

impl MadeRows for ViewOfServer {
    fn columns(&self) -> Vec<(&str, ColumnType)> {
        let columns = self.view.columns().iter();
        columns.map(|(name, data_type)| (*name, ColumnType::from(*data_type))).collect()
    }

    fn rows(&self, _: &Statement) -> Vec<Row> {
        self.view.rows(self)
    }
}

fn of_totals(view: View, totals: &onrush::Totals) -> Vec<Row> {
    match view {
        View::WaitStats => {
            let waits = totals.waits.iter().map(|total| {
                vec![
                    total.wait.name().into(),
                    count(total.count),
                    seconds(total.nanos),
                    seconds(total.resource_nanos()),
                    seconds(total.signal_nanos),
                    longest(total.count, total.nanos_max),
                    total.wait.about().into(),
                ]
            });
            waits.collect()
        }
        View::LatchStats => {
            let latches = totals.latches.iter().map(|total| {
                vec![
                    total.latch.name().into(),
                    count(total.requests),
                    count(total.spun.collisions),
                    count(total.spun.spins),
                    count(total.spun.sleeps),
                    seconds(total.nanos),
                    longest(total.spun.collisions, total.nanos_max),
                ]
            });
            latches.collect()
        }
        View::SpinStats => {
            let spins = totals.spins.iter().map(|total| {
                vec![
                    total.spin.name().into(),
                    count(total.spun.collisions),
                    count(total.spun.spins),
                    count(total.spun.backoffs),
                    count(total.spun.sleeps),
                ]
            });
            spins.collect()
        }
        View::PhaseStats => {
            let phases = totals.phases.iter().map(|total| {
                vec![total.phase.name().into(), count(total.count), seconds(total.nanos)]
            });
            phases.collect()
        }
        _ => {
            let counters = totals.counters.iter().map(|total| {
                vec![total.counter.name().into(), count(total.value), total.counter.about().into()]
            });
            counters.collect()
        }
    }
}

/// What is known of one that is being taken; of one that is done, all.
fn checkpoints(database: &Database) -> Vec<Row> {
    let row = |record: onrush::CheckpointRecord| {
        let report = record.report;
        let is_done = record.stage == CheckpointStage::None;
        let once_done = |value| if is_done { value } else { Value::Null };
        let timestamp = |micros| Value::TimestampTz(i64::try_from(micros).unwrap_or(i64::MAX));
        let micros = u64::try_from(report.duration.as_micros()).unwrap_or(u64::MAX);
        let stage = match record.stage {
            CheckpointStage::None => "done",
            CheckpointStage::WriteBack => "drain",
            CheckpointStage::Walk => "walk",
            CheckpointStage::Install => "install",
        };
        vec![
            count(report.number),
            stage.into(),
            timestamp(record.began_unix_micros),
            once_done(timestamp(record.began_unix_micros.saturating_add(micros))),
            count(micros),
            count(report.images),
            count(report.images.saturating_mul(LEAF_BYTES)),
            once_done(count(report.segments)),
            once_done(count(report.redo_from_lsn.0)),
        ]
    };
    database.checkpoints().into_iter().map(row).collect()
}

fn sessions(database: &onrush::Database) -> Vec<Row> {
    let row = |session: onrush::LiveSummary| {
        let kind = format!("{:?}", session.kind).to_lowercase();
        let waited = session.waits.iter().map(|total| total.nanos).sum();
        vec![
            count(session.id),
            session.name.into(),
            kind.into(),
            session.waits_now.map_or(Value::Null, |wait| wait.name().into()),
            seconds(session.lifetime_nanos),
            count(session.calls),
            seconds(waited),
        ]
    };
    database.sessions().into_iter().map(row).collect()
}

/// Every field of the options, as its debug form writes it: a new one is here by itself.
fn settings(database: &onrush::Database) -> Vec<Row> {
    let written = format!("{:#?}", database.options());
    let mut rows: Vec<Row> = Vec::new();
    for line in written.lines() {
        // Fields are indented by four; what is deeper belongs to the one before.
        let Some(field) = line.strip_prefix("    ") else { continue };
        match field.split_once(": ") {
            Some((name, value)) if !field.starts_with(' ') => {
                rows.push(vec![
                    name.to_owned().into(),
                    value.trim_end_matches(',').to_owned().into(),
                ]);
            }
            _ => {
                if let Some(Value::Text(value)) = rows.last_mut().and_then(|row| row.get_mut(1)) {
                    value.to_mut().push_str(field.trim().trim_end_matches(','));
                }
            }
        }
    }
    rows
}

fn tables(database: &onrush::Database) -> Vec<Row> {
    let row = |table: &std::sync::Arc<onrush::TableDefinition>| {
        let key = table.primary_key().iter().filter(|column| table.row_id() != Some(**column));
        let key = key.map(|column| table.columns()[*column].name.as_str());
        vec![
            table.name().to_owned().into(),
            count(table.shown_columns().count() as u64),
            key.collect::<Vec<_>>().join(", ").into(),
            Value::Boolean(table.is_logged()),
        ]
    };
    let definitions = database.tables();
    let shown = definitions.iter().filter(|table| !is_reserved(table.name()));
    shown.map(row).collect()
}

fn of_rewrite(rewrite: &RewriteEntry) -> Row {
    let now = rewrite.state();
    vec![
        Value::Int32(rewrite.client),
        rewrite.table.clone().into(),
        now.phase.name().into(),
        count(now.rows_done),
        now.rows_expected.map_or(Value::Null, count),
        count(now.rounds),
        count(now.rows_caught_up),
        Value::TimestampTz(rewrite.began_micros),
    ]
}

fn count(value: u64) -> Value<'static> {
    Value::Int64(i64::try_from(value).unwrap_or(i64::MAX))
}

fn seconds(nanos: u64) -> Value<'static> {
    Value::Float64(nanos as f64 / NANOS_PER_SECOND)
}

/// The longest of so many; NULL of none.
fn longest(of: u64, nanos: u64) -> Value<'static> {
    if of > 0 { seconds(nanos) } else { Value::Null }
}
