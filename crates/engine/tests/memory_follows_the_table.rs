//! What the allocator hands out grows with the leaves of a table, and no faster, whatever is done with it.

#![allow(clippy::unwrap_used)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Fixture, note, notes};
use onrush::{CheckProgress, Database, Durability, OnlineOptions, Options};

/// Counts what the program has from the system's allocator, and the most that it had.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn add(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: everything is done by the system's allocator, which keeps the contract; counting changes
// nothing that it sees. Covered by the test below, which allocates through it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        add(bytes);
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(place, layout, bytes) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What was done, and the most memory meanwhile.
type Peaks = Vec<(&'static str, usize)>;

fn measure<T>(peaks: &mut Peaks, name: &'static str, work: impl FnOnce() -> T) -> T {
    MOST.store(NOW.load(Ordering::Relaxed), Ordering::Relaxed);
    let done = work();
    peaks.push((name, MOST.load(Ordering::Relaxed)));
    done
}

/// Rows that fill a leaf but for a rest.
const ROWS_PER_LEAF: usize = 5;

/// A table of about so many leaves goes through everything that a database does with it.
fn life_of_a_table(leaves: usize) -> (u64, Peaks) {
    let mut fixture = Fixture::new();
    fixture.options = Options { log_capacity_bytes: 1 << 30, ..Options::small() };
    fixture.options.checkpoint_log_bytes = 1 << 30;
    fixture.options.log_segment_bytes = 4 << 20;
    let text = "x".repeat(3000);
    let mut peaks = Peaks::new();
    let online = OnlineOptions { busy_percent: 100, ..OnlineOptions::default() };
    let path = fixture.path();
    let copy = fixture.folder.path().join("copy");

    let (db, table) = fixture.create_with(notes());
    measure(&mut peaks, "insert", || {
        let mut session = db.session().unwrap();
        session.set_durability(Durability::Delayed);
        for id in 0..(leaves * ROWS_PER_LEAF) as i64 {
            session.insert(&table, &note(id, &text)).unwrap();
        }
        db.barrier().unwrap();
    });
    let count = db.statistics().leaves;
    // As a crash would leave it: all of it is in the log.
    drop((table, db));
    let db =
        measure(&mut peaks, "recovery", || Database::open(&path, fixture.options.clone()).unwrap());
    measure(&mut peaks, "checkpoint", || db.checkpoint().unwrap());
    measure(&mut peaks, "check", || {
        db.check(&online, &CheckProgress::default()).unwrap();
    });
    measure(&mut peaks, "backup", || {
        db.backup(&copy, &online, &CheckProgress::default()).unwrap();
    });
    measure(&mut peaks, "close", || db.close().unwrap());
    let db =
        measure(&mut peaks, "opening", || Database::open(&path, fixture.options.clone()).unwrap());
    db.close().unwrap();
    (count, peaks)
}

#[test]
fn each_leaf_more_takes_a_bounded_part_of_memory_more_in_all_that_is_done_with_a_table() {
    const BYTES_A_LEAF_MAX: u64 = 640;
    let (few_leaves, few) = life_of_a_table(4_000);
    let (many_leaves, many) = life_of_a_table(12_000);
    let more_leaves = many_leaves - few_leaves;
    assert!(more_leaves > 7_000, "{few_leaves} and {many_leaves} leaves");
    for ((name, few), (_, many)) in few.into_iter().zip(many) {
        let bytes = (many as u64).saturating_sub(few as u64) / more_leaves;
        println!(
            "{name}: {bytes} bytes for each of {more_leaves} leaves more; {few} bytes with {few_leaves}"
        );
        assert!(bytes < BYTES_A_LEAF_MAX, "{name} takes {bytes} bytes for each leaf more");
    }
}
