//! Each trap of the protocol is put back into the engine, and the simulator must notice.
//!
//! `cargo test -p onrush-sim --release --features planted-faults --test planted_faults`. One test,
//! because a fault is planted in the whole process. The traps of the checkpoint protocol are tried on every
//! change, and of the other faults each day another part; all of them with `ONRUSH_FAULTS=all`, and with the numbers of seeds by
//! `cargo run -p onrush-sim --release --features planted-faults --bin simulate -- faults`.

#![cfg(feature = "planted-faults")]

use std::time::{SystemTime, UNIX_EPOCH};

use onrush::Fault;
use onrush_sim::faults::{finder, seeds_until_found};

/// Runs until a fault must have been noticed.
const SEEDS_MAX: u64 = 300;
/// Seeds that noticed one of the faults that few do: tried first, to save minutes.
const SEEDS_FIRST: [u64; 5] = [128, 97, 57, 307_036_855, 516_812_142];
/// One in so many faults is tried a day.
const PARTS: u64 = 5;
/// The traps of the checkpoint protocol that seeds can find, each with one that has, which is tried first.
const OF_THE_PROTOCOL: [(Fault, u64); 14] = [
    (Fault::CAfterEpoch, 1_037_262_459),
    (Fault::EBeforeWalk, 98_277_434),
    (Fault::LogNotToE, 1_045_618_367),
    (Fault::FreeBeforeSuperblock, 516_812_142),
    (Fault::NoDataSync, 1_045_618_367),
    (Fault::SplitNoEpoch, 567_688_618),
    (Fault::SplitNoShare, 364_567_422),
    (Fault::LessOrEqualVisible, 1_045_618_367),
    (Fault::NoTrim, 364_567_422),
    (Fault::RecycleToE, 1_037_262_459),
    (Fault::DirtyNoList, 1_045_618_367),
    (Fault::AcknowledgeEarly, 1_045_618_367),
    (Fault::SegmentNotRewritten, 1_045_618_367),
    (Fault::DropUnwritten, 98_277_434),
];

/// The faults of today, or all.
fn faults() -> Vec<Fault> {
    let all = std::env::var("ONRUSH_FAULTS").is_ok_and(|faults| faults == "all");
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let part = seconds / (24 * 60 * 60) % PARTS;
    let faults = Fault::ALL.iter().zip((0..PARTS).cycle());
    faults
        .filter(|(fault, of)| all || *of == part || known_seed(**fault).is_some())
        .map(|(fault, _)| *fault)
        .collect()
}

fn known_seed(fault: Fault) -> Option<u64> {
    OF_THE_PROTOCOL.iter().find(|(known, _)| *known == fault).map(|(_, seed)| *seed)
}

#[test]
fn every_trap_that_is_put_back_is_noticed() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    for fault in faults().into_iter().filter(|fault| finder(*fault).without_seeds().is_none()) {
        let first = known_seed(fault).into_iter().chain(1..=4).chain(SEEDS_FIRST);
        match seeds_until_found(fault, first.chain(5..=SEEDS_MAX)) {
            Some((seed, count)) => println!("{fault:?}: seed {seed}, after {count}"),
            None => missed.push(fault),
        }
    }
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not noticed within {SEEDS_MAX} seeds: {missed:?}");
}
