//! Each trap of the protocol is put back into the engine, and the simulator must notice.
//!
//! `cargo test -p onrush-sim --release --features planted-faults --test planted_faults`. One test,
//! because a fault is planted in the whole process.
//!
//! Three traps need two threads at the same moment, which a run on one thread never has; they are
//! in the directed tests and the model: `WalkNoWait`, `GroupReservedFirst`, `ParityLists`.

#![cfg(feature = "planted-faults")]

use onrush::{Fault, plant};
use onrush_sim::cuts::{Budget, simulate};
use onrush_sim::faults::ALL;
use onrush_sim::summary::Summary;

/// Faults that one thread cannot meet.
const NEED_THREADS: [Fault; 3] = [Fault::WalkNoWait, Fault::GroupReservedFirst, Fault::ParityLists];
/// Runs until a fault must have been noticed.
const SEEDS_MAX: u64 = 300;
/// Seeds that noticed one of the faults that few do: tried first, to save minutes.
const SEEDS_FIRST: [u64; 3] = [128, 97, 57];

#[test]
fn every_trap_that_is_put_back_is_noticed() {
    let budget = Budget { images: 200, ..Budget::default() };
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    for fault in ALL.into_iter().filter(|fault| !NEED_THREADS.contains(fault)) {
        plant(fault);
        let mut summary = Summary::default();
        let mut seeds = (1..=4).chain(SEEDS_FIRST).chain(5..=SEEDS_MAX);
        let found = seeds.find(|seed| simulate(*seed, budget, &mut summary).is_err());
        match found {
            Some(seed) => println!("{fault:?}: seed {seed}, {} power cuts", summary.cuts()),
            None => missed.push(fault),
        }
    }
    plant(Fault::None);
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not noticed within {SEEDS_MAX} seeds: {missed:?}");
}
