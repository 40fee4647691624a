//! What a thread of a load remembers: how many rows were acknowledged to it, which, and how long
//! commits took. Small, however many rows.

use std::time::Instant;

use hdrhistogram::Histogram;

use crate::fingerprint::Fingerprint;

/// Commits are timed one by one when each waits for the disk, else one of so many.
const DELAYED_TIMED_EVERY: u32 = 64;
/// Longest commit told apart, in nanoseconds; longer ones count as this.
const COMMIT_NANOS_MAX: u64 = 120_000_000_000;
/// Keys remembered, at most, for cutting the table into parts.
const KEYS_MAX: usize = 128;

/// What to remember.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerKind {
    /// Every commit waits for the disk.
    pub is_durable: bool,
    /// Take fingerprints.
    pub remembers_rows: bool,
}

/// The ledger of one thread, later of all of them.
#[derive(Debug)]
pub struct Ledger {
    /// Rows.
    pub rows: u64,
    /// Commits.
    pub commits: u64,
    /// Of all of them.
    pub fingerprint: Fingerprint,
    /// Nanoseconds.
    pub commit_times: Histogram<u64>,
    /// Some of their keys.
    pub keys: KeySample,
    kind: LedgerKind,
    until_timed: u32,
}

impl Ledger {
    /// An empty one.
    pub fn new(kind: LedgerKind) -> Ledger {
        let commit_times = Histogram::new_with_bounds(1, COMMIT_NANOS_MAX, 2)
            .expect("bounds and digits are constants in range");
        Ledger {
            rows: 0,
            commits: 0,
            fingerprint: Fingerprint::default(),
            commit_times,
            keys: KeySample::default(),
            kind,
            until_timed: 0,
        }
    }

    /// Starts the clock of a commit, if this one is to be timed.
    #[inline]
    pub fn start_commit(&mut self) -> Option<Instant> {
        if self.kind.is_durable {
            return Some(Instant::now());
        }
        if self.until_timed == 0 {
            self.until_timed = DELAYED_TIMED_EVERY - 1;
            return Some(Instant::now());
        }
        self.until_timed -= 1;
        None
    }

    /// A commit of so many rows was acknowledged just now.
    #[inline]
    pub fn committed(&mut self, started: Option<Instant>, rows: u64) {
        match started {
            Some(started) => self.committed_at(Instant::now(), started, rows),
            None => self.count(rows),
        }
    }

    /// A commit of so many rows that is timed was acknowledged at `ended`.
    #[inline]
    pub(crate) fn committed_at(&mut self, ended: Instant, started: Instant, rows: u64) {
        self.count(rows);
        let nanos = u64::try_from((ended - started).as_nanos()).unwrap_or(u64::MAX);
        self.commit_times.saturating_record(nanos);
    }

    #[inline]
    fn count(&mut self, rows: u64) {
        self.commits += 1;
        self.rows += rows;
    }

    /// So many commits were acknowledged together, and nobody knows how long each took.
    pub fn committed_many(&mut self, commits: u64, rows: u64) {
        self.commits += commits;
        self.rows += rows;
    }

    /// One of the rows of an acknowledged commit.
    #[inline]
    pub fn acknowledged(&mut self, key: &[u8], value: &[u8]) {
        if self.kind.remembers_rows {
            self.fingerprint.add(key, value);
            self.keys.offer(key);
        }
    }

    /// Adds what another thread remembers.
    pub fn merge(&mut self, other: Ledger) {
        self.rows += other.rows;
        self.commits += other.commits;
        self.fingerprint.merge(&other.fingerprint);
        self.commit_times.add(&other.commit_times).expect("both have the same bounds");
        self.keys.merge(other.keys);
    }
}

/// Some of the keys, evenly spread over the rows: every n-th, n doubling as they become too many.
#[derive(Debug)]
pub struct KeySample {
    keys: Vec<Vec<u8>>,
    stride: u64,
    until_next: u64,
}

impl Default for KeySample {
    fn default() -> Self {
        KeySample { keys: Vec::new(), stride: 1, until_next: 0 }
    }
}

impl KeySample {
    /// One more key, which is remembered or not.
    #[inline]
    pub fn offer(&mut self, key: &[u8]) {
        if self.until_next > 0 {
            self.until_next -= 1;
            return;
        }
        self.take(key);
    }

    #[cold]
    fn take(&mut self, key: &[u8]) {
        if self.keys.len() == KEYS_MAX {
            let mut is_even = false;
            self.keys.retain(|_| {
                is_even = !is_even;
                is_even
            });
            self.stride *= 2;
        }
        self.keys.push(key.to_vec());
        self.until_next = self.stride - 1;
    }

    /// Adds the other's keys. Meant for samples of about as many rows each.
    pub fn merge(&mut self, other: KeySample) {
        self.keys.extend(other.keys);
    }

    /// At most `parts - 1` keys that cut the table into parts of about as many rows, ascending.
    pub(crate) fn cuts(&self, parts: usize) -> Vec<Vec<u8>> {
        let mut sorted = self.keys.clone();
        sorted.sort_unstable();
        let mut cuts: Vec<_> = (1..parts)
            .filter_map(|part| sorted.get(sorted.len() * part / parts).cloned())
            .collect();
        cuts.dedup();
        cuts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(is_durable: bool) -> Ledger {
        Ledger::new(LedgerKind { is_durable, remembers_rows: true })
    }

    #[test]
    fn every_durable_commit_is_timed_and_one_of_sixty_four_others() {
        for (is_durable, timed) in [(true, 640), (false, 10)] {
            let mut ledger = ledger(is_durable);
            for _ in 0..640 {
                let timer = ledger.start_commit();
                ledger.committed(timer, 2);
            }
            assert_eq!((ledger.commits, ledger.rows), (640, 1280));
            assert_eq!(ledger.commit_times.len(), timed);
        }
    }

    #[test]
    fn ledgers_add_up() {
        let (mut left, mut right) = (ledger(true), ledger(true));
        left.acknowledged(b"1", b"a");
        right.acknowledged(b"2", b"b");
        let mut both = ledger(true);
        both.acknowledged(b"2", b"b");
        both.acknowledged(b"1", b"a");
        left.merge(right);
        assert_eq!(left.fingerprint, both.fingerprint);
    }

    #[test]
    fn a_sample_of_many_keys_stays_small_and_cuts_evenly() {
        let mut sample = KeySample::default();
        for key in 0..100_000_u32 {
            sample.offer(&key.to_be_bytes());
        }
        assert!(sample.keys.len() <= KEYS_MAX);
        let cuts = sample.cuts(4);
        let numbers: Vec<u32> =
            cuts.iter().map(|cut| u32::from_be_bytes(cut.as_slice().try_into().unwrap())).collect();
        assert_eq!(numbers.len(), 3);
        for (number, wanted) in numbers.iter().zip([25_000_u32, 50_000, 75_000]) {
            assert!(number.abs_diff(wanted) < 3_000, "{numbers:?}");
        }
    }

    #[test]
    fn few_keys_make_few_parts() {
        let mut sample = KeySample::default();
        assert!(sample.cuts(4).is_empty());
        sample.offer(b"only");
        assert_eq!(sample.cuts(4), vec![b"only".to_vec()]);
    }
}
