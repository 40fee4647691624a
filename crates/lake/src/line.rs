//! What the metadata of a table says about one node: its mark, and whether main still has it.
//!
//! A table can go back without its properties: rolling main back to an older snapshot leaves the
//! mark as it was. So the mark is believed only as long as the newest snapshot of the node on
//! main's line repeats it. Snapshots that expired say nothing, neither for nor against.

use iceberg::spec::{SnapshotRef, TableMetadata};
use onrush_fault::{Fault, planted};

use crate::error::FencedBecause;
use crate::mark::{Mark, NodeId};

/// The node's mark, if the table has one, checked against main's line.
///
/// # Errors
/// The property is no mark, or main went back behind it.
pub(crate) fn mark_on_main(
    metadata: &TableMetadata,
    node: NodeId,
) -> Result<Option<Mark>, FencedBecause> {
    let Some(property) =
        Mark::find(metadata.properties(), node).map_err(FencedBecause::MarkUnreadable)?
    else {
        return Ok(None);
    };
    if metadata.current_snapshot().is_none() {
        // Every mark came with a snapshot.
        return Err(FencedBecause::MainGone);
    }
    if planted(Fault::LakeMarkOfSnapshot) {
        let newest = metadata.current_snapshot().map(|it| &it.summary().additional_properties);
        let mark = newest.map_or(Ok(None), |summary| Mark::find(summary, node));
        return mark.map_err(FencedBecause::MarkUnreadable);
    }
    for snapshot in main_line(metadata) {
        let summary = Mark::find(&snapshot.summary().additional_properties, node)
            .map_err(FencedBecause::MarkUnreadable)?;
        match summary {
            None => {}
            Some(summary) if summary == property => break,
            Some(summary) => return Err(FencedBecause::RolledBack { property, summary }),
        }
    }
    Ok(Some(property))
}

/// Whether main may have gone on from this snapshot: it is on main's line, or expired.
///
/// # Errors
/// The snapshot is still there and main is not on its line, or there is no main.
pub(crate) fn check_confirmed(
    metadata: &TableMetadata,
    snapshot_id: i64,
) -> Result<(), FencedBecause> {
    let is_on_main = main_line(metadata).any(|snapshot| snapshot.snapshot_id() == snapshot_id);
    let is_known = metadata.snapshot_by_id(snapshot_id).is_some();
    if is_on_main || (!is_known && metadata.current_snapshot().is_some()) {
        Ok(())
    } else {
        Err(FencedBecause::ConfirmedNotOnMain { snapshot_id })
    }
}

/// From main's snapshot to its oldest ancestor that has not expired.
fn main_line(metadata: &TableMetadata) -> impl Iterator<Item = &SnapshotRef> {
    let parent = |snapshot: &&SnapshotRef| {
        snapshot.parent_snapshot_id().and_then(|id| metadata.snapshot_by_id(id))
    };
    // Metadata that somebody damaged may lead in a circle.
    let length = metadata.snapshots().len();
    std::iter::successors(metadata.current_snapshot(), parent).take(length)
}
