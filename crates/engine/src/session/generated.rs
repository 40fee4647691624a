//! The identity values that a session was given last: what `currval` and `lastval` tell over SQL. Each is a word that
//! the session alone writes, so that a row with a generated key costs two stores more.
//!
//! Invariant: a value has a place in the order of all that the session's client was given; 0 is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use parking_lot::Mutex;

/// An identity column: the number of its table, and its own there.
type Column = (u32, usize);

/// See the module.
#[derive(Debug, Default)]
#[repr(align(128))] // whoever made the session may have made another's right beside it
pub struct GeneratedValues {
    /// The last place that was given.
    places: AtomicU64,
    columns: Mutex<Vec<(Column, Arc<LastValue>)>>,
}

/// The value of one column.
#[derive(Debug, Default)]
pub(super) struct LastValue {
    value: AtomicI64,
    place: AtomicU64,
}

impl GeneratedValues {
    /// The next place in the order, for a value that came another way.
    pub fn next_place(&self) -> u64 {
        // Written by one thread at a time: the one that works for the session.
        let next = self.places.load(Ordering::Relaxed) + 1;
        self.places.store(next, Ordering::Relaxed);
        next
    }

    /// The place and the value that the session was given last for an identity column, which has this number in the
    /// table of this number.
    pub fn of(&self, table: u32, column: usize) -> Option<(u64, i64)> {
        let columns = self.columns.lock();
        columns.iter().find(|(known, _)| *known == (table, column)).and_then(|(_, it)| it.get())
    }

    /// The column that got a value last, with the place and the value.
    pub fn newest(&self) -> Option<((u32, usize), u64, i64)> {
        let columns = self.columns.lock();
        let values = columns.iter().filter_map(|(column, last)| {
            let (place, value) = last.get()?;
            Some((*column, place, value))
        });
        values.max_by_key(|(_, place, _)| *place)
    }

    /// Forgets all of them.
    pub fn forget(&self) {
        self.columns.lock().iter().for_each(|(_, last)| last.place.store(0, Ordering::Relaxed));
    }

    pub(super) fn column(&self, column: Column) -> Arc<LastValue> {
        let mut columns = self.columns.lock();
        if let Some((_, last)) = columns.iter().find(|(known, _)| *known == column) {
            return Arc::clone(last);
        }
        let last = Arc::default();
        columns.push((column, Arc::clone(&last)));
        last
    }

    #[inline]
    pub(super) fn put(&self, last: &LastValue, value: i64) {
        last.value.store(value, Ordering::Relaxed);
        last.place.store(self.next_place(), Ordering::Release);
    }
}

impl LastValue {
    fn get(&self) -> Option<(u64, i64)> {
        let place = self.place.load(Ordering::Acquire);
        (place > 0).then(|| (place, self.value.load(Ordering::Relaxed)))
    }
}
