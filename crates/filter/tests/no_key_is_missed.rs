//! A key that was put in is found: by the filter of a base, and by the locator of fragments.

use onrush_filter::{Filter, FingerprintBits, Locator};
use proptest::collection::vec;
use proptest::prelude::*;

fn bits() -> impl Strategy<Value = FingerprintBits> {
    (4_u8..=10).prop_filter_map("4 to 10 bits", FingerprintBits::new)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_filter_has_every_key(hashes in vec(any::<u64>(), 0..3000), bits in bits()) {
        let filter = Filter::build(&hashes, bits);
        for hash in hashes {
            prop_assert!(filter.may_contain(hash), "{hash:#x}");
        }
    }

    // What callers give are hashes, but nothing breaks if they are poor ones: near each other, or given again.
    #[test]
    fn a_filter_has_keys_that_are_near_each_other_or_twice_there(
        hashes in vec(0_u64..2000, 0..3000), bits in bits(),
    ) {
        let filter = Filter::build(&hashes, bits);
        for hash in hashes {
            prop_assert!(filter.may_contain(hash), "{hash:#x}");
        }
    }

    #[test]
    fn a_filter_is_read_back_as_it_was_written(hashes in vec(any::<u64>(), 0..500), bits in bits()) {
        let filter = Filter::build(&hashes, bits);
        let mut bytes = Vec::new();
        filter.write_to(&mut bytes);
        prop_assert_eq!(Filter::read_from(&bytes), Ok(filter));
    }

    // Few different hashes fill some lines far beyond their end, so that keys go on in the next ones.
    #[test]
    fn a_locator_names_every_fragment_of_a_key(
        keys in vec((prop_oneof![any::<u64>(), 0_u64..40], 0_usize..8), 0..2000),
    ) {
        let locator = Locator::new(keys.len());
        for &(hash, fragment) in &keys {
            locator.add(hash, fragment);
        }
        for &(hash, fragment) in &keys {
            let found: Vec<usize> = locator.find(hash).newest_first().collect();
            prop_assert!(found.contains(&fragment), "{hash:#x} in {fragment}, found {found:?}");
            prop_assert!(found.is_sorted_by(|newer, older| newer > older));
        }
    }
}

#[test]
fn a_locator_without_keys_finds_none() {
    assert!(Locator::new(0).find(17).is_empty());
    assert!(Locator::new(1000).find(0).is_empty());
}

#[test]
fn a_reader_finds_the_keys_of_every_fragment_that_it_sees() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    let hash = |key: usize| (key as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let keys_of_fragment = 5000;
    let locator = Locator::new(8 * keys_of_fragment);
    let published = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for fragment in 0..8 {
                let keys = fragment * keys_of_fragment..(fragment + 1) * keys_of_fragment;
                keys.for_each(|key| locator.add(hash(key), fragment));
                published.store(fragment + 1, Ordering::Release);
            }
        });
        loop {
            let seen = published.load(Ordering::Acquire);
            for key in (0..seen * keys_of_fragment).step_by(97) {
                let mut found = locator.find(hash(key)).newest_first();
                assert!(found.any(|fragment| fragment == key / keys_of_fragment));
            }
            if seen == 8 {
                break;
            }
        }
    });
}
