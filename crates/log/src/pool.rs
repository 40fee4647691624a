//! The segments: made ahead of need, taken by the writer one after the other, reused below the
//! checkpoint.
//!
//! Invariants
//! 1. Ready segments carry the numbers that follow the one in use, without a gap.
//! 2. All files together never take more than the capacity, but for segments that only a hold beyond the capacity
//!    keeps.
//! 3. A segment that recovery has read is removed, not reused: only files written as a whole since
//!    the log was opened are.
//! 4. With a folder for kept segments none is reused: what no checkpoint needs is moved there.
//! 5. A segment that somebody holds is neither removed nor reused, whatever checkpoints say.
//! 6. A full disk is remembered until a segment could be made; it is no failure of the log.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use onrush_files::{DiskError, DiskErrorKind};

use crate::error::LogError;
use crate::options::LogOptions;
use crate::segment::{SEGMENT_HEADER_BYTES, Segment, SegmentFolder};

/// All segments of a log.
#[derive(Debug)]
pub(crate) struct SegmentPool {
    folder: SegmentFolder,
    ahead: usize,
    capacity_bytes: u64,
    state: Mutex<State>,  // never held across I/O
    preparing: Mutex<()>, // held by whoever makes the next segment; taken before `state`
    changed: Condvar,     // of `state`
}

#[derive(Debug)]
struct State {
    ready: VecDeque<Segment>,
    in_use: VecDeque<Segment>, // the last is the one that is written
    free: Vec<Segment>,
    recycle_to: u64,            // no checkpoint needs a segment below
    holds: BTreeMap<u64, Held>, // by number of the hold
    next_hold: u64,
    next_number: u64,
    used_bytes: u64,
    space_left_bytes: u64, // in the last of `in_use`, as its writer told
    changes: u64,          // segments made, taken, recycled; log stopped
    changed_at: Instant,
}

/// What a hold keeps.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// The first segment it needs.
    from: u64,
    /// Whether what it alone keeps does not count for the capacity.
    is_beyond: bool,
}

impl State {
    /// No checkpoint, and no hold within the capacity, needs a segment below.
    fn counted_from(&self) -> u64 {
        let holds = self.holds.values().filter(|held| !held.is_beyond);
        holds.map(|held| held.from).min().unwrap_or(u64::MAX).min(self.recycle_to)
    }

    /// Bytes of segments in use that do not count for the capacity.
    fn beyond_bytes(&self) -> u64 {
        let from = self.counted_from();
        // The last one is written, whatever else is said of it.
        let older = self.in_use.iter().take(self.in_use.len().saturating_sub(1));
        older.filter(|segment| segment.number < from).map(|segment| segment.bytes).sum()
    }

    /// Bytes of all segments that count for the capacity.
    fn counted_bytes(&self) -> u64 {
        self.used_bytes - self.beyond_bytes()
    }
}

/// What came of an attempt to make a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prepared {
    /// There is one more.
    Made,
    /// There were enough already.
    Enough,
    /// The capacity is used up: only recycling helps.
    AtCapacity,
}

impl SegmentPool {
    /// A pool in which the segments `in_use` exist, at least one; new ones follow the last of them.
    pub(crate) fn new(
        folder: SegmentFolder,
        options: &LogOptions,
        in_use: VecDeque<Segment>,
    ) -> Self {
        let block_bytes = options.segment_bytes - SEGMENT_HEADER_BYTES;
        let ahead = options.reserve_bytes().div_ceil(block_bytes);
        let used_bytes = in_use.iter().map(|segment| segment.bytes).sum();
        let next_number = in_use.back().map_or(1, |last| last.number + 1);
        let (ready, free) = (VecDeque::new(), Vec::new());
        let state = State {
            ready,
            in_use,
            free,
            recycle_to: 0,
            holds: BTreeMap::new(),
            next_hold: 0,
            next_number,
            used_bytes,
            space_left_bytes: 0,
            changes: 0,
            changed_at: Instant::now(),
        };
        Self {
            folder,
            ahead: usize::try_from(ahead).unwrap_or(usize::MAX),
            capacity_bytes: options.capacity_bytes,
            state: Mutex::new(state),
            preparing: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the writer: the next segment, if there is one ready.
    pub(crate) fn take(&self) -> Option<Segment> {
        let mut state = self.state();
        let segment = state.ready.pop_front()?;
        state.space_left_bytes = segment.block_bytes();
        state.in_use.push_back(segment.clone());
        self.note_change(&mut state);
        Some(segment)
    }

    /// For the writer, which has so much space left in its segment.
    pub(crate) fn note_space_left(&self, bytes: u64) {
        self.state().space_left_bytes = bytes;
    }

    /// Calls `each` with the block bytes of every ready segment.
    pub(crate) fn for_each_ready(&self, mut each: impl FnMut(u64)) {
        self.state().ready.iter().for_each(|segment| each(segment.block_bytes()));
    }

    /// Whether fewer segments are ready than should be.
    pub(crate) fn is_short(&self) -> bool {
        self.state().ready.len() < self.ahead
    }

    /// Makes one more segment ready, if there should be one more.
    pub(crate) fn prepare(&self) -> Result<Prepared, LogError> {
        let _preparing = self.preparing.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, free) = {
            let mut state = self.state();
            if state.ready.len() >= self.ahead {
                return Ok(Prepared::Enough);
            }
            let free = state.free.pop();
            let more = state.counted_bytes() + self.folder.segment_bytes;
            if free.is_none() && more > self.capacity_bytes {
                return Ok(Prepared::AtCapacity);
            }
            (state.next_number, free)
        };
        let added_bytes = if free.is_some() { 0 } else { self.folder.segment_bytes };
        let made = match &free {
            Some(old) => self.folder.reuse(old.clone(), number),
            None => self.create(number),
        };
        let mut state = self.state();
        let segment = match made {
            Ok(segment) => segment,
            Err(error) => {
                state.free.extend(free);
                return Err(classify(error));
            }
        };
        state.ready.push_back(segment);
        state.next_number += 1;
        state.used_bytes += added_bytes;
        self.note_change(&mut state);
        Ok(Prepared::Made)
    }

    /// Makes the file of a number that only this pool gives out: one that has its name already was
    /// left by an attempt that failed and could not even clean up.
    fn create(&self, number: u64) -> Result<Segment, DiskError> {
        match self.folder.create(number) {
            Err(error) if error.kind() == DiskErrorKind::AlreadyExists => {
                self.folder.remove(&[number])?;
                self.folder.create(number)
            }
            made => made,
        }
    }

    /// Frees the segments below `number`, as far as nobody holds them.
    pub(crate) fn recycle_below(&self, number: u64) -> Result<(), LogError> {
        let mut state = self.state();
        state.recycle_to = state.recycle_to.max(number);
        self.recycle(state)
    }

    /// For a log that was opened: no checkpoint needs a segment below `number`.
    pub(crate) fn begin_recycled(&self, number: u64) {
        self.state().recycle_to = number;
    }

    /// Keeps the segments from `number` on until [`SegmentPool::release`] is called with the number
    /// that this returns. `is_beyond`: those that nobody else needs do not count for the capacity.
    pub(crate) fn hold(&self, number: u64, is_beyond: bool) -> u64 {
        let mut state = self.state();
        let hold = state.next_hold;
        state.next_hold += 1;
        state.holds.insert(hold, Held { from: number, is_beyond });
        hold
    }

    /// A hold needs no segment below `number` any more.
    pub(crate) fn move_hold(&self, hold: u64, number: u64) -> Result<(), LogError> {
        let mut state = self.state();
        if let Some(held) = state.holds.get_mut(&hold) {
            held.from = held.from.max(number);
        }
        self.recycle(state)
    }

    /// An open file of a segment that is there still.
    pub(crate) fn in_use(&self, number: u64) -> Option<Segment> {
        self.state().in_use.iter().find(|segment| segment.number == number).cloned()
    }

    /// Bytes of segments from `number` on that no checkpoint needs.
    pub(crate) fn held_bytes(&self, number: u64) -> u64 {
        let state = self.state();
        let from = state.counted_from();
        let held = state.in_use.iter().filter(|one| (number..from).contains(&one.number));
        held.map(|segment| segment.bytes).sum()
    }

    /// Ends a hold, and frees what only it has kept.
    pub(crate) fn release(&self, hold: u64) -> Result<(), LogError> {
        let mut state = self.state();
        state.holds.remove(&hold);
        self.recycle(state)
    }

    fn recycle(&self, mut state: MutexGuard<'_, State>) -> Result<(), LogError> {
        let first_held = state.holds.values().map(|held| held.from).min().unwrap_or(u64::MAX);
        let keep_from = state.recycle_to.min(first_held);
        let mut gone = Vec::new();
        while state.in_use.len() > 1
            && state.in_use.front().is_some_and(|old| old.number < keep_from)
        {
            let Some(old) = state.in_use.pop_front() else { break };
            // What was held beyond the capacity does not become a part of it.
            let fits = state.counted_bytes() <= self.capacity_bytes;
            if old.is_reusable && fits && self.folder.kept_folder.is_none() {
                state.free.push(old);
            } else {
                state.used_bytes -= old.bytes;
                gone.push(old.number);
            }
        }
        self.note_change(&mut state);
        drop(state); // never held across I/O
        let moved = match &self.folder.kept_folder {
            Some(kept) => self.folder.keep(kept, &gone),
            None => self.folder.remove(&gone),
        };
        Ok(moved?)
    }

    /// Bytes of the segments that are in use, as far as they are written, and the capacity.
    pub(crate) fn space(&self) -> (u64, u64) {
        let state = self.state();
        let in_use_bytes: u64 = state.in_use.iter().map(|segment| segment.bytes).sum();
        let in_use_bytes = in_use_bytes - state.beyond_bytes();
        (in_use_bytes - state.space_left_bytes, self.capacity_bytes)
    }

    /// Counts changes of space, for [`SegmentPool::wait_for_change`].
    pub(crate) fn changes(&self) -> u64 {
        self.state().changes
    }

    /// Sleeps until space has changed since `seen`; returns when it did last.
    pub(crate) fn wait_for_change(&self, seen: u64) -> Instant {
        let woken = self.changed.wait_while(self.state(), |state| state.changes == seen);
        woken.unwrap_or_else(PoisonError::into_inner).changed_at
    }

    /// Tells those who wait for space that there is a change.
    fn note_change(&self, state: &mut State) {
        state.changes += 1;
        state.changed_at = Instant::now();
        self.changed.notify_all();
    }

    /// Wakes all who wait here: the log is closed or has failed.
    pub(crate) fn wake_all(&self) {
        self.note_change(&mut self.state());
    }
}

fn classify(error: DiskError) -> LogError {
    if error.kind() == DiskErrorKind::Full {
        return LogError::DiskFull { cause: Arc::new(error) };
    }
    LogError::Disk(Arc::new(error))
}
