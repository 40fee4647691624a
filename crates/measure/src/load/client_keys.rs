//! Keys that the client brings along, as an application does that has its own.
//!
//! They come from the same generators as in Onrush, fed from one counter in memory: identity and sequential GUID draw
//! one number at a time, so that keys ascend over all sessions as they do where a server makes them.
//! A [`KeySpread`] then moves them: two of them make some key ranges hotter than others.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use onrush_types::generate::KeyGenerator;
use onrush_types::{ColumnName, KeyStrategy, TypeError, Value};

use uuid::Uuid;

use crate::classic_table::CLASSIC_TABLE;

/// Key ranges of a spread that is not even: 4,096, told apart by the first 12 bits of a UUID.
const RANGES: usize = 1 << RANGE_BITS;
const RANGE_BITS: u32 = 12;
/// Scatters ranks over the ranges, so that hot ones are not neighbours. Odd: each rank has its own range.
const RANGE_STEP: usize = 2_531;
/// Exponent of the zipfian spread, that of the YCSB benchmark.
const ZIPF_EXPONENT: f64 = 0.99;
/// One range in a hundred is hot.
const HOT_RANGES: u64 = RANGES as u64 / 100;
/// Customer numbers have at most ten digits: 33 bits, while there are no more rows than that.
const CUSTOMER_BITS: u32 = 33;

/// How the keys of a client lie in the key space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeySpread {
    /// As the generator makes them.
    #[default]
    Even,
    /// Random UUIDs; a range's share of them falls with its rank, by the exponent 0.99.
    Zipfian,
    /// Random UUIDs; nine of ten go to one hundredth of the key space.
    Hot,
    /// Numbers of at most ten digits, each once, in no order: those of customers.
    Scattered,
}

impl KeySpread {
    /// Why keys of this strategy cannot be spread so; None if they can.
    pub fn impossible(self, strategy: KeyStrategy) -> Option<&'static str> {
        match (self, strategy) {
            (KeySpread::Even, _)
            | (KeySpread::Zipfian | KeySpread::Hot, KeyStrategy::UuidV4)
            | (KeySpread::Scattered, KeyStrategy::Identity { .. }) => None,
            (KeySpread::Scattered, _) => Some("scattered keys are those of the key identity"),
            _ => Some("a zipfian or hot spread is one of the key uuid-v4"),
        }
    }
}

/// A key, as a number or as the bytes of a UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A `bigint`.
    Number(i64),
    /// A `uuid`.
    Uuid([u8; 16]),
}

impl Key {
    /// As a value of its column.
    #[inline]
    pub fn value(self) -> Value<'static> {
        match self {
            Key::Number(number) => Value::Int64(number),
            Key::Uuid(bytes) => Value::Uuid(Uuid::from_bytes(bytes)),
        }
    }

    /// Of a value of its column; None of any other value.
    #[inline]
    pub fn of(value: &Value<'_>) -> Option<Key> {
        match value {
            Value::Int64(number) => Some(Key::Number(*number)),
            Value::Uuid(uuid) => Some(Key::Uuid(uuid.into_bytes())),
            _ => None,
        }
    }
}

/// Where the generators of all sessions draw their numbers.
#[derive(Debug, Default)]
pub struct Numbers(AtomicU64);

impl Numbers {
    /// Numbers that nobody else gets.
    pub fn lease(&self, count: u64) -> Range<u64> {
        let first = self.0.fetch_add(count, Ordering::Relaxed);
        first..first + count
    }
}

/// Makes the keys of one session.
pub struct ClientKeys<'n> {
    generator: KeyGenerator,
    spread: KeySpread,
    numbers: &'n Numbers,
}

impl<'n> ClientKeys<'n> {
    /// Of a strategy, spread in a way that is possible for it.
    ///
    /// # Errors
    /// A parameter of the strategy out of its range; no randomness.
    pub fn new(
        strategy: KeyStrategy,
        spread: KeySpread,
        numbers: &'n Numbers,
    ) -> Result<Self, TypeError> {
        let column = ColumnName { table: CLASSIC_TABLE.into(), column: "c1".into() };
        let mut generator = KeyGenerator::new(strategy, strategy.natural_type(), column)?;
        if matches!(strategy, KeyStrategy::Identity { .. } | KeyStrategy::SequentialGuid) {
            generator = generator.with_block_rows(1);
        }
        Ok(ClientKeys { generator, spread, numbers })
    }

    /// The next key.
    ///
    /// # Errors
    /// The strategy has no more keys.
    #[inline]
    pub fn draw(&mut self) -> Result<Key, TypeError> {
        let numbers = self.numbers;
        let key = self.generator.next::<TypeError>(&mut |count| Ok(numbers.lease(count)))?;
        let key = match key {
            Value::Uuid(uuid) => Key::Uuid(*uuid.as_bytes()),
            other => Key::Number(other.as_i64().unwrap_or_default()),
        };
        Ok(match (self.spread, key) {
            (KeySpread::Zipfian, Key::Uuid(bytes)) => in_range(bytes, zipfian_range),
            (KeySpread::Hot, Key::Uuid(bytes)) => in_range(bytes, hot_range),
            (KeySpread::Scattered, Key::Number(number)) => Key::Number(customer_number(number)),
            (_, key) => key,
        })
    }
}

/// A random UUID, moved to the range that `range` chooses by its other random bits.
#[inline]
fn in_range(mut uuid: [u8; 16], range: impl FnOnce(u64) -> usize) -> Key {
    let random = u64::from_be_bytes(uuid[8..].try_into().unwrap_or_default()) << 2; // without the variant
    let rest = u16::from_be_bytes([uuid[0], uuid[1]]) & ((1 << (16 - RANGE_BITS)) - 1);
    let first = (range(random) << (16 - RANGE_BITS)) as u16 | rest;
    uuid[..2].copy_from_slice(&first.to_be_bytes());
    Key::Uuid(uuid)
}

/// The range of a rank.
const fn scattered(rank: usize) -> usize {
    rank * RANGE_STEP % RANGES
}

/// Uniform bits to a range whose share falls with its rank.
fn zipfian_range(random: u64) -> usize {
    static SHARES: OnceLock<Vec<u64>> = OnceLock::new();
    let shares = SHARES.get_or_init(|| {
        let weights = (1..=RANGES).map(|rank| (rank as f64).powf(-ZIPF_EXPONENT));
        let all: f64 = weights.clone().sum();
        let mut up_to = 0.0;
        let added = weights.map(|weight| {
            up_to += weight / all;
            (up_to * u64::MAX as f64) as u64
        });
        added.collect()
    });
    scattered(shares.partition_point(|up_to| *up_to < random).min(RANGES - 1))
}

/// Uniform bits to a range, nine times in ten to a hot one.
fn hot_range(random: u64) -> usize {
    let tenth = (u128::from(random) * 10) >> 64;
    let ranges = if tenth > 0 { HOT_RANGES } else { RANGES as u64 };
    let rest = random.wrapping_mul(10); // where in its tenth it lies
    scattered(((u128::from(rest) * u128::from(ranges)) >> 64) as usize)
}

/// One to one: each step of it can be undone, and the bits above those of a customer number stay.
fn customer_number(number: i64) -> i64 {
    const MASK: u64 = (1 << CUSTOMER_BITS) - 1;
    let number = number as u64;
    let mut low = number & MASK;
    for multiplier in [0x1_9E37_79B9_u64, 0x0_85EB_CA6B] {
        low = low.wrapping_mul(multiplier) & MASK;
        low ^= low >> 17;
    }
    (number & !MASK | low) as i64
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    const ROWS: usize = 100_000;

    /// Keys of two sessions in turn.
    fn keys(strategy: KeyStrategy, spread: KeySpread) -> Vec<Key> {
        let numbers = Numbers::default();
        let mut sessions = [(); 2].map(|()| ClientKeys::new(strategy, spread, &numbers).unwrap());
        (0..ROWS).map(|number| sessions[number % 2].draw().unwrap()).collect()
    }

    /// Keys of each range, most first.
    fn shares(spread: KeySpread) -> Vec<f64> {
        let mut counted: BTreeMap<u16, usize> = BTreeMap::new();
        for key in keys(KeyStrategy::UuidV4, spread) {
            let Key::Uuid(uuid) = key else { panic!("{key:?} is no UUID") };
            let first = u16::from_be_bytes([uuid[0], uuid[1]]);
            *counted.entry(first >> 4).or_default() += 1;
        }
        let mut shares: Vec<f64> =
            counted.into_values().map(|count| count as f64 / ROWS as f64).collect();
        shares.sort_by(|left, right| right.total_cmp(left));
        shares
    }

    #[test]
    fn no_key_is_made_twice() {
        let identity = KeyStrategy::Identity { start: 1, strict: false };
        for (strategy, spread) in [
            (identity, KeySpread::Scattered),
            (KeyStrategy::UuidV4, KeySpread::Zipfian),
            (KeyStrategy::UuidV4, KeySpread::Hot),
            (KeyStrategy::BitReversed, KeySpread::Even),
        ] {
            assert_eq!(spread.impossible(strategy), None);
            let names: BTreeSet<String> =
                keys(strategy, spread).iter().map(|key| key.value().to_string()).collect();
            assert_eq!(names.len(), ROWS, "{strategy}, {spread:?}");
        }
    }

    #[test]
    fn a_zipfian_spread_has_few_ranges_with_most_keys() {
        let shares = shares(KeySpread::Zipfian);
        assert!((0.08..0.14).contains(&shares[0]), "{}", shares[0]);
        let hundred: f64 = shares[..41].iter().sum();
        assert!((0.4..0.6).contains(&hundred), "{hundred}");
    }

    #[test]
    fn nine_keys_of_ten_are_in_a_hundredth_of_the_ranges() {
        let hot: f64 = shares(KeySpread::Hot)[..HOT_RANGES as usize].iter().sum();
        assert!((0.89..0.92).contains(&hot), "{hot}");
    }

    #[test]
    fn scattered_numbers_have_ten_digits_and_no_order() {
        let identity = KeyStrategy::Identity { start: 1, strict: false };
        let numbers: Vec<i64> = keys(identity, KeySpread::Scattered)
            .iter()
            .map(|key| key.value().as_i64().unwrap())
            .collect();
        assert!(numbers.iter().all(|number| (0..10_000_000_000).contains(number)));
        let ascending = numbers.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((0.4..0.6).contains(&(ascending as f64 / ROWS as f64)), "{ascending}");
    }

    #[test]
    fn a_spread_that_a_key_does_not_have_is_refused_by_name() {
        let refused = |spread: KeySpread| spread.impossible(KeyStrategy::SessionOffset).unwrap();
        assert!(refused(KeySpread::Hot).contains("uuid-v4"));
        assert!(refused(KeySpread::Scattered).contains("identity"));
    }
}
