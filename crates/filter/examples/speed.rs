//! What a filter and a locator cost: `cargo run --release -p onrush-filter --example speed -- [KEYS]`.
//!
//! Prints nanoseconds a key, medians of nine, for keys that nobody has in cache.

use std::hint::black_box;
use std::time::Instant;

use onrush_filter::{Filter, FingerprintBits, Locator};
use rand::{RngExt, SeedableRng, rngs::ChaCha12Rng};

const REPEATS: usize = 9;

fn main() {
    let keys = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(200_000);
    let hashes = |seed| {
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        (0..keys).map(|_| random.random::<u64>()).collect::<Vec<u64>>()
    };
    let (there, absent) = (hashes(1), hashes(2));
    for bits in [4, 6, 8, 10].into_iter().filter_map(FingerprintBits::new) {
        let build = median(keys, || drop(black_box(Filter::build(&there, bits))));
        let filter = Filter::build(&there, bits);
        let ask = median(keys, || {
            black_box(absent.iter().filter(|&&hash| filter.may_contain(hash)).count());
        });
        let bits_of_key = (filter.memory_bytes() * 8) as f64 / keys as f64;
        println!(
            "filter of {} bits: built {build:.1} ns a key, asked {ask:.1} ns, {bits_of_key:.2} bits a key",
            bits.get()
        );
    }
    let filled = || {
        let locator = Locator::new(keys);
        there.iter().enumerate().for_each(|(number, &hash)| locator.add(hash, number % 8));
        locator
    };
    let add = median(keys, || drop(black_box(filled())));
    let locator = filled();
    let ask = median(keys, || {
        black_box(absent.iter().filter(|&&hash| !locator.find(hash).is_empty()).count());
    });
    let bits_of_key = (locator.memory_bytes() * 8) as f64 / keys as f64;
    println!("locator: added {add:.1} ns a key, asked {ask:.1} ns, {bits_of_key:.2} bits a key");
}

/// Nanoseconds a key.
fn median(keys: usize, mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..REPEATS)
        .map(|_| {
            let began = Instant::now();
            run();
            began.elapsed().as_nanos() as f64 / keys as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[REPEATS / 2]
}
