//! The power fails in the middle of a round of the log, and fails again in the round that writes the
//! same place anew: what the first one has left behind must not pass for a part of the second.
//!
//! Between the two the engine opens the database and other rows are inserted, in blocks as long as
//! those that were lost. So a block of the first life lies where one of the second belongs, with the
//! LSN that it would have.

use crate::cuts::{self, Budget, guarded};
use crate::disk::CrashMode;
use crate::plan::Plan;
use crate::summary::Summary;
use crate::world;
use onrush_oracle::Checked;

/// Blocks of one write reach the disk in any order, or not at all.
const MODES: [CrashMode; 6] = [
    CrashMode::TornBlocks,
    CrashMode::TornBlocks,
    CrashMode::TornBlocks,
    CrashMode::TornBlocks,
    CrashMode::TornSectors,
    CrashMode::Subset,
];

const BUDGET: Budget = Budget {
    images: 200,
    every_boundary: true,
    every_mode: true,
    depth_max: 2,
    nested_one_in: 2,
    nested_images: 200,
    nested_actions: 1,
    modes: &MODES,
};

/// Runs one seed: a few long rounds, cut at each boundary, and gone on from with more of them, which
/// are cut again.
///
/// # Errors
/// The first violation.
pub fn tear_rounds(seed: u64, summary: &mut Summary) -> Checked<()> {
    guarded(&format!("torn rounds of seed {seed}"), || {
        let plan = Plan::of_torn_rounds(seed);
        let actions = plan.actions;
        cuts::cut_from_checkpoint(plan, |world| world::run(world, actions), BUDGET, summary)
    })
}
