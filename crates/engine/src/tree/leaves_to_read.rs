//! The leaves that a scan comes to next, found through the inner nodes: no leaf is touched.
//!
//! A leaf that was split off a moment ago may be missing, and one that is found may be gone when the
//! scan comes there. Both cost a scan time and nothing else: it finds its own way.

use std::sync::atomic::Ordering;

use onrush_latch::lock_counted;
use onrush_waits::{LatchClass, Recorder};

use super::Trees;
use super::scan::{Bounds, Direction};
use super::{Refusal, Tree};
use crate::node::fence::head;
use crate::node::inner::InnerNode;
use crate::units::{LeafId, ObjectId};

/// What [`Tree::leaves_to_read`] finds.
#[derive(Debug)]
pub(crate) struct LeavesToRead {
    /// In the order in which the scan comes to them.
    pub(crate) leaves: Vec<LeafId>,
    /// Where those begin that were not looked at; none if there are no more inside the bounds.
    pub(crate) rest: Option<Bounds>,
}

impl Tree {
    /// The first leaves of `bounds`, as a scan in `direction` comes to them: at most `most`, which is
    /// at least one.
    pub(crate) fn leaves_to_read(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        object: ObjectId,
        direction: Direction,
        bounds: &Bounds,
        most: usize,
    ) -> Result<LeavesToRead, Refusal> {
        // Separators stand still while nobody else may change the inner nodes.
        let _structure = lock_counted(&self.structure, recorder, LatchClass::TreeStructure);
        self.check_current(object)?;
        let mut found = LeavesToRead { leaves: Vec::new(), rest: Some(bounds.clone()) };
        while found.leaves.len() < most
            && let Some(rest) = found.rest.take()
        {
            let root = trees.inners.get(self.root.load(Ordering::Acquire));
            found.rest = match direction {
                Direction::Forward => take_upward(trees, root, rest, most, &mut found.leaves),
                Direction::Backward => take_downward(trees, root, rest, most, &mut found.leaves),
            };
        }
        Ok(found)
    }
}

/// Takes the leaves of one node right above them, from the one that holds the lower bound on. Returns
/// what is left of the bounds.
fn take_upward(
    trees: &Trees,
    root: &InnerNode,
    rest: Bounds,
    most: usize,
    leaves: &mut Vec<LeafId>,
) -> Option<Bounds> {
    let Bounds { low, high } = rest;
    let search = |node: &InnerNode| node.search(head(&low), &low);
    // Where the children of the node end that is looked at, and what is behind it begins.
    let mut end = None;
    let mut node = root;
    while node.level() > 1 {
        let index = search(node);
        if index + 1 < node.len() {
            end = Some(node.separator(index + 1));
        }
        node = trees.inners.get(node.child(index));
    }
    for index in search(node)..node.len() {
        leaves.push(LeafId(node.child(index)));
        let is_last = index + 1 == node.len();
        let next = if is_last { end.take()? } else { node.separator(index + 1) };
        if high.as_ref().is_some_and(|high| *high <= next) {
            return None;
        }
        if is_last || leaves.len() >= most {
            return Some(Bounds { low: next, high });
        }
    }
    None
}

/// As [`take_upward`], from the leaf that holds the keys right below the upper bound down.
fn take_downward(
    trees: &Trees,
    root: &InnerNode,
    rest: Bounds,
    most: usize,
    leaves: &mut Vec<LeafId>,
) -> Option<Bounds> {
    let Bounds { low, high } = rest;
    let search = |node: &InnerNode| node.search_below(high.as_ref().map(|key| (head(key), &**key)));
    // Where the children of the node begin that is looked at; none if nothing is before them.
    let mut begin = None;
    let mut node = root;
    while node.level() > 1 {
        let index = search(node);
        if index > 0 {
            begin = Some(node.separator(index));
        }
        node = trees.inners.get(node.child(index));
    }
    for index in (0..=search(node)).rev() {
        leaves.push(LeafId(node.child(index)));
        let next = if index == 0 { begin.take()? } else { node.separator(index) };
        if next <= low {
            return None;
        }
        if index == 0 || leaves.len() >= most {
            return Some(Bounds { low, high: Some(next) });
        }
    }
    None
}
