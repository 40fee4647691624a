//! Rivals that live in this process: stores that take a key and a value, or columns.
//!
//! A store brings how to open it, how one session commits rows, and how to read all of them back;
//! everything else, the crowd of sessions, keys, timing, what was acknowledged and the comparison,
//! is the same for all and stands here.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::error::LabError;
use onrush_measure::FolderError;
use onrush_measure::fingerprint::Fingerprint;
use onrush_measure::load::crowd::{self, Crowd};
use onrush_measure::load::ledger::{KeySample, LedgerKind};
use onrush_measure::load::mix::{Mix, Mixer, Operation};
use onrush_measure::load::rows_of;
use onrush_measure::progress::{Observer, Step};
use onrush_measure::stand::unix_micros;
use onrush_measure::verify::{self, Acknowledged, Part, Verification};

use super::checked::{self, Checked};
use super::onrush::figures;
use super::record::Snapshot;
use super::rows::{self, Numbers, Row, RowMaker};
use super::{Instance, LoadFigures, LoadOrder, Sampler};
use crate::study::{Setting, Settings};

/// So many faults are described.
const FAULTS_DESCRIBED: usize = 5;
/// Rows of a commit while preloading.
const PRELOAD_ROWS_PER_COMMIT: u64 = 1000;

/// What a store says when it refuses.
pub(super) type Refusal = Box<dyn std::error::Error + Send + Sync>;

/// A server as a store of rows.
pub(super) trait Store: Send + Sync + Sized + 'static {
    /// The target's name.
    const NAME: &'static str;

    /// One session of it, for one thread.
    type Session<'s>: StoreSession
    where
        Self: 's;

    /// Opens the store below `folder`; makes it when there is none.
    fn open(folder: &Path, settings: &Settings) -> Result<Self, Refusal>;

    /// A session; durable, or not synced.
    fn session(&self, is_durable: bool) -> Result<Self::Session<'_>, Refusal>;

    /// Every row in the order of its keys: key bytes and value bytes.
    fn scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Refusal>;

    /// How many entries each index has.
    fn count_entries(&self) -> Result<Vec<u64>, Refusal> {
        Ok(Vec::new())
    }

    /// Everything acknowledged becomes durable.
    fn settle(&self) -> Result<(), Refusal> {
        Ok(())
    }

    /// What a check of its own looks at, a value of `check_depth`; None if it has none.
    const CHECK_DEPTH: Option<&'static str> = None;

    /// Checks everything that is stored, as deeply as [`Store::CHECK_DEPTH`] says; returns the bytes
    /// that were looked at. Damage is a refusal.
    fn check(&mut self) -> Result<u64, Refusal> {
        Err("it has no check of what is stored".into())
    }

    /// Its own statistics.
    fn snapshot(&self) -> Snapshot {
        Snapshot::default()
    }

    /// Whether [`Store::snapshot`] is cheap enough to be taken again and again during a load.
    const HAS_STATISTICS: bool = false;
    /// Whether its sessions read and update single rows.
    const READS_AND_UPDATES: bool = false;
    /// Whether rows can be read back.
    const KEEPS_ROWS: bool = true;
}

/// A session of a store.
pub(super) trait StoreSession {
    /// Inserts rows in one transaction; returns when they are acknowledged.
    fn commit(&mut self, rows: &[Row]) -> Result<(), Refusal>;

    /// Whether there is a row with this key; its value is found, too.
    fn read(&mut self, _key: &[u8]) -> Result<bool, Refusal> {
        Err("it has no point reads here".into())
    }

    /// Writes a row that is there anew, in a transaction of its own.
    fn update(&mut self, row: &Row) -> Result<(), Refusal> {
        self.commit(std::slice::from_ref(row))
    }
}

/// A store prepared for one case.
pub(super) struct Embedded<S: Store> {
    store: Option<std::sync::Arc<S>>,
    /// Opened again to be checked.
    checked: Option<S>,
    settings: Settings,
    folder: PathBuf,
    numbers: Numbers,
    acknowledged: Acknowledged,
}

fn failed<S: Store>(error: Refusal) -> LabError {
    failed_as(S::NAME, &*error)
}

/// The error of a target, with its causes.
pub(super) fn failed_as(target: &str, error: &(dyn std::error::Error + 'static)) -> LabError {
    let mut what = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        what += ": ";
        what += &cause.to_string();
        source = cause.source();
    }
    LabError::Target { target: target.to_owned(), what }
}

impl<S: Store> Embedded<S> {
    /// Makes an empty store below `folder`.
    pub(super) fn prepare(settings: &Settings, folder: &Path) -> Result<Self, LabError> {
        let folder = folder.join(S::NAME);
        std::fs::create_dir_all(&folder)
            .map_err(|error| FolderError::new("create folder", &folder, error))?;
        let store = S::open(&folder, settings).map_err(failed::<S>)?;
        let now = unix_micros();
        Ok(Embedded {
            store: Some(std::sync::Arc::new(store)),
            checked: None,
            settings: settings.clone(),
            folder,
            numbers: Numbers::default(),
            acknowledged: Acknowledged {
                is_classic: true,
                numbers: settings.number_columns(),
                rows: 0,
                fingerprint: Fingerprint::default(),
                keys: KeySample::default(),
                inserted_micros: (now, now),
            },
        })
    }

    fn close(&mut self, observer: &dyn Observer) {
        observer.begin(Step::Close, None);
        (self.store, self.checked) = (None, None);
        observer.end();
    }

    fn store(&self) -> Result<&std::sync::Arc<S>, LabError> {
        self.store.as_ref().ok_or_else(|| failed::<S>("it was closed".into()))
    }
}

/// The threads of a load on a baseline; those that preload are not durable, not pinned and not timed.
pub(super) fn crowd_of(settings: &Settings, order: &LoadOrder, remembers_rows: bool) -> Crowd {
    let is_preload = order.step == Step::Preload;
    let is_durable = settings.is_durable() && !is_preload;
    Crowd {
        threads: settings.size(Setting::Sessions),
        rows: order.rows,
        ledger: LedgerKind { is_durable, remembers_rows },
        step: order.step,
        is_pinned: settings.is(Setting::Pinning, "session") && !is_preload,
        time_max: settings.time_max().filter(|_| order.step == Step::Load),
    }
}

impl<S: Store> Instance for Embedded<S> {
    fn load(&mut self, order: LoadOrder, observer: &dyn Observer) -> Result<LoadFigures, LabError> {
        let settings = &self.settings;
        let is_preload = order.step == Step::Preload;
        let rows_per_commit = match is_preload {
            true => PRELOAD_ROWS_PER_COMMIT,
            false => settings.number(Setting::RowsPerCommit),
        };
        let sessions = settings.size(Setting::Sessions);
        let crowd = crowd_of(settings, &order, true);
        let (store, numbers) = (self.store()?, &self.numbers);
        let (key, spread, columns) =
            (settings.key(), settings.key_spread(), settings.number_columns());
        let mix = if is_preload { Mix::default() } else { settings.mix() };
        let loaded = crowd::run(crowd, observer, &|shared, thread, ledger| {
            let wanted = rows_of(order.rows, sessions, thread);
            let mut session = store.session(crowd.ledger.is_durable).map_err(failed::<S>)?;
            let maker = RowMaker::new(key, spread, columns, numbers);
            let mut maker = maker.map_err(onrush::Error::from)?;
            let mut rows: Vec<Row> = Vec::new();
            let mut mixer = Mixer::new(mix);
            let mut done = 0;
            while done < wanted && !shared.is_stopped() {
                let count = rows_per_commit.min(wanted - done);
                let started = ledger.start_commit();
                rows.clear();
                for _ in 0..count {
                    rows.push(maker.next().map_err(onrush::Error::from)?.clone());
                }
                session.commit(&rows).map_err(failed::<S>)?;
                ledger.committed(started, count);
                for row in &rows {
                    match mix.updates_per_100_rows {
                        0 => ledger.acknowledged(row.key_bytes(), row.value_bytes()),
                        _ => ledger.keys.offer(row.key_bytes()), // its value will be another one
                    }
                    mixer.inserted(row.key);
                }
                while !shared.is_stopped()
                    && let Some((operation, key)) = mixer.due()
                {
                    let row = maker.of(key);
                    let is_there = match operation {
                        Operation::Read => session.read(row.key_bytes()),
                        Operation::Update => session.update(row).map(|()| true),
                    };
                    if !is_there.map_err(failed::<S>)? {
                        return Err(failed::<S>("an acknowledged row is not found".into()));
                    }
                }
                done += count;
                shared.report(thread, done);
            }
            Ok::<(), LabError>(())
        })?;
        self.acknowledged.rows += loaded.ledger.rows;
        self.acknowledged.fingerprint.merge(&loaded.ledger.fingerprint);
        self.acknowledged.inserted_micros.1 = unix_micros();
        let figures = figures(&loaded);
        if is_preload {
            self.settle()?;
        }
        Ok(figures)
    }

    fn settle(&mut self) -> Result<(), LabError> {
        self.store()?.settle().map_err(failed::<S>)
    }

    fn check(&mut self, observer: &dyn Observer) -> Result<Checked, LabError> {
        let mut store = match self.checked.take() {
            Some(store) => store,
            None => {
                self.close(observer);
                S::open(&self.folder, &self.settings).map_err(failed::<S>)?
            }
        };
        observer.begin(Step::Check, None);
        let passed = Checked::of(self.acknowledged.rows, || store.check());
        observer.end();
        self.checked = Some(store);
        passed.map_err(failed::<S>)
    }

    fn statistics(&mut self) -> Result<Snapshot, LabError> {
        Ok(self.store()?.snapshot())
    }

    fn sampler(&mut self) -> Option<Sampler> {
        let store = self.store.clone().filter(|_| S::HAS_STATISTICS)?;
        Some(Box::new(move || Some(store.snapshot())))
    }

    fn verify(&mut self, observer: &dyn Observer) -> Result<Option<Verification>, LabError> {
        let started = Instant::now();
        if !S::KEEPS_ROWS {
            return Ok(None);
        }
        self.close(observer);
        observer.begin(Step::Reopen, None);
        let store = S::open(&self.folder, &self.settings).map_err(failed::<S>);
        observer.end();
        let store = store?;
        observer.begin(Step::Verify, Some(self.acknowledged.rows));
        let part = compare_rows(&self.acknowledged, observer, |visit| store.scan(visit));
        observer.end();
        let part = part.map_err(failed::<S>)?;
        let rows = part.fingerprint.rows;
        let mut verified = verify::compare(&self.acknowledged, part, started.elapsed());
        let columns = self.settings.indexed_columns();
        let counts = store.count_entries().map_err(failed::<S>)?;
        let wrong = columns.iter().zip(counts).filter(|(_, count)| *count != rows);
        let fault =
            |(column, count)| format!("the index of {column} has {count} entries for {rows} rows");
        verified.add_faults(wrong.map(fault).collect());
        Ok(Some(verified))
    }
}

/// Reads every row, in the order of their keys, and adds it up.
pub(super) fn compare_rows(
    acknowledged: &Acknowledged,
    observer: &dyn Observer,
    scan: impl FnOnce(&mut dyn FnMut(&[u8], &[u8])) -> Result<(), Refusal>,
) -> Result<Part, Refusal> {
    const REPORT_ROWS: u64 = 65_536;
    let mut part = Part::default();
    let mut previous: Vec<u8> = Vec::new();
    scan(&mut |key, value| {
        part.fingerprint.add(key, value);
        let is_ascending = part.fingerprint.rows == 1 || key > previous.as_slice();
        previous.clear();
        previous.extend_from_slice(key);
        let fault = match is_ascending {
            true => rows::fault_of(key, value, acknowledged.numbers, acknowledged.inserted_micros),
            false => Some("its key is not above the one before it".to_owned()),
        };
        if let Some(fault) = fault {
            part.fault_count += 1;
            if part.faults.len() < FAULTS_DESCRIBED {
                part.faults.push(format!("row {key:02x?}: {fault}"));
            }
        }
        if part.fingerprint.rows.is_multiple_of(REPORT_ROWS) {
            observer.advance(part.fingerprint.rows);
        }
    })?;
    Ok(part)
}

/// Why no store of this kind can run a case.
pub(super) fn impossible<S: Store>(settings: &Settings) -> Option<String> {
    let by_statements = settings.rows_per_statement() < settings.number(Setting::RowsPerCommit);
    if settings.is_check() {
        return match S::CHECK_DEPTH {
            Some(depth) => checked::impossible(settings, depth, false),
            None => Some("it has no check that could be compared".into()),
        };
    }
    if let Some(reason) = settings.impossible_client() {
        return Some(reason);
    }
    if !settings.mix().is_inserts_only() && !S::READS_AND_UPDATES {
        return Some("its reads and updates of single rows are not part of the lab".into());
    }
    if settings.is(Setting::Driver, "tasks") {
        return Some("its commits cannot be waited for later: a thread for each session".into());
    }
    if settings.is(Setting::LoopIn, "server") {
        return Some("it runs in this process: there is no server to put the loop in".into());
    }
    if by_statements {
        return Some("it has no statements: a transaction takes all its rows".into());
    }
    if settings.size(Setting::Sessions) > 4096 {
        return Some("more than 4096 sessions are too many for one thread each".into());
    }
    None
}
