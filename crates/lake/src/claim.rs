//! Who may drain as a node, and from where on: decided by the marks that a table shows, the same
//! for every target.
//!
//! A claim is one commit: it sets the node's mark, with a fresh nonce, where the mark is. The first
//! claim of a database that was restored from a backup of another node also closes that node, whose
//! database was lost, and begins where the rows of both part:
//!
//! ```text
//! log of the lost node   ───────────────M──────F───────     M: its mark, rows below are in the table
//! log of the new node                          └────────     F: the restored database has its rows below
//! ```
//!
//! * M below F: the rows between are in the restored database, and in no file yet. The new node
//!   brings them, under its own number and their own LSNs.
//! * M above F: the table has rows that the restored database lost. They stay, as rows of the lost
//!   node.
//!
//! So the new node begins at the lower one of M and F. Whoever is restored from a backup of the new
//! node does the same with both: the mark of the youngest of the lost nodes that has one says what
//! is in the table, below the positions at which all that came after it parted.
//!
//! Invariants
//! 1. One history drains as a node: a mark of another history is never claimed.
//! 2. A mark that is closed is never moved and never claimed.
//! 3. Of two databases that were restored from one backup, one closes the lost node. The other finds
//!    it closed, and stops.

use std::collections::BTreeMap;

use onrush_fault::{Fault, planted};
use uuid::Uuid;

use crate::error::FencedBecause;
use crate::mark::{Mark, NodeId};

/// A node whose database was lost, while this one was restored from a backup of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostNode {
    /// Its number.
    pub node: NodeId,
    /// Its history.
    pub history: u128,
    /// Rows that it wrote below this LSN are in the restored database, and none at or above.
    pub restored_to: u64,
}

/// Who claims to drain as a node.
#[derive(Debug, Clone, Copy)]
pub struct Claimant<'a> {
    /// As which node.
    pub node: NodeId,
    /// Of its database.
    pub history: u128,
    /// Drawn for this claim.
    pub nonce: u128,
    /// The nodes that its database was restored from, one from the other, the oldest first.
    pub lost: &'a [LostNode],
}

/// What a node knows of a table it claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedMark {
    /// Nothing was confirmed. Without a mark the drain begins at `start_lsn`; a mark of the same
    /// history, from a claim whose note was lost, is gone on from.
    Nothing {
        /// The LSN of the first row that is to come. After nodes that were lost: where
        /// [`start_after`] begins by the marks that were looked at; if these have moved, nothing is
        /// claimed.
        start_lsn: u64,
        /// What a node that was lost had confirmed when the backup was made.
        of_lost: Option<(NodeId, Confirmed)>,
    },
    /// What the node noted last.
    Confirmed(Confirmed),
}

impl ExpectedMark {
    /// For the first claim of a node, of whose database nothing was restored.
    #[must_use]
    pub fn start(start_lsn: u64) -> ExpectedMark {
        ExpectedMark::Nothing { start_lsn, of_lost: None }
    }

    /// The note that the table has to go with, and whose.
    pub(crate) fn confirmed(&self, own: NodeId) -> Option<(NodeId, Confirmed)> {
        match self {
            ExpectedMark::Nothing { of_lost, .. } => *of_lost,
            ExpectedMark::Confirmed(confirmed) => Some((own, *confirmed)),
        }
    }
}

/// What a node notes after a claim and after each applied commit, and shows at its next claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confirmed {
    /// The table it is about; nil where tables have no such number.
    pub table_uuid: Uuid,
    /// A snapshot that has all rows below `lsn`; 0 where tables have no snapshots.
    pub snapshot_id: i64,
    /// The mark's LSN.
    pub lsn: u64,
}

/// A claim that was applied: from this mark on the node may append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// With the new nonce, and the LSN at which the predecessor stopped.
    pub mark: Mark,
    /// To be noted before the first append.
    pub confirmed: Confirmed,
}

/// What a claim does to a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing: it was applied before, and this is its mark.
    Applied(Mark),
    /// Nothing now: a lost node is not where it was when the start was decided.
    LostNodeMoved,
    /// It moves these marks in one commit: its own one, and those of lost nodes, which it closes.
    Write { own: Change, closed: Vec<Change> },
}

/// A mark that a commit moves, if it is still where it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) node: NodeId,
    pub(crate) before: Option<Mark>,
    pub(crate) after: Mark,
}

/// Where a database goes on that was restored from these nodes, the oldest first; none if the table
/// has no mark of any.
#[must_use]
pub fn start_after(marks: &BTreeMap<NodeId, Mark>, lost: &[LostNode]) -> Option<u64> {
    let youngest = lost.iter().rposition(|lost| marks.contains_key(&lost.node))?;
    let mark = marks.get(&lost.get(youngest)?.node)?;
    if planted(Fault::LakeGoesOnAtMark) {
        return Some(mark.lsn);
    }
    if planted(Fault::LakeGoesOnAtEnd) {
        return lost.last().map(|lost| lost.restored_to);
    }
    lost[youngest..].iter().map(|lost| lost.restored_to).chain([mark.lsn]).min()
}

/// The next step of a claim, by the marks of the claimant and of the lost nodes.
///
/// # Errors
/// Why it may not claim.
pub(crate) fn next_step(
    marks: &BTreeMap<NodeId, Mark>,
    by: &Claimant<'_>,
    expected: &ExpectedMark,
) -> Result<Step, FencedBecause> {
    let found = marks.get(&by.node).copied();
    if let Some(found) = found {
        check_open(found)?;
        if found.history != by.history {
            return Err(FencedBecause::OtherHistory { expected: by.history, found: found.history });
        }
        if let ExpectedMark::Confirmed(confirmed) = expected
            && found.lsn < confirmed.lsn
        {
            return Err(FencedBecause::MarkBelow { confirmed: confirmed.lsn, found: found.lsn });
        }
        if found.nonce == by.nonce || planted(Fault::LakeNonceKept) {
            return Ok(Step::Applied(found));
        }
        let after = Mark::new(by.history, by.nonce, found.lsn);
        let own = Change { node: by.node, before: Some(found), after };
        return Ok(Step::Write { own, closed: Vec::new() });
    }
    let ExpectedMark::Nothing { start_lsn, of_lost } = *expected else {
        return Err(FencedBecause::MarkMissing);
    };
    if let Some((node, confirmed)) = of_lost {
        match marks.get(&node) {
            None => return Err(FencedBecause::MarkMissing),
            Some(found) if found.lsn < confirmed.lsn => {
                let (confirmed, found) = (confirmed.lsn, found.lsn);
                return Err(FencedBecause::MarkBelow { confirmed, found });
            }
            Some(_) => {}
        }
    }
    let mut closed = Vec::new();
    for (place, lost) in by.lost.iter().enumerate() {
        let found = marks.get(&lost.node).copied();
        if is_to_close(found, place, by)? {
            // Without a mark nothing of it is in the table but what its own forebears brought.
            let lsn = start_after(marks, &by.lost[..place]).unwrap_or(start_lsn);
            let mark = found.unwrap_or(Mark::new(lost.history, by.nonce, lsn));
            let after = mark.closed(by.node, by.nonce);
            closed.push(Change { node: lost.node, before: found, after });
        }
    }
    if planted(Fault::LakeLostNodeLeftOpen) {
        closed.clear();
    }
    if start_after(marks, by.lost).is_some_and(|start| start != start_lsn) {
        return Ok(Step::LostNodeMoved);
    }
    let after = Mark::new(by.history, by.nonce, start_lsn);
    Ok(Step::Write { own: Change { node: by.node, before: None, after }, closed })
}

/// Whether a claim without a mark yet has to close this lost node.
fn is_to_close(
    found: Option<Mark>,
    place: usize,
    by: &Claimant<'_>,
) -> Result<bool, FencedBecause> {
    let Some(LostNode { node, history, .. }) = by.lost.get(place).copied() else {
        return Ok(false);
    };
    let Some(found) = found else { return Ok(true) };
    if found.history != history {
        let (expected, found) = (history, found.history);
        return Err(FencedBecause::LostNodeIsAnother { node, expected, found });
    }
    let is_line = |closer: NodeId| by.lost[place + 1..].iter().any(|lost| lost.node == closer);
    match found.closed_by {
        None => Ok(true),
        Some(closer) if is_line(closer) => Ok(false),
        // It came with a mark of this node's.
        Some(closer) if closer == by.node => Err(FencedBecause::MarkMissing),
        Some(closer) => Err(FencedBecause::LostNodeIsTaken { node, by: closer }),
    }
}

/// A mark that is closed is nobody's any more.
pub(crate) fn check_open(found: Mark) -> Result<(), FencedBecause> {
    match found.closed_by {
        None => Ok(()),
        Some(by) => Err(FencedBecause::Closed { by, at: found.lsn }),
    }
}

/// What a mark says of an append between two others: whether it was applied.
///
/// # Errors
/// The mark is neither.
pub(crate) fn is_applied(
    found: Option<Mark>,
    from: &Mark,
    to: &Mark,
) -> Result<bool, FencedBecause> {
    let found = found.ok_or(FencedBecause::MarkMissing)?;
    if found == *to {
        return Ok(true);
    }
    if found == *from {
        return Ok(false);
    }
    check_open(found)?;
    Err(if found.history != from.history {
        FencedBecause::OtherHistory { expected: from.history, found: found.history }
    } else if found.nonce != from.nonce {
        FencedBecause::OtherNonce { found }
    } else if found.lsn < from.lsn {
        FencedBecause::MarkBelow { confirmed: from.lsn, found: found.lsn }
    } else if found.lsn > to.lsn {
        FencedBecause::MarkAhead { tried: to.lsn, found: found.lsn }
    } else {
        FencedBecause::MarkBetween { from: from.lsn, found: found.lsn, to: to.lsn }
    })
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: u64 = 1;

    fn lost(node: u32, restored_to: u64) -> LostNode {
        LostNode { node: NodeId(node), history: node.into(), restored_to }
    }

    fn mark(node: u32, lsn: u64) -> (NodeId, Mark) {
        (NodeId(node), Mark::new(node.into(), 1, lsn))
    }

    fn by(node: u32, lost: &[LostNode]) -> Claimant<'_> {
        Claimant { node: NodeId(node), history: node.into(), nonce: 99, lost }
    }

    fn claim(
        marks: &mut BTreeMap<NodeId, Mark>,
        node: u32,
        lost: &[LostNode],
    ) -> Result<u64, FencedBecause> {
        let start_lsn = start_after(marks, lost).unwrap_or(FIRST);
        match next_step(marks, &by(node, lost), &ExpectedMark::start(start_lsn))? {
            Step::Write { own, closed } => {
                marks.extend(closed.iter().chain([&own]).map(|it| (it.node, it.after)));
                Ok(own.after.lsn)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_restored_database_goes_on_at_the_lower_of_mark_and_end() {
        for (mark_lsn, end, start) in [(50, 80, 50), (80, 50, 50), (50, 50, 50)] {
            let mut marks = BTreeMap::from([mark(1, mark_lsn)]);
            assert_eq!(claim(&mut marks, 2, &[lost(1, end)]), Ok(start));
            let closed = marks[&NodeId(1)];
            assert_eq!((closed.lsn, closed.closed_by), (mark_lsn, Some(NodeId(2))));
            let again = next_step(&marks, &by(1, &[]), &ExpectedMark::start(FIRST));
            assert_eq!(again, Err(FencedBecause::Closed { by: NodeId(2), at: mark_lsn }));
        }
    }

    #[test]
    fn a_node_that_never_drained_is_closed_all_the_same() {
        let mut marks = BTreeMap::new();
        assert_eq!(claim(&mut marks, 2, &[lost(1, 80)]), Ok(FIRST));
        assert_eq!(marks[&NodeId(1)].closed_by, Some(NodeId(2)));
        assert_eq!(marks[&NodeId(1)].lsn, FIRST);
    }

    #[test]
    fn who_is_restored_again_goes_on_from_the_youngest_mark() {
        let line = [lost(1, 60), lost(2, 80)];
        // The second node drained on.
        let mut marks = BTreeMap::from([mark(1, 50)]);
        assert_eq!(claim(&mut marks, 2, &line[..1]), Ok(50));
        marks.insert(NodeId(2), marks[&NodeId(2)].at(70));
        assert_eq!(claim(&mut marks, 3, &line), Ok(70));
        assert_eq!(marks[&NodeId(1)].closed_by, Some(NodeId(2)));
        assert_eq!(marks[&NodeId(2)].closed_by, Some(NodeId(3)));
        // It never came so far as to claim: both are closed, as far as they are in the table.
        let mut marks = BTreeMap::from([mark(1, 70)]);
        assert_eq!(claim(&mut marks, 3, &line), Ok(60));
        assert_eq!(marks[&NodeId(1)].lsn, 70);
        assert_eq!((marks[&NodeId(2)].lsn, marks[&NodeId(2)].closed_by), (60, Some(NodeId(3))));
    }

    #[test]
    fn of_two_successors_one_goes_on() {
        let mut marks = BTreeMap::from([mark(1, 50)]);
        claim(&mut marks, 2, &[lost(1, 80)]).unwrap();
        let taken = FencedBecause::LostNodeIsTaken { node: NodeId(1), by: NodeId(2) };
        assert_eq!(claim(&mut marks, 3, &[lost(1, 70)]), Err(taken.clone()));
        assert_eq!(claim(&mut marks, 5, &[lost(1, 70), lost(4, 90)]), Err(taken));
        // By the same number.
        let other = Claimant { history: 7, ..by(2, &[]) };
        let refused = next_step(&marks, &other, &ExpectedMark::start(FIRST));
        assert_eq!(refused, Err(FencedBecause::OtherHistory { expected: 7, found: 2 }));
    }

    #[test]
    fn a_lost_node_that_moves_meanwhile_is_looked_at_again() {
        let line = [lost(1, 80)];
        let expected = ExpectedMark::start(50);
        let marks = BTreeMap::from([mark(1, 60)]);
        assert_eq!(next_step(&marks, &by(2, &line), &expected), Ok(Step::LostNodeMoved));
        // Beyond the backup it may move as it likes.
        let (marks, expected) = (BTreeMap::from([mark(1, 90)]), ExpectedMark::start(80));
        assert!(matches!(next_step(&marks, &by(2, &line), &expected), Ok(Step::Write { .. })));
    }

    #[test]
    fn what_the_lost_node_had_confirmed_must_be_there() {
        let (line, table_uuid) = ([lost(1, 80)], Uuid::nil());
        let confirmed = Confirmed { table_uuid, snapshot_id: 0, lsn: 60 };
        let expected =
            ExpectedMark::Nothing { start_lsn: 50, of_lost: Some((NodeId(1), confirmed)) };
        let refused = |marks| next_step(&marks, &by(2, &line), &expected).unwrap_err();
        assert_eq!(refused(BTreeMap::new()), FencedBecause::MarkMissing);
        let below = FencedBecause::MarkBelow { confirmed: 60, found: 50 };
        assert_eq!(refused(BTreeMap::from([mark(1, 50)])), below);
        let (expected, found) = (1, 9);
        let another = FencedBecause::LostNodeIsAnother { node: NodeId(1), expected, found };
        assert_eq!(refused(BTreeMap::from([(NodeId(1), Mark::new(9, 1, 70))])), another);
    }
}
