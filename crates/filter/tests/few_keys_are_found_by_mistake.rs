//! How often memory can't prove a key absent that is absent, and what it costs to know: both are given by the design,
//! not by the machine.

use onrush_filter::{Filter, FingerprintBits, Locator};
use rand::{RngExt, SeedableRng, rngs::ChaCha12Rng};

const KEYS: usize = 200_000;

fn hashes(seed: u64, count: usize) -> Vec<u64> {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    (0..count).map(|_| random.random()).collect()
}

#[test]
fn a_filter_is_wrong_once_in_two_to_the_power_of_its_bits() {
    let there = hashes(1, KEYS);
    let absent = hashes(2, KEYS);
    for bits in 4..=10 {
        let filter = Filter::build(&there, FingerprintBits::new(bits).expect("4 to 10"));
        let wrong = absent.iter().filter(|&&hash| filter.may_contain(hash)).count();
        let expected = KEYS >> bits;
        assert!(
            (expected * 8 / 10..expected * 12 / 10).contains(&wrong),
            "{bits} bits: {wrong} wrong, {expected} expected"
        );
    }
}

#[test]
fn a_filter_takes_its_bits_and_a_quarter_more_at_most() {
    for keys in [40_000, 200_000, 400_000] {
        let filter = Filter::build(&hashes(3, keys), FingerprintBits::new(6).expect("4 to 10"));
        let bits_of_key = (filter.memory_bytes() * 8) as f64 / keys as f64;
        assert!(bits_of_key < 6.0 * 1.25, "{keys} keys: {bits_of_key} bits a key");
    }
}

#[test]
fn a_full_locator_is_wrong_once_in_two_hundred() {
    let locator = Locator::new(KEYS);
    for (number, hash) in hashes(4, KEYS).into_iter().enumerate() {
        locator.add(hash, number % 8);
    }
    let absent = hashes(5, KEYS);
    let wrong = absent.iter().filter(|&&hash| !locator.find(hash).is_empty()).count();
    assert!(wrong < KEYS / 200, "{wrong} of {KEYS} wrong");
    let bits_of_key = (locator.memory_bytes() * 8) as f64 / KEYS as f64;
    assert!(bits_of_key < 20.0, "{bits_of_key} bits a key");
}
