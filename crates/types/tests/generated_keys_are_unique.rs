//! Promise: a generated key is handed out once, over sessions and restarts, and a strategy that is
//! used up says so and never wraps.

use std::collections::HashSet;
use std::ops::Range;

use onrush_types::{
    ColumnName, DataType, KeyGenerator, KeyStrategy, SessionRange, TypeError, Unused, Value,
};

fn generator(strategy: KeyStrategy, data_type: DataType) -> KeyGenerator {
    KeyGenerator::new(strategy, data_type, ColumnName::new("orders", "id")).expect("sound")
}

/// A durable counter: what was leased is never leased again, whoever asks.
struct Counter {
    next: u64,
}

impl Counter {
    fn lease(&mut self, count: u64) -> Result<Range<u64>, TypeError> {
        let start = self.next;
        self.next = start.saturating_add(count);
        Ok(start..self.next)
    }

    fn next(&mut self, generator: &mut KeyGenerator) -> Result<Value<'static>, TypeError> {
        generator.next(&mut |count| self.lease(count))
    }
}

fn key_bytes(value: &Value<'_>) -> u128 {
    match value {
        Value::Uuid(uuid) => uuid.as_u128(),
        value => u128::from(value.as_i64().expect("an integer").cast_unsigned() ^ 1 << 63),
    }
}

#[test]
fn keys_differ_over_sessions_and_restarts() {
    for strategy in KeyStrategy::ALL {
        let mut seen = HashSet::new();
        let mut counter = Counter { next: 0 };
        for _restart in 0..3 {
            let mut sessions: Vec<_> =
                (0..4).map(|_| generator(strategy, strategy.natural_type())).collect();
            for row in 0..2_000 {
                let key = counter.next(&mut sessions[row % 4]).expect("in range");
                assert!(seen.insert(key_bytes(&key)), "{strategy}: {key} came twice");
            }
        }
    }
}

#[test]
fn keys_of_one_session_ascend() {
    for strategy in [
        KeyStrategy::Identity { start: -5, strict: false },
        KeyStrategy::Identity { start: 1, strict: true },
        KeyStrategy::UuidV7,
        KeyStrategy::SequentialGuid,
        KeyStrategy::SessionOffset,
        KeyStrategy::NodeOffset { node: 92_232 },
    ] {
        let mut counter = Counter { next: 0 };
        let mut session = generator(strategy, strategy.natural_type());
        let keys: Vec<_> = (0..10_000)
            .map(|_| key_bytes(&counter.next(&mut session).expect("in range")))
            .collect();
        assert!(keys.is_sorted_by(|left, right| left < right), "{strategy}");
    }
}

#[test]
fn sequential_guids_ascend_over_sessions_and_restarts() {
    let strategy = KeyStrategy::SequentialGuid;
    let (mut counter, mut last) = (Counter { next: 0xFFF0 }, 0);
    for _ in 0..50 {
        let mut session = generator(strategy, DataType::Uuid);
        for _ in 0..3 {
            let key = key_bytes(&counter.next(&mut session).expect("in range"));
            assert!(key > last);
            last = key;
        }
    }
}

#[test]
fn strict_identity_draws_numbers_one_by_one() {
    let strategy = KeyStrategy::Identity { start: 1, strict: true };
    let mut counter = Counter { next: 0 };
    let mut sessions = [generator(strategy, DataType::Int64), generator(strategy, DataType::Int64)];
    for row in 0..10i64 {
        let key = counter.next(&mut sessions[usize::from(row % 3 == 0)]);
        assert_eq!(key, Ok(Value::Int64(row + 1)));
    }
}

#[test]
fn uuids_have_their_version_and_variant() {
    for (strategy, version) in
        [(KeyStrategy::UuidV4, 4), (KeyStrategy::UuidV7, 7), (KeyStrategy::SequentialGuid, 8)]
    {
        let mut session = generator(strategy, DataType::Uuid);
        let mut counter = Counter { next: u64::MAX - 1000 };
        for _ in 0..200 {
            let Ok(Value::Uuid(uuid)) = counter.next(&mut session) else { panic!("no uuid") };
            assert_eq!(uuid.get_version_num(), version);
            assert_eq!(uuid.get_variant(), uuid::Variant::RFC4122);
        }
    }
}

/// The last key of each range is handed out, the next one is an error, and so are all after it.
#[test]
fn the_end_of_a_range_is_an_error() {
    let identity = |start| KeyStrategy::Identity { start, strict: false };
    let node = KeyStrategy::NodeOffset { node: 92_232 };
    let last_of_node = Value::Int64(92_232 * 100_000_000_000_000 + 99_999_999_999_999);
    for (strategy, data_type, limit, last) in [
        (identity(1), DataType::Int16, 32_767, Value::Int16(32_767)),
        (identity(-32_768), DataType::Int16, 65_536, Value::Int16(32_767)),
        (identity(1), DataType::Int32, 2_147_483_647, Value::Int32(i32::MAX)),
        (identity(1), DataType::Int64, (1 << 63) - 1, Value::Int64(i64::MAX)),
        (identity(-2), DataType::Int64, (1 << 63) + 2, Value::Int64(i64::MAX)),
        (node, DataType::Int64, 100_000_000_000_000, last_of_node),
        (KeyStrategy::BitReversed, DataType::Int64, 1 << 63, Value::Int64(i64::MAX)),
    ] {
        for block_rows in [1, 2, 256] {
            let mut session = generator(strategy, data_type).with_block_rows(block_rows);
            let mut counter = Counter { next: limit - 1 };
            assert_eq!(counter.next(&mut session), Ok(last.clone()), "{strategy}");
            for _ in 0..3 {
                let error = counter.next(&mut session).expect_err("exhausted");
                assert!(matches!(error, TypeError::KeysExhausted { .. }));
                assert!(error.to_string().contains("orders.id"), "{error}");
            }
        }
    }
}

#[test]
fn hash_prefix_ends_after_its_55_bits_of_number() {
    let mut counter = Counter { next: (1 << 55) - 1 };
    let mut session = generator(KeyStrategy::HashPrefix, DataType::Int64);
    let key = counter.next(&mut session).expect("the last").as_i64().expect("an integer");
    assert!(key >= 0);
    assert_eq!(key & ((1 << 55) - 1), (1 << 55) - 1);
    assert!(counter.next(&mut session).is_err());
}

#[test]
fn hash_prefix_spreads_evenly() {
    let mut counter = Counter { next: 0 };
    let mut session = generator(KeyStrategy::HashPrefix, DataType::Int64);
    let mut points = [0u32; 256];
    for _ in 0..25_600 {
        let key = counter.next(&mut session).expect("in range").as_i64().expect("an integer");
        points[usize::try_from(key >> 55).expect("eight bits")] += 1;
    }
    assert!(points.iter().all(|&count| (80..=120).contains(&count)), "{points:?}");
}

#[test]
fn a_session_range_ends_and_the_next_one_follows() {
    let mut counter = Counter { next: 7 };
    let mut session = generator(KeyStrategy::SessionOffset, DataType::Int64);
    session.resume(SessionRange { number: 3, next: 9_999_999_999 });
    assert_eq!(counter.next(&mut session), Ok(Value::Int64(39_999_999_999)));
    assert_eq!(session.give_back(), None);
    assert_eq!(counter.next(&mut session), Ok(Value::Int64(70_000_000_000)));
}

#[test]
fn a_range_that_was_given_back_goes_on_where_it_stopped() {
    let mut counter = Counter { next: 7 };
    let mut first = generator(KeyStrategy::SessionOffset, DataType::Int64);
    assert_eq!(first.give_back(), None);
    for n in 0..3 {
        assert_eq!(counter.next(&mut first), Ok(Value::Int64(70_000_000_000 + n)));
    }
    let range = SessionRange { number: 7, next: 3 };
    assert_eq!(first.give_back(), Some(Unused::Range(range)));
    let mut second = generator(KeyStrategy::SessionOffset, DataType::Int64);
    second.resume(range);
    assert_eq!(counter.next(&mut second), Ok(Value::Int64(70_000_000_003)));
    assert_eq!(counter.next(&mut first), Ok(Value::Int64(80_000_000_000)));
}

#[test]
fn leased_numbers_that_made_no_key_are_given_back_once() {
    for strategy in [KeyStrategy::Identity { start: 1, strict: false }, KeyStrategy::BitReversed] {
        let mut counter = Counter { next: 0 };
        let mut first = generator(strategy, DataType::Int64).with_block_rows(10);
        assert_eq!(first.give_back(), None, "{strategy}: nothing was leased");
        for _ in 0..3 {
            counter.next(&mut first).expect("a key");
        }
        assert_eq!(first.give_back(), Some(Unused::Numbers(3..10)), "{strategy}");
        assert_eq!(first.give_back(), None, "{strategy}: they are gone");
        counter.next(&mut first).expect("a key of a new lease");
        assert_eq!(first.give_back(), Some(Unused::Numbers(11..20)), "{strategy}");
    }
}

#[test]
fn session_ranges_end_before_the_key_overflows() {
    let mut counter = Counter { next: 922_337_202 };
    let mut session = generator(KeyStrategy::SessionOffset, DataType::Int64);
    assert_eq!(counter.next(&mut session), Ok(Value::Int64(9_223_372_020_000_000_000)));
    session.resume(SessionRange { number: 922_337_202, next: 10_000_000_000 });
    for _ in 0..3 {
        let error = counter.next(&mut session).expect_err("exhausted");
        assert!(matches!(error, TypeError::KeysExhausted { .. }));
    }
}

#[test]
fn an_empty_lease_is_an_error_and_not_a_loop() {
    for strategy in KeyStrategy::ALL.into_iter().filter(|strategy| strategy.needs_counter()) {
        let mut session = generator(strategy, strategy.natural_type());
        assert!(session.next::<TypeError>(&mut |_| Ok(5..5)).is_err());
    }
}

#[test]
fn names_read_back_with_their_parameters() {
    let with_parameters = [
        KeyStrategy::Identity { start: -7, strict: true },
        KeyStrategy::Identity { start: 100, strict: false },
        KeyStrategy::NodeOffset { node: 12 },
    ];
    for strategy in KeyStrategy::ALL.into_iter().chain(with_parameters) {
        assert_eq!(strategy.to_string().parse(), Ok(strategy));
    }
    assert!("uuid-v5".parse::<KeyStrategy>().is_err());
    assert!("uuid-v4(1)".parse::<KeyStrategy>().is_err());
}
