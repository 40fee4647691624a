//! What stands in front of each row of a leaf or an image, and whose intents are.

use onrush_log::Lsn;

/// What stands in front of a row: the LSN of the record that wrote or removed it, or an intent of a
/// transaction that has not been resolved yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamp(u64);

const INTENT: u64 = 1 << 63;
/// The row is removed, or is to be.
const REMOVAL: u64 = 1 << 62;
/// Of an intent: its transaction is a large one.
const LARGE: u64 = 1 << 61;
const PIECE_BITS: u32 = 25;

/// Whose an intent is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// A transaction that is being committed, by its number: known only as long as the database is open.
    Small(u32),
    /// A large transaction, by the number that no other one ever has, and the piece of it.
    Large(LargeOwner),
}

/// A large transaction, and which of its pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LargeOwner {
    pub(crate) id: u64,
    pub(crate) piece: u32,
}

impl LargeOwner {
    /// No transaction has this number or a higher one.
    pub(crate) const IDS: u64 = 1 << (61 - PIECE_BITS);
    /// No piece has this number or a higher one.
    pub(crate) const PIECES: u32 = 1 << PIECE_BITS;
}

impl Stamp {
    /// Of a new row whose leaf stays latched until the row has its LSN.
    pub(crate) const PROVISIONAL: Stamp = Stamp(0);

    pub(crate) fn committed(lsn: Lsn) -> Stamp {
        debug_assert!(lsn.0 < REMOVAL);
        Stamp(lsn.0)
    }

    /// Of a row that the record at this LSN has removed.
    pub(crate) fn removed(lsn: Lsn) -> Stamp {
        debug_assert!(lsn.0 < REMOVAL);
        Stamp(REMOVAL | lsn.0)
    }

    /// An intent: to put this row, or (`removal`) to remove the key.
    pub(crate) fn intent(owner: Owner, removal: bool) -> Stamp {
        let owner = match owner {
            Owner::Small(number) => u64::from(number),
            Owner::Large(LargeOwner { id, piece }) => {
                debug_assert!(id < LargeOwner::IDS && piece < LargeOwner::PIECES);
                LARGE | id << PIECE_BITS | u64::from(piece)
            }
        };
        Stamp(INTENT | if removal { REMOVAL } else { 0 } | owner)
    }

    pub(crate) fn from_raw(raw: u64) -> Stamp {
        Stamp(raw)
    }

    pub(crate) fn raw(self) -> u64 {
        self.0
    }

    /// The LSN of a committed row.
    pub(crate) fn lsn(self) -> Option<Lsn> {
        (self.0 & (INTENT | REMOVAL) == 0).then_some(Lsn(self.0))
    }

    /// The LSN of a row or of its removal; none of an intent.
    pub(crate) fn decided_at(self) -> Option<Lsn> {
        (self.0 & INTENT == 0).then_some(Lsn(self.0 & !REMOVAL))
    }

    /// Whether it is of a removed row, or of an intent to remove one.
    pub(crate) fn is_removal(self) -> bool {
        self.0 & REMOVAL != 0
    }

    /// Whose intent it is, and whether it removes the key.
    pub(crate) fn as_intent(self) -> Option<(Owner, bool)> {
        (self.0 & INTENT != 0).then(|| (self.owner(), self.0 & REMOVAL != 0))
    }

    fn owner(self) -> Owner {
        if self.0 & LARGE == 0 {
            return Owner::Small(self.0 as u32);
        }
        let number = self.0 & (LARGE - 1);
        let piece = number as u32 & (LargeOwner::PIECES - 1);
        Owner::Large(LargeOwner { id: number >> PIECE_BITS, piece })
    }

    /// Whether both are intents of the same large transaction.
    pub(crate) fn is_intent_of_same(self, other: Stamp) -> bool {
        match (self.as_intent(), other.as_intent()) {
            (Some((Owner::Large(a), _)), Some((Owner::Large(b), _))) => a.id == b.id,
            _ => false,
        }
    }

    /// Whether it is the intent of a transaction that only memory knows.
    pub(crate) fn is_small_intent(self) -> bool {
        self.0 & (INTENT | LARGE) == INTENT
    }
}
