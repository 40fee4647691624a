//! What a large transaction replaces of its own: needed by its savepoints, and by views of it that go on while
//! it makes changes.
//!
//! Kept in a tree of its own that nobody else knows and that is not logged: its leaves go to disk when memory
//! runs short, and a crash forgets them. The key of a version is the object, the key of the row and the piece
//! that replaced it, so the versions of a row stand side by side, the oldest first.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::{Blocked, Refusal, Seat, Tree, Trees};
use crate::units::ObjectId;

/// Value bytes, or none where the transaction has removed the key.
pub(crate) type OwnValue = Option<Box<[u8]>>;

/// See the module.
#[derive(Default)]
pub(crate) struct OwnVersions {
    /// Set when the first version is kept.
    tree: OnceLock<(ObjectId, Arc<Tree>)>,
    /// First pieces that views do not see, and how many views each has.
    views: Mutex<BTreeMap<u32, usize>>,
}

/// What a value begins with where the key was removed, or had a row.
const REMOVED: u8 = 0;
const ROW: u8 = 1;

fn key_of((object, key): (ObjectId, &[u8]), until: u32) -> Vec<u8> {
    [&object.number().to_be_bytes(), key, &until.to_be_bytes()].concat()
}

impl OwnVersions {
    /// A view that sees the pieces below `before`.
    pub(crate) fn open_view(&self, before: u32) {
        *self.views.lock().entry(before).or_insert(0) += 1;
    }

    pub(crate) fn close_view(&self, before: u32) {
        let mut views = self.views.lock();
        if let Some(count) = views.get_mut(&before) {
            *count -= 1;
            if *count == 0 {
                views.remove(&before);
            }
        }
    }

    /// The highest piece that some view does not see.
    pub(crate) fn newest_view(&self) -> u32 {
        self.views.lock().last_key_value().map_or(0, |(before, _)| *before)
    }

    /// Makes the place where versions are kept.
    pub(crate) fn prepare<E>(
        &self,
        trees: &Trees,
        new_object: impl FnOnce() -> Result<ObjectId, E>,
    ) -> Result<(), E> {
        if self.tree.get().is_none() {
            let object = new_object()?;
            let _ = self.tree.set((object, Arc::new(Tree::new(trees, object, false))));
        }
        Ok(())
    }

    /// Keeps what `piece` has placed at a key, and `until` replaces. Once [prepared](Self::prepare).
    pub(crate) fn keep(
        &self,
        trees: &Trees,
        seat: &mut Seat<'_>,
        at: (ObjectId, &[u8]),
        (piece, until): (u32, u32),
        value: &OwnValue,
    ) -> Result<(), Refusal> {
        let Some((object, tree)) = self.tree.get() else { return Err(Refusal::Gone) };
        let (kind, bytes) = value.as_ref().map_or((REMOVED, &[][..]), |value| (ROW, value));
        let stored = [&[kind][..], &piece.to_le_bytes(), bytes].concat();
        tree.put_unlogged(trees, seat, *object, (&key_of(at, until), &stored))
    }

    /// What the transaction had at a key before piece `before`, and which piece had placed it, if a version of
    /// it was kept. None: it has not been replaced since, or there was nothing.
    pub(crate) fn before(
        &self,
        trees: &Trees,
        at: (ObjectId, &[u8]),
        before: u32,
    ) -> Result<Option<(u32, OwnValue)>, Blocked> {
        let Some((object, tree)) = self.tree.get() else { return Ok(None) };
        let low = key_of(at, before);
        let found = match tree.first_from(trees, &trees.recorder, *object, &low) {
            Ok(found) => found,
            Err(Refusal::Blocked(blocked)) => return Err(blocked),
            Err(_) => None,
        };
        let of_key = |key: &[u8]| key[..key.len() - 4] == low[..low.len() - 4];
        let Some((_, stored)) = found.filter(|(key, _)| of_key(key)) else { return Ok(None) };
        let Some((kind, rest)) = stored.split_first() else { return Ok(None) };
        let Some((piece, value)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let piece = u32::from_le_bytes(*piece);
        Ok((piece < before).then(|| (piece, (*kind == ROW).then(|| value.into()))))
    }

    /// Nobody needs any of it: the transaction has ended.
    pub(crate) fn clear(&self, trees: &Trees) {
        if let Some((_, tree)) = self.tree.get() {
            tree.clear(trees, &trees.recorder, None);
        }
    }
}
