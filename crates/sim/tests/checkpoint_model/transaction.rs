//! Transactions of several rows: intents first, then one record and the verdict, then folding.

use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};
use shuttle::sync::{Condvar, Mutex};

use super::leaf::{Entry, Stamp};
use super::{Engine, Fault, Key, Lsn, Value};

const PENDING: u64 = u64::MAX;
const ABORTED: u64 = u64::MAX - 1;
/// More than any run begins.
const TRANSACTIONS_MAX: usize = 8;

pub struct TransactionStates {
    /// Pending, aborted, or the LSN of the commit.
    states: Vec<AtomicU64>,
    begun: AtomicU64,
    lock: Mutex<()>,
    changed: Condvar,
}

impl TransactionStates {
    pub fn new() -> TransactionStates {
        TransactionStates {
            states: (0..TRANSACTIONS_MAX).map(|_| AtomicU64::new(PENDING)).collect(),
            begun: AtomicU64::new(0),
            lock: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    fn begin(&self) -> usize {
        usize::try_from(self.begun.fetch_add(1, SeqCst)).expect("small")
    }

    fn decide(&self, transaction: usize, committed_at: Option<Lsn>) {
        self.states[transaction].store(committed_at.unwrap_or(ABORTED), SeqCst);
    }

    fn announce(&self) {
        let _guard = self.lock.lock().expect("held for a moment");
        self.changed.notify_all();
    }

    pub fn wait(&self, transaction: usize) {
        let mut guard = self.lock.lock().expect("held for a moment");
        while self.states[transaction].load(SeqCst) == PENDING {
            guard = self.changed.wait(guard).expect("held for a moment");
        }
    }
}

impl Engine {
    /// Puts or removes rows together, in ascending key order; returns where the record ends.
    pub fn commit(&self, place: usize, writes: &[(Key, Option<Value>)]) -> Lsn {
        let transaction = self.transactions.begin();
        let early = self.planted(Fault::GroupReservedFirst).then(|| self.log.reserve(place));
        self.place_intents(place, transaction, writes);
        let lsn = early.unwrap_or_else(|| self.log.reserve(place));
        self.log.fill(lsn, writes.to_vec());
        self.transactions.decide(transaction, Some(lsn));
        self.log.complete(place);
        self.transactions.announce();
        self.fold(writes);
        lsn + 1
    }

    /// Places the intents of a transaction, then gives it up.
    pub fn abort(&self, place: usize, writes: &[(Key, Option<Value>)]) {
        let transaction = self.transactions.begin();
        self.place_intents(place, transaction, writes);
        self.transactions.decide(transaction, None);
        self.transactions.announce();
        self.fold(writes);
    }

    fn place_intents(&self, place: usize, transaction: usize, writes: &[(Key, Option<Value>)]) {
        for (key, value) in writes {
            let stamp = Stamp::Intent { transaction, removal: value.is_none() };
            let entry = Entry { stamp, key: *key, value: value.unwrap_or(0) };
            loop {
                let outcome = self.placing(place, *key, |placing| {
                    placing.find(*key)?;
                    placing.make_dirty();
                    placing.make_space(*key);
                    placing.rows().push(entry);
                    Ok(())
                });
                match outcome {
                    Ok(()) => break,
                    Err(blocked) => self.unblock(blocked),
                }
            }
        }
    }

    fn fold(&self, writes: &[(Key, Option<Value>)]) {
        for (key, _) in writes {
            let (_, mut leaf) = self.latch_exclusive(*key);
            if let Some(rows) = leaf.rows.as_mut() {
                self.fold_key(rows, *key);
            }
        }
    }

    /// Folds the intent on `key` if its transaction has a verdict. The leaf is latched exclusive.
    pub fn fold_key(&self, rows: &mut Vec<Entry>, key: Key) {
        let intent = |entry: &Entry| match entry.stamp {
            Stamp::Intent { transaction, removal } if entry.key == key => {
                Some((transaction, removal))
            }
            _ => None,
        };
        let Some((transaction, removal)) = rows.iter().find_map(intent) else { return };
        match self.transactions.states[transaction].load(SeqCst) {
            PENDING => {}
            ABORTED => rows.retain(|entry| intent(entry).is_none()),
            lsn => {
                rows.retain(|entry| entry.key != key || (!removal && entry.stamp.is_intent()));
                if let Some(entry) = rows.iter_mut().find(|entry| entry.key == key) {
                    entry.stamp = Stamp::Committed(lsn);
                }
            }
        }
    }

    /// Folds every intent of the leaf that has a verdict; before an image is made.
    pub fn fold_resolved(&self, rows: &mut Vec<Entry>) {
        let intents = rows.iter().filter(|entry| entry.stamp.is_intent());
        let keys: Vec<Key> = intents.map(|entry| entry.key).collect();
        for key in keys {
            self.fold_key(rows, key);
        }
    }
}
