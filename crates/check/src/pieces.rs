//! How work goes to threads: in pieces of at most a MiB of one file, taken one after the other.
//!
//! Two ways of reading. Without read streams each thread reads the piece that it took, then checks
//! it: many reads are on their way at once, and nothing is handed over. With read streams a thread of
//! its own reads each file from front to back into buffers that go round between readers and
//! checkers.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use onrush_files::AlignedBuffer;

use crate::decode::slot::{SLOT_BYTES, SlotNumber};

/// Slots of a piece, from the first to the last: at most, and at least.
const PIECE_SLOTS: (u64, u64) = (64, 8);
/// Slots of all buffers of read streams together, as far as that is possible: 4 MiB, which stay in the
/// caches between reader and checker.
const BUFFER_SLOTS: u64 = 256;
/// Slots that nobody asked for are read along where no more than so many lie in between.
const GAP_SLOTS: u64 = 4;
/// Buffers of a read stream that are full or on their way.
const BUFFERS_PER_THREAD: usize = 2;

/// Some images that lie near each other: a range of a list that is sorted by slot.
pub(crate) type Piece = Range<usize>;

/// How a batch is read.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// Threads that check.
    pub(crate) checkers: usize,
    /// Slots of a piece at most.
    piece_slots: u64,
    buffers: usize,
}

impl Plan {
    /// `threads` threads that read and check, or `streams` that read and others that check: of these
    /// no more than there are processors, since they wait for nothing.
    pub(crate) fn new(threads: usize, streams: Option<usize>) -> Plan {
        let (most, least) = PIECE_SLOTS;
        let Some(streams) = streams else {
            return Plan { checkers: threads, piece_slots: most, buffers: threads };
        };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let checkers = threads.min(processors);
        let buffers = BUFFERS_PER_THREAD * (checkers + streams).max(1);
        let piece_slots = (BUFFER_SLOTS / buffers as u64).clamp(least, most);
        Plan { checkers, piece_slots, buffers }
    }

    /// One buffer, for one piece.
    fn buffer(self) -> AlignedBuffer {
        AlignedBuffer::new(self.piece_slots as usize * SLOT_BYTES)
    }
}

/// Cuts a list of slots, sorted, into pieces.
pub(crate) fn cut<T>(plan: Plan, list: &[T], slot: impl Fn(&T) -> SlotNumber) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for next in 1..=list.len() {
        let goes_on = next < list.len() && {
            let (first, last, slot) =
                (slot(&list[start]), slot(&list[next - 1]), slot(&list[next]));
            slot.file() == first.file()
                && slot.index() - first.index() < plan.piece_slots
                && slot.index() - last.index() <= GAP_SLOTS + 1
        };
        if !goes_on {
            pieces.push(start..next);
            start = next;
        }
    }
    pieces
}

/// Who reads and checks pieces. Each thread has its own.
pub(crate) trait PieceChecker: Send {
    /// Reads a piece into the buffer; false if it cannot be read in one go.
    fn read(&self, piece: &Piece, buffer: &mut [u8]) -> bool;
    /// Checks a piece that was read.
    fn check(&mut self, piece: &Piece, buffer: &[u8]);
    /// Reads and checks a piece slot by slot.
    fn check_singly(&mut self, piece: &Piece, buffer: &mut [u8]);
    /// Called after each piece with the time that it took.
    fn rest(&self, worked: Duration);
    /// Whether to take no further piece.
    fn gives_up(&self) -> bool;
}

/// Lets each checker, on a thread of its own, take pieces until none is left.
pub(crate) fn check_all<C: PieceChecker>(plan: Plan, checkers: &mut [C], pieces: &[Piece]) {
    let next = AtomicUsize::new(0);
    let work = |checker: &mut C| {
        let mut buffer = plan.buffer();
        while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            if checker.gives_up() {
                return;
            }
            let started = Instant::now();
            if checker.read(piece, &mut buffer) {
                checker.check(piece, &buffer);
            } else {
                checker.check_singly(piece, &mut buffer);
            }
            checker.rest(started.elapsed());
        }
    };
    let (own, others) = checkers.split_first_mut().expect("there is one checker at least");
    std::thread::scope(|scope| {
        for checker in others {
            scope.spawn(|| work(checker));
        }
        work(own);
    });
}

/// As [`check_all`], with a thread that reads for each of `streams`: consecutive ranges of `pieces`.
/// `reader` only reads.
pub(crate) fn check_streams<C: PieceChecker + Sync>(
    plan: Plan,
    checkers: &mut [C],
    reader: &C,
    pieces: &[Piece],
    streams: &[Range<usize>],
) {
    let (give, free) = sync_channel(plan.buffers);
    let (full, take) = sync_channel::<(usize, AlignedBuffer, bool)>(plan.buffers);
    for _ in 0..plan.buffers {
        give.send(plan.buffer()).expect("the channel holds as many buffers as there are");
    }
    let (free, take) = (Mutex::new(free), Mutex::new(take));
    std::thread::scope(|scope| {
        for stream in streams {
            let (free, full) = (&free, full.clone());
            scope.spawn(move || {
                for number in stream.clone() {
                    let Some(mut buffer) = next(free) else { return };
                    let is_read = !reader.gives_up() && reader.read(&pieces[number], &mut buffer);
                    if full.send((number, buffer, is_read)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(full);
        for checker in checkers {
            let (take, give) = (&take, give.clone());
            scope.spawn(move || {
                while let Some((number, mut buffer, is_read)) = next(take) {
                    let started = Instant::now();
                    match (checker.gives_up(), is_read) {
                        (true, _) => {}
                        (false, true) => checker.check(&pieces[number], &buffer),
                        (false, false) => checker.check_singly(&pieces[number], &mut buffer),
                    }
                    checker.rest(started.elapsed());
                    // The readers may be done already; then nobody wants the buffer.
                    let _ = give.send(buffer);
                }
            });
        }
    });
}

fn next<T>(channel: &Mutex<Receiver<T>>) -> Option<T> {
    channel.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// The results of `work` for each item, in order.
pub(crate) fn map<T: Sync, R: Send>(
    dop: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        while let Some((index, item)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            items.get(index).map(|item| (index, item))
        } {
            done.push((index, work(item)));
        }
        done
    };
    let threads = dop.min(items.len()).max(1);
    let mut all = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(take)).collect();
        let mut all = take();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_unstable_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_hold_neighbours_of_one_file_and_little_in_between() {
        let slots = [1, 2, 3, 8, 14, 70, 71, 133, 134, 1 << 48, (1 << 48) + 1];
        let slots: Vec<SlotNumber> = slots.into_iter().map(SlotNumber).collect();
        let plan = Plan::new(1, None);
        let pieces = cut(plan, &slots, |slot| *slot);
        assert_eq!(pieces, [0..4, 4..5, 5..7, 7..9, 9..11]);
        assert_eq!(cut(plan, &[] as &[SlotNumber], |slot| *slot), []);
    }

    #[test]
    fn what_streams_have_on_the_way_stays_small_however_many_threads_there_are() {
        for (threads, streams) in [(1, 1), (32, 1), (1, 16), (256, 16)] {
            let plan = Plan::new(threads, Some(streams));
            let slots = plan.buffers as u64 * plan.piece_slots;
            assert!(slots <= BUFFER_SLOTS.max(plan.buffers as u64 * PIECE_SLOTS.1));
            assert!((PIECE_SLOTS.1..=PIECE_SLOTS.0).contains(&plan.piece_slots));
        }
    }

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).collect();
        let doubled = map(7, &items, |item| item * 2);
        assert!(doubled.iter().enumerate().all(|(index, double)| *double == index as u64 * 2));
    }
}
