//! After each round: the check finds nothing, the database opens, and what each session has in it is
//! the state after one of its operations, no earlier than what was promised.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use onrush::{Database, Options, Table};
use onrush_check::{CheckOptions, Progress, check};
use onrush_files::OsDisk;
use onrush_oracle::{Bounds, Expected as _, Known, follow};

use super::account;
use super::model::{Limits, Model};
use super::tables::{self, Kind};
use super::worker::backup_path;

/// What all verifications together have seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Databases checked while nobody had them open, copies among them.
    pub(crate) checks: u64,
    pub(crate) rows: u64,
    /// Operations that were begun.
    pub(crate) intended: u64,
    pub(crate) acknowledged: u64,
    /// Operations that were acknowledged, not as durable, and lost.
    pub(crate) lost_delayed: u64,
    /// Bytes of log that opening has redone.
    pub(crate) redone_records: u64,
    pub(crate) backups: u64,
}

/// What every session must have.
pub(crate) struct Oracle {
    seed: u64,
    limits: Limits,
    models: Vec<Model>,
    /// The next operation of each.
    pub(crate) next: Vec<u64>,
    pub(crate) seen: Seen,
}

/// How a round has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    Closed,
    Killed,
}

impl Oracle {
    pub(crate) fn new(seed: u64, limits: Limits, sessions: u64) -> Oracle {
        let models = (0..sessions).map(Model::new).collect();
        let next = vec![1; sessions as usize];
        Oracle { seed, limits, models, next, seen: Seen::default() }
    }

    /// Rows that there are now.
    pub(crate) fn live_rows(&self) -> u64 {
        self.models.iter().map(Model::count).sum()
    }

    /// Looks at what a round has left in `folder`.
    ///
    /// # Errors
    /// Whatever is not as it was promised.
    pub(crate) fn verify(
        &mut self,
        folder: &Path,
        options: &Options,
        ending: Ending,
    ) -> Result<()> {
        let database = folder.join("database");
        self.check(&database)?;
        let opened = tables::open(&database, options)?;
        self.seen.redone_records += opened.0.recovery().records;
        let found = self.digests(&opened.0, &opened.1)?;
        // In half of the cases the next round has the same log to read.
        if found.iter().fold(0, |all: u64, one| all.wrapping_add(*one)) % 2 == 0 {
            opened.0.close()?;
        }
        let backup = self.backup(folder, options)?;
        for (session, found) in found.into_iter().enumerate() {
            let known = account::read(&account::path(folder, session as u64))?;
            let Some(known) = known else { continue };
            let backup =
                backup.as_ref().map(|(bounds, digests)| (bounds[session], digests[session]));
            self.settle(session, known, found, backup, ending)
                .with_context(|| format!("session {session}: {known:?}"))?;
        }
        Ok(())
    }

    fn check(&mut self, database: &Path) -> Result<()> {
        let disk = Arc::new(OsDisk::new());
        let report = check(disk, database, &CheckOptions::default(), &Progress::default())?;
        ensure!(report.is_sound(), "check of {}: {report}", database.display());
        self.seen.checks += 1;
        Ok(())
    }

    /// For each session a number for what it has, from its rows in all tables, each of which is read.
    fn digests(&mut self, database: &Database, all: &[Table]) -> Result<Vec<u64>> {
        let mut found: Vec<Model> = (0..self.models.len() as u64).map(Model::new).collect();
        let mut session = database.session()?;
        for (kind, table) in Kind::ALL.into_iter().zip(all) {
            for row in session.scan(table, &onrush::ScanOptions::default())? {
                let row = tables::read(kind, &row?)?;
                let model = found.get_mut(row.session as usize);
                model.context("a row of a session that there is not")?.add(kind, row.live);
                self.seen.rows += 1;
            }
        }
        Ok(found.iter().map(Model::print).collect())
    }

    /// Checks and reads the round's backup, if it has a whole one; then removes it.
    fn backup(
        &mut self,
        folder: &Path,
        options: &Options,
    ) -> Result<Option<(Vec<Bounds>, Vec<u64>)>> {
        let (path, bounds_path) = backup_path(folder);
        let bounds = account::read_bounds(&bounds_path)?;
        let found = match bounds {
            None => None,
            Some(bounds) => {
                self.check(&path).context("the backup")?;
                let (copy, tables) = tables::open(&path, options).context("the backup")?;
                self.seen.backups += 1;
                Some((bounds, self.digests(&copy, &tables).context("the backup")?))
            }
        };
        for leftover in std::fs::read_dir(folder)?.flatten() {
            let path = leftover.path();
            let is_backup = leftover.file_name().to_string_lossy().contains("backup");
            match (is_backup, path.is_dir()) {
                (false, _) => {}
                (true, true) => std::fs::remove_dir_all(&path)?,
                (true, false) => std::fs::remove_file(&path)?,
            }
        }
        Ok(found)
    }

    /// Follows a session from operation to operation up to the state that was found.
    fn settle(
        &mut self,
        session: usize,
        known: Known,
        found: u64,
        backup: Option<(Bounds, u64)>,
        ending: Ending,
    ) -> Result<()> {
        let required = match ending {
            Ending::Closed => known.acknowledged,
            Ending::Killed => known.required,
        };
        let settled = self.next[session] - 1;
        let (seed, limits) = (self.seed, self.limits);
        let changes =
            |model: &Model, number| Model::changes(model.deed(seed, number, limits), number);
        let find =
            |bounds, found| follow(self.models[session].clone(), settled, bounds, &found, changes);
        let Some((kept, model)) = find(Known { required, ..known }.bounds(), found) else {
            bail!("what it has is the state after no allowed operation");
        };
        if let Some(((least, most), found)) = backup {
            let is_copied = find((least, most.min(kept as usize)), found).is_some();
            ensure!(is_copied, "what its backup has is the state after no allowed operation");
        }
        self.models[session] = model;
        self.seen.intended += known.begun - settled;
        self.seen.acknowledged += known.acknowledged - settled;
        self.seen.lost_delayed += known.lost(kept);
        self.next[session] = known.begun + 1;
        Ok(())
    }
}
