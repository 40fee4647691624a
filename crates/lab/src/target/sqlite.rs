//! SQLite, with its log (WAL) and all six columns.
//!
//! One connection for all sessions, each taking its turn: SQLite has one writer, and connections of
//! their own would poll for the right to write and throw their caches away after each other's
//! commits.

use std::ffi::c_int;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::LabError;
use onrush::DataType;
use rusqlite::{Connection, ffi, params};

use super::embedded::{Embedded, Refusal, Store, StoreSession, impossible};
use super::record::{CounterRecord, Snapshot};
use super::rows::{Columns, Key, Row};
use super::{Instance, Target};
use crate::study::{Setting, Settings, TargetShown};

/// Pages of the log before it is copied into the database: 64 MiB, not the default of 4 MiB.
const CHECKPOINT_PAGES: u64 = 8192;
const PAGE_BYTES: u64 = 8192;

const INSERT: &str = "insert into my_big_table (c1, c2, c3, c4, c5, c6) values (?, ?, ?, ?, ?, ?)";

/// SQLite.
pub(super) struct Sqlite;

impl Target for Sqlite {
    fn name(&self) -> &'static str {
        Wal::NAME
    }

    fn impossible(&self, settings: &Settings) -> Option<String> {
        impossible::<Wal>(settings)
    }

    fn shown(&self, settings: &Settings) -> Result<TargetShown, LabError> {
        let synchronous = if settings.is_durable() { "full" } else { "normal" };
        let settings = [
            ("journal_mode", "wal".to_owned()),
            ("synchronous", synchronous.to_owned()),
            ("page_size", PAGE_BYTES.to_string()),
            ("cache_size", format!("-{}", settings.number(Setting::CacheBytes) / 1024)),
            ("wal_autocheckpoint", CHECKPOINT_PAGES.to_string()),
            ("locking_mode", "exclusive".to_owned()),
            ("connections", "1, sessions take turns".to_owned()),
            ("table", table(settings)),
        ];
        Ok(TargetShown::of(rusqlite::version().to_owned(), settings))
    }

    fn prepare(&self, settings: &Settings, folder: &Path) -> Result<Box<dyn Instance>, LabError> {
        Ok(Box::new(Embedded::<Wal>::prepare(settings, folder)?))
    }
}

/// Integer keys are the rowid; others cluster the table.
fn table(settings: &Settings) -> String {
    let (key, clustered) = match settings.key().natural_type() {
        DataType::Uuid => ("blob", " without rowid"),
        _ => ("integer", ""),
    };
    format!(
        "create table if not exists my_big_table (c1 {key} primary key, c2 integer not null, \
         c3 text not null, c4 integer not null, c5 integer not null, c6 integer not null){clustered}"
    )
}

struct Wal {
    connection: Mutex<Connection>,
    is_uuid: bool,
}

impl Wal {
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Wal {
    const NAME: &'static str = "sqlite";
    const HAS_STATISTICS: bool = true;
    const CHECK_DEPTH: Option<&'static str> = Some("full");
    type Session<'s> = Turn<'s>;

    fn open(folder: &Path, settings: &Settings) -> Result<Self, Refusal> {
        let connection = Connection::open(folder.join("data.sqlite"))?;
        let cache_kib = i64::try_from(settings.number(Setting::CacheBytes) / 1024)?;
        connection.pragma_update(None, "page_size", PAGE_BYTES as i64)?;
        connection.pragma_update(None, "locking_mode", "exclusive")?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "cache_size", -cache_kib)?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES as i64)?;
        connection.execute(&table(settings), [])?;
        for column in settings.indexed_columns() {
            let index =
                format!("create index if not exists by_{column} on my_big_table ({column})");
            connection.execute(&index, [])?;
        }
        let is_uuid = settings.key().natural_type() == DataType::Uuid;
        Ok(Wal { connection: Mutex::new(connection), is_uuid })
    }

    fn session(&self, is_durable: bool) -> Result<Turn<'_>, Refusal> {
        let synchronous = if is_durable { "full" } else { "normal" };
        self.lock().pragma_update(None, "synchronous", synchronous)?;
        Ok(Turn(self))
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Refusal> {
        let connection = self.lock();
        let mut select =
            connection.prepare("select c1, c2, c3, c4, c5, c6 from my_big_table order by c1")?;
        let mut found = select.query([])?;
        while let Some(row) = found.next()? {
            let key = match self.is_uuid {
                true => Key::Uuid(row.get(0)?),
                false => Key::Number(row.get(0)?),
            };
            let text: String = row.get(2)?;
            let columns = Columns {
                clock_micros: row.get(1)?,
                text: &text,
                c4: row.get(3)?,
                c5: row.get(4)?,
                c6: row.get(5)?,
            };
            let row = Row::of(key, &columns);
            visit(row.key_bytes(), row.value_bytes());
        }
        Ok(())
    }

    fn snapshot(&self) -> Snapshot {
        let connection = self.lock();
        let status = |code| status(&connection, code);
        let counters = vec![
            CounterRecord::counted("CACHE_HITS", "pages", status(ffi::SQLITE_DBSTATUS_CACHE_HIT)),
            CounterRecord::counted(
                "CACHE_MISSES",
                "pages",
                status(ffi::SQLITE_DBSTATUS_CACHE_MISS),
            ),
            CounterRecord::counted(
                "CACHE_WRITES",
                "pages",
                status(ffi::SQLITE_DBSTATUS_CACHE_WRITE),
            ),
            CounterRecord::counted(
                "CACHE_SPILLS",
                "pages",
                status(ffi::SQLITE_DBSTATUS_CACHE_SPILL),
            ),
            CounterRecord::level("CACHE_USED", "bytes", status(ffi::SQLITE_DBSTATUS_CACHE_USED)),
        ];
        Snapshot { counters, ..Snapshot::default() }
    }

    fn check(&mut self) -> Result<u64, Refusal> {
        let connection = self.lock();
        let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get(0));
        let (pages, page_bytes): (i64, i64) = (number("page_count")?, number("page_size")?);
        let found: String =
            connection.pragma_query_value(None, "integrity_check", |row| row.get(0))?;
        match found.as_str() {
            "ok" => Ok(u64::try_from(pages * page_bytes)?),
            _ => Err(format!("integrity_check found: {found}").into()),
        }
    }

    fn settle(&self) -> Result<(), Refusal> {
        let connection = self.lock();
        Ok(connection.query_row("pragma wal_checkpoint(passive)", [], |_| Ok(()))?)
    }
}

/// What the connection counts under a code; 0 where it does not know it.
fn status(connection: &Connection, code: c_int) -> u64 {
    let (mut current, mut highest) = (0, 0);
    // SAFETY: the handle is that of an open connection, which nobody else uses while it is borrowed;
    // both numbers outlive the call; nothing is reset. Covered by
    // `those_with_statistics_count_what_was_inserted`.
    let code = unsafe {
        ffi::sqlite3_db_status64(connection.handle(), code, &mut current, &mut highest, 0)
    };
    if code == ffi::SQLITE_OK { u64::try_from(current).unwrap_or(0) } else { 0 }
}

struct Turn<'s>(&'s Wal);

impl StoreSession for Turn<'_> {
    fn commit(&mut self, rows: &[Row]) -> Result<(), Refusal> {
        let mut connection = self.0.lock();
        if let [row] = rows {
            return insert(&connection, row); // a transaction of its own
        }
        let transaction = connection.transaction()?;
        for row in rows {
            insert(&transaction, row)?;
        }
        Ok(transaction.commit()?)
    }
}

fn insert(connection: &Connection, row: &Row) -> Result<(), Refusal> {
    let mut statement = connection.prepare_cached(INSERT)?;
    let Columns { clock_micros, text, c4, c5, c6 } = row.columns();
    match row.key {
        Key::Number(key) => statement.execute(params![key, clock_micros, text, c4, c5, c6])?,
        Key::Uuid(key) => statement.execute(params![key, clock_micros, text, c4, c5, c6])?,
    };
    Ok(())
}
