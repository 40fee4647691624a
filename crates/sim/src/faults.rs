//! The faults that can be planted, which kind of test finds each, and after how many seeds.
//!
//! A score of a test is the number of seeds that it takes to notice a fault: the fewer, the surer
//! a fault of that kind is found by the seeds of every day.

use onrush::{Fault, plant};

use crate::cuts::{self, Budget};
use crate::random::Random;
use crate::summary::Summary;
use crate::{errors, rot, torn, window};
use onrush_oracle::Checked;

/// Seeds after which a fault counts as missed.
pub const SEEDS_MAX: u64 = 400;

/// What finds a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finder {
    /// Power cuts: [`cuts::simulate`].
    Cuts,
    /// Calls that fail: [`errors::fail_calls`].
    Errors,
    /// Power cuts against the clock: [`window::simulate`].
    Window,
    /// Power cuts in rounds of the log, twice at one place: [`torn::tear_rounds`].
    Torn,
    /// Flipped bits of the log: [`rot::flip_log_bits`].
    Rot,
    /// It needs two threads at one moment: the model in `tests/checkpoint_against_splits.rs`, which
    /// has the fault too.
    Model,
    /// A test of its own, `tests/a_panic_inside_stops_the_engine.rs`: nothing is lost, so no cut
    /// would tell.
    Panics,
    /// It is the server's: the whole server and its clients, `onrush-prove-wire`.
    Wire,
    /// A test of its own with threads, `tests/a_session_sees_its_own_commits.rs`.
    Threads,
    /// A test of its own, `tests/snapshots_given_up.rs`: it needs space for few old versions.
    GivenUp,
    /// A test of its own, `tests/indexes_that_do_not_follow.rs`: the check of an open database.
    Indexes,
    /// A test of its own, `tests/indexes_built_beside_writers.rs`: the check of an open database.
    BuiltIndexes,
    /// A test of its own, `tests/long_values_that_are_not_whole.rs`: the checks.
    LongValues,
    /// A test of its own, `tests/references_meet_removals.rs`: two threads that run against each other.
    References,
    /// A test of its own, `tests/locked_rows_are_left_alone.rs`.
    RowLocks,
    /// A test of its own, `tests/serializable_reads_are_looked_at.rs`.
    SerialOrder,
    /// A test of its own, `tests/savepoints_over_stocks.rs`.
    Savepoints,
    /// It is the drain's: `planted_faults_are_noticed` of `onrush-lake`.
    Lake,
}

impl Finder {
    /// What finds it without trying seeds.
    pub fn without_seeds(self) -> Option<&'static str> {
        match self {
            Finder::Model => Some("the model of checkpoints"),
            Finder::Wire => Some("prove-wire"),
            Finder::Lake => Some("the drain's model and scenarios"),
            Finder::Panics
            | Finder::Threads
            | Finder::GivenUp
            | Finder::Indexes
            | Finder::BuiltIndexes
            | Finder::LongValues
            | Finder::References
            | Finder::RowLocks
            | Finder::SerialOrder
            | Finder::Savepoints => Some("a test of its own"),
            _ => None,
        }
    }
}

/// What finds this fault.
pub fn finder(fault: Fault) -> Finder {
    match fault {
        Fault::WalkNoWait | Fault::ParityLists => Finder::Model,
        Fault::LogErrorIgnored | Fault::UnprovenNotRewritten => Finder::Errors,
        Fault::WindowTooLong | Fault::WindowBytesIgnored | Fault::StallIgnored => Finder::Window,
        Fault::RotTakenForTear => Finder::Rot,
        Fault::ChainUnchecked => Finder::Torn,
        Fault::PanicInWrite | Fault::PanicInCommit | Fault::PanicInCheckpoint => Finder::Panics,
        Fault::OwnCommitUnseen => Finder::Threads,
        Fault::GivenUpSnapshotUnnoticed => Finder::GivenUp,
        Fault::OldEntryKept | Fault::EntryLeftOut => Finder::Indexes,
        Fault::BuiltIndexMissed | Fault::RemovalLeavesNoTrace => Finder::BuiltIndexes,
        Fault::PieceLeftOut | Fault::PieceKept => Finder::LongValues,
        Fault::ReferencesNotLocked => Finder::References,
        Fault::RowLockIgnored => Finder::RowLocks,
        Fault::SerialOrderNotLooked => Finder::SerialOrder,
        Fault::TakenBackShowsThrough => Finder::Savepoints,
        Fault::AnswerNotAwaited | Fault::DefinitionsApart => Finder::Wire,
        Fault::LakeUnguarded
        | Fault::LakeAnswerBelieved
        | Fault::LakeClaimWithoutSnapshot
        | Fault::LakeMarkOfSnapshot
        | Fault::LakeFilesDeleted
        | Fault::LakeNonceKept
        | Fault::LakeMarkApart
        | Fault::LakeMarkMovedBlindly
        | Fault::LakeConfirmedEarly
        | Fault::LakeAskNotNoted
        | Fault::LakeRangeGrows
        | Fault::LakeLostNodeLeftOpen
        | Fault::LakeGoesOnAtMark
        | Fault::LakeGoesOnAtEnd => Finder::Lake,
        _ => Finder::Cuts,
    }
}

/// Plants `fault` and tries `seeds` until one notices. Returns that seed, and how many were tried.
pub fn seeds_until_found(
    fault: Fault,
    seeds: impl IntoIterator<Item = u64>,
) -> Option<(u64, usize)> {
    plant(fault);
    let found = seeds.into_iter().zip(1..).find(|(seed, _)| look(fault, *seed).is_err());
    plant(Fault::None);
    found
}

fn look(fault: Fault, seed: u64) -> Checked<()> {
    let mut summary = Summary::default();
    match finder(fault) {
        Finder::Cuts => {
            let budget = Budget { images: 200, ..Budget::default() };
            cuts::simulate(seed, budget, &mut summary)
        }
        Finder::Errors => errors::fail_calls(seed, 10, &mut summary),
        Finder::Window => window::simulate(seed, 1, &mut summary),
        Finder::Torn => torn::tear_rounds(seed, &mut summary),
        Finder::Rot => rot::flip_log_bits(seed, 20, &mut summary),
        Finder::Model
        | Finder::Panics
        | Finder::Threads
        | Finder::GivenUp
        | Finder::Indexes
        | Finder::BuiltIndexes
        | Finder::LongValues
        | Finder::References
        | Finder::RowLocks
        | Finder::SerialOrder
        | Finder::Savepoints
        | Finder::Lake
        | Finder::Wire => Ok(()),
    }
}

/// What became of one fault.
#[derive(Clone, Debug)]
pub struct Score {
    /// The fault.
    pub fault: Fault,
    /// Seeds until it was found, for each series; `None` where it was not.
    pub seeds: Vec<Option<usize>>,
    /// A seed that found it.
    pub seed: Option<u64>,
}

/// Looks for `fault` in `series` series of seeds.
pub fn score(fault: Fault, series: u64) -> Score {
    let mut score = Score { fault, seeds: Vec::new(), seed: None };
    for number in 0..series {
        let mut random = Random::for_part(number, 5);
        let seeds = std::iter::repeat_with(|| random.below(1 << 30)).take(SEEDS_MAX as usize);
        let found = seeds_until_found(fault, seeds);
        score.seeds.push(found.map(|(_, count)| count));
        score.seed = score.seed.or(found.map(|(seed, _)| seed));
    }
    score
}

impl Score {
    /// The middle one of the numbers of seeds, if more than half of the series found it.
    pub fn median(&self) -> Option<usize> {
        let mut seeds: Vec<usize> = self.seeds.iter().map(|n| n.unwrap_or(usize::MAX)).collect();
        seeds.sort_unstable();
        seeds.get(seeds.len() / 2).copied().filter(|median| *median != usize::MAX)
    }
}
