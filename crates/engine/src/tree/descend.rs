//! From the root down, without latches.

use std::sync::atomic::Ordering;

use onrush_waits::{Counter, LatchClass, Recorder};

use super::Tree;
use super::Trees;
use crate::node::fence::head;
use crate::node::inner::InnerNode;
use crate::units::{InnerId, LeafId};

impl Tree {
    /// From the root to the leaf whose range holds `key`, or held it a moment ago.
    pub(crate) fn descend(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        key_head: u64,
        key: &[u8],
    ) -> LeafId {
        self.walk(trees, recorder, |node| node.search(key_head, key))
    }

    /// From the root to the last leaf with keys below `key` (`None`: the last leaf of all).
    pub(crate) fn descend_below(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        key: Option<&[u8]>,
    ) -> LeafId {
        let key = key.map(|key| (head(key), key));
        self.walk(trees, recorder, |node| node.search_below(key))
    }

    /// From the root to the node above the leaf whose range holds `key`.
    pub(super) fn descend_to_parent(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        key_head: u64,
        key: &[u8],
    ) -> InnerId {
        let root = self.root.load(Ordering::Acquire);
        let choose = |node: &InnerNode| node.search(key_head, key);
        let parent = walk_down(trees, recorder, root, 2, choose);
        InnerId(parent.unwrap_or(root))
    }

    /// The rest of the way, from what [`descend_to_parent`](Self::descend_to_parent) found.
    pub(super) fn descend_from(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        parent: InnerId,
        key_head: u64,
        key: &[u8],
    ) -> LeafId {
        match walk_down(trees, recorder, parent.0, 1, |node| node.search(key_head, key)) {
            Some(leaf) => {
                recorder.count(Counter::Descents, 1);
                LeafId(leaf)
            }
            None => self.descend(trees, recorder, key_head, key),
        }
    }

    #[inline]
    fn walk(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        choose: impl Fn(&InnerNode) -> usize,
    ) -> LeafId {
        loop {
            let root = self.root.load(Ordering::Acquire);
            if let Some(leaf) = walk_down(trees, recorder, root, 1, &choose) {
                recorder.count(Counter::Descents, 1);
                return LeafId(leaf);
            }
        }
    }
}

/// From node `from` down: the child that is chosen in a node of `level`. None if a node changed
/// meanwhile, or stands below that level.
#[inline]
fn walk_down(
    trees: &Trees,
    recorder: &Recorder,
    from: u32,
    level: u32,
    choose: impl Fn(&InnerNode) -> usize,
) -> Option<u32> {
    let mut id = from;
    let mut nodes = 0;
    loop {
        nodes += 1;
        // A torn child is never followed: the version is checked before it is used.
        let node = trees.inners.get(id);
        let version = node.version.wait_readable(recorder);
        let child = node.child(choose(node));
        let own_level = node.level();
        if !node.version.validate(version) {
            recorder.count(Counter::DescentRestarts, 1);
            return None;
        }
        if own_level <= level {
            recorder.latch_requests(LatchClass::Inner, nodes);
            return (own_level == level).then_some(child);
        }
        id = child;
    }
}
