//! Older versions of rows, for snapshots that are still open.
//!
//! Ordered by key and apart from the leaves, so that a version outlives the frame of its leaf: a
//! leaf may be evicted and loaded again while a snapshot still needs what a row was before.
//!
//! Invariants
//! 1. A version is kept before the LSN that replaces it is reserved, under the leaf's exclusive
//!    latch; readers look while they hold that latch shared.
//! 2. A version goes only when no open snapshot, and none that may still open, is at or below the
//!    LSN that replaced it. Snapshots that were given up do not count (`old_versions.rs`).
//! 3. Before a version goes, the store says up to where versions have gone. So whoever does not find a
//!    version and asks *afterwards* whether something has gone that his snapshot needs is told.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use onrush_log::{AtomicLsn, Lsn};
use parking_lot::{Mutex, RwLock};

use super::Seen;
use super::old_versions::OldVersions;
use crate::fault::{Fault, planted};

/// A version that was replaced or removed.
#[derive(Debug)]
pub(crate) struct OldVersion {
    written_at: Lsn,
    /// LSN of the change that replaced it; [`OldVersion::NOT_ENDED`] until that change has its LSN, which is
    /// before its leaf is unlatched.
    ended_at: AtomicLsn,
    value: Box<[u8]>,
}

impl OldVersion {
    const NOT_ENDED: Lsn = Lsn::MAX;

    /// Says which change replaced it. Called once, under the leaf's latch.
    pub(crate) fn ends_at(&self, lsn: Lsn) {
        self.ended_at.store(lsn, Ordering::Release);
    }

    fn ended_at(&self) -> Option<Lsn> {
        Some(self.ended_at.load(Ordering::Acquire)).filter(|lsn| *lsn != Self::NOT_ENDED)
    }

    /// The snapshot sees all below it: this version if it was written below and ended not below.
    fn is_seen_by(&self, snapshot: Lsn) -> bool {
        self.written_at < snapshot && self.ended_at().is_none_or(|ended_at| snapshot <= ended_at)
    }
}

/// Versions for which a collection pays.
const DUE_VERSIONS: usize = 256;

/// Places for arrivals that a store keeps, used or not.
const ARRIVALS_KEPT: usize = 4096;

type Versions = BTreeMap<Box<[u8]>, Vec<Arc<OldVersion>>>;

/// The old versions of one table.
#[derive(Default)]
pub(crate) struct VersionStore {
    versions: RwLock<Versions>,
    /// All versions with their keys, in the order in which they were kept.
    arrivals: Mutex<VecDeque<(Box<[u8]>, Arc<OldVersion>)>>,
    /// Versions kept now; lets readers skip an empty store.
    count: AtomicUsize,
    /// Memory that they take, about.
    bytes: AtomicUsize,
    /// The highest LSN that ended a version which has gone. Raised before the version goes.
    gone_to: AtomicLsn,
    /// A collection pays with so many versions: many more than the last one has left.
    due_at: AtomicUsize,
}

impl VersionStore {
    /// Keeps what the row at `key` is until now.
    pub(crate) fn keep(
        &self,
        all: &OldVersions,
        key: &[u8],
        written_at: Lsn,
        value: &[u8],
    ) -> Arc<OldVersion> {
        let ended_at = AtomicLsn::new(OldVersion::NOT_ENDED);
        let version = Arc::new(OldVersion { written_at, ended_at, value: value.into() });
        let mut versions = self.versions.write();
        versions.entry(key.into()).or_default().push(Arc::clone(&version));
        self.count.fetch_add(1, Ordering::Release);
        let bytes = version_bytes(key, value.len());
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        all.add(bytes);
        self.arrivals.lock().push_back((key.into(), Arc::clone(&version)));
        version
    }

    /// A version that ended at this LSN was not kept: no snapshot needed it. Under the exclusive latch of
    /// its leaf, before it is taken out of that.
    pub(crate) fn let_go(&self, ended_at: Lsn) {
        self.gone_to.fetch_max(ended_at, Ordering::Release);
    }

    /// Whether a version has gone that `snapshot` may have seen: only if that was given up. To be asked
    /// after a look that did not find what it looked for.
    pub(crate) fn lacks(&self, snapshot: Lsn) -> bool {
        snapshot <= self.gone_to.load(Ordering::Acquire)
            && !planted(Fault::GivenUpSnapshotUnnoticed)
    }

    /// The version of `key` that `snapshot` sees, if it is an old one.
    pub(crate) fn get(&self, key: &[u8], snapshot: Lsn) -> Option<Seen> {
        if self.is_empty() {
            return None;
        }
        self.versions.read().get(key).and_then(|versions| seen(versions, snapshot))
    }

    /// Old versions that `snapshot` sees from `low` on and below `high`, in key order.
    pub(crate) fn range(
        &self,
        low: &[u8],
        high: Option<&[u8]>,
        snapshot: Lsn,
    ) -> Vec<(Box<[u8]>, Seen)> {
        if self.is_empty() || high.is_some_and(|high| high <= low) {
            return Vec::new();
        }
        let high = high.map_or(Bound::Unbounded, Bound::Excluded);
        let versions = self.versions.read();
        versions
            .range::<[u8], _>((Bound::Included(low), high))
            .filter_map(|(key, versions)| Some((key.clone(), seen(versions, snapshot)?)))
            .collect()
    }

    /// The LSN at which the newest old version of `key` ended; none if none is kept. For a key that
    /// is gone this is when it was removed.
    pub(crate) fn removed_at(&self, key: &[u8]) -> Option<Lsn> {
        if self.is_empty() {
            return None;
        }
        let versions = self.versions.read();
        versions.get(key)?.last()?.ended_at()
    }

    /// The LSN below `below` at which the newest old version of `key` ended; none if none is kept. Who does
    /// not find the key rests on it. What is not kept any more has ended below what is durable.
    pub(crate) fn removed_below(&self, key: &[u8], below: Lsn) -> Option<Lsn> {
        if self.is_empty() {
            return None;
        }
        let versions = self.versions.read();
        let ends = versions.get(key)?.iter().filter_map(|version| version.ended_at());
        ends.filter(|ended_at| *ended_at < below).max()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Whether enough has come together that a collection pays.
    pub(crate) fn is_due(&self) -> bool {
        self.count.load(Ordering::Relaxed) >= self.due_at.load(Ordering::Relaxed).max(DUE_VERSIONS)
    }

    /// Drops versions that ended below `horizon`, which no snapshot is at or below.
    pub(crate) fn collect(&self, all: &OldVersions, horizon: Lsn) {
        if self.is_empty() {
            return;
        }
        let mut versions = self.versions.write();
        let mut arrivals = self.arrivals.lock();
        while let Some(ended_at) = arrivals.front().and_then(|(_, version)| version.ended_at())
            && ended_at < horizon
            && let Some((key, version)) = arrivals.pop_front()
        {
            self.let_go(ended_at);
            if let Some(kept) = versions.get_mut(&key) {
                kept.retain(|own| !Arc::ptr_eq(own, &version));
                if kept.is_empty() {
                    versions.remove(&key);
                }
            }
            let bytes = version_bytes(&key, version.value.len());
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            all.remove(bytes);
            self.count.fetch_sub(1, Ordering::Release);
        }
        let left = arrivals.len();
        self.due_at.store(left + (left / 4).max(DUE_VERSIONS), Ordering::Relaxed);
        if arrivals.capacity() > ARRIVALS_KEPT && arrivals.len() * 4 < arrivals.capacity() {
            arrivals.shrink_to_fit();
        }
    }

    /// Forgets everything: the table was truncated or dropped.
    pub(crate) fn clear(&self, all: &OldVersions) {
        let mut versions = self.versions.write();
        versions.clear();
        *self.arrivals.lock() = VecDeque::new();
        self.due_at.store(0, Ordering::Relaxed);
        self.count.store(0, Ordering::Release);
        all.remove(self.bytes.swap(0, Ordering::Relaxed));
    }
}

/// What a version takes: itself and its value, its key twice, and a place in both collections.
fn version_bytes(key: &[u8], value_bytes: usize) -> usize {
    const ALLOCATIONS: usize = 168;
    size_of::<OldVersion>() + value_bytes + 2 * key.len() + ALLOCATIONS
}

fn seen(versions: &[Arc<OldVersion>], snapshot: Lsn) -> Option<Seen> {
    let version = versions.iter().rev().find(|version| version.is_seen_by(snapshot))?;
    Some(Seen { lsn: version.written_at, value: version.value.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(store: &VersionStore, all: &OldVersions, key: &[u8], (from, to): (u64, u64)) {
        store.keep(all, key, Lsn(from), b"old").ends_at(Lsn(to));
    }

    fn store(from: u64, to: u64) -> (VersionStore, OldVersions) {
        let (store, all) = (VersionStore::default(), OldVersions::new(u64::MAX));
        keep(&store, &all, b"k", (from, to));
        (store, all)
    }

    #[test]
    fn a_snapshot_between_write_and_end_sees_the_version() {
        let (store, _) = store(10, 20);
        assert!(store.get(b"k", Lsn(10)).is_none());
        assert_eq!(store.get(b"k", Lsn(11)).unwrap().value, b"old");
        assert_eq!(store.get(b"k", Lsn(20)).unwrap().lsn, Lsn(10));
        assert!(store.get(b"k", Lsn(21)).is_none());
    }

    #[test]
    fn a_version_goes_when_the_horizon_is_above_its_end() {
        let (store, all) = store(10, 20);
        store.collect(&all, Lsn(20));
        assert!(!store.is_empty());
        assert!(all.bytes() > 0);
        store.collect(&all, Lsn(21));
        assert!(store.is_empty());
        assert_eq!(all.bytes(), 0);
        assert_eq!(store.removed_at(b"k"), None);
    }

    #[test]
    fn a_range_gives_versions_in_key_order() {
        let (store, all) = (VersionStore::default(), OldVersions::new(u64::MAX));
        for key in [b"c", b"a", b"b"] {
            keep(&store, &all, key, (1, 9));
        }
        let keys: Vec<_> = store.range(b"a", Some(b"c"), Lsn(5)).into_iter().map(|v| v.0).collect();
        assert_eq!(keys, [Box::from(*b"a"), Box::from(*b"b")]);
    }

    #[test]
    fn a_row_that_changes_all_the_time_keeps_no_version_of_another_one() {
        let (store, all) = (VersionStore::default(), OldVersions::new(u64::MAX));
        let versions = [(b"hot", 10, 20), (b"hot", 20, 21), (b"old", 1, 22), (b"hot", 21, 1000)];
        for (key, from, to) in versions {
            keep(&store, &all, key, (from, to));
        }
        store.collect(&all, Lsn(100));
        assert!(store.get(b"old", Lsn(15)).is_none());
        assert_eq!(store.get(b"hot", Lsn(500)).unwrap().lsn, Lsn(21));
        assert_eq!(store.count.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_store_lacks_something_for_snapshots_that_would_have_seen_what_has_gone() {
        let (store, all) = store(10, 20);
        assert!(!store.lacks(Lsn(15)));
        store.collect(&all, Lsn(21));
        assert!(store.lacks(Lsn(15)) && store.lacks(Lsn(20)));
        assert!(!store.lacks(Lsn(21)));
        store.let_go(Lsn(30));
        assert!(store.lacks(Lsn(30)) && !store.lacks(Lsn(31)));
    }

    #[test]
    fn what_all_stores_take_is_given_back_when_a_table_goes() {
        let (store, all) = store(10, 20);
        let taken = all.bytes();
        keep(&store, &all, b"other", (3, 4));
        assert!(all.bytes() > taken);
        store.clear(&all);
        assert_eq!(all.bytes(), 0);
    }
}
