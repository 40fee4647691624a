//! Key strategies: where a generated key comes from, how far it reaches, and why it is unique.
//!
//! A session owns one [`KeyGenerator`] for each column with a key strategy. Most strategies number
//! their rows from a *lease*: the engine hands out ranges of a durable 64-bit counter that belongs
//! to the column; no number is ever in two ranges, also not after a crash. What follows is the
//! same for all of them: keys differ because the numbers differ and the mapping from number to key
//! is one to one. Numbers that a session leased and did not use can be given back for a later session of
//! the process; those that a crash takes are lost: keys have gaps.
//!
//! | strategy | type | key | range, then [`TypeError::KeysExhausted`] |
//! |---|---|---|---|
//! | `identity` | any integer | start + number | up to the type's largest value |
//! | `session-offset` | bigint | range x 10^10 + n | 922,337,203 ranges of 10^10 keys |
//! | `node-offset` | bigint | node x 10^14 + number | nodes 0 to 92,232, each 10^14 rows |
//! | `bit-reversed` | bigint | the number's 63 bits, reversed | 2^63 rows |
//! | `hash-prefix` | bigint | 8 bits of hash, then 55 bits of number | 2^55 rows |
//! | `sequential-guid` | uuid | 64 bits of number, then random bits | 2^64 - 1 rows |
//! | `uuid-v7` | uuid | milliseconds, then random bits (RFC 9562) | until the year 10889 |
//! | `uuid-v4` | uuid | 122 random bits (RFC 9562) | none; unique by chance |
//!
//! Each family has its own file, where the layout and the reason for uniqueness stand.

mod counter;
mod session;
mod strategy;
mod uuids;

use std::ops::Range;

pub use session::SessionRange;
pub use strategy::{KeyStrategy, NODE_MAX, STRATEGY_NAMES};

use crate::{ColumnName, DataType, TypeError, Value};
use counter::Counter;
use session::SessionOffset;
use uuids::Uuids;

/// Numbers asked for in one lease, unless set otherwise: about the rows of one leaf or a few.
pub const BLOCK_ROWS_DEFAULT: u64 = 256;

/// Makes the keys of one column for one session. Not shared: sessions are kept apart by the ranges
/// that they lease.
#[derive(Debug)]
pub struct KeyGenerator {
    source: Source,
    strategy: KeyStrategy,
    data_type: DataType,
    block_rows: u64,
    column: ColumnName,
}

#[derive(Debug)]
enum Source {
    Counter(Counter),
    Session(SessionOffset),
    Uuids(Box<Uuids>),
}

/// What a generator leased and did not use. It must never be kept across a restart: it may be behind
/// what was used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unused {
    /// The range of a session-offset generator, for [`KeyGenerator::resume`].
    Range(SessionRange),
    /// Numbers of the column's counter, which a lease can hand out.
    Numbers(Range<u64>),
}

impl KeyGenerator {
    /// A generator for a column of `data_type`; `column` is for messages.
    ///
    /// # Errors
    /// [`TypeError::BadStrategy`] when the type or a parameter does not fit;
    /// [`TypeError::NoRandomness`].
    pub fn new(
        strategy: KeyStrategy,
        data_type: DataType,
        column: ColumnName,
    ) -> Result<KeyGenerator, TypeError> {
        strategy.check(data_type, column.clone())?;
        let source = match strategy {
            KeyStrategy::Identity { .. }
            | KeyStrategy::NodeOffset { .. }
            | KeyStrategy::BitReversed
            | KeyStrategy::HashPrefix => Source::Counter(Counter::new(strategy, data_type)),
            KeyStrategy::SessionOffset => Source::Session(SessionOffset::new()),
            KeyStrategy::UuidV4 | KeyStrategy::UuidV7 | KeyStrategy::SequentialGuid => {
                Source::Uuids(Box::new(Uuids::new(strategy)?))
            }
        };
        let block_rows = match strategy {
            // Drawn one by one, so that keys ascend in the order of the draws.
            KeyStrategy::Identity { strict: true, .. } | KeyStrategy::SessionOffset => 1,
            _ => BLOCK_ROWS_DEFAULT,
        };
        Ok(KeyGenerator { source, strategy, data_type, block_rows, column })
    }

    /// Sets how many numbers one lease asks for (at least 1). Strict identity and session offset
    /// always ask for 1.
    pub fn with_block_rows(mut self, block_rows: u64) -> KeyGenerator {
        if self.block_rows != 1 {
            self.block_rows = block_rows.max(1);
        }
        self
    }

    /// The strategy.
    pub fn strategy(&self) -> KeyStrategy {
        self.strategy
    }

    /// The next key. `lease` is called, rarely, with how many numbers are wanted; it returns a
    /// range of the column's durable counter, of that length or shorter, and empty only at its end.
    ///
    /// # Errors
    /// The error of `lease`; [`TypeError::KeysExhausted`] at the end of the range, for good.
    #[inline]
    pub fn next<E: From<TypeError>>(
        &mut self,
        lease: &mut dyn FnMut(u64) -> Result<Range<u64>, E>,
    ) -> Result<Value<'static>, E> {
        match &mut self.source {
            Source::Counter(counter) => {
                if let Some(key) = counter.take() {
                    return Ok(integer(self.data_type, key));
                }
            }
            Source::Session(session) => {
                if let Some(key) = session.take() {
                    return Ok(Value::Int64(key));
                }
            }
            Source::Uuids(uuids) => {
                if let Some(key) = uuids.take() {
                    return Ok(Value::Uuid(key));
                }
            }
        }
        self.next_after_lease(lease)
    }

    #[cold]
    fn next_after_lease<E: From<TypeError>>(
        &mut self,
        lease: &mut dyn FnMut(u64) -> Result<Range<u64>, E>,
    ) -> Result<Value<'static>, E> {
        let range = lease(self.block_rows)?;
        let key = if range.is_empty() {
            Err("all numbers of its 64-bit counter are handed out; go on in a new table".into())
        } else {
            match &mut self.source {
                Source::Counter(counter) => {
                    counter.refill(range).map(|key| integer(self.data_type, key))
                }
                Source::Session(session) => session.refill(range).map(Value::Int64),
                Source::Uuids(uuids) => Ok(Value::Uuid(uuids.refill(range))),
            }
        };
        key.map_err(|reason| self.exhausted(reason).into())
    }

    /// Takes out what a later session of the same process can go on with: the range of session offset, or
    /// the leased numbers that made no key. None where nothing was leased or all of it was used, and for
    /// uuids. The generator leases anew if it is used again.
    pub fn give_back(&mut self) -> Option<Unused> {
        match &mut self.source {
            Source::Counter(counter) => counter.give_back().map(Unused::Numbers),
            Source::Session(session) => session.give_back().map(Unused::Range),
            Source::Uuids(_) => None,
        }
    }

    /// Hands a session-offset generator the range that an earlier session of the same process and
    /// column gave back. Ignored by other strategies. A range must never be kept across a restart:
    /// its `next` may be behind what was used.
    pub fn resume(&mut self, range: SessionRange) {
        if let Source::Session(session) = &mut self.source {
            session.resume(range);
        }
    }

    #[cold]
    fn exhausted(&self, reason: Box<str>) -> TypeError {
        TypeError::KeysExhausted { column: self.column.clone(), strategy: self.strategy, reason }
    }
}

/// The key in its column's type; the counter has kept it within the type's range.
#[inline]
fn integer(data_type: DataType, key: i64) -> Value<'static> {
    match data_type {
        DataType::Int16 => Value::Int16(key as i16),
        DataType::Int32 => Value::Int32(key as i32),
        _ => Value::Int64(key),
    }
}
