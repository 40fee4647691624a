//! An Onrush database under load: made, loaded as often as wanted, closed, opened again, compared.
//!
//! Invariants
//! 1. Every row that any load got acknowledged is remembered, by fingerprint, until the comparison.
//! 2. The comparison comes after the database was left and opened again.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use onrush::{
    CheckProgress, Database, Drain, DrainOptions, DrainProgress, Durability, NewIndex,
    OnlineOptions, Options, RecoveryReport, Table, TableDefinition,
};

use crate::classic_table::{CLASSIC_TABLE, NumberColumns};
use crate::error::MeasureError;
use crate::load::client_keys::Numbers;
use crate::load::ledger::{KeySample, LedgerKind};
use crate::load::mix::Mix;
use crate::load::{self, ClientLoad, LoadPlan, Loaded};
use crate::progress::{Observer, Step};
use crate::settings::{Driver, Leave};
use crate::verify::{self, Acknowledged, Verification};

/// A database with the tables that are loaded.
pub struct Stand {
    folder: PathBuf,
    options: Options,
    table_names: Vec<String>,
    open: Option<(Database, Vec<Table>)>,
    /// Where sessions insert, if not into the table itself.
    front: Option<(Table, Drain)>,
    has_indexes: bool,
    /// Where clients draw their keys, of all loads together.
    numbers: Numbers,
    acknowledged: Acknowledged,
    remembers_rows: bool,
    /// For `onrush top` in another window; without it the measurement goes on all the same.
    watch: Option<onrush_watch::Server>,
    /// For Prometheus, where that was asked for.
    metrics: Option<onrush_watch::Server>,
}

/// One load of it.
#[derive(Clone, Copy, Debug)]
pub struct StandLoad {
    /// Rows of all sessions together.
    pub rows: u64,
    /// Concurrent sessions.
    pub sessions: usize,
    /// Rows of each transaction.
    pub rows_per_commit: u64,
    /// Rows of each call within it.
    pub rows_per_statement: u64,
    /// When a commit is acknowledged.
    pub durability: Durability,
    /// Who runs the sessions.
    pub driver: Driver,
    /// What it is called while it goes on.
    pub step: Step,
    /// Whether each session is tied to a processor.
    pub is_pinned: bool,
    /// It ends after this time, whatever is left.
    pub time_max: Option<Duration>,
    /// Sessions hold back to stay below it.
    pub rows_per_s_max: Option<f64>,
    /// Where sessions bring their keys; for threads that commit single rows.
    pub client: Option<ClientLoad>,
}

impl StandLoad {
    /// Rows that are there before the clock starts: inserted as fast as possible; by clients that bring keys, if
    /// the others come from them, so that no key comes twice.
    pub fn preload(rows: u64, sessions: usize, client: Option<ClientLoad>) -> StandLoad {
        StandLoad {
            rows,
            sessions,
            rows_per_commit: 1,
            rows_per_statement: 1,
            durability: Durability::Delayed,
            driver: if client.is_some() { Driver::Threads } else { Driver::Tasks },
            step: Step::Preload,
            is_pinned: false,
            time_max: None,
            rows_per_s_max: None,
            client: client.map(|client| ClientLoad { mix: Mix::default(), ..client }),
        }
    }
}

impl Stand {
    /// Makes the database with these tables, at least one. Rows are remembered if they are to be compared.
    pub fn create(
        folder: &Path,
        options: Options,
        definitions: Vec<TableDefinition>,
        remembers_rows: bool,
    ) -> Result<Stand, MeasureError> {
        let started_micros = unix_micros();
        let database = Database::create(folder, options.clone())?;
        let created = definitions.into_iter().map(|definition| database.create_table(definition));
        let tables = created.collect::<onrush::Result<Vec<Table>>>()?;
        let table_names: Vec<String> = tables.iter().map(|table| table.name().to_owned()).collect();
        let is_classic = table_names.first().is_some_and(|name| name == CLASSIC_TABLE);
        let acknowledged = Acknowledged {
            is_classic,
            numbers: NumberColumns::Constant,
            rows: 0,
            fingerprint: crate::Fingerprint::default(),
            keys: KeySample::default(),
            inserted_micros: (started_micros, started_micros),
        };
        let watch = onrush_watch::Server::in_folder(&database, folder).ok();
        Ok(Stand {
            folder: folder.to_owned(),
            options,
            table_names,
            open: Some((database, tables)),
            front: None,
            has_indexes: false,
            numbers: Numbers::default(),
            acknowledged,
            remembers_rows,
            watch,
            metrics: None,
        })
    }

    /// Serves the page for Prometheus until the database is left; returns the address, with the
    /// port that was chosen if none was given.
    pub fn serve_metrics(&mut self, address: SocketAddr) -> Result<SocketAddr, MeasureError> {
        let server = onrush_watch::Server::http(self.database()?, address)
            .map_err(|source| MeasureError::Metrics { address, source })?;
        let served = server.address().unwrap_or(address);
        self.metrics = Some(server);
        Ok(served)
    }

    /// From now on sessions insert into a table that is not logged, and a drain moves its rows to
    /// the table itself.
    pub fn add_front(
        &mut self,
        definition: TableDefinition,
        drain: DrainOptions,
    ) -> Result<(), MeasureError> {
        let (database, tables) = self.opened()?;
        let front = database.create_table(definition)?;
        let drain = database.start_drain(&front, &tables[0], drain)?;
        self.front = Some((front, drain));
        Ok(())
    }

    /// From now on each table has an index of this column.
    pub fn add_index(&mut self, column: &str) -> Result<(), MeasureError> {
        let Some((database, tables)) = &mut self.open else {
            return Err(MeasureError::Setting("the database was closed".into()));
        };
        for table in tables {
            let index = NewIndex::new(format!("{}_{column}", table.name()), [column]);
            *table = database.create_index(table.name(), &index)?;
        }
        self.has_indexes = true;
        Ok(())
    }

    /// Rows that all loads together got acknowledged.
    pub fn rows_acknowledged(&self) -> u64 {
        self.acknowledged.rows
    }

    /// What the drain of the front has done.
    pub fn drained(&self) -> Option<DrainProgress> {
        self.front.as_ref().map(|(_, drain)| drain.progress())
    }

    /// The database, while it is open.
    pub fn database(&self) -> Result<&Database, MeasureError> {
        Ok(&self.opened()?.0)
    }

    fn opened(&self) -> Result<&(Database, Vec<Table>), MeasureError> {
        self.open.as_ref().ok_or_else(|| MeasureError::Setting("the database was closed".into()))
    }

    /// Loads it and remembers what was acknowledged.
    pub fn load(
        &mut self,
        load: StandLoad,
        observer: &dyn Observer,
    ) -> Result<Loaded, MeasureError> {
        let (database, tables) = self.opened()?;
        let front = self.front.as_ref().map(|(front, _)| std::slice::from_ref(front));
        let plan = LoadPlan {
            database,
            tables: front.unwrap_or(tables),
            rows: load.rows,
            sessions: load.sessions,
            rows_per_commit: load.rows_per_commit,
            rows_per_statement: load.rows_per_statement,
            durability: load.durability,
            driver: load.driver,
            ledger: LedgerKind {
                is_durable: load.durability == Durability::Durable,
                remembers_rows: self.remembers_rows,
            },
            step: load.step,
            is_pinned: load.is_pinned,
            time_max: load.time_max,
            rows_per_s_max: load.rows_per_s_max,
            client: load.client,
            numbers: &self.numbers,
        };
        let mut loaded = load::run(&plan, observer)?;
        if let Some(client) = load.client {
            self.acknowledged.numbers = client.numbers;
        }
        self.acknowledged.rows += loaded.ledger.rows;
        self.acknowledged.fingerprint.merge(&loaded.ledger.fingerprint);
        self.acknowledged.keys.merge(std::mem::take(&mut loaded.ledger.keys));
        self.acknowledged.inserted_micros.1 = unix_micros();
        Ok(loaded)
    }

    /// Waits until everything acknowledged is on disk.
    pub fn barrier(&self) -> Result<(), MeasureError> {
        if let Some((_, drain)) = &self.front {
            drain.catch_up()?;
        }
        Ok(self.database()?.barrier()?)
    }

    /// Closes or drops it; returns how long that took.
    pub fn leave(&mut self, how: Leave, observer: &dyn Observer) -> Result<Duration, MeasureError> {
        (self.watch, self.metrics) = (None, None); // they keep the database open
        if let Some((_, drain)) = self.front.take() {
            drain.stop()?;
        }
        let Some((database, tables)) = self.open.take() else { return Ok(Duration::ZERO) };
        drop(tables);
        observer.begin(Step::Close, None);
        let started = Instant::now();
        let closed = match how {
            Leave::Close => database.close(),
            Leave::Drop => {
                drop(database);
                Ok(())
            }
        };
        observer.end();
        closed?;
        Ok(started.elapsed())
    }

    /// Opens it again and compares; also returns how long opening took.
    pub fn verify(
        &self,
        observer: &dyn Observer,
    ) -> Result<(Verification, Reopened), MeasureError> {
        observer.begin(Step::Reopen, None);
        let started = Instant::now();
        let database = Database::open(&self.folder, self.options.clone());
        observer.end();
        let database = database?;
        let reopened =
            Reopened { elapsed: started.elapsed(), recovery: database.recovery().clone() };
        let opened = self.table_names.iter().map(|name| database.table(name));
        let tables = opened.collect::<onrush::Result<Vec<Table>>>()?;
        let mut verdict = verify::verify(&database, &tables, &self.acknowledged, observer)?;
        if self.has_indexes {
            verdict.add_faults(index_faults(&database)?);
        }
        drop(tables);
        database.close()?;
        Ok((verdict, reopened))
    }
}

/// What a check finds of the indexes: each is compared with its table both ways.
fn index_faults(database: &Database) -> Result<Vec<String>, MeasureError> {
    let options = OnlineOptions { busy_percent: 100, ..OnlineOptions::default() };
    let report = database.check(&options, &CheckProgress::default())?;
    Ok(if report.is_sound() { Vec::new() } else { vec![report.to_string()] })
}

/// The opening of a database that was left in whatever way.
#[derive(Clone, Debug, Default)]
pub struct Reopened {
    /// How long opening took.
    pub elapsed: Duration,
    /// What opening had to do.
    pub recovery: RecoveryReport,
}

/// The time now, as the classic table keeps it.
pub fn unix_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
