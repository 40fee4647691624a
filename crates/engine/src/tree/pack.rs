//! Takes front leaves that a flush has emptied out of the tree: fewer and fuller leaves hold what comes next. As long
//! as they are many, each with a row or two, the front has few rows in many frames.
//! [how a leaf is taken out](super::merge)

use std::sync::Arc;

use onrush_waits::Recorder;

use super::{EmptyLeaf, Tree, Trees};
use crate::storage::Range;
use crate::units::LeafId;

impl Tree {
    /// Merges the leaves, which are none of the first of their range, into their left neighbours. What has got rows
    /// meanwhile stays. The caller holds the maintenance mutex of the range, and no latch.
    pub(super) fn pack(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        range: &Arc<Range>,
        emptied: Vec<(LeafId, Box<[u8]>)>,
    ) {
        let (permit, epoch) = (trees.background_permit(), trees.dirty.epoch());
        for (id, low) in emptied {
            let leaf = EmptyLeaf { object: range.object, low, id };
            self.merge_empty(trees, recorder, permit, &leaf, epoch);
        }
    }
}
