//! Leaves read before a scan comes to them: what scans ask for, and the threads that read it.
//! [what a scan asks for](crate::session)
//!
//! A leaf that is asked for is *wanted*, in the order of asking, then *under way*, then in memory like
//! any other. Whoever needs a leaf that is wanted only reads it himself, so that it is under way; for one that is
//! under way he waits. Nothing depends on a leaf being read ahead: what goes wrong is met again by whoever needs it.
//!
//! Invariants
//! 1. A leaf is under way as long as a [`Claim`] on it lives, also if its reader panics. Nobody but the claimant gives
//!    it rows.
//! 2. The readers hold no permit and no latch when they wait for a frame or for the disk.
//! 3. Once stopped, nobody starts a reader.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

use onrush_files::AlignedBuffer;
use onrush_waits::{Counter, Recorder, Wait};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Image;
use super::Storage;
use crate::error::Result;
use crate::options::Background;
use crate::space::SlotId;
use crate::units::{LEAF_BYTES, LeafId, ObjectId};

/// Threads that read, at most. A device is busiest with some reads on their way; more threads than
/// that only take processors from each other.
const READERS_MAX: usize = 8;
/// Leaves that one read brings, at most: 256 KiB, at which a device is about as fast as it gets.
const RUN_LEAVES: usize = 16;
/// Leaves that one scan may be ahead, at most: 2 MiB, some milliseconds of the fastest scan.
const AHEAD_MAX: usize = 128;
/// All scans together are ahead by this share of the memory for leaves: what has been read ahead is
/// still there when its scan comes, because the evictor's clock has not been around.
const SHARE_OF_MEMORY: usize = 8;
/// Each reader takes a frame that a session may wait for: one for so many that there are.
const FRAMES_OF_A_READER: usize = 16;

/// The engine's readers, and what they are asked for.
pub(crate) struct ReadAhead {
    /// Where all work is the callers', one of them may come here in the middle of another's read, and would wait for
    /// himself: there nobody claims a leaf.
    has_threads: bool,
    queue: Mutex<Queue>,
    /// Leaves are wanted, or the readers are to end. The readers sleep on it.
    asked: Condvar,
    /// A leaf is not under way any more.
    arrived: Condvar,
}

#[derive(Default)]
struct Queue {
    wanted: VecDeque<Wanted>,
    under_way: Vec<LeafId>,
    /// Threads that wait for a leaf under way.
    waiting: usize,
    /// Scans that read ahead now.
    scans: usize,
    last_scan: u64,
    /// Readers that sleep.
    idle: usize,
    readers: Vec<JoinHandle<()>>,
    is_stopped: bool,
}

/// A leaf that nobody has begun to read, and the scan that asked for it.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    scan: u64,
    object: ObjectId,
    leaf: LeafId,
    /// Where its image was when it was asked for.
    slot: SlotId,
}

impl ReadAhead {
    pub(super) fn new(background: Background) -> ReadAhead {
        ReadAhead {
            has_threads: background == Background::Threads,
            queue: Mutex::default(),
            asked: Condvar::new(),
            arrived: Condvar::new(),
        }
    }

    /// If somebody is reading the leaf, waits until that is over, and returns none: it is in memory
    /// then, or it could not be read. Else the caller is the one who reads it. Called without latches
    /// and without a permit.
    pub(super) fn begin(&self, leaf: LeafId, recorder: &Recorder) -> Option<Claim<'_>> {
        let mut queue = self.queue.lock();
        if self.wait_for(&mut queue, &[leaf], recorder) {
            return None;
        }
        queue.wanted.retain(|wanted| wanted.leaf != leaf);
        Some(self.claim_in(&mut queue, &[leaf]))
    }

    /// Keeps others from reading the leaves, once those who are at it have done so: as long as the claim
    /// lives, no leaf of these gets rows from the disk. Called without latches and without a permit.
    pub(crate) fn claim(&self, leaves: &[LeafId], recorder: &Recorder) -> Claim<'_> {
        let mut queue = self.queue.lock();
        while self.wait_for(&mut queue, leaves, recorder) {}
        queue.wanted.retain(|wanted| !leaves.contains(&wanted.leaf));
        self.claim_in(&mut queue, leaves)
    }

    fn claim_in(&self, queue: &mut Queue, leaves: &[LeafId]) -> Claim<'_> {
        let leaves = if self.has_threads { leaves.to_vec() } else { Vec::new() };
        queue.under_way.extend_from_slice(&leaves);
        Claim { ahead: self, leaves }
    }

    /// Waits until nobody reads any of the leaves; false if nobody does.
    fn wait_for(
        &self,
        queue: &mut MutexGuard<'_, Queue>,
        leaves: &[LeafId],
        recorder: &Recorder,
    ) -> bool {
        let is_read = |queue: &Queue| leaves.iter().any(|leaf| queue.under_way.contains(leaf));
        if !is_read(queue) {
            return false;
        }
        let _wait = recorder.wait(Wait::ReadAhead);
        queue.waiting += 1;
        while is_read(queue) {
            self.arrived.wait(queue);
        }
        queue.waiting -= 1;
        true
    }

    /// Ends the readers; returns when they have ended. False if one of them has panicked.
    pub(crate) fn stop(&self) -> bool {
        let readers = {
            let mut queue = self.queue.lock();
            queue.is_stopped = true;
            queue.wanted.clear();
            std::mem::take(&mut queue.readers)
        };
        self.asked.notify_all();
        readers.into_iter().map(JoinHandle::join).fold(true, |ended, reader| ended & reader.is_ok())
    }

    /// What to read next: leaves whose images lie side by side, so that they are one read. None when
    /// the readers are to end.
    fn next(&self, recorder: &Recorder) -> Option<UnderWay<'_>> {
        let mut queue = self.queue.lock();
        while !queue.is_stopped {
            let Some(&first) = queue.wanted.front() else {
                let _idle = recorder.wait(Wait::BackgroundIdle);
                queue.idle += 1;
                self.asked.wait(&mut queue);
                queue.idle -= 1;
                continue;
            };
            let Queue { wanted, under_way, .. } = &mut *queue;
            // Two scans may want the same.
            let is_new =
                |wanted: &&Wanted| wanted.scan == first.scan && !under_way.contains(&wanted.leaf);
            let of_scan = wanted.iter().take(RUN_LEAVES).take_while(is_new);
            let run = run_length(of_scan.map(|wanted| wanted.slot));
            if run == 0 {
                wanted.pop_front();
                continue;
            }
            let leaves: Vec<LeafId> = wanted.drain(..run).map(|wanted| wanted.leaf).collect();
            under_way.extend_from_slice(&leaves);
            let (scan, object) = (first.scan, first.object);
            return Some(UnderWay { scan, object, claim: Claim { ahead: self, leaves } });
        }
        None
    }

    /// Starts readers, until there are as many as there are reads to do or as there may be.
    fn start_readers<S: HoldsStorage>(holder: &Arc<S>, queue: &mut Queue, reads: usize) {
        let storage: &Storage = (**holder).as_ref();
        let most = (storage.frames.frames() / FRAMES_OF_A_READER).clamp(1, READERS_MAX);
        while queue.readers.len() < most.min(reads) {
            let holder = Arc::clone(holder);
            let name = "onrush-read";
            let recorder = Recorder::new(&storage.registry, name);
            let run = move || read((*holder).as_ref(), &recorder);
            // Without a thread the scans read for themselves.
            let Ok(reader) = std::thread::Builder::new().name(name.into()).spawn(run) else {
                return;
            };
            queue.readers.push(reader);
        }
    }
}

/// Leaves that one thread alone reads, until this is dropped. All become free at once: a scan that is woken for
/// each of them would take the processor from its reader each time.
pub(crate) struct Claim<'a> {
    ahead: &'a ReadAhead,
    leaves: Vec<LeafId>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut queue = self.ahead.queue.lock();
        queue.under_way.retain(|leaf| !self.leaves.contains(leaf));
        if queue.waiting > 0 {
            self.ahead.arrived.notify_all();
        }
    }
}

/// What a reader reads at a time, of one scan.
struct UnderWay<'a> {
    scan: u64,
    object: ObjectId,
    claim: Claim<'a>,
}

impl UnderWay<'_> {
    /// The scan ends here: what it wants behind it is not read.
    fn give_up(&self) {
        self.claim.ahead.queue.lock().wanted.retain(|wanted| wanted.scan != self.scan);
    }

    /// Reads the leaves, as far as they are still on disk only.
    fn read(&self, storage: &Storage, pages: &mut [u8], recorder: &Recorder) -> Result<()> {
        let image = |leaf: &LeafId| Some((*leaf, storage.image_to_read(self.object, *leaf)?));
        let found: Vec<(LeafId, Arc<Image>)> = self.claim.leaves.iter().filter_map(image).collect();
        let mut rest = found.as_slice();
        while !rest.is_empty() {
            let (run, behind) =
                rest.split_at(run_length(rest.iter().map(|(_, image)| image.slot())));
            rest = behind;
            let slots = run.iter().map(|(_, image)| image.slot());
            let Some(first) = slots.min_by_key(|slot| slot.index) else { break };
            storage.space.files().read(first, &mut pages[..run.len() * LEAF_BYTES])?;
            for (leaf, image) in run {
                let start = (image.slot().index - first.index) as usize * LEAF_BYTES;
                let frame = storage.take_frame_as(None, recorder)?;
                storage.install(
                    *leaf,
                    image,
                    &pages[start..start + LEAF_BYTES],
                    frame,
                    recorder,
                )?;
                recorder.count(Counter::LeavesReadAhead, 1);
            }
        }
        Ok(())
    }
}

/// What a reader does until it is to end.
fn read(storage: &Storage, recorder: &Recorder) {
    storage.run_on_own_processors();
    let _stop = storage.stop_on_panic();
    let mut pages = AlignedBuffer::new(RUN_LEAVES * LEAF_BYTES);
    while let Some(under_way) = storage.read_ahead.next(recorder) {
        if under_way.read(storage, &mut pages, recorder).is_err() {
            // Whoever comes to the leaf meets the same, and reports it.
            under_way.give_up();
        }
    }
}

/// What the readers keep alive while they read.
pub(crate) trait HoldsStorage: AsRef<Storage> + Send + Sync + 'static {}

impl<S: AsRef<Storage> + Send + Sync + 'static> HoldsStorage for S {}

/// A scan that reads ahead. When it is dropped, what it asked for and nobody has begun to read is
/// forgotten.
pub(crate) struct AskedAhead<S: HoldsStorage> {
    holder: Arc<S>,
    scan: u64,
}

impl<S: HoldsStorage> AskedAhead<S> {
    /// None if nobody reads ahead: all work is the callers', or the engine is about to close.
    pub(crate) fn begin(holder: &Arc<S>) -> Option<AskedAhead<S>> {
        let storage: &Storage = (**holder).as_ref();
        let mut queue = storage.read_ahead.queue.lock();
        if !storage.read_ahead.has_threads || queue.is_stopped {
            return None;
        }
        queue.scans += 1;
        queue.last_scan += 1;
        let scan = queue.last_scan;
        drop(queue);
        Some(AskedAhead { holder: Arc::clone(holder), scan })
    }

    fn storage(&self) -> &Storage {
        (*self.holder).as_ref()
    }

    /// By how many leaves the scan may be ahead.
    pub(crate) fn leaves_max(&self) -> usize {
        let storage = self.storage();
        let scans = storage.read_ahead.queue.lock().scans.max(1);
        (storage.frames.frames() / SHARE_OF_MEMORY / scans).min(AHEAD_MAX)
    }

    /// Asks for those of the leaves of `object` that are on disk only. Returns whether there were any.
    pub(crate) fn ask(&self, object: ObjectId, leaves: &[LeafId]) -> bool {
        let (storage, scan) = (self.storage(), self.scan);
        let look = |leaf: &LeafId| {
            let slot = storage.image_to_read(object, *leaf)?.slot();
            Some(Wanted { scan, object, leaf: *leaf, slot })
        };
        let on_disk: Vec<Wanted> = leaves.iter().filter_map(look).collect();
        if on_disk.is_empty() {
            return false;
        }
        let ahead = &storage.read_ahead;
        let mut queue = ahead.queue.lock();
        if queue.is_stopped {
            return false;
        }
        let reads = count_reads(&on_disk);
        let to_wake = queue.idle.min(reads);
        queue.wanted.extend(on_disk);
        ReadAhead::start_readers(&self.holder, &mut queue, reads);
        drop(queue);
        (0..to_wake).for_each(|_| _ = ahead.asked.notify_one());
        true
    }
}

impl<S: HoldsStorage> Drop for AskedAhead<S> {
    fn drop(&mut self) {
        let mut queue = self.storage().read_ahead.queue.lock();
        queue.scans -= 1;
        queue.wanted.retain(|wanted| wanted.scan != self.scan);
    }
}

/// How many reads it takes.
fn count_reads(mut wanted: &[Wanted]) -> usize {
    let mut reads = 0;
    while !wanted.is_empty() {
        let run = run_length(wanted.iter().map(|wanted| wanted.slot));
        wanted = &wanted[run.min(RUN_LEAVES)..];
        reads += 1;
    }
    reads
}

/// How many of `slots` from the first on lie side by side, upward or downward.
fn run_length(mut slots: impl Iterator<Item = SlotId>) -> usize {
    let Some(first) = slots.next() else { return 0 };
    let Some(second) = slots.next() else { return 1 };
    let (below, above) = (first.index.wrapping_sub(1), first.index.wrapping_add(1));
    let step = match second.index {
        index if index == above => 1,
        index if index == below => -1,
        _ => return 1,
    };
    if second.file != first.file {
        return 1;
    }
    let mut last = second;
    let follows = |slot: &SlotId| {
        let is_next = last.index.checked_add_signed(step) == Some(slot.index);
        let is_here = slot.file == last.file && is_next;
        last = *slot;
        is_here
    };
    2 + slots.take_while(follows).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_while_slots_lie_side_by_side_in_one_direction() {
        let run = |indexes: &[u32]| {
            run_length(indexes.iter().map(|index| SlotId { file: 0, index: *index }))
        };
        assert_eq!(run(&[]), 0);
        assert_eq!(run(&[7]), 1);
        assert_eq!(run(&[7, 9, 10]), 1);
        assert_eq!(run(&[7, 8, 9, 11]), 3);
        assert_eq!(run(&[7, 6, 5, 4, 2]), 4);
        assert_eq!(run(&[7, 8, 7]), 2, "an image that two leaves share");
        assert_eq!(run(&[7, 7]), 1);
        assert_eq!(run(&[0, 1, 0]), 2);
        let other_file = [SlotId { file: 0, index: 1 }, SlotId { file: 1, index: 2 }];
        assert_eq!(run_length(other_file.into_iter()), 1);
    }
}
