//! The word of a permit to be inside the engine: whose it is, and what its owner does.
//!
//! | permit word | meaning |
//! |---|---|
//! | 0 | nobody's |
//! | bits 17-63 | ticket of its owner |
//! | bits 1-16 | entries of this owner: tells one who is in and out from one who is away |
//! | bit 0 | the owner is inside |

use std::num::NonZero;
use std::sync::atomic::Ordering::{self, Relaxed};

use crate::sync::AtomicU64;

const INSIDE: u64 = 1;
const COUNT_SHIFT: u32 = 1;
const COUNT_MASK: u64 = 0xFFFF << COUNT_SHIFT;
const TICKET_SHIFT: u32 = 17;

/// Whose a permit is and what its owner does, as in the table above. None: it is nobody's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owned(NonZero<u64>);

impl Owned {
    /// An owner who has just got a permit, and is inside.
    pub(crate) fn first_entry(ticket_id: u64) -> Owned {
        Owned(NonZero::<u64>::MIN | ticket_id << TICKET_SHIFT)
    }

    /// The same owner, inside once more.
    pub(crate) fn next_entry(self) -> Owned {
        let word = self.0.get();
        let count = word.wrapping_add(1 << COUNT_SHIFT) & COUNT_MASK;
        Owned(NonZero::<u64>::MIN | (word & !COUNT_MASK) | count)
    }

    /// The same owner, outside.
    pub(crate) fn outside(self) -> Option<Owned> {
        NonZero::new(self.0.get() & !INSIDE).map(Owned)
    }

    fn is_inside(self) -> bool {
        self.0.get() & INSIDE != 0
    }

    /// Entries since the owner got the permit, counted in 16 bits.
    pub(crate) fn entries(self) -> u64 {
        (self.0.get() & COUNT_MASK) >> COUNT_SHIFT
    }
}

pub(crate) fn is_inside(owned: Option<Owned>) -> bool {
    owned.is_some_and(Owned::is_inside)
}

/// The word of a permit, which is nobody's at first.
#[derive(Debug)]
pub(crate) struct PermitWord(AtomicU64);

impl PermitWord {
    pub(crate) fn new() -> PermitWord {
        PermitWord(AtomicU64::new(0))
    }

    fn raw(owned: Option<Owned>) -> u64 {
        owned.map_or(0, |owned| owned.0.get())
    }

    pub(crate) fn load(&self, order: Ordering) -> Option<Owned> {
        NonZero::new(self.0.load(order)).map(Owned)
    }

    #[inline]
    pub(crate) fn store(&self, owned: Option<Owned>, order: Ordering) {
        self.0.store(Self::raw(owned), order);
    }

    /// Whether the word was `before`, and is `after` now.
    #[inline]
    pub(crate) fn replace(
        &self,
        before: Option<Owned>,
        after: Option<Owned>,
        order: Ordering,
    ) -> bool {
        self.0.compare_exchange(Self::raw(before), Self::raw(after), order, Relaxed).is_ok()
    }
}
