//! Each trap of the protocol is put back into the engine, and the simulator must notice.
//!
//! `cargo test -p onrush-sim --release --features planted-faults --test planted_faults`. One test,
//! because a fault is planted in the whole process. With the numbers of seeds that each takes by
//! `cargo run -p onrush-sim --release --features planted-faults --bin simulate -- faults`.

#![cfg(feature = "planted-faults")]

use onrush::Fault;
use onrush_sim::faults::{finder, seeds_until_found};

/// Runs until a fault must have been noticed.
const SEEDS_MAX: u64 = 300;
/// For each fault a seed that has noticed it, which is tried first: others may need dozens.
const KNOWN: &[(Fault, u64)] = &[
    (Fault::CAfterEpoch, 1_037_262_459),
    (Fault::EBeforeWalk, 98_277_434),
    (Fault::EAfterList, 98_277_434),
    (Fault::LogNotToE, 1_045_618_367),
    (Fault::FreeBeforeSuperblock, 30),
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
    (Fault::MergeKeepsImage, 669_435_738),
    (Fault::MergeImagedLate, 669_435_738),
    (Fault::LogNotSynced, 1_045_618_367),
    (Fault::LogErrorIgnored, 656_718_595),
    (Fault::SegmentNameNotSynced, 1_045_618_367),
    (Fault::ChainUnchecked, 503_391_810),
    (Fault::RotTakenForTear, 656_718_595),
    (Fault::UnprovenNotRewritten, 1_045_618_367),
    (Fault::WindowBytesIgnored, 307_036_855),
    (Fault::StallIgnored, 656_718_595),
    (Fault::WindowTooLong, 1_045_618_367),
    (Fault::SuperblockNotSynced, 1_045_618_367),
    (Fault::SuperblockOneCopy, 1_045_618_367),
    (Fault::CreationNotSynced, 1_045_618_367),
    (Fault::CreationNameNotSynced, 1_045_618_367),
    (Fault::CounterNotDurable, 98_277_434),
    (Fault::CounterNotStored, 776_690_756),
    (Fault::RemoveNotRedone, 1_045_618_367),
    (Fault::TruncateNotRedone, 975_720_308),
    (Fault::AlterNotRedone, 681_601_012),
    (Fault::CloseNotDurable, 1_037_262_459),
    (Fault::TableNotDurable, 1_045_618_367),
    (Fault::ConflictIgnored, 1_037_262_459),
    (Fault::CleanWithIntent, 307_036_855),
    (Fault::IntentImaged, 128),
    (Fault::DuplicateNoWait, 145_366_638),
    (Fault::ListsTakenOnce, 97),
    (Fault::FencesUnchecked, 1_045_618_367),
    (Fault::ShedBeforePublish, 26),
    (Fault::ShedUnderIntent, 23),
    (Fault::RemovalsNotFlushed, 7),
    (Fault::FragmentNotLocated, 7),
    (Fault::FilterLacksKey, 7),
    (Fault::FlushLsnTooHigh, 7),
    (Fault::OlderRunWins, 7),
    (Fault::CompactionLacksFragment, 6),
    (Fault::DividedWithoutCut, 26),
    (Fault::FrontLeafImaged, 118),
    (Fault::RedoneRemovalLost, 7),
    (Fault::StocksNotSwept, 195),
    (Fault::RedoneTakeBackHides, 122),
    (Fault::SpaceInstallTakesNewC, 7),
    (Fault::SpaceInstallNotToE, 26),
];

fn known_seed(fault: Fault) -> Option<u64> {
    KNOWN.iter().find(|(known, _)| *known == fault).map(|(_, seed)| *seed)
}

#[test]
fn every_trap_that_is_put_back_is_noticed() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    let found_by_seeds = |fault: &Fault| finder(*fault).without_seeds().is_none();
    for fault in Fault::ALL.iter().copied().filter(found_by_seeds) {
        match seeds_until_found(fault, known_seed(fault).into_iter().chain(1..=SEEDS_MAX)) {
            Some((seed, count)) => println!("{fault:?}: seed {seed}, after {count}"),
            None => missed.push(fault),
        }
    }
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not noticed within {SEEDS_MAX} seeds: {missed:?}");
}
