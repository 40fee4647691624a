//! What connections take of memory, each and all together.
//!
//! A connection has a place of a fixed size, buffers, messages that are longer than those usually are, what it
//! keeps for its client (prepared statements, portals), and a copy on its way. It counts in steps, so that what it
//! does all the time touches nothing that others touch.
//!
//! Invariant: what a client decides on (a long message, another statement, a portal, a copy) is refused where it does
//! not fit; what follows from it (buffers of bounded size) is counted without being asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Result, SqlError, state};

/// What a connection takes that does nothing: its task, the engine's session with its recorder, its settings.
const PLACE_BYTES: usize = 48 << 10;

/// What a connection counts at a time.
const STEP_BYTES: usize = 16 << 10;

/// Of all connections.
pub(crate) struct ConnectionMemory {
    used: AtomicUsize,
    limit: usize,
}

/// The parts of what one connection takes, beside its place.
#[derive(Clone, Copy)]
pub(super) enum Part {
    /// Input and output.
    Buffers,
    /// A long message that is on its way.
    Message,
    /// What the text of a statement becomes when it is read.
    Text,
    /// Prepared statements.
    Statements,
    /// Plans that are remembered by their text.
    Known,
    /// Portals, with their parameters.
    Portals,
    /// Rows of a copy.
    Copy,
    /// Rows that cursors have come by and may go back to.
    Cursors,
}

const PARTS: usize = 8;

/// What the text of statements takes once it is read, about, by what was measured of statements with many values:
/// most for what stands between two values, little for what is quoted.
pub(super) fn parsed_bytes(text: &str) -> usize {
    const QUOTED_BYTES: usize = 2;
    const OTHER_BYTES: usize = 24;
    const SEPARATOR_BYTES: usize = 400;
    let mut is_quoted = false;
    let mut bytes = 0;
    for byte in text.bytes() {
        is_quoted ^= byte == b'\'';
        bytes += match byte {
            _ if is_quoted => QUOTED_BYTES,
            b',' | b'(' | b')' | b'=' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'|' => {
                SEPARATOR_BYTES
            }
            _ => OTHER_BYTES,
        };
    }
    bytes
}

/// What one connection takes. Dropped, it gives that back.
pub(super) struct Share {
    all: Arc<ConnectionMemory>,
    parts: [usize; PARTS],
    has: usize,
    counted: usize,
}

impl ConnectionMemory {
    pub(crate) fn new(limit: usize) -> Arc<ConnectionMemory> {
        Arc::new(ConnectionMemory { used: AtomicUsize::new(0), limit })
    }

    pub(crate) fn used_bytes(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn limit_bytes(&self) -> usize {
        self.limit
    }

    fn try_add(&self, bytes: usize) -> bool {
        let added = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added).is_ok()
    }
}

impl Share {
    /// The place of one more connection.
    pub(super) fn enter(all: &Arc<ConnectionMemory>) -> Result<Share> {
        let all = Arc::clone(all);
        let mut share = Share { all, parts: [0; PARTS], has: 0, counted: 0 };
        share.count(PLACE_BYTES, true)?;
        Ok(share)
    }

    /// A part takes so much now, if there is space for it.
    #[inline]
    pub(super) fn ask(&mut self, part: Part, bytes: usize) -> Result<()> {
        self.set(part, bytes, true)
    }

    /// A part takes so much now.
    #[inline]
    pub(super) fn note(&mut self, part: Part, bytes: usize) {
        // Nothing is asked for, so nothing is refused.
        let _ = self.set(part, bytes, false);
    }

    #[inline]
    fn set(&mut self, part: Part, bytes: usize, may_be_refused: bool) -> Result<()> {
        let before = self.parts[part as usize];
        if before != bytes {
            self.count(self.has - before + bytes, may_be_refused && bytes > before)?;
            self.parts[part as usize] = bytes;
        }
        Ok(())
    }

    fn count(&mut self, has: usize, may_be_refused: bool) -> Result<()> {
        let steps = has.next_multiple_of(STEP_BYTES);
        if steps > self.counted {
            let more = steps - self.counted;
            if !may_be_refused {
                self.all.used.fetch_add(more, Ordering::Relaxed);
            } else if !self.all.try_add(more) {
                return Err(self.no_space(has - self.has));
            }
            self.counted = steps;
        } else if self.counted - steps > STEP_BYTES {
            self.all.used.fetch_sub(self.counted - steps, Ordering::Relaxed);
            self.counted = steps;
        }
        self.has = has;
        Ok(())
    }

    #[cold]
    fn no_space(&self, more: usize) -> SqlError {
        let (used, limit) = (self.all.used_bytes(), self.all.limit);
        let message = format!(
            "out of memory: connections have {used} of the {limit} bytes that they may have, and \
             {more} more do not fit"
        );
        SqlError::new(state::OUT_OF_MEMORY, message).with_hint(
            "Send shorter messages, close prepared statements and portals that are not needed, or start the server \
             with a larger --connection-memory or --memory.",
        )
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.all.used.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_counted_and_what_does_not_is_refused_and_takes_nothing() {
        let all = ConnectionMemory::new(PLACE_BYTES + 4 * STEP_BYTES);
        let mut share = Share::enter(&all).unwrap();
        share.ask(Part::Statements, STEP_BYTES).unwrap();
        share.ask(Part::Portals, 2 * STEP_BYTES).unwrap();
        let full = all.used_bytes();
        assert_eq!(full, PLACE_BYTES + 3 * STEP_BYTES);
        let refused = share.ask(Part::Message, 2 * STEP_BYTES).unwrap_err();
        assert_eq!((refused.state, all.used_bytes()), ("53200", full));
        share.note(Part::Portals, 0);
        share.ask(Part::Message, 2 * STEP_BYTES).unwrap();
        drop(share);
        assert_eq!(all.used_bytes(), 0);
    }

    #[test]
    fn a_connection_without_space_for_its_place_does_not_come_in() {
        let all = ConnectionMemory::new(PLACE_BYTES);
        let first = Share::enter(&all).unwrap();
        assert!(Share::enter(&all).is_err());
        drop(first);
        assert!(Share::enter(&all).is_ok());
    }

    #[test]
    fn buffers_are_counted_without_being_asked_for() {
        let all = ConnectionMemory::new(PLACE_BYTES);
        let mut share = Share::enter(&all).unwrap();
        share.note(Part::Buffers, 100_000);
        assert!(all.used_bytes() > PLACE_BYTES + 100_000);
        share.note(Part::Buffers, 0);
        assert_eq!(all.used_bytes(), PLACE_BYTES);
    }
}
