//! Random keys drawn some inserts ahead. A random key leads to a leaf that is in no cache; a
//! session that knows its next keys asks for their leaves while it inserts the present row.
//!
//! Only where the engine draws the keys and a draw costs nothing durable, which is uuid-v4: a key
//! that was drawn and never used is gone, and nobody misses it.

use onrush_types::Value;
use onrush_waits::Recorder;

use crate::btree::{Approach, Hint};
use crate::catalog::TableEntry;
use crate::engine::Engine;

/// Keys drawn ahead: as many as a way has steps, so that each row moves every key one step on.
const KEYS: usize = 3;

/// See the module.
#[derive(Default)]
pub(super) struct Ahead {
    /// The key that is used next stands at `next`, the one after it behind, around the end.
    keys: [Drawn; KEYS],
    next: usize,
}

#[derive(Default)]
struct Drawn {
    /// NULL until a key has been drawn.
    key: Value<'static>,
    way: Approach,
}

impl Drawn {
    /// The bytes of the key; a uuid stands in a key as it is written.
    fn bytes(&self) -> Option<&[u8]> {
        match &self.key {
            Value::Uuid(key) => Some(key.as_bytes()),
            _ => None,
        }
    }

    #[inline]
    fn step(&mut self, table: &TableEntry, engine: &Engine, recorder: &Recorder) {
        if let Some(key) = self.bytes() {
            let way = self.way;
            self.way = way.step(&table.tree, engine, recorder, key, table.entry_bytes());
        }
    }
}

impl Ahead {
    /// Takes the key drawn longest ago, with the way to it, in exchange for `fresh`; all others go
    /// one step on. The first keys of a session come back as they were given.
    #[inline]
    pub(super) fn exchange(
        &mut self,
        fresh: Value<'static>,
        table: &TableEntry,
        engine: &Engine,
        recorder: &Recorder,
    ) -> (Value<'static>, Hint) {
        let fresh = Drawn { key: fresh, way: Approach::Root };
        let drawn = std::mem::replace(&mut self.keys[self.next], fresh);
        self.next = (self.next + 1) % KEYS;
        for drawn in &mut self.keys {
            drawn.step(table, engine, recorder);
        }
        match drawn.bytes() {
            Some(bytes) => {
                let hint = drawn.way.hint(bytes);
                (drawn.key, hint)
            }
            None => (Value::Default, Hint::NONE),
        }
    }
}
