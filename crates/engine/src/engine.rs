//! The parts of an open database that all layers share.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use onrush_files::{Disk, DiskError};
use onrush_latch::{Admission, Ticket, lock_counted};
use onrush_log::{Log, LogError, Lsn, Reservation};
use onrush_waits::{LatchClass, Recorder, Registry, Wait};
use parking_lot::Mutex;

use crate::btree::{Blocked, Tree};
use crate::buffer::{DirtyLists, EmptiedLeaves, Evictors, ImageWrites, Leaf, LeafState, ReadAhead};
use crate::catalog::{Catalog, LockWait, Waiter};
use crate::checkpoint::{CheckpointerCell, Progress, Records, Throttle};
use crate::constraint::Compiler;
use crate::error::{Error, Result};
use crate::memory::{Arena, FramePool};
use crate::node::inner::InnerNode;
use crate::node::leaf::Owner;
use crate::options::{Background, Options};
use crate::space::{Purpose, Space};
use crate::transaction::{
    LargeTransactions, OldVersions, OpenChanges, Snapshots, TransactionState, TransactionStates,
};
use crate::units::{Epoch, ObjectId};

/// Everything that lives between open and close.
pub(crate) struct Engine {
    pub(crate) options: Options,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) database_id: u128,
    pub(crate) registry: Arc<Registry>,
    /// Counts what no session is behind: opening, definitions of tables.
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) admission: Admission,
    pub(crate) log: LogCell,
    pub(crate) leaves: Arena<Leaf>,
    pub(crate) inners: Arena<InnerNode>,
    pub(crate) frames: FramePool,
    pub(crate) space: Arc<Space>,
    pub(crate) dirty: DirtyLists,
    pub(crate) image_writes: ImageWrites,
    pub(crate) emptied: EmptiedLeaves,
    pub(crate) evictors: Evictors,
    pub(crate) read_ahead: ReadAhead,
    pub(crate) transactions: TransactionStates,
    pub(crate) large: LargeTransactions,
    pub(crate) snapshots: Snapshots,
    pub(crate) old_versions: OldVersions,
    pub(crate) open_changes: OpenChanges,
    pub(crate) catalog: Catalog,
    /// Whoever understands CHECK constraints.
    pub(crate) expression_compiler: Compiler,
    /// Place of those who write to the log for no session, one at a time.
    internal: Mutex<Ticket>,
    /// The first failure; set once, and nothing is acknowledged after it.
    failure: OnceLock<String>,
    closed: AtomicBool,
    /// What checkpoints carry from one to the next.
    pub(crate) checkpointer: CheckpointerCell,
    /// How far the running one is.
    pub(crate) progress: Progress,
    /// The ones that were taken last.
    pub(crate) checkpoints: Records,
    /// How long inserts pause, so that a checkpoint can catch up.
    pub(crate) throttle: Throttle,
    /// Woken when frames run short.
    evictor_thread: OnceLock<Thread>,
}

/// The log, which is there once recovery has read it to its end. Replay itself never touches it.
#[derive(Default)]
pub(crate) struct LogCell(OnceLock<Log>);

impl LogCell {
    /// Opens the log for appending. Called once.
    pub(crate) fn set(&self, log: Log) {
        assert!(self.0.set(log).is_ok(), "the log is opened once");
    }

    /// All that was changed so far was changed below. Before recovery has ended that is where the log begins:
    /// no snapshot is older than what is redone.
    pub(crate) fn changed_below(&self) -> Lsn {
        self.0.get().map_or(Lsn(0), Log::tail)
    }

    /// Makes the log fail, if there is one yet: recovery can fail, too.
    fn fail(&self, cause: Arc<dyn std::error::Error + Send + Sync>) {
        if let Some(log) = self.0.get() {
            log.fail(cause);
        }
    }
}

impl Deref for LogCell {
    type Target = Log;

    #[inline]
    fn deref(&self) -> &Log {
        self.0.get().expect("the log is open once recovery has ended")
    }
}

/// The error of a call that came after the failure of the log.
fn stopped(failure: LogError) -> Error {
    match failure {
        LogError::OutcomeUnknown { cause } => Error::Stopped { cause: cause.to_string() },
        other => Error::from(other),
    }
}

/// Stops the engine if its thread panics while this lives: a latch may have been held over a half-made
/// change, a reserved piece of the log never filled, or a checkpoint half taken.
pub(crate) struct StopOnPanic<'a>(&'a Engine);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop_for("a thread panicked inside the engine");
        }
    }
}

/// What an engine is made of; the rest starts empty.
pub(crate) struct Parts {
    pub(crate) options: Options,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) database_id: u128,
    pub(crate) registry: Arc<Registry>,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) admission: Admission,
    pub(crate) frames: FramePool,
    pub(crate) space: Arc<Space>,
    pub(crate) epoch: Epoch,
}

impl Engine {
    pub(crate) fn new(parts: Parts) -> Engine {
        let Parts {
            options,
            disk,
            database_id,
            registry,
            recorder,
            admission,
            frames,
            space,
            epoch,
        } = parts;
        let dirty = DirtyLists::new(admission.places(), epoch);
        let internal = Mutex::new(admission.ticket());
        let old_versions = OldVersions::new(options.old_versions_bytes);
        let open_changes = OpenChanges::new(options.open_transactions_bytes);
        Engine {
            options,
            disk,
            database_id,
            registry,
            recorder,
            admission,
            log: LogCell::default(),
            leaves: Arena::new(),
            inners: Arena::new(),
            frames,
            space,
            dirty,
            image_writes: ImageWrites::default(),
            emptied: EmptiedLeaves::default(),
            evictors: Evictors::new(),
            read_ahead: ReadAhead::default(),
            transactions: TransactionStates::new(),
            large: LargeTransactions::default(),
            snapshots: Snapshots::default(),
            old_versions,
            open_changes,
            catalog: Catalog::default(),
            expression_compiler: Compiler::default(),
            internal,
            failure: OnceLock::new(),
            closed: AtomicBool::new(false),
            checkpointer: CheckpointerCell::default(),
            progress: Progress::default(),
            checkpoints: Records::default(),
            throttle: Throttle::default(),
            evictor_thread: OnceLock::new(),
        }
    }

    /// The place of background threads: only for lists, never for the log.
    pub(crate) fn background_place(&self) -> usize {
        self.admission.background_place(0)
    }

    /// Whether the engine takes work.
    pub(crate) fn check_open(&self) -> Result<()> {
        if let Some(cause) = self.failure.get() {
            return Err(Error::Stopped { cause: cause.clone() });
        }
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::Closed);
        }
        Ok(())
    }

    /// Whether reads are answered: not after a failure of the log, because what they would show
    /// may be gone when the database is opened again.
    pub(crate) fn check_readable(&self) -> Result<()> {
        self.check_open()?;
        match self.log.failure() {
            None | Some(LogError::Closed) => Ok(()),
            Some(failure) => Err(stopped(failure)),
        }
    }

    /// Closes the engine for sessions, and returns once all that were inside have left; false if
    /// it was closed before.
    pub(crate) fn start_close(&self) -> bool {
        if self.closed.swap(true, Ordering::SeqCst) {
            return false;
        }
        while !self.admission.is_empty() {
            std::thread::yield_now();
        }
        true
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Lets the calling thread, one of the engine's own, run only on the processors that the settings
    /// say. Where the system refuses, it runs where it may.
    pub(crate) fn run_on_own_processors(&self) {
        #[cfg(target_os = "linux")]
        if let Some(mask) = self.options.cpu_mask {
            let mut set = rustix::thread::CpuSet::new();
            (0..64).filter(|cpu| mask >> cpu & 1 == 1).for_each(|cpu| set.set(cpu));
            let _ = rustix::thread::sched_setaffinity(None, &set);
        }
    }

    pub(crate) fn set_evictor_thread(&self, thread: Thread) {
        let _ = self.evictor_thread.set(thread);
    }

    /// Asks for free frames ahead of need.
    pub(crate) fn wake_evictor(&self) {
        if let Some(thread) = self.evictor_thread.get() {
            thread.unpark();
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    /// The first failed write or sync stops the engine: whoever waits learns that the outcome is
    /// unknown, and nothing is retried. Returns the error for the caller, which never looks like
    /// one after which a retry helps.
    pub(crate) fn stop(&self, error: DiskError) -> Error {
        let cause = error.to_string();
        self.fail(&cause, Arc::new(error));
        Error::Stopped { cause }
    }

    /// Stops the engine for another reason than the disk.
    pub(crate) fn stop_for(&self, cause: &str) {
        self.fail(cause, Arc::new(std::io::Error::other(cause.to_owned())));
    }

    fn fail(&self, words: &str, cause: Arc<dyn std::error::Error + Send + Sync>) {
        let _ = self.failure.set(words.to_owned());
        self.log.fail(cause);
        self.transactions.stop();
        self.image_writes.stop();
    }

    /// Stops the engine if the calling thread panics before it drops what this returns.
    pub(crate) fn stop_on_panic(&self) -> StopOnPanic<'_> {
        StopOnPanic(self)
    }

    /// What an intent of this owner means.
    pub(crate) fn state_of(&self, owner: Owner) -> TransactionState {
        match owner {
            Owner::Slot(slot) => self.transactions.state(slot),
            Owner::Large(large) => self.large.state(large.id),
        }
    }

    /// No snapshot, open or to be opened, is below this LSN. There is none during recovery.
    pub(crate) fn horizon(&self) -> Lsn {
        self.log.0.get().map_or(Lsn(u64::MAX), |log| self.snapshots.horizon(log))
    }

    /// The tree of an object, if it still has one.
    pub(crate) fn tree_of(&self, object: ObjectId) -> Option<Arc<Tree>> {
        self.catalog.by_object(object).map(|table| Arc::clone(&table.tree))
    }

    /// Does, without a place and without latches, what an operation was blocked on.
    pub(crate) fn unblock(
        self: &Arc<Engine>,
        blocked: Blocked,
        spares: &mut Vec<crate::memory::Frame>,
        recorder: &Recorder,
    ) -> Result<()> {
        match blocked {
            Blocked::Load(leaf) => self.load_leaf(leaf, Wait::PageIoLatchEx, recorder),
            Blocked::LoadToRead(leaf) => self.load_leaf(leaf, Wait::PageIoLatchSh, recorder),
            Blocked::Spares => {
                while spares.len() < crate::btree::SPARE_FRAMES {
                    spares.push(self.take_frame(recorder)?);
                }
                Ok(())
            }
            Blocked::Slot => self.make_slots(recorder),
            Blocked::Transaction(slot) => {
                self.transactions.wait(slot, recorder);
                Ok(())
            }
            Blocked::Definition(table) => {
                self.wait_for_definition(table, &LockWait::default(), recorder)
            }
        }
    }

    /// Waits until no definition of the table is under way.
    pub(crate) fn wait_for_definition(
        &self,
        table: u32,
        wait: &LockWait,
        recorder: &Recorder,
    ) -> Result<()> {
        let waiter = Waiter { engine: self, recorder, wait };
        self.catalog.locks.wait_until_free(&waiter, table)
    }

    /// Makes the data files larger; where the disk is full, frees slots by a checkpoint, which old
    /// images wait for.
    pub(crate) fn make_slots(self: &Arc<Engine>, recorder: &Recorder) -> Result<()> {
        let _wait = recorder.wait(Wait::SlotFree);
        let Err(full) = self.space.grow() else { return Ok(()) };
        let before = self.space.unreserved();
        crate::checkpoint::run(self, recorder)?;
        let now = self.space.unreserved();
        // One change takes a slot for the leaf that it makes dirty and one for its sibling after a
        // split: with fewer it would only make its leaf dirty again, for ever. Slots that only
        // removals may have count for those who found not even them.
        const SLOTS_PER_CHANGE: i64 = 2;
        let enough = |purpose| self.space.leaves_alone(purpose) + SLOTS_PER_CHANGE;
        let helped = now >= enough(Purpose::NewRows)
            || (before < enough(Purpose::Removal) && now >= enough(Purpose::Removal));
        if helped { Ok(()) } else { Err(full.into()) }
    }

    /// Waits for room in the log. Where nobody else takes checkpoints, takes one if the log is
    /// full.
    pub(crate) fn wait_for_room(
        self: &Arc<Engine>,
        bytes: usize,
        recorder: &Recorder,
    ) -> Result<()> {
        match self.log.wait_for_room(bytes, recorder) {
            Err(LogError::CapacityReached) if self.options.background == Background::Callers => {
                crate::checkpoint::run(self, recorder).map(|_| ())
            }
            // Nothing has been appended yet, so the outcome is known.
            Err(failure @ LogError::OutcomeUnknown { .. }) => Err(stopped(failure)),
            other => Ok(other?),
        }
    }

    /// Appends a record that changes no row, if there is room in the log.
    pub(crate) fn try_append(&self, record: &[u8], recorder: &Recorder) -> Option<Reservation> {
        let mut ticket = lock_counted(&self.internal, recorder, LatchClass::LogWriter);
        let entered = self.admission.enter(&mut ticket, recorder);
        let place = entered.place();
        if !self.log.has_room(place, Log::framed_bytes(record.len())) {
            return None;
        }
        let reservation = self.log.reserve(place, record.len());
        self.log.fill(&reservation, &[record]);
        self.log.complete(place);
        Some(reservation)
    }

    /// As [`try_append`](Self::try_append), after waiting for room. The caller holds nothing that
    /// a checkpoint needs.
    pub(crate) fn append(
        self: &Arc<Engine>,
        record: &[u8],
        recorder: &Recorder,
    ) -> Result<Reservation> {
        loop {
            self.check_open()?;
            if let Some(reservation) = self.try_append(record, recorder) {
                return Ok(reservation);
            }
            self.wait_for_room(Log::framed_bytes(record.len()), recorder)?;
        }
    }

    /// Takes everything off a leaf whose object is gone. The caller holds its latch exclusive.
    pub(crate) fn retire_leaf(&self, leaf: &mut LeafState) {
        self.drop_rows(leaf);
        *leaf = LeafState::default();
    }

    /// Gives the frame and the reserved slot of a leaf back, whatever its rows are.
    pub(crate) fn drop_rows(&self, leaf: &mut LeafState) {
        if leaf.is_dirty() {
            self.space.unreserve(1);
            leaf.dirty_epoch = Epoch(0);
        }
        if let Some(rows) = leaf.rows.take() {
            self.frames.give_back(rows.into_frame());
        }
    }

    /// Leaves of all tables, those on disk only included.
    pub(crate) fn leaf_count(&self) -> u64 {
        self.leaves.in_use()
    }
}
