//! A tree from a list of leaves, in bulk: at open, from the directory.

use std::sync::Arc;

use onrush_waits::LatchClass;

use super::Tree;
use super::Trees;
use crate::node::fence::Fence;
use crate::node::inner::FANOUT;
use crate::storage::{Image, LeafState, Stock};
use crate::units::{InnerId, LeafId, ObjectId};

/// Children that a node gets, so that it does not split at once.
const FILL: usize = FANOUT * 7 / 8;

/// A leaf as the directory describes it.
#[derive(Debug)]
pub(crate) struct LeafDescription {
    pub(crate) low: Box<[u8]>,
    /// None: an empty leaf, or one in front of a stock.
    pub(crate) image: Option<Arc<Image>>,
    pub(crate) stock: Option<Stock>,
}

impl Tree {
    /// The tree of `object` over `leaves`, which ascend from the empty key.
    /// One whose rows are not logged
    /// is empty whatever the leaves say.
    pub(crate) fn build(
        trees: &Trees,
        object: ObjectId,
        leaves: Vec<LeafDescription>,
        logged: bool,
    ) -> Tree {
        if leaves.is_empty() || !logged {
            return Tree::new(trees, object, logged);
        }
        let mut nodes = place_leaves(trees, object, leaves);
        let mut level = 1;
        loop {
            nodes = build_level(trees, level, &nodes);
            if nodes.len() == 1 {
                return Tree::with_root(object, InnerId(nodes[0].1), logged);
            }
            level += 1;
        }
    }
}

fn place_leaves(
    trees: &Trees,
    object: ObjectId,
    leaves: Vec<LeafDescription>,
) -> Vec<(Box<[u8]>, u32)> {
    let ids: Vec<u32> = leaves.iter().map(|_| trees.leaves.add()).collect();
    let highs: Vec<Option<Fence>> =
        leaves.iter().skip(1).map(|leaf| Some(Fence::new(&leaf.low))).chain([None]).collect();
    let nexts = ids.iter().skip(1).map(|id| Some(LeafId(*id))).chain([None]);
    let mut placed = Vec::with_capacity(leaves.len());
    for (((leaf, id), high), next) in leaves.into_iter().zip(&ids).zip(highs).zip(nexts) {
        let bounds = || (leaf.low.clone(), high.as_ref().map(|high| high.bytes().into()));
        let range = leaf.stock.map(|stock| trees.ranges.add(object, bounds(), stock));
        let mut state = trees.leaves.get(*id).latch.exclusive(&trees.recorder, LatchClass::Leaf);
        *state = LeafState {
            object: Some(object),
            low: Fence::new(&leaf.low),
            high,
            next,
            image: leaf.image,
            range,
            ..LeafState::default()
        };
        if state.is_known_empty() && !leaf.low.is_empty() {
            // For the first checkpoint to take out of the tree.
            trees.dirty.push(trees.background_permit(), trees.dirty.epoch(), LeafId(*id));
        }
        drop(state);
        placed.push((leaf.low, *id));
    }
    placed
}

/// The nodes over `children`, each child with the lowest key it may hold; nodes likewise.
fn build_level(trees: &Trees, level: u32, children: &[(Box<[u8]>, u32)]) -> Vec<(Box<[u8]>, u32)> {
    let mut nodes = Vec::new();
    let mut rest = children;
    while let Some((low, _)) = rest.first() {
        let id = trees.inners.add();
        let node = trees.inners.get(id);
        let _version = node.version.write(&trees.recorder);
        node.reset(level);
        let mut count = 0;
        while count < FILL && count < rest.len() && node.has_space() {
            let (low, child) = &rest[count];
            node.insert(count, if count == 0 { &[] } else { low }, *child);
            count += 1;
        }
        nodes.push((low.clone(), id));
        rest = &rest[count..];
    }
    nodes
}
