//! Random keys drawn some inserts ahead. A random key leads to a leaf that is in no cache; a
//! session that knows its next keys asks for their leaves while it inserts the present row.
//!
//! Only where the engine draws the keys and a draw costs nothing durable, which is uuid-v4: a key
//! that was drawn and never used is gone, and nobody misses it.

use std::num::NonZero;

use onrush_waits::Recorder;
use uuid::Uuid;

use crate::catalog::TableEntry;
use crate::engine::Engine;
use crate::tree::{Hint, LeafPrefetch};

/// Keys drawn ahead: as many as a way has steps, so that each row moves every key one step on.
const KEYS: usize = 3;

/// See the module.
#[derive(Default)]
pub(super) struct KeyPrefetch {
    /// The key that is used next stands at `next`, the one after it behind, around the end. None
    /// where no key has been drawn yet.
    keys: [Option<Drawn>; KEYS],
    next: usize,
}

struct Drawn {
    /// A uuid stands in the bytes of a key as it is written.
    key: Uuid,
    way: LeafPrefetch,
}

impl KeyPrefetch {
    /// Takes the key drawn longest ago, with the way to it, in exchange for `fresh`; all others go
    /// one step on. None until as many have been drawn as are kept.
    #[inline]
    pub(super) fn exchange(
        &mut self,
        fresh: Uuid,
        table: &TableEntry,
        engine: &Engine,
        recorder: &Recorder,
    ) -> Option<(Uuid, Option<Hint>)> {
        let taken = self.keys[self.next].replace(Drawn { key: fresh, way: LeafPrefetch::Root });
        self.next = (self.next + 1) % KEYS;
        // As long as no row has told how long they are, only the fingerprints are asked for.
        let entry_bytes = table.entry_bytes().map_or(0, NonZero::get);
        for Drawn { key, way } in self.keys.iter_mut().flatten() {
            *way = way.step(&table.tree, engine, recorder, key.as_bytes(), entry_bytes);
        }
        taken.map(|Drawn { key, way }| (key, way.hint(key.as_bytes())))
    }
}
