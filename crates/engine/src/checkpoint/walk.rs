//! Step 4 of a checkpoint: the leaves of every changed key range, by their fences, with written images.

use std::collections::BTreeMap;
use std::sync::Arc;

use onrush_waits::{Recorder, Wait};

use super::Store;
use super::directory::{
    Directory, SEGMENT_ENTRIES, Segment, SegmentEntry, StoredRows, TableDirectory,
};
use crate::catalog::TableEntry;
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::node::fence::Fence;
use crate::space::Cursor;
use crate::status::LargeTable;
use crate::tree::Refusal;
use crate::units::ObjectId;

/// What the next directory will hold.
pub(super) struct Collected {
    tables: Vec<CollectedTable>,
    next_object: u32,
    large: LargeTable,
}

struct CollectedTable {
    id: u32,
    object: ObjectId,
    definition: Vec<u8>,
    counters: Vec<(u32, u64)>,
    parts: Vec<Part>,
}

/// A key range of a table.
enum Part {
    /// Nothing changed in it.
    Kept(Arc<Segment>),
    /// Its leaves as they are now.
    Fresh(Vec<SegmentEntry>),
}

/// Looks at all tables. The caller keeps tables from being created, truncated and dropped.
pub(super) fn collect(
    store: &Store,
    recorder: &Recorder,
    installed: &Directory,
    changed: &[(ObjectId, Box<[u8]>)],
    swept: &[u64],
) -> Result<Collected> {
    let mut lows = by_object(changed);
    let mut tables = Vec::new();
    let mut collect_table = |id: u32, table: &TableEntry, object: ObjectId| {
        let lows = lows.remove(&object).unwrap_or_default();
        let known = installed.tables.get(&id).filter(|known| known.object == object);
        let parts = match known {
            Some(known) => changed_parts(store, recorder, table, known, &lows)?,
            None if !table.tree.is_logged() => vec![Part::Fresh(vec![SegmentEntry::empty()])],
            None => {
                vec![Part::Fresh(leaves(store, recorder, table, object, &[], None)?.entries)]
            }
        };
        tables.push(CollectedTable {
            id,
            object,
            definition: table.schema.definition().to_bytes(),
            counters: table.counters(),
            parts,
        });
        Ok::<_, Error>(())
    };
    for table in store.catalog.all() {
        collect_table(table.id, &table, table.tree.object().ok_or_else(do_not_meet)?)?;
    }
    let mut private = Vec::new();
    for table in store.catalog.all_private() {
        // Its transaction was rolled back meanwhile.
        let Some(object) = table.tree.object() else { continue };
        // Its own number stands for the table's, which it may share with one that is there.
        match collect_table(object.number(), &table, object) {
            Ok(()) => private.push(object),
            // The same.
            Err(_) if table.tree.object() != Some(object) => {}
            Err(error) => return Err(error),
        }
    }
    // Behind the leaves: whoever was committed when one of them was imaged is in it.
    let large = LargeTable { private, ..store.resolver.large.table(swept) };
    Ok(Collected { tables, next_object: store.catalog.next_object(), large })
}

/// The low fences of each object.
fn by_object(changed: &[(ObjectId, Box<[u8]>)]) -> BTreeMap<ObjectId, Vec<&[u8]>> {
    let mut lows: BTreeMap<ObjectId, Vec<&[u8]>> = BTreeMap::new();
    for (object, low) in changed {
        lows.entry(*object).or_default().push(low);
    }
    lows
}

/// Low fences of what is not as a directory says.
type Changed = Vec<(ObjectId, Box<[u8]>)>;

/// Looks at the key ranges of `changed` alone, and takes those of them that are clean: what a directory with the same C
/// may have. With what was not taken; none if no directory can be made or none would be another one. The caller keeps
/// tables from being created, truncated and dropped.
pub(super) fn collect_clean(
    store: &Store,
    recorder: &Recorder,
    installed: &Directory,
    changed: &[(ObjectId, Box<[u8]>)],
) -> Result<Option<(Collected, Changed)>> {
    if !store.catalog.all_private().is_empty() || !installed.large.private.is_empty() {
        return Ok(None);
    }
    let all = store.catalog.all();
    let mut lows = by_object(changed);
    let mut tables = Vec::with_capacity(all.len());
    let mut left = Vec::new();
    let mut takes_some = false;
    for table in all {
        let object = table.tree.object().ok_or_else(do_not_meet)?;
        let definition = table.schema.definition().to_bytes();
        let known = installed.tables.get(&table.id);
        let known = known.filter(|known| known.object == object && known.definition == definition);
        let lows = lows.remove(&object).unwrap_or_default();
        let parts = match known {
            Some(known) => {
                let (parts, left_here) = clean_parts(store, recorder, &table, known, &lows)?;
                left.extend(left_here.into_iter().map(|low| (object, low)));
                takes_some |= parts.iter().any(|part| matches!(part, Part::Fresh(_)));
                parts
            }
            // Temporary ones come and go all the time.
            None if !table.tree.is_logged() => vec![Part::Fresh(vec![SegmentEntry::empty()])],
            None => return Ok(None),
        };
        let counters = table.counters();
        tables.push(CollectedTable { id: table.id, object, definition, counters, parts });
    }
    // Behind the leaves, as in a checkpoint.
    let large = store.resolver.large.table(&[]);
    let collected = Collected { tables, next_object: store.catalog.next_object(), large };
    Ok(takes_some.then_some((collected, left)))
}

/// The segments of a table, those anew that can be; and low fences in the others that changed.
fn clean_parts(
    store: &Store,
    recorder: &Recorder,
    table: &TableEntry,
    known: &TableDirectory,
    lows: &[&[u8]],
) -> Result<(Vec<Part>, Vec<Box<[u8]>>)> {
    let mut changed: Vec<Vec<&[u8]>> = vec![Vec::new(); known.segments.len()];
    for low in lows {
        let index = known.segments.partition_point(|segment| &*segment.low <= *low);
        changed[index.saturating_sub(1)].push(low);
    }
    let mut parts = Vec::with_capacity(known.segments.len());
    let mut left = Vec::new();
    for (index, (segment, lows)) in known.segments.iter().zip(changed).enumerate() {
        let high = known.segments.get(index + 1).map(|next| &*next.low);
        let clean = match lows.is_empty() {
            true => None,
            false => clean_leaves(store, recorder, (table, known.object), &segment.low, high)?,
        };
        match clean {
            Some(entries) => parts.push(Part::Fresh(entries)),
            None => {
                left.extend(lows.into_iter().map(Box::from));
                parts.push(Part::Kept(Arc::clone(segment)));
            }
        }
    }
    Ok((parts, left))
}

/// As [`leaves`]; none if one of them is dirty without a range, or if they do not begin and end where the segment does.
fn clean_leaves(
    store: &Store,
    recorder: &Recorder,
    (table, object): (&TableEntry, ObjectId),
    low: &[u8],
    high: Option<&[u8]>,
) -> Result<Option<Vec<SegmentEntry>>> {
    let mut entries = Vec::new();
    let mut at = low.to_vec();
    loop {
        let Ok((_, leaf)) = table.tree.latch_shared(store, recorder, &at, object) else {
            return Ok(None);
        };
        let is_clean = leaf.range.is_some() || !leaf.is_dirty();
        let begins_here = match &leaf.range {
            Some(range) => *range.low == *at,
            None => leaf.low.bytes() == at,
        };
        let rows = StoredRows::of(&leaf);
        // An image that is being written is of a leaf that was dirty a moment ago.
        let is_written = match &rows {
            StoredRows::Image(image) => image.is_written(),
            StoredRows::Stock(_) | StoredRows::None => true,
        };
        if !is_clean || !begins_here || !is_written {
            return Ok(None);
        }
        entries.push(SegmentEntry { low: at.as_slice().into(), rows });
        let next = match &leaf.range {
            Some(range) => range.high.as_deref(),
            None => leaf.high.as_ref().map(Fence::bytes),
        };
        match (next, high) {
            (next, high) if next == high => return Ok(Some(entries)),
            (Some(next), high) if high.is_none_or(|high| next < high) => at = next.to_vec(),
            _ => return Ok(None),
        }
    }
}

fn changed_parts(
    store: &Store,
    recorder: &Recorder,
    table: &TableEntry,
    known: &TableDirectory,
    lows: &[&[u8]],
) -> Result<Vec<Part>> {
    let mut touched = vec![false; known.segments.len()];
    for low in lows {
        let index = known.segments.partition_point(|segment| &*segment.low <= *low);
        touched[index.saturating_sub(1)] = true;
    }
    let mut parts = Vec::with_capacity(known.segments.len());
    let mut end = RangeEnd::AtNext;
    for (index, segment) in known.segments.iter().enumerate() {
        if !touched[index] || planted(Fault::SegmentNotRewritten) {
            if !end.is_at_next() {
                return Err(do_not_meet());
            }
            parts.push(Part::Kept(Arc::clone(segment)));
            continue;
        }
        let high = known.segments.get(index + 1).map(|next| &*next.low);
        let low = match &end {
            RangeEnd::AtNext => segment.low.to_vec(),
            RangeEnd::Beyond(low) => low.clone(),
            RangeEnd::OfTable => continue,
        };
        if high.is_some_and(|high| low.as_slice() > high) {
            continue;
        }
        if high.is_some_and(|high| low.as_slice() == high) {
            end = RangeEnd::AtNext;
            continue;
        }
        let range = leaves(store, recorder, table, known.object, &low, high)?;
        end = RangeEnd::of(range.end, high);
        add_fresh(&mut parts, range.entries);
    }
    if let RangeEnd::Beyond(_) = end {
        return Err(do_not_meet());
    }
    Ok(parts)
}

/// Where the last leaf of a segment's range ends: beyond it if the first leaves of the next
/// segments were empty and were merged into it.
enum RangeEnd {
    AtNext,
    Beyond(Vec<u8>),
    OfTable,
}

impl RangeEnd {
    fn of(end: Option<Vec<u8>>, high: Option<&[u8]>) -> RangeEnd {
        match (end, high) {
            (None, Some(_)) => RangeEnd::OfTable,
            (Some(end), Some(high)) if end.as_slice() > high => RangeEnd::Beyond(end),
            _ => RangeEnd::AtNext,
        }
    }

    fn is_at_next(&self) -> bool {
        matches!(self, RangeEnd::AtNext)
    }
}

/// Adds a range, to the one before it if both together are short.
fn add_fresh(parts: &mut Vec<Part>, entries: Vec<SegmentEntry>) {
    match parts.last_mut() {
        Some(Part::Fresh(before)) if before.len() + entries.len() <= SEGMENT_ENTRIES => {
            before.extend(entries);
        }
        _ => parts.push(Part::Fresh(entries)),
    }
}

fn do_not_meet() -> Error {
    Error::Internal("the walk found leaves that do not meet".to_owned())
}

/// The leaves of a range.
struct Range {
    entries: Vec<SegmentEntry>,
    /// Where the last of them ends; none at the end of the table.
    end: Option<Vec<u8>>,
}

/// The leaves from `low` on and below `high`, each with a written image or none.
fn leaves(
    store: &Store,
    recorder: &Recorder,
    table: &TableEntry,
    object: ObjectId,
    low: &[u8],
    high: Option<&[u8]>,
) -> Result<Range> {
    let mut entries = Vec::new();
    let mut at = low.to_vec();
    loop {
        let latched = table.tree.latch_shared(store, recorder, &at, object);
        let (entry, next) = match &latched {
            Ok((_, leaf)) if leaf.low.bytes() == at => {
                let rows = StoredRows::of(leaf);
                let entry = SegmentEntry { low: at.as_slice().into(), rows };
                // Of a range the first leaf stands for all.
                let high = match &leaf.range {
                    Some(range) => range.high.as_deref(),
                    None => leaf.high.as_ref().map(Fence::bytes),
                };
                (entry, high.map(<[u8]>::to_vec))
            }
            Ok(_) | Err(Refusal::Gone) => return Err(do_not_meet()),
            Err(refusal) => return Err(Error::Internal(format!("the walk met {refusal:?}"))),
        };
        drop(latched);
        if let StoredRows::Image(image) = &entry.rows
            && !planted(Fault::WalkNoWait)
            && !image.is_written()
        {
            let _wait = recorder.wait(Wait::ImageWrite);
            if !image.wait_written(&store.image_writes) {
                store.check_open()?;
            }
        }
        entries.push(entry);
        match next {
            Some(next) if high.is_none_or(|high| next.as_slice() < high) => at = next,
            end => return Ok(Range { entries, end }),
        }
    }
}

impl Collected {
    /// Segments that must be written.
    pub(super) fn changed_segments(&self) -> u64 {
        let parts = self.tables.iter().flat_map(|table| &table.parts);
        parts.filter(|part| matches!(part, Part::Fresh(_))).count() as u64
    }

    /// Writes the changed segments.
    pub(super) fn write(self, store: &Store) -> Result<Directory> {
        let mut cursor = Cursor::default();
        let mut tables = BTreeMap::new();
        for table in self.tables {
            let mut segments = Vec::new();
            for part in table.parts {
                match part {
                    Part::Kept(segment) => segments.push(segment),
                    Part::Fresh(entries) => {
                        for entries in divided(entries) {
                            let segment =
                                Segment::write(store, &mut cursor, table.object, entries)?;
                            segments.push(Arc::new(segment));
                        }
                    }
                }
            }
            let CollectedTable { id, object, definition, counters, parts: _ } = table;
            tables.insert(id, TableDirectory { object, definition, counters, segments });
        }
        Ok(Directory { tables, next_object: self.next_object, large: self.large, root: None })
    }
}

/// Divides a range that has grown too long for one segment. Each part has memory of its own, as much as
/// it needs: a checkpoint of a large table makes thousands of parts of one range.
fn divided(entries: Vec<SegmentEntry>) -> impl Iterator<Item = Vec<SegmentEntry>> {
    let mut rest = entries.into_iter();
    let mut left = rest.len();
    let mut is_first = true;
    std::iter::from_fn(move || {
        let part = if left > SEGMENT_ENTRIES * 3 / 2 { SEGMENT_ENTRIES } else { left };
        left -= part;
        let is_wanted = part > 0 || std::mem::take(&mut is_first);
        is_first = false;
        is_wanted.then(|| rest.by_ref().take(part).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_long_range_take_no_more_memory_than_their_entries() {
        let leaves = 100 * SEGMENT_ENTRIES + 7;
        let entries = (0..leaves).map(|_| SegmentEntry::empty()).collect();
        let parts: Vec<Vec<SegmentEntry>> = divided(entries).collect();
        let held: usize = parts.iter().map(Vec::len).sum();
        let capacity: usize = parts.iter().map(Vec::capacity).sum();
        assert_eq!((parts.len(), held), (100, leaves));
        assert!(capacity <= leaves + parts.len(), "{capacity} places for {leaves} leaves");
    }

    #[test]
    fn a_range_is_divided_where_it_has_half_as_many_entries_again_as_a_segment() {
        let lengths = |leaves: usize| -> Vec<usize> {
            let entries = (0..leaves).map(|_| SegmentEntry::empty()).collect();
            divided(entries).map(|part| part.len()).collect()
        };
        assert_eq!(lengths(0), [0]);
        assert_eq!(lengths(384), [384]);
        assert_eq!(lengths(385), [256, 129]);
        assert_eq!(lengths(800), [256, 256, 288]);
    }
}
