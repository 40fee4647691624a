//! Where to cut a range of keys, so that several scans share its rows, and about how large it is.

use std::sync::atomic::Ordering;

use onrush_latch::lock_counted;
use onrush_waits::{LatchClass, Recorder};

use super::Tree;
use super::Trees;
use super::scan::Bounds;
use crate::node::fence::head;
use crate::node::inner::InnerNode;

/// A part with fewer leaves is not worth a scan of its own.
const LEAVES_OF_A_PART_MIN: usize = 16;

/// Most nodes of a level that are looked at to say how many leaves are below them all.
const NODES_LOOKED_AT: usize = 16;

impl Tree {
    /// Ascending keys inside `bounds` that cut its rows into at most `parts` parts with about as
    /// many leaves each. Fewer for a range of few leaves; none for a table that is gone.
    pub(crate) fn cuts(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        bounds: &Bounds,
        parts: usize,
    ) -> Vec<Vec<u8>> {
        // Separators stand still while nobody else may change the inner nodes.
        let _structure = lock_counted(&self.structure, recorder, LatchClass::TreeStructure);
        if parts < 2 || self.object().is_none() {
            return Vec::new();
        }
        let mut found: Vec<Vec<u8>> = Vec::new();
        let mut nodes = vec![self.root.load(Ordering::Acquire)];
        loop {
            let mut below = Vec::new();
            let mut is_lowest = true;
            for id in nodes {
                let node = trees.inners.get(id);
                is_lowest = node.level() <= 1;
                below.extend(look_through(node, bounds, &mut found));
            }
            if is_lowest || found.len() >= parts * LEAVES_OF_A_PART_MIN {
                break;
            }
            nodes = below;
        }
        found.sort_unstable();
        let parts = parts.min(found.len() / LEAVES_OF_A_PART_MIN).max(1);
        (1..parts).map(|part| found[part * found.len() / parts].clone()).collect()
    }

    /// About how many leaves hold the keys inside `bounds`: exactly so many where they are few, else as many as a few
    /// nodes of each level make likely. None for a table that is gone.
    pub(crate) fn leaves_about(&self, trees: &Trees, recorder: &Recorder, bounds: &Bounds) -> u64 {
        // Children stand still while nobody else may change the inner nodes.
        let _structure = lock_counted(&self.structure, recorder, LatchClass::TreeStructure);
        if self.object().is_none() {
            return 0;
        }
        let mut nodes = vec![self.root.load(Ordering::Acquire)];
        // Of how many nodes each of `nodes` is one.
        let mut share = 1.0;
        loop {
            let mut below = Vec::new();
            let mut is_lowest = true;
            for id in nodes {
                let node = trees.inners.get(id);
                is_lowest = node.level() <= 1;
                let first = node.search(head(&bounds.low), &bounds.low);
                let high = bounds.high.as_ref().map(|high| (head(high), high.as_slice()));
                let last = node.search_below(high);
                below.extend((first..=last).map(|index| node.child(index)));
            }
            if is_lowest {
                return (below.len() as f64 * share).round() as u64;
            }
            let step = below.len().div_ceil(NODES_LOOKED_AT).max(1);
            let count = below.len();
            nodes = below.into_iter().step_by(step).collect();
            share *= count as f64 / nodes.len().max(1) as f64;
        }
    }
}

/// The children that may hold keys inside `bounds`; the separators inside go to `found`.
fn look_through<'n>(
    node: &'n InnerNode,
    bounds: &Bounds,
    found: &mut Vec<Vec<u8>>,
) -> impl Iterator<Item = u32> + use<'n> {
    let count = node.len();
    let (mut first, mut end) = (0, count);
    for index in 1..count {
        let separator = node.separator(index);
        if separator <= bounds.low {
            first = index;
        } else if bounds.high.as_ref().is_some_and(|high| separator >= *high) {
            end = index;
            break;
        } else {
            found.push(separator);
        }
    }
    (first..end).map(|index| node.child(index))
}
