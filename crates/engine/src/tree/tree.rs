//! The tree's inner part: from the root to a leaf, and how the parent learns of a split.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crossbeam_utils::CachePadded;
use onrush_latch::{ExclusiveGuard, SharedGuard, lock_counted};
use onrush_log::{AtomicLsn, Lsn};
use onrush_waits::{LatchClass, Recorder};
use parking_lot::Mutex;

use super::Refusal;
use super::Trees;
use super::versions::VersionStore;
use crate::fault::{Fault, planted};
use crate::node::fence::{Fence, head};
use crate::node::inner::InnerNode;
use crate::storage::LeafState;
use crate::units::{AtomicObjectId, InnerId, LeafId, ObjectId};

/// The last leaf that a session used, with the heads of its fences: most keys that belong
/// elsewhere are seen without latching it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hint {
    leaf: LeafId,
    low_head: u64,
    high_head: u64,
}

impl Hint {
    /// Of a latched leaf.
    #[inline]
    pub(super) fn of(id: LeafId, leaf: &LeafState) -> Hint {
        let high_head = leaf.high.as_ref().map_or(u64::MAX, Fence::head);
        Hint { leaf: id, low_head: leaf.low.head(), high_head }
    }

    /// The leaf that holds a key with this head, or held it a moment ago.
    #[inline]
    pub(super) fn at(leaf: LeafId, key_head: u64) -> Hint {
        Hint { leaf, low_head: key_head, high_head: key_head }
    }

    #[inline]
    fn may_hold(&self, key_head: u64) -> bool {
        self.low_head <= key_head && key_head <= self.high_head
    }
}

/// A bit above all versions: a definition is under way, and nobody else writes.
const STOPPED: u32 = 1 << 16;

/// How often a search goes to the right neighbour before it starts again from the root.
const HOPS_MAX: usize = 4;

/// The rows of one object, in key order.
pub(crate) struct Tree {
    /// Whose rows; none of a dropped table. Changes when the table is truncated, under the structure mutex.
    object: AtomicObjectId,
    /// The version of the table's definition that rows are written with, and [`STOPPED`] while a
    /// definition is under way. Changes when the table is altered; whoever writes looks at it inside.
    version: AtomicU32,
    /// The highest version that any definition of the table ever had, those that were taken back included:
    /// a version is given once, so that whoever has one that was taken back can never write.
    highest_version: AtomicU32,
    /// LSN of the commit that the rows begin with, below every snapshot if they were there at open: snapshots
    /// below it see none of them, and must say so.
    begins_at: AtomicLsn,
    /// LSN of the commit from which on the entries of an index are whole; below every snapshot if they were whole at
    /// open.
    whole_from: AtomicLsn,
    /// A key of a unique index that is being built which two rows had at once. Never taken back: the index fails.
    doubled: OnceLock<Box<[u8]>>,
    /// Commits over intents and transactions that a definition has to wait for.
    shares: AtomicU32,
    /// The topmost inner node. Changes under the structure mutex; read by anyone.
    pub(super) root: AtomicU32,
    /// Whether the log takes the rows, and so whether checkpoints look at the leaves.
    logged: bool,
    /// Whether a transaction has ever locked a key that it was about to insert: only then inserts look for locks.
    locks_inserts: AtomicBool,
    /// Held by whoever changes inner nodes: one thread at a time, readers go on.
    pub(super) structure: CachePadded<Mutex<()>>,
    /// Older rows for open snapshots.
    pub(crate) versions: VersionStore,
}

impl Tree {
    /// An empty tree: a root and one leaf without bounds.
    pub(crate) fn new(trees: &Trees, object: ObjectId, logged: bool) -> Tree {
        Tree::with_root(object, empty_root(trees, Some(object), logged), logged)
    }

    /// A tree over inner nodes that stand already.
    pub(crate) fn with_root(object: ObjectId, root: InnerId, logged: bool) -> Tree {
        Tree {
            object: AtomicObjectId::new(Some(object)),
            version: AtomicU32::new(0),
            highest_version: AtomicU32::new(0),
            begins_at: AtomicLsn::default(),
            whole_from: AtomicLsn::default(),
            doubled: OnceLock::new(),
            shares: AtomicU32::new(0),
            root: AtomicU32::new(root.0),
            logged,
            locks_inserts: AtomicBool::new(false),
            structure: CachePadded::default(),
            versions: VersionStore::default(),
        }
    }

    /// Inserts look for locks from now on. To be called before the lock is taken.
    pub(crate) fn lock_inserts(&self) {
        if !self.has_locked_inserts() {
            self.locks_inserts.store(true, Ordering::Relaxed);
        }
    }

    /// Whether inserts look for locks. Who has locked a key looks at it under the latch of its leaf afterwards, so an
    /// insert that still does without is seen.
    #[inline]
    pub(super) fn has_locked_inserts(&self) -> bool {
        self.locks_inserts.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn object(&self) -> Option<ObjectId> {
        self.object.load(Ordering::Acquire)
    }

    /// The version of the definition that rows are written with.
    #[inline]
    pub(crate) fn version(&self) -> u16 {
        // Between setting it and waiting for who is inside there must be one order for all.
        self.version.load(Ordering::SeqCst) as u16
    }

    /// Rows are written with this version from now on: see [`Admission::wait_until_left`].
    ///
    /// [`Admission::wait_until_left`]: onrush_latch::Admission::wait_until_left
    pub(crate) fn set_version(&self, version: u16) {
        self.note_version(version);
        self.version.store(u32::from(version), Ordering::SeqCst);
    }

    /// Whether rows of this version are written now.
    #[inline]
    pub(crate) fn takes(&self, version: u16) -> bool {
        self.version.load(Ordering::SeqCst) == u32::from(version)
    }

    /// A definition of this version was made, whatever becomes of it.
    pub(crate) fn note_version(&self, version: u16) {
        self.highest_version.fetch_max(u32::from(version), Ordering::AcqRel);
    }

    pub(crate) fn highest_version(&self) -> u16 {
        self.highest_version.load(Ordering::Acquire) as u16
    }

    /// The commit at this LSN made the table or emptied it.
    pub(crate) fn begin_at(&self, lsn: Lsn) {
        self.begins_at.store(lsn, Ordering::Release);
    }

    /// Whether a snapshot of this LSN sees all rows of the object, and not none of them because it is
    /// older than the object.
    pub(crate) fn is_seen_at(&self, snapshot: Lsn) -> bool {
        self.begins_at.load(Ordering::Acquire) < snapshot
    }

    /// The commit at this LSN says that the index is whole.
    pub(crate) fn whole_from(&self, lsn: Lsn) {
        self.whole_from.store(lsn, Ordering::Release);
    }

    /// Whether a snapshot of this LSN finds all rows by the index: what was put there while it was built is younger
    /// than the rows.
    pub(crate) fn is_whole_at(&self, snapshot: Lsn) -> bool {
        self.whole_from.load(Ordering::Acquire) < snapshot
    }

    /// Two rows had this key of a unique index that is being built, and one of them has lost its entry.
    #[cold]
    pub(crate) fn note_doubled(&self, key: &[u8]) {
        let _ = self.doubled.set(key.into());
    }

    /// A key that two rows had at once.
    pub(crate) fn doubled(&self) -> Option<&[u8]> {
        self.doubled.get().map(|key| &**key)
    }

    /// Nobody writes from now on, but those who are inside and those who share the tree already.
    pub(crate) fn stop(&self) {
        self.version.fetch_or(STOPPED, Ordering::SeqCst);
    }

    /// Rows are written again.
    pub(crate) fn resume(&self) {
        self.version.fetch_and(!STOPPED, Ordering::SeqCst);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.version.load(Ordering::SeqCst) & STOPPED != 0
    }

    /// Keeps definitions off until [`unshare`](Self::unshare), unless one is under way.
    pub(crate) fn try_share(&self) -> bool {
        self.shares.fetch_add(1, Ordering::SeqCst);
        if !self.is_stopped() {
            return true;
        }
        self.shares.fetch_sub(1, Ordering::SeqCst);
        false
    }

    /// Whether a definition may wait for it.
    pub(crate) fn unshare(&self) -> bool {
        self.shares.fetch_sub(1, Ordering::SeqCst);
        self.is_stopped()
    }

    pub(crate) fn shares(&self) -> u32 {
        self.shares.load(Ordering::SeqCst)
    }

    /// Whether the log takes the rows. Else every checkpoint takes the table for an empty one.
    #[inline]
    pub(crate) fn is_logged(&self) -> bool {
        self.logged
    }

    /// Whether the rows of `object` are still here: not truncated, not dropped.
    #[inline]
    pub(super) fn check_current(&self, object: ObjectId) -> Result<(), Refusal> {
        if self.object() != Some(object) {
            return Err(Refusal::Gone);
        }
        Ok(())
    }

    /// Latches the leaf that holds `key`, exclusive.
    pub(crate) fn latch_exclusive<'e>(
        &self,
        trees: &'e Trees,
        recorder: &Recorder,
        hint: Option<&Hint>,
        (key_head, key): (u64, &[u8]),
        object: ObjectId,
    ) -> Result<(LeafId, ExclusiveGuard<'e, LeafState>), Refusal> {
        self.check_current(object)?;
        let mut hops = 0;
        let mut id = self.find_from(trees, recorder, hint, key_head, key);
        loop {
            let leaf = trees.leaves.get(id.0);
            let state = leaf.latch.exclusive(recorder, LatchClass::Leaf);
            if state.covers(object, key_head, key) || planted(Fault::FencesUnchecked) {
                leaf.touch();
                return Ok((id, state));
            }
            id = match self.right_of(&state, object, key_head, key, &mut hops)? {
                Some(next) => next,
                None => {
                    drop(state);
                    self.descend(trees, recorder, key_head, key)
                }
            };
        }
    }

    /// The leaf of a key by the hint, or if it tells of another one by the way from the root.
    #[inline]
    pub(super) fn find_from(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        hint: Option<&Hint>,
        key_head: u64,
        key: &[u8],
    ) -> LeafId {
        match hint {
            Some(hint) if hint.may_hold(key_head) => hint.leaf,
            _ => self.descend(trees, recorder, key_head, key),
        }
    }

    /// Latches the leaf that holds `key`, shared.
    pub(crate) fn latch_shared<'e>(
        &self,
        trees: &'e Trees,
        recorder: &Recorder,
        key: &[u8],
        object: ObjectId,
    ) -> Result<(LeafId, SharedGuard<'e, LeafState>), Refusal> {
        self.check_current(object)?;
        let key_head = head(key);
        let mut hops = 0;
        let mut id = self.descend(trees, recorder, key_head, key);
        loop {
            let leaf = trees.leaves.get(id.0);
            let state = leaf.latch.shared(recorder, LatchClass::Leaf);
            if state.covers(object, key_head, key) {
                leaf.touch();
                return Ok((id, state));
            }
            id = match self.right_of(&state, object, key_head, key, &mut hops)? {
                Some(next) => next,
                None => {
                    drop(state);
                    self.descend(trees, recorder, key_head, key)
                }
            };
        }
    }

    /// Where to go from a leaf that does not hold the key: right, or (`None`) back to the root.
    fn right_of(
        &self,
        state: &LeafState,
        object: ObjectId,
        key_head: u64,
        key: &[u8],
        hops: &mut usize,
    ) -> Result<Option<LeafId>, Refusal> {
        self.check_current(object)?;
        *hops += 1;
        let to_the_right = state.object == Some(object) && state.ends_at_or_below(key_head, key);
        Ok(state.next.filter(|_| to_the_right && *hops <= HOPS_MAX))
    }

    /// Tells the inner nodes that the keys from `separator` on are in `leaf`: the second half of
    /// a split. Does nothing if the table was truncated or dropped since.
    pub(crate) fn link(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        object: ObjectId,
        separator: &[u8],
        leaf: LeafId,
    ) {
        let _structure = lock_counted(&self.structure, recorder, LatchClass::TreeStructure);
        if self.object() != Some(object) {
            return;
        }
        let key_head = head(separator);
        let mut id = self.root_with_space(trees, recorder);
        loop {
            let node = trees.inners.get(id);
            let index = node.search(key_head, separator);
            if node.level() == 1 {
                let _version = node.version.write(recorder);
                node.insert(index + 1, separator, leaf.0);
                return;
            }
            let child = node.child(index);
            if trees.inners.get(child).has_space() {
                id = child;
            } else {
                split_inner(trees, recorder, node, index);
            }
        }
    }

    /// The root, made one level higher if it is full.
    fn root_with_space(&self, trees: &Trees, recorder: &Recorder) -> u32 {
        let old = self.root.load(Ordering::Acquire);
        let node = trees.inners.get(old);
        if node.has_space() {
            return old;
        }
        let id = trees.inners.add();
        let root = trees.inners.get(id);
        {
            let _version = root.version.write(recorder);
            root.reset(node.level() + 1);
            root.insert(0, &[], old);
        }
        self.root.store(id, Ordering::Release);
        id
    }

    /// Empties the tree and makes it the tree of `object`, or of a dropped table. The frames,
    /// slots and places of the old leaves are free afterwards.
    pub(crate) fn clear(&self, trees: &Trees, recorder: &Recorder, object: Option<ObjectId>) {
        let root = empty_root(trees, object, self.logged);
        self.replace(trees, recorder, object, root);
    }

    /// Takes the leaves of `fresh`, which has none afterwards, in place of its own. Nobody else knows
    /// `fresh`.
    pub(crate) fn take_over(&self, trees: &Trees, recorder: &Recorder, fresh: &Tree) {
        let object = fresh.object();
        let root = InnerId(fresh.root.load(Ordering::Acquire));
        fresh.object.store(None, Ordering::Release);
        fresh.root.store(empty_root(trees, None, fresh.logged).0, Ordering::Release);
        self.replace(trees, recorder, object, root);
    }

    fn replace(&self, trees: &Trees, recorder: &Recorder, object: Option<ObjectId>, root: InnerId) {
        let (old_object, old_root) = {
            let _structure = lock_counted(&self.structure, recorder, LatchClass::TreeStructure);
            let old = (self.object(), self.root.load(Ordering::Acquire));
            self.object.store(object, Ordering::Release);
            self.root.store(root.0, Ordering::Release);
            old
        };
        let (nodes, first_leaf) = inner_nodes(trees, old_root);
        let mut next = Some(first_leaf);
        while let Some(id) = next {
            let mut state = trees.leaves.get(id.0).latch.exclusive(recorder, LatchClass::Leaf);
            if state.object != old_object {
                break;
            }
            next = state.next;
            if let Some(range) = &state.range {
                trees.ranges.retire(range);
            }
            trees.retire_leaf(&mut state);
            drop(state);
            trees.leaves.give_back(id.0);
        }
        for node in nodes {
            trees.inners.give_back(node);
        }
        self.versions.clear(&trees.old_versions);
    }
}

/// A root with one leaf that holds all keys of `object`; for no object the root that all dropped
/// tables share, which leads to the leaf of none.
fn empty_root(trees: &Trees, object: Option<ObjectId>, logged: bool) -> InnerId {
    if object.is_none() {
        return InnerId(0);
    }
    let leaf = trees.leaves.add();
    {
        let mut state = trees.leaves.get(leaf).latch.exclusive(&trees.recorder, LatchClass::Leaf);
        let range = object.and_then(|object| trees.first_range(object, logged));
        *state = LeafState { object, logged, range, ..LeafState::default() };
    }
    let id = trees.inners.add();
    let node = trees.inners.get(id);
    let _version = node.version.write(&trees.recorder);
    node.reset(1);
    node.insert(0, &[], leaf);
    InnerId(id)
}

/// Moves the upper half of `parent`'s child `index` into a new node right of it. The new node is
/// complete before the parent names it, and the child is shortened last: a reader finds every key
/// at every moment.
fn split_inner(trees: &Trees, recorder: &Recorder, parent: &InnerNode, index: usize) {
    let child = trees.inners.get(parent.child(index));
    let count = child.len();
    {
        let _version = child.version.write(recorder);
        child.truncate(count);
    }
    if child.has_space() {
        return;
    }
    let middle = count / 2;
    let id = trees.inners.add();
    let right = trees.inners.get(id);
    {
        let _version = right.version.write(recorder);
        right.reset(child.level());
        for from in middle..count {
            let separator = if from == middle { Vec::new() } else { child.separator(from) };
            right.insert(from - middle, &separator, child.child(from));
        }
    }
    let separator = child.separator(middle);
    {
        let _version = parent.version.write(recorder);
        parent.insert(index + 1, &separator, id);
    }
    let _version = child.version.write(recorder);
    child.truncate(middle);
}

/// All inner nodes below `root`, itself included, and the first leaf.
fn inner_nodes(trees: &Trees, root: u32) -> (Vec<u32>, LeafId) {
    let mut nodes = vec![root];
    let mut next = 0;
    let mut first_leaf = LeafId(0);
    while next < nodes.len() {
        let node = trees.inners.get(nodes[next]);
        if node.level() == 1 {
            if first_leaf == LeafId(0) {
                first_leaf = LeafId(node.child(0));
            }
        } else {
            nodes.extend((0..node.len()).map(|index| node.child(index)));
        }
        next += 1;
    }
    (nodes, first_leaf)
}
