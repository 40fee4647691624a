//! How work goes to threads: in pieces of at most a MiB of one file, taken one after the other.
//!
//! Each thread reads the piece that it took, then checks it, so nothing is handed over. Without read
//! streams it takes the next piece of all: many reads are on their way at once. With them it takes the
//! next piece of a file in which nobody else reads: each file is read from front to back, one read at a
//! time.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use onrush_files::AlignedBuffer;

use crate::decode::slot::{SLOT_BYTES, SlotNumber};

/// Slots of a piece, from the first to the last, at most.
const PIECE_SLOTS: u64 = 64;
/// Slots that nobody asked for are read along where no more than so many lie in between.
const GAP_SLOTS: u64 = 4;

/// Some images that lie near each other: a range of a list that is sorted by slot.
pub(crate) type Piece = Range<usize>;

/// Cuts a list of slots, sorted, into pieces.
pub(crate) fn cut<T>(list: &[T], slot: impl Fn(&T) -> SlotNumber) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for next in 1..=list.len() {
        let goes_on = next < list.len() && {
            let (first, last, slot) =
                (slot(&list[start]), slot(&list[next - 1]), slot(&list[next]));
            slot.file() == first.file()
                && slot.index() - first.index() < PIECE_SLOTS
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

/// Where the next pieces come from.
pub(crate) enum Pieces {
    /// One list for all threads: its length, and what was taken of it.
    Any(usize, AtomicUsize),
    /// What is left of each file.
    PerFile(Vec<Mutex<Range<usize>>>),
}

/// A piece that was taken, which nobody else reads beside while this lives.
struct Taken<'p> {
    number: usize,
    stream: Option<MutexGuard<'p, Range<usize>>>,
}

impl Pieces {
    /// All of `pieces`, whoever reads them.
    pub(crate) fn any(pieces: &[Piece]) -> Pieces {
        Pieces::Any(pieces.len(), AtomicUsize::new(0))
    }

    /// A stream of each file of `pieces`, which are in the order of the disk.
    pub(crate) fn per_file(pieces: &[Piece], file: impl Fn(&Piece) -> usize) -> Pieces {
        let mut start = 0;
        let streams = pieces.chunk_by(|left, right| file(left) == file(right)).map(|stream| {
            let range = start..start + stream.len();
            start = range.end;
            Mutex::new(range)
        });
        Pieces::PerFile(streams.collect())
    }

    /// The next piece; `stream` is the one that the thread read last, and reads now.
    fn take(&self, stream: &mut usize) -> Option<Taken<'_>> {
        match self {
            Pieces::Any(count, next) => {
                let number = next.fetch_add(1, Ordering::Relaxed);
                (number < *count).then_some(Taken { number, stream: None })
            }
            Pieces::PerFile(streams) => take_of(streams, stream),
        }
    }
}

/// The next piece of a stream in which nobody reads, best of the one at `own`; waits for one only
/// where there is no other.
fn take_of<'p>(streams: &'p [Mutex<Range<usize>>], own: &mut usize) -> Option<Taken<'p>> {
    loop {
        let mut busy = None;
        for offset in 0..streams.len() {
            let index = (*own + offset) % streams.len();
            let mut left = match streams[index].try_lock() {
                Ok(left) => left,
                Err(TryLockError::Poisoned(left)) => left.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    busy = busy.or(Some(index));
                    continue;
                }
            };
            if let Some(number) = left.next() {
                *own = index;
                return Some(Taken { number, stream: Some(left) });
            }
        }
        let index = busy?;
        let mut left = streams[index].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = left.next() {
            *own = index;
            return Some(Taken { number, stream: Some(left) });
        }
    }
}

/// Lets each checker, on a thread of its own, take pieces until none is left.
pub(crate) fn check_all<C: PieceChecker>(checkers: &mut [C], pieces: &[Piece], left: &Pieces) {
    let work = |checker: &mut C, mut stream: usize| {
        let mut buffer = AlignedBuffer::new(PIECE_SLOTS as usize * SLOT_BYTES);
        while let Some(taken) = left.take(&mut stream) {
            if checker.gives_up() {
                return;
            }
            let started = Instant::now();
            let piece = &pieces[taken.number];
            let is_read = checker.read(piece, &mut buffer);
            drop(taken.stream);
            if is_read {
                checker.check(piece, &buffer);
            } else {
                checker.check_singly(piece, &mut buffer);
            }
            checker.rest(started.elapsed());
        }
    };
    let (own, others) = checkers.split_first_mut().expect("there is one checker at least");
    std::thread::scope(|scope| {
        for (index, checker) in others.iter_mut().enumerate() {
            scope.spawn(move || work(checker, index + 1));
        }
        work(own, 0);
    });
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
        let pieces = cut(&slots, |slot| *slot);
        assert_eq!(pieces, [0..4, 4..5, 5..7, 7..9, 9..11]);
        assert!(cut(&[] as &[SlotNumber], |slot| *slot).is_empty());
    }

    #[test]
    fn nobody_reads_in_a_file_in_which_another_reads() {
        let pieces = Pieces::per_file(&[0..1, 1..2, 2..3, 3..4], |piece| piece.start / 2);
        let (mut own, mut other) = (0, 0);
        let first = pieces.take(&mut own).unwrap();
        let second = pieces.take(&mut other).unwrap();
        assert_eq!((first.number, second.number), (0, 2), "each begins a file");
        drop(first);
        let third = pieces.take(&mut own).unwrap();
        assert_eq!(third.number, 1, "and goes on in it");
        drop((second, third));
        assert_eq!(pieces.take(&mut own).map(|taken| taken.number), Some(3), "then helps");
        assert!(pieces.take(&mut own).is_none());
    }

    #[test]
    fn threads_take_each_piece_of_two_files_once() {
        let list: Vec<Piece> = (0..1000).map(|number| number..number + 1).collect();
        let pieces = Pieces::per_file(&list, |piece| usize::from(piece.start >= 300));
        let numbers = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for mut stream in 0..4 {
                let (pieces, numbers) = (&pieces, &numbers);
                scope.spawn(move || {
                    while let Some(taken) = pieces.take(&mut stream) {
                        numbers.lock().unwrap().push(taken.number);
                    }
                });
            }
        });
        let mut taken = numbers.into_inner().unwrap();
        taken.sort_unstable();
        assert_eq!(taken, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).collect();
        let doubled = map(7, &items, |item| item * 2);
        assert!(doubled.iter().enumerate().all(|(index, double)| *double == index as u64 * 2));
    }
}
