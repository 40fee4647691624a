//! Makes what an operation waits for: frames, slots, log space; the last two by checkpoints where there is no
//! other way.

use onrush_log::{Log, LogError, Reservation};
use onrush_waits::{Recorder, Wait};

use super::Store;
use crate::catalog::{LockWait, Waiter};
use crate::error::Result;
use crate::options::Background;
use crate::runtime::{Appends, Runtime, stopped};
use crate::space::Purpose;
use crate::tree::{Blocked, SPARE_FRAMES, Spares};

impl Store {
    /// Does, without a permit and without latches, what an operation was blocked on.
    pub(crate) fn unblock(
        &self,
        blocked: Blocked,
        spares: &mut Spares,
        recorder: &Recorder,
    ) -> Result<()> {
        match blocked {
            Blocked::Load(leaf) => {
                self.make_front_space(recorder)?;
                self.note_cold(leaf, recorder);
                self.load_leaf(leaf, Wait::PageIoLatchEx, recorder)
            }
            Blocked::LoadToRead(leaf) => self.load_leaf(leaf, Wait::PageIoLatchSh, recorder),
            Blocked::Sort(leaf) => {
                self.leaves.get(leaf.0).sort(recorder);
                Ok(())
            }
            Blocked::Stock(wanted) => {
                spares.part = None;
                spares.part = Some(self.read_part(&wanted, recorder)?);
                Ok(())
            }
            Blocked::Spares => {
                self.make_front_space(recorder)?;
                while spares.len() < SPARE_FRAMES {
                    spares.push(self.take_frame(recorder)?);
                }
                Ok(())
            }
            Blocked::Split => Ok(()),
            Blocked::Slot => self.make_slots(recorder),
            Blocked::Transaction(transaction) => {
                self.resolver.transactions.wait(transaction, recorder);
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
        let waiter = Waiter { runtime: self, recorder, wait };
        self.catalog.locks.wait_until_free(&waiter, table)
    }

    /// Makes the data files larger; where the disk is full, frees slots by a checkpoint, which old
    /// images wait for.
    pub(crate) fn make_slots(&self, recorder: &Recorder) -> Result<()> {
        let _wait = recorder.wait(Wait::SlotFree);
        let Err(full) = self.space.grow() else { return Ok(()) };
        let before = self.space.unreserved();
        self.compact_garbage(recorder)?;
        super::run(self, recorder)?;
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

    /// Waits for log space. Where nobody else takes checkpoints, takes one if the log is
    /// full.
    pub(crate) fn wait_for_log_space(&self, bytes: usize, recorder: &Recorder) -> Result<()> {
        match self.log.wait_for_space(bytes, recorder) {
            Err(LogError::CapacityReached) if self.options.background == Background::Callers => {
                super::run(self, recorder).map(|_| ())
            }
            // Nothing has been appended yet, so the outcome is known.
            Err(failure @ LogError::OutcomeUnknown { .. }) => Err(stopped(failure)),
            other => Ok(other?),
        }
    }
}

impl Appends for Store {
    fn runtime(&self) -> &Runtime {
        self
    }

    /// As [`try_append`](Runtime::try_append), after waiting for space. The caller holds nothing that
    /// a checkpoint needs.
    fn append(&self, record: &[u8], recorder: &Recorder) -> Result<Reservation> {
        loop {
            self.check_open()?;
            if let Some(reservation) = self.try_append(record, recorder) {
                return Ok(reservation);
            }
            self.wait_for_log_space(Log::framed_bytes(record.len()), recorder)?;
        }
    }
}
