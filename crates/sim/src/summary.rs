//! What runs have covered, added up.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use onrush::Database;
use onrush_waits::Counter;

use crate::disk::{BoundaryKind, CrashMode};
use crate::window::Loss;

/// Counters of the engine that show what a run went through.
const COUNTERS: [Counter; 23] = [
    Counter::Commits,
    Counter::DurableCommits,
    Counter::Rollbacks,
    Counter::Conflicts,
    Counter::DuplicateKeys,
    Counter::RowsInserted,
    Counter::RowsUpdated,
    Counter::RowsDeleted,
    Counter::RowsMoved,
    Counter::LeavesRemoved,
    Counter::SplitsRightEdge,
    Counter::SplitsLocalRun,
    Counter::SplitsMiddle,
    Counter::SplitsBlockGrant,
    Counter::Evictions,
    Counter::ImagesEviction,
    Counter::ImagesCheckpoint,
    Counter::Checkpoints,
    Counter::SpaceInstalls,
    Counter::KeyLeases,
    Counter::RangeFlushes,
    Counter::RangeCompactions,
    Counter::StockReads,
];

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Runs: seeds.
    pub runs: u64,
    /// Runs by number of data files.
    pub runs_by_files: BTreeMap<usize, u64>,
    /// Boundaries that the runs had, by depth.
    pub boundaries: BTreeMap<usize, u64>,
    /// Boundaries at which the power was cut, by depth.
    pub boundaries_cut: BTreeMap<usize, u64>,
    /// Kinds of boundaries that there were, and the modes in which each was cut.
    pub kinds: BTreeMap<BoundaryKind, BTreeSet<CrashMode>>,
    /// Power cuts by mode: images that were opened and compared.
    pub images: BTreeMap<CrashMode, u64>,
    /// Power cuts by depth: 0 in a run, 1 in the recovery from one or after it, and so on.
    pub images_by_depth: BTreeMap<usize, u64>,
    /// Power cuts before a recovery was over.
    pub images_in_recovery: u64,
    /// Databases opened.
    pub recoveries: u64,
    /// Images that were checked as they were found, before they were opened.
    pub checks: u64,
    /// What power cuts took of delayed commits, by the milliseconds of the window.
    pub windows: BTreeMap<u64, Loss>,
    /// Commits of several rows.
    pub commits_of_several: u64,
    /// Things done in the middle of checkpoints.
    pub visits: u64,
    /// Checks and backups of an open database.
    pub copies: u64,
    /// Calls that failed on purpose.
    pub failed_calls: u64,
    /// What the engine counted.
    pub counters: BTreeMap<&'static str, u64>,
}

impl Summary {
    /// Power cuts in all.
    pub fn cuts(&self) -> u64 {
        self.images.values().sum()
    }

    /// Kinds of boundaries at which the power was cut.
    pub fn kinds_cut(&self) -> usize {
        self.kinds.values().filter(|modes| !modes.is_empty()).count()
    }

    /// Adds what an engine counted; to be called once, before it is closed.
    pub fn note_engine(&mut self, database: &Database) {
        let totals = database.statistics().totals;
        for counter in COUNTERS {
            *self.counters.entry(counter.name()).or_default() += totals.counter(counter);
        }
    }

    /// What the engines counted.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(counter.name()).copied().unwrap_or(0)
    }

    /// Adds another summary.
    pub fn add(&mut self, other: &Summary) {
        self.runs += other.runs;
        self.images_in_recovery += other.images_in_recovery;
        self.recoveries += other.recoveries;
        self.checks += other.checks;
        self.commits_of_several += other.commits_of_several;
        self.visits += other.visits;
        self.copies += other.copies;
        self.failed_calls += other.failed_calls;
        for (kind, modes) in &other.kinds {
            self.kinds.entry(*kind).or_default().extend(modes);
        }
        for (window, loss) in &other.windows {
            self.windows.entry(*window).or_default().add(loss);
        }
        add(&mut self.runs_by_files, &other.runs_by_files);
        add(&mut self.boundaries, &other.boundaries);
        add(&mut self.boundaries_cut, &other.boundaries_cut);
        add(&mut self.images, &other.images);
        add(&mut self.images_by_depth, &other.images_by_depth);
        add(&mut self.counters, &other.counters);
    }
}

fn add<K: Copy + Ord>(into: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    for (key, count) in from {
        *into.entry(*key).or_default() += count;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "runs            {}", self.runs)?;
        for (files, runs) in &self.runs_by_files {
            writeln!(f, "  data files {files}: {runs}")?;
        }
        writeln!(f, "boundaries")?;
        for (depth, boundaries) in &self.boundaries {
            let cut = self.boundaries_cut.get(depth).copied().unwrap_or(0);
            writeln!(f, "  depth {depth:<8}{boundaries}, cut: {cut}")?;
        }
        writeln!(f, "  kinds         {}, cut: {}", self.kinds.len(), self.kinds_cut())?;
        let in_modes: usize = self.kinds.values().map(BTreeSet::len).sum();
        let modes = self.kinds.len() * CrashMode::ALL.len();
        writeln!(f, "  kinds x modes {modes}, cut: {in_modes}")?;
        writeln!(f, "power cuts      {}", self.cuts())?;
        for (mode, images) in &self.images {
            writeln!(f, "  {:<14}{images}", format!("{mode:?}"))?;
        }
        for (depth, images) in &self.images_by_depth {
            writeln!(f, "  depth {depth:<8}{images}")?;
        }
        writeln!(f, "  in recovery   {}", self.images_in_recovery)?;
        writeln!(f, "recoveries      {}", self.recoveries)?;
        writeln!(f, "checks          {}", self.checks)?;
        writeln!(f, "several rows    {}", self.commits_of_several)?;
        writeln!(f, "visits          {}", self.visits)?;
        writeln!(f, "copies          {}", self.copies)?;
        writeln!(f, "failed calls    {}", self.failed_calls)?;
        for (window, loss) in &self.windows {
            writeln!(f, "window {window} ms: {loss}")?;
        }
        for (name, count) in &self.counters {
            writeln!(f, "{:<22}{count}", name.to_lowercase())?;
        }
        Ok(())
    }
}
