//! The process of a round: sessions that insert, read, change and delete until they are told to end,
//! or killed; beside them checkpoints, checks and backups.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use onrush::{CheckProgress, Database, OnlineOptions, Table};
use onrush_oracle::Bounds;
use onrush_waits::Counter;

use super::account::{self, Account};
use super::model::{Limits, Model};
use super::samples::Told;
use super::session::Worker;
use super::settings::Settings;
use super::tables::{self, Kind};

/// What the process does.
#[derive(Args, Clone, Debug)]
pub(crate) struct Work {
    /// Folder of the run: the database, the accounts and the backups are in it.
    pub(crate) folder: PathBuf,
    #[arg(long)]
    pub(crate) seed: u64,
    /// The first operation of each session.
    #[arg(long, value_delimiter = ',')]
    pub(crate) next: Vec<u64>,
    #[arg(long)]
    pub(crate) max_bytes: u64,
    /// Milliseconds from one checkpoint, check or backup to the next.
    #[arg(long)]
    pub(crate) chore_ms: u64,
    /// Milliseconds from one account of itself to the next.
    #[arg(long)]
    pub(crate) tell_ms: u64,
    #[arg(long)]
    pub(crate) with_backup: bool,
}

/// Why the process ends.
enum End {
    Asked,
    Failed(anyhow::Error),
}

/// What all threads of the process share.
pub(crate) struct Shared {
    pub(crate) database: Database,
    pub(crate) tables: Vec<Table>,
    pub(crate) accounts: Vec<Account>,
    pub(crate) seed: u64,
    pub(crate) limits: Limits,
    /// Sessions end before their next operation.
    pub(crate) is_ending: AtomicBool,
    /// Rows of each session.
    pub(crate) live_rows: Vec<AtomicU64>,
    checks: AtomicU64,
    backups: AtomicU64,
}

/// Works until it is asked to end by the end of its input.
///
/// # Errors
/// Whatever goes wrong: nothing may.
pub(crate) fn run(work: &Work) -> Result<()> {
    let account = |(session, next): (usize, &u64)| {
        Account::create(&account::path(&work.folder, session as u64), *next)
    };
    let accounts = work.next.iter().enumerate().map(account).collect::<Result<Vec<_>>>()?;
    let settings = Settings::of(work.max_bytes);
    let (database, tables) = tables::open(&work.folder.join("database"), &settings.options)?;
    let own = own_rows(&database, &tables, work.next.len())?;
    let shared = Shared {
        database,
        tables,
        accounts,
        seed: work.seed,
        limits: settings.limits(work.next.len() as u64),
        is_ending: AtomicBool::new(false),
        live_rows: work.next.iter().map(|_| AtomicU64::new(0)).collect(),
        checks: AtomicU64::new(0),
        backups: AtomicU64::new(0),
    };
    let (tell, told) = channel();
    let asked = tell.clone();
    // Not joined: it waits for input for as long as there is a parent.
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = asked.send(End::Asked);
    });
    let outcome = std::thread::scope(|scope| {
        for (session, own) in own.into_iter().enumerate() {
            let (shared, tell) = (&shared, tell.clone());
            scope.spawn(move || report(&tell, || Worker::new(shared, session, own)?.run()));
        }
        let (shared_ref, interval) = (&shared, Duration::from_millis(work.tell_ms));
        scope.spawn(move || report(&tell, || tell_all(shared_ref, interval)));
        let outcome = chores(&shared, work, &told);
        shared.is_ending.store(true, Ordering::Relaxed);
        outcome
    });
    outcome?;
    // What went wrong while they ended.
    if let Some(End::Failed(error)) = told.try_iter().find(|end| matches!(end, End::Failed(_))) {
        return Err(error);
    }
    Ok(shared.database.close()?)
}

fn report(tell: &Sender<End>, work: impl FnOnce() -> Result<()>) {
    if let Err(error) = work() {
        let _ = tell.send(End::Failed(error));
    }
}

/// The rows of each session, with their keys, as the database has them.
fn own_rows(database: &Database, tables: &[Table], sessions: usize) -> Result<Vec<Own>> {
    let mut found = vec![Vec::new(); sessions * Kind::ALL.len()];
    let mut session = database.session()?;
    for (kind, table) in Kind::ALL.into_iter().zip(tables) {
        for row in session.scan(table, &onrush::ScanOptions::default())? {
            let row = tables::read(kind, &row?)?;
            let place = row.session as usize * Kind::ALL.len() + kind as usize;
            found.get_mut(place).context("a row of no session")?.push((row.live, row.key));
        }
    }
    let mut own: Vec<Own> = (0..sessions as u64).map(Own::new).collect();
    for (place, mut rows) in found.into_iter().enumerate() {
        let own = &mut own[place / Kind::ALL.len()];
        let kind = Kind::ALL[place % Kind::ALL.len()];
        rows.sort_unstable();
        for (live, key) in rows {
            own.model.add(kind, live);
            own.keys[kind as usize].push_back(key);
        }
    }
    Ok(own)
}

/// What a session has, and the keys of it in the same order.
pub(crate) struct Own {
    pub(crate) model: Model,
    pub(crate) keys: [std::collections::VecDeque<tables::Key>; Kind::ALL.len()],
}

impl Own {
    fn new(session: u64) -> Own {
        Own { model: Model::new(session), keys: Default::default() }
    }
}

/// Checkpoint, check, checkpoint, backup, in turn, until the end.
fn chores(shared: &Shared, work: &Work, told: &Receiver<End>) -> Result<()> {
    let interval = Duration::from_millis(work.chore_ms);
    for turn in 0u64.. {
        match told.recv_timeout(interval) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(End::Failed(error)) => return Err(error),
            Ok(End::Asked) | Err(RecvTimeoutError::Disconnected) => break,
        }
        match turn % 4 {
            1 => check(shared)?,
            3 if work.with_backup && turn == 3 => backup(shared, &work.folder)?,
            _ => {
                shared.database.checkpoint()?;
            }
        }
    }
    Ok(())
}

/// With half of a processor, so that rounds need not be long.
fn online() -> OnlineOptions {
    OnlineOptions { busy_percent: 50, ..OnlineOptions::default() }
}

fn check(shared: &Shared) -> Result<()> {
    let report = shared.database.check(&online(), &CheckProgress::default())?;
    ensure!(report.is_sound(), "an online check: {report}");
    shared.checks.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// The name of a round's backup; what must be in it stands in a file beside it.
pub(crate) fn backup_path(folder: &Path) -> (PathBuf, PathBuf) {
    (folder.join("backup"), folder.join("backup-bounds"))
}

fn backup(shared: &Shared, folder: &Path) -> Result<()> {
    let (into, bounds) = backup_path(folder);
    // What is begun before the end of the backup and acknowledged after its beginning may be in it or not.
    let before: Vec<u64> = shared.accounts.iter().map(Account::acknowledged).collect();
    shared.database.backup(&into, &online(), &CheckProgress::default())?;
    let after = shared.accounts.iter().map(|account| account.intended() as usize);
    let all: Vec<Bounds> = before.into_iter().map(|least| least as usize).zip(after).collect();
    account::write_bounds(&bounds, &all)?;
    shared.backups.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// A line of numbers at each interval.
fn tell_all(shared: &Shared, interval: Duration) -> Result<()> {
    while !shared.is_ending.load(Ordering::Relaxed) {
        let statistics = shared.database.statistics();
        let counter = |counter| statistics.totals.counter(counter);
        let told = Told {
            leaves: statistics.leaves,
            slots: statistics.slots,
            inserted: counter(Counter::RowsInserted),
            updated: counter(Counter::RowsUpdated),
            deleted: counter(Counter::RowsDeleted),
            read: counter(Counter::RowsRead),
            checkpoints: counter(Counter::Checkpoints),
            live_rows: shared.live_rows.iter().map(|rows| rows.load(Ordering::Relaxed)).sum(),
            checks: shared.checks.load(Ordering::Relaxed),
            backups: shared.backups.load(Ordering::Relaxed),
        };
        let mut line = serde_json::to_vec(&told)?;
        line.push(b'\n');
        // Without a parent there is nobody to tell.
        if std::io::stdout().write_all(&line).is_err() {
            return Ok(());
        }
        std::thread::sleep(interval);
    }
    Ok(())
}
