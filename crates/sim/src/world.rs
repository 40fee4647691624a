//! The engine beside the model: every call is made on both, and the answers must agree.
//!
//! - `world/rows.rs`: calls that change or read one row. `world/transactions.rs`: several rows.
//!   `world/refill.rs`: a table emptied and filled by one.
//!   `world/hearsay.rs`: answers that rest on what others did.
//! - `world/tables.rs`: keys, payloads, tables made and dropped. `world/alter.rs`: tables altered.
//!   `world/checkpoints.rs`: checkpoints with visits, restarts.
//!
//! Invariants
//! 1. A call's answer is predicted from the model before the engine is asked.
//! 2. The run follows from the seed, but for what the engine draws itself, keys by chance and by the clock, and for
//!    what follows from those: where leaves split. No second thread and no address decides anything.

mod alter;
mod checkpoints;
mod copies;
mod hearsay;
mod refill;
mod rows;
mod tables;
mod transactions;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onrush::{Database, Durability, Error, Session, Snapshot, TableDefinition};

pub use checkpoints::restart;
pub use copies::COPY;
pub use tables::LiveTable;

use crate::disk::CrashDisk;
use crate::gate::{Gate, GatedDisk, database_folder};
use crate::plan::{Action, Plan};
use crate::random::Random;
use crate::summary::Summary;
use onrush_oracle::state::{row_digest, table_digest};
use onrush_oracle::violation;
use onrush_oracle::{Checked, History, Violation};
use onrush_oracle::{Effect, Expected as _, State};

/// Rows that fill several leaves, and a log segment nearly.
const FILL_ROWS: usize = 60;

/// Where the numbers that decide about copies come from.
const COPY_PART: u64 = 3 << 40;
/// Where the numbers that decide about savepoints come from.
const SAVEPOINT_PART: u64 = 5 << 40;
/// After one in so many actions there is a copy, in runs that have copies.
const COPY_ONE_IN: u64 = 80;

/// A table and a key in it.
pub type Place = (String, Vec<u8>);

/// See the module.
pub struct World {
    pub(crate) plan: Arc<Plan>,
    pub(crate) disk: CrashDisk,
    gate: Gate,
    database: Option<Database>,
    sessions: Vec<Session>,
    tables: Vec<LiveTable>,
    snapshots: Vec<(Snapshot, State)>,
    /// What happened, and what was promised.
    pub history: History,
    /// Generated keys that were shown to a caller, and since when.
    pub(crate) handed: HashMap<Place, usize>,
    /// End of each commit in the log, and how many commits there were then.
    ends: Vec<(u64, usize)>,
    random: Random,
    /// Whether and when there are copies: a stream of its own, so that all else stays what it was.
    copy_random: Option<Random>,
    /// Likewise whether and when transactions have savepoints.
    pub(crate) savepoint_random: Option<Random>,
    /// What was covered.
    pub summary: Summary,
    /// Calls may fail because the disk does.
    pub failures_expected: bool,
    /// Why the engine has stopped, if it has.
    pub stopped: Option<String>,
    visit_failed: Option<Violation>,
    in_visit: bool,
}

/// Why a call that should have succeeded did not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failed {
    /// Nothing has happened.
    Clean,
    /// It may or may not have happened, and the engine has stopped.
    Unknown,
}

/// A world that a visitor in the middle of a checkpoint can reach.
pub type SharedWorld = Arc<Mutex<World>>;

pub(crate) fn locked(world: &SharedWorld) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    /// A new database on an empty disk, its tables not made yet.
    ///
    /// # Errors
    /// The engine does not create it.
    pub fn create(plan: Arc<Plan>, disk: CrashDisk) -> Checked<World> {
        let gate = Gate::new();
        let gated = Arc::new(GatedDisk::new(disk.clone(), gate.clone()));
        match Database::create_on(gated, database_folder(), plan.options.clone()) {
            Ok(database) => Ok(World::around(plan, disk, gate, database, State::default(), 0)),
            Err(error) => violation!("create: {error}"),
        }
    }

    /// Goes on with a database that a power cut has left and the engine has opened.
    pub fn around(
        plan: Arc<Plan>,
        disk: CrashDisk,
        gate: Gate,
        database: Database,
        state: State,
        part: u64,
    ) -> World {
        let random = Random::for_part(plan.seed, 1000 + part);
        let copy_random = Random::for_part(plan.seed, COPY_PART)
            .chance(1, 3)
            .then(|| Random::for_part(plan.seed, COPY_PART + 1 + part));
        let is_large = plan.options.large_transaction_bytes < 4096;
        let savepoint_random = is_large.then(|| Random::for_part(plan.seed, SAVEPOINT_PART + part));
        let mut world = World {
            plan,
            disk,
            gate,
            database: Some(database),
            sessions: Vec::new(),
            tables: Vec::new(),
            snapshots: Vec::new(),
            history: History::new(state),
            handed: HashMap::new(),
            ends: Vec::new(),
            random,
            copy_random,
            savepoint_random,
            summary: Summary::default(),
            failures_expected: false,
            stopped: None,
            visit_failed: None,
            in_visit: false,
        };
        world.reconnect();
        world
    }

    /// Operations of the disk so far.
    pub(crate) fn timestamp(&self) -> usize {
        self.disk.operation_count()
    }

    pub(crate) fn database(&self) -> Checked<&Database> {
        self.database.as_ref().ok_or_else(|| Violation("the database is closed".into()))
    }

    /// Whether the engine has stopped, also if nobody was told yet: what fails behind the calls of
    /// sessions is told to the next one.
    pub(crate) fn has_stopped(&self) -> bool {
        let session = self.database.as_ref().map(Database::session);
        self.stopped.is_some() || matches!(session, Some(Err(error)) if error.is_fatal())
    }

    /// Sessions and tables of the open database, as the model says there are.
    pub(crate) fn reconnect(&mut self) {
        self.sessions.clear();
        self.tables.clear();
        for _ in 0..self.plan.sessions {
            self.add_session();
        }
        let names: Vec<String> = self.history.now().tables().keys().cloned().collect();
        for name in names {
            self.meet_table(&name);
        }
    }

    fn add_session(&mut self) {
        let Some(Ok(mut session)) = self.database.as_ref().map(Database::session) else { return };
        session.set_durability(self.some_durability());
        self.sessions.push(session);
    }

    fn some_durability(&mut self) -> Durability {
        if self.random.chance(self.plan.delayed_of_8, 8) {
            Durability::Delayed
        } else {
            Durability::Durable
        }
    }

    fn some_session(&mut self) -> usize {
        usize::try_from(self.random.below(self.sessions.len() as u64)).unwrap_or(0)
    }

    fn some_table(&mut self) -> Option<usize> {
        let count = self.tables.len() as u64;
        (count > 0).then(|| usize::try_from(self.random.below(count)).unwrap_or(0))
    }

    /// Notes a transaction that the engine has committed.
    pub(crate) fn note_commit(
        &mut self,
        begun_at: usize,
        effects: Vec<Effect>,
        end: Option<u64>,
    ) -> Checked<usize> {
        self.summary.commits_of_several += u64::from(effects.len() > 1);
        let commits = self.history.commit(begun_at, effects);
        if let Some(end) = end {
            if let Some((last, _)) = self.ends.last()
                && *last >= end
            {
                violation!("a commit ends at LSN {end}, one before it at {last}");
            }
            self.ends.push((end, commits));
        }
        Ok(commits)
    }

    /// A commit of `session`, whose rows are logged, was acknowledged as its durability says.
    pub(crate) fn note_answer(&mut self, session: usize, commits: usize) -> Checked<()> {
        let session = &self.sessions[session];
        if session.durability() == Durability::Durable {
            let timestamp = self.timestamp();
            self.history.acknowledge(timestamp, commits);
            return Ok(());
        }
        let durable = self.database()?.durable_lsn();
        let behind = session.last_commit_lsn().map_or(0, |end| end.bytes_since(durable));
        let window = self.plan.options.delayed_window_bytes;
        if behind > window {
            violation!("{behind} bytes acknowledged as delayed are not durable, of {window}");
        }
        Ok(())
    }

    /// A durable session was told about a key: whatever changed the key must survive.
    pub(crate) fn note_rests_on(&mut self, session: usize, place: &Place) {
        if self.sessions[session].durability() != Durability::Durable {
            return;
        }
        if let Some(commits) = self.history.changed.last(place) {
            let timestamp = self.timestamp();
            self.history.acknowledge(timestamp, commits);
        }
    }

    /// An error that the model did not predict.
    pub(crate) fn failed(&mut self, what: &str, error: &Error) -> Checked<Failed> {
        if error.is_fatal() {
            if !self.failures_expected {
                violation!("{what}: {error}");
            }
            self.stopped = Some(error.to_string());
            return Ok(Failed::Unknown);
        }
        let clean = match error {
            Error::TransactionTooLarge { .. } => true,
            Error::LeafMemoryTooSmall { .. } => self.in_visit,
            Error::DiskFull { .. } | Error::Disk(_) => self.failures_expected,
            _ => false,
        };
        if clean { Ok(Failed::Clean) } else { violation!("{what}: {error}") }
    }

    /// What is durable by now must survive, whoever asked for it.
    fn note_durable(&mut self) -> Checked<()> {
        let durable = self.database()?.durable_lsn().0;
        let known = self.ends.partition_point(|(end, _)| *end <= durable);
        if let Some(index) = known.checked_sub(1) {
            let timestamp = self.timestamp();
            self.history.acknowledge(timestamp, self.ends[index].1);
        }
        Ok(())
    }

    fn wants_copy(&mut self) -> bool {
        let may = self.stopped.is_none() && !self.failures_expected;
        may && self.copy_random.as_mut().is_some_and(|random| random.chance(1, COPY_ONE_IN))
    }

    /// Does one action; checkpoints and restarts are done by [`run`].
    fn act(&mut self, action: Action) -> Checked<()> {
        if self.sessions.is_empty() {
            self.add_session();
        }
        match action {
            Action::Insert => self.insert(false),
            Action::InsertToken => self.insert(true),
            Action::InsertTaken => self.insert_taken(),
            Action::Upsert => self.upsert(),
            Action::Update => self.update(),
            Action::Delete => self.delete(),
            Action::DeleteRun => self.delete_run(),
            Action::Scatter => self.scatter(),
            Action::DeleteMissing => self.delete_missing(),
            Action::Hearsay => self.hearsay(),
            Action::Get => self.get(),
            Action::Scan => self.scan(),
            Action::SnapshotScan => self.snapshot_scan(),
            Action::Transaction => self.transactions(1),
            Action::Interleaved => self.transactions(3),
            Action::InsertMany => self.insert_many(),
            Action::MoveRows => self.move_rows(),
            Action::Truncate => self.truncate(),
            Action::Refill => self.refill(),
            Action::DropAndCreate => self.drop_and_create(),
            Action::Alter => self.alter(),
            Action::PassNames => self.pass_names(),
            Action::Barrier => self.barrier(),
            Action::WriteLog => self.write_log(),
            Action::ChangeDurability => {
                let (session, durability) = (self.some_session(), self.some_durability());
                self.sessions[session].set_durability(durability);
                Ok(())
            }
            Action::NewSession => {
                let session = self.some_session();
                self.sessions.swap_remove(session);
                self.add_session();
                Ok(())
            }
            Action::Fill => self.fill(),
            Action::LongRound => self.fill().and_then(|()| self.barrier()),
            Action::Checkpoint | Action::InstallSpace | Action::Reopen => Ok(()),
        }
    }

    fn fill(&mut self) -> Checked<()> {
        let Some(table) = self.some_table() else { return Ok(()) };
        (0..FILL_ROWS).try_for_each(|_| self.insert_into(table, true))
    }
}

/// Does `actions` actions, or fewer if the engine stops.
///
/// # Errors
/// The engine and the model do not agree.
pub fn run(world: &SharedWorld, actions: usize) -> Checked<()> {
    for _ in 0..actions {
        let action = {
            let mut world = locked(world);
            let plan = Arc::clone(&world.plan);
            plan.draw(&mut world.random)
        };
        act_all(world, &[action])?;
        if locked(world).wants_copy() {
            copies::copy(world)?;
        }
    }
    Ok(())
}

/// Does these actions, or fewer if the engine stops.
///
/// # Errors
/// The engine and the model do not agree.
pub fn act_all(world: &SharedWorld, actions: &[Action]) -> Checked<()> {
    for action in actions {
        if locked(world).stopped.is_some() {
            return Ok(());
        }
        match action {
            Action::Checkpoint => checkpoints::checkpoint(world)?,
            Action::InstallSpace => checkpoints::install_space(world)?,
            Action::Reopen => restart(&mut locked(world))?,
            other => locked(world).act(*other)?,
        }
        let mut world = locked(world);
        if world.stopped.is_none() {
            world.note_durable()?;
        }
    }
    Ok(())
}

/// Makes the tables of the plan and their first rows.
///
/// # Errors
/// The engine and the model do not agree.
pub fn prepare(world: &SharedWorld) -> Checked<()> {
    let mut world = locked(world);
    let plans = world.plan.tables.clone();
    for plan in &plans {
        world.create_table(plan.name.clone(), plan.clone())?;
    }
    for (index, plan) in plans.iter().enumerate() {
        for _ in 0..plan.first_rows {
            if world.stopped.is_some() || index >= world.tables.len() {
                return Ok(());
            }
            world.insert_into(index, true)?;
        }
    }
    world.note_durable()
}

/// The digest of everything in an open database. Rows must come in key order.
///
/// # Errors
/// A scan fails, or gives rows out of order.
pub fn digest_of(database: &Database) -> Checked<u128> {
    let mut digest = 0u128;
    visit_all(database, |table, definition, row| match row {
        None => digest = digest.wrapping_add(table_digest(table, definition)),
        Some((key, value)) => digest = digest.wrapping_add(row_digest(table, key, value)),
    })?;
    Ok(digest)
}

/// Everything in an open database.
///
/// # Errors
/// As [`digest_of`].
pub fn state_of(database: &Database) -> Checked<State> {
    let mut state = State::default();
    visit_all(database, |table, definition, row| {
        let table = table.to_owned();
        state.apply(&match row {
            None => Effect::Create { table, definition: definition.to_vec() },
            Some((key, value)) => Effect::Put { table, key: key.to_vec(), value: value.into() },
        });
    })?;
    Ok(state)
}

fn visit_all(
    database: &Database,
    mut visit: impl FnMut(&str, &[u8], Option<(&[u8], &[u8])>),
) -> Checked<()> {
    let session = database.session();
    let mut session = session.map_err(|error| Violation(format!("open a session: {error}")))?;
    let mut names = HashSet::new();
    for definition in database.tables() {
        let name = definition.name();
        if !names.insert(name.to_owned()) {
            violation!("there are two tables {name}");
        }
        // Where long values are the engine says, and no plan.
        let bytes = TableDefinition::clone(&definition).with_long_values(None).to_bytes();
        visit(name, &bytes, None);
        let mut last: Option<Vec<u8>> = None;
        let mut unordered = false;
        let scanned = database.table(name).and_then(|table| {
            session.scan(&table, &Default::default())?.visit_raw(|key, value| {
                unordered |= last.as_ref().is_some_and(|last| last.as_slice() >= key);
                last = Some(key.to_vec());
                visit(name, &bytes, Some((key, value)));
            })
        });
        if let Err(error) = scanned {
            violation!("scan of {name}: {error}");
        }
        if unordered {
            violation!("scan of {name}: keys are not in ascending order");
        }
    }
    Ok(())
}
