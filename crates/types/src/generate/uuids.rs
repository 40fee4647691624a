//! UUID keys: random (v4), by the clock (v7), by a durable counter (sequential-guid, v8).
//!
//! All three order by their 16 bytes as written, which is how this store compares UUIDs.
//!
//! - **uuid-v4**: 122 random bits from ChaCha8, seeded by the operating system once for each
//!   session; no system call for a row. Unique by chance: a billion keys collide with probability
//!   10^-19. The classic random key.
//! - **uuid-v7** (RFC 9562): 48 bits of Unix milliseconds, 4 of version, 12 + 62 bits that are
//!   random at the first key of a millisecond (the topmost 0, as space to count) and then rise by
//!   a random step of 1 to 2^32. Keys of one session always ascend, also when the clock goes back:
//!   the last millisecond is then kept. When the 74 bits would overflow, the millisecond is raised.
//!   Keys of different sessions differ by chance, within one millisecond, in 73 random bits.
//! - **sequential-guid** (version 8 of RFC 9562, free layout):
//!
//!   ```text
//!   bits  48  number, bits 63 to 16
//!          4  version, 8
//!         12  number, bits 15 to 4
//!          2  variant, 0b10
//!          4  number, bits 3 to 0
//!         58  random, drawn once for each session
//!   ```
//!
//!   The leased number is the high part, so keys ascend as the numbers do, over all sessions and
//!   restarts, and two keys of one column never share a number. The random part keeps the keys of
//!   different databases apart.

use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use rand::rngs::{ChaCha8Rng, SysRng};
use rand::{Rng, SeedableRng};
use uuid::Uuid;

use crate::{KeyStrategy, TypeError};

const VARIANT: u128 = 0b10 << 62;
const VERSION_4: u128 = 4 << 76;
const VERSION_7: u128 = 7 << 76;
const VERSION_8: u128 = 8 << 76;
/// The 12 + 62 bits below the version and beside the variant.
const TAIL_BITS: u32 = 74;
const MILLIS_MAX: u64 = (1 << 48) - 1;

#[derive(Debug)]
pub(super) struct Uuids {
    random: ChaCha8Rng,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Random,
    /// The last key's milliseconds and tail.
    Clock {
        millis: u64,
        tail: u128,
    },
    /// The numbers left, and this session's random part.
    Sequential {
        next: u64,
        end: u64,
        low_bits: u128,
    },
}

impl Uuids {
    pub(super) fn new(strategy: KeyStrategy) -> Result<Uuids, TypeError> {
        let mut random = ChaCha8Rng::try_from_rng(&mut SysRng)
            .map_err(|error| TypeError::NoRandomness { reason: error.to_string().into() })?;
        let kind = match strategy {
            KeyStrategy::UuidV4 => Kind::Random,
            KeyStrategy::UuidV7 => Kind::Clock { millis: 0, tail: 0 },
            _ => {
                let low_bits = u128::from(random.next_u64() >> 6);
                Kind::Sequential { next: 0, end: 0, low_bits }
            }
        };
        Ok(Uuids { random, kind })
    }

    #[inline]
    pub(super) fn take(&mut self) -> Option<Uuid> {
        match &mut self.kind {
            Kind::Random => {
                let high = u128::from(self.random.next_u64()) << 64;
                let bits = high | u128::from(self.random.next_u64());
                Some(Uuid::from_u128(bits & !(0xF << 76) & !(0b11 << 62) | VERSION_4 | VARIANT))
            }
            Kind::Clock { .. } => Some(self.take_at(unix_millis())),
            Kind::Sequential { next, end, low_bits } => {
                if next == end {
                    return None;
                }
                let number = u128::from(*next);
                *next += 1;
                let bits = (number >> 16) << 80
                    | VERSION_8
                    | ((number >> 4) & 0xFFF) << 64
                    | VARIANT
                    | (number & 0xF) << 58
                    | *low_bits;
                Some(Uuid::from_u128(bits))
            }
        }
    }

    /// The next v7 key when the clock says `now` milliseconds.
    fn take_at(&mut self, now: u64) -> Uuid {
        let Kind::Clock { millis, tail } = &mut self.kind else { return Uuid::nil() };
        if now > *millis {
            *millis = now.min(MILLIS_MAX);
            *tail = fresh_tail(&mut self.random);
        } else {
            *tail += 1 + u128::from(self.random.next_u32());
            if *tail >> TAIL_BITS != 0 {
                *millis = (*millis + 1).min(MILLIS_MAX);
                *tail = fresh_tail(&mut self.random);
            }
        }
        let bits = u128::from(*millis) << 80
            | VERSION_7
            | (*tail >> 62) << 64
            | VARIANT
            | *tail & ((1 << 62) - 1);
        Uuid::from_u128(bits)
    }

    /// Starts a new block (not empty) and takes its first key. Only sequential-guid comes here.
    pub(super) fn refill(&mut self, range: Range<u64>) -> Uuid {
        if let Kind::Sequential { next, end, .. } = &mut self.kind {
            *next = range.start;
            *end = range.end;
        }
        self.take().unwrap_or_else(Uuid::nil)
    }
}

/// 73 random bits: the topmost of the 74 stays free for counting.
fn fresh_tail(random: &mut ChaCha8Rng) -> u128 {
    (u128::from(random.next_u64()) << 64 | u128::from(random.next_u64())) >> (128 - 73)
}

fn unix_millis() -> u64 {
    // A clock before 1970 counts as 1970: keys then only count up.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(MILLIS_MAX)
}
