//! Bytes that no filter wrote are refused with their cause, and never read beyond their end.

use onrush_filter::{Filter, FingerprintBits};

fn written() -> Vec<u8> {
    let hashes: Vec<u64> =
        (1..=100_u64).map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let mut bytes = Vec::new();
    Filter::build(&hashes, FingerprintBits::LEAST).write_to(&mut bytes);
    bytes
}

#[test]
fn a_filter_cut_short_is_refused() {
    let bytes = written();
    for length in 0..bytes.len() {
        assert!(Filter::read_from(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
    }
}

#[test]
fn a_filter_with_bytes_behind_it_is_refused() {
    let mut bytes = written();
    bytes.push(0);
    assert!(Filter::read_from(&bytes).is_err());
}

#[test]
fn no_flipped_bit_makes_a_filter_that_reads_beyond_its_end() {
    let bytes = written();
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        if let Ok(filter) = Filter::read_from(&damaged) {
            // It panics if it reads beyond its end; what it answers means nothing.
            (0..1000_u64).for_each(|key| {
                std::hint::black_box(filter.may_contain(key.wrapping_mul(u64::MAX / 1000)));
            });
        }
    }
}

#[test]
fn the_refusal_names_the_cause() {
    let mut bytes = written();
    bytes[16] = 11;
    let refusal = Filter::read_from(&bytes).expect_err("11 bits are too many").to_string();
    assert_eq!(refusal, "a filter is damaged: its fingerprints have an impossible number of bits");
}
