//! From a key to its leaf, one change into it, and the split of a full leaf.

use std::collections::BTreeMap;

use shuttle::sync::RwLock;

use super::leaf::{Entry, Exclusive, LeafState, ROWS_MAX, Shared, Stamp};
use super::{CLEAN, Engine, Fault, Key, LeafId, Lsn, Value};

/// The inner nodes: which leaf begins at which key. A new sibling comes here late, with [`link`]
/// (`Tree::link`); until then it is found over `next`.
pub struct Tree {
    pub inner: RwLock<BTreeMap<Key, LeafId>>,
}

/// What has to be done, outside of latches, before another try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blocked {
    Load(LeafId),
    Transaction(usize),
}

/// A new leaf of which the inner nodes do not know yet.
struct HalfSplit {
    separator: Key,
    leaf: LeafId,
}

impl Tree {
    pub fn new(lows: &[(Key, LeafId)]) -> Tree {
        Tree { inner: RwLock::new(lows.iter().copied().collect()) }
    }

    pub fn descend(&self, key: Key) -> LeafId {
        let inner = self.inner.read().expect("held for a moment");
        *inner.range(..=key).next_back().expect("the first leaf begins at 0").1
    }
}

/// A latched leaf in which a change is being placed.
pub struct Placing<'e> {
    engine: &'e Engine,
    place: usize,
    pub id: LeafId,
    pub leaf: Exclusive<'e>,
    half: Option<HalfSplit>,
}

impl Engine {
    pub fn latch_exclusive(&self, key: Key) -> (LeafId, Exclusive<'_>) {
        let mut id = self.tree.descend(key);
        loop {
            let leaf = self.leaves.exclusive(id);
            if leaf.covers(key) {
                return (id, leaf);
            }
            id = self.next_of(&leaf, key);
        }
    }

    pub fn latch_shared(&self, key: Key) -> Shared<'_> {
        let mut id = self.tree.descend(key);
        loop {
            let leaf = self.leaves.shared(id);
            if leaf.covers(key) {
                return leaf;
            }
            id = self.next_of(&leaf, key);
        }
    }

    /// Where to go from a leaf that does not hold the key: right, or from one that is gone back to
    /// the inner nodes.
    fn next_of(&self, leaf: &LeafState, key: Key) -> LeafId {
        if !leaf.is_used {
            return self.tree.descend(key);
        }
        assert!(leaf.ends_at_or_below(key), "the search is left of the key, or there");
        leaf.next.expect("a leaf that ends has a neighbour")
    }

    pub fn link(&self, separator: Key, leaf: LeafId) {
        let mut inner = self.tree.inner.write().expect("held for a moment");
        inner.insert(separator, leaf);
    }

    /// Puts or removes (`None`) a row, whatever is there; returns where its record ends, or none
    /// if there was nothing to remove.
    pub fn write(&self, place: usize, key: Key, value: Option<Value>) -> Option<Lsn> {
        loop {
            let outcome = self.placing(place, key, |placing| placing.change(key, value));
            match outcome {
                Ok(Some(lsn)) => {
                    self.log.fill(lsn, vec![(key, value)]);
                    self.log.complete(place);
                    return Some(lsn + 1);
                }
                Ok(None) => return None,
                Err(blocked) => self.unblock(blocked),
            }
        }
    }

    /// Latches the leaf of `key`, lets `work` change it, and tells the inner nodes of a split
    /// after the latch is let go.
    pub fn placing<T>(
        &self,
        place: usize,
        key: Key,
        work: impl FnOnce(&mut Placing<'_>) -> Result<T, Blocked>,
    ) -> Result<T, Blocked> {
        let (id, leaf) = self.latch_exclusive(key);
        let mut placing = Placing { engine: self, place, id, leaf, half: None };
        let result = work(&mut placing);
        let Placing { leaf, half, .. } = placing;
        drop(leaf);
        if let Some(half) = half {
            self.link(half.separator, half.leaf);
        }
        result
    }

    pub fn unblock(&self, blocked: Blocked) {
        match blocked {
            Blocked::Load(id) => self.load_leaf(id),
            Blocked::Transaction(transaction) => self.transactions.wait(transaction),
        }
    }
}

impl<'e> Placing<'e> {
    pub fn rows(&mut self) -> &mut Vec<Entry> {
        self.leaf.rows.as_mut().expect("seen by `find` under this latch")
    }

    /// The committed row of the key; an intent on it is folded, or refuses.
    pub fn find(&mut self, key: Key) -> Result<Option<usize>, Blocked> {
        let id = self.id;
        let engine = self.engine;
        let rows = self.leaf.rows.as_mut().ok_or(Blocked::Load(id))?;
        engine.fold_key(rows, key);
        let is_key = |entry: &Entry| entry.key == key;
        for entry in rows.iter().filter(|entry| is_key(entry)) {
            if let Stamp::Intent { transaction, .. } = entry.stamp {
                return Err(Blocked::Transaction(transaction));
            }
        }
        Ok(rows.iter().position(is_key))
    }

    /// The order of an insert: check, make dirty, make space, reserve, place.
    fn change(&mut self, key: Key, value: Option<Value>) -> Result<Option<Lsn>, Blocked> {
        let found = self.find(key)?;
        if value.is_none() && found.is_none() {
            return Ok(None);
        }
        self.make_dirty();
        if let (Some(_), None) = (value, found) {
            self.make_space(key);
        }
        let lsn = self.engine.log.reserve(self.place);
        let stamp = Stamp::Committed(lsn);
        let rows = self.rows();
        match (value, found) {
            (Some(value), None) => rows.push(Entry { stamp, key, value }),
            (Some(value), Some(index)) => rows[index] = Entry { stamp, key, value },
            (None, Some(index)) => drop(rows.remove(index)),
            (None, None) => {}
        }
        Ok(Some(lsn))
    }

    /// Makes sure that the next checkpoint images the leaf.
    pub fn make_dirty(&mut self) {
        if self.leaf.dirty_epoch == CLEAN {
            let epoch = self.engine.dirty.epoch();
            self.leaf.dirty_epoch = epoch;
            if !self.engine.planted(Fault::DirtyNoList) {
                self.engine.dirty.push(self.place, epoch, self.id);
            }
        }
    }

    /// Splits a full leaf, and goes on in the half that holds the key.
    pub fn make_space(&mut self, key: Key) {
        if self.rows().len() < ROWS_MAX {
            return;
        }
        let (half, right) = self.split();
        if right.low <= key {
            self.id = half.leaf;
            self.leaf = right;
        }
        self.half = Some(half);
    }

    /// The sibling has epoch, list and image before the old leaf's latch is let go.
    fn split(&mut self) -> (HalfSplit, Exclusive<'e>) {
        let mut keys: Vec<Key> = self.rows().iter().map(|entry| entry.key).collect();
        keys.sort_unstable();
        keys.dedup();
        let boundary = keys[keys.len() / 2];
        let (stay, moved) = self.rows().iter().partition(|entry| entry.key < boundary);
        *self.rows() = stay;
        let engine = self.engine;
        let left = &mut *self.leaf;
        let id = engine.leaves.add();
        let mut right = engine.leaves.exclusive(id);
        right.is_used = true;
        right.low = boundary;
        right.high = left.high.replace(boundary);
        right.next = left.next.replace(id);
        right.image = left.image.clone().filter(|_| !engine.planted(Fault::SplitNoShare));
        let no_epoch = engine.planted(Fault::SplitNoEpoch);
        right.dirty_epoch = if no_epoch { engine.dirty.epoch() } else { left.dirty_epoch };
        engine.dirty.push(self.place, right.dirty_epoch, id);
        right.rows = Some(moved);
        (HalfSplit { separator: boundary, leaf: id }, right)
    }
}
