//! Damage in root, segments, slots and the catalogue.

use onrush_check::Invariant;

use crate::model::NONE;
use crate::{Case, Kind, kind};

pub fn kinds() -> Vec<Kind> {
    let mut kinds = pages();
    kinds.extend(fences_and_slots());
    kinds.extend(catalogue());
    kinds
}

fn pages() -> Vec<Kind> {
    use Invariant::{BlobNamed, PagePlace, RootDecodes, SegmentDecodes};
    vec![
        kind("a directory page of another slot", PagePlace, |case| {
            let slot = segment_slot(case);
            let wrong = 1 + case.random.next() % 60;
            let mut page = case.model.page(slot);
            page[24..32].copy_from_slice(&(slot + wrong).to_le_bytes());
            case.model.write_page(slot, page);
            true
        }),
        kind("a directory page of another database", PagePlace, |case| {
            let slot = segment_slot(case);
            let mut page = case.model.page(slot);
            page[8 + case.random.below(16)] ^= 1;
            case.model.write_page(slot, page);
            true
        }),
        kind("a segment that is not the one named", BlobNamed, |case| {
            let slot = segment_slot(case);
            let mut page = case.model.page(slot);
            let length = u32::from_le_bytes(page[40..44].try_into().unwrap()) as usize;
            page[48 + case.random.below(length)] ^= 1 << case.random.below(8);
            case.model.write_page(slot, page);
            true
        }),
        kind("a segment's page that holds less", BlobNamed, |case| {
            let slot = segment_slot(case);
            let mut page = case.model.page(slot);
            let length = u32::from_le_bytes(page[40..44].try_into().unwrap());
            let less = case.random.below(length as usize) as u32;
            page[40..44].copy_from_slice(&less.to_le_bytes());
            page[48 + less as usize..].fill(0);
            case.model.write_page(slot, page);
            true
        }),
        kind("a chain of pages that runs in a circle", BlobNamed, |case| {
            let slot = segment_slot(case);
            let mut page = case.model.page(slot);
            page[32..40].copy_from_slice(&slot.to_le_bytes());
            case.model.write_page(slot, page);
            true
        }),
        kind("two segments that took each other's slot", SegmentDecodes, |case| {
            let tables = &mut case.model.tables;
            let one = case.random.below(tables.len());
            let other = (one + 1) % tables.len();
            let (left, right) =
                (tables[one].segments[0].clone(), tables[other].segments[0].clone());
            (tables[one].segments[0].leaves, tables[other].segments[0].leaves) =
                (right.leaves, left.leaves);
            (tables[one].segments[0].object, tables[other].segments[0].object) =
                (right.object, left.object);
            case.model.save();
            true
        }),
        kind("a root that ends too early", RootDecodes, |case| {
            let root = case.model.root();
            let length = 5 + case.random.below(root.len() - 5);
            case.model.save_root(&root[..length]);
            true
        }),
        kind("a root with bytes left over", RootDecodes, |case| {
            let mut root = case.model.root();
            root.extend(std::iter::repeat_n(7, 1 + case.random.below(50)));
            case.model.save_root(&root);
            true
        }),
        kind("a segment of another object", SegmentDecodes, |case| {
            let table = case.random.below(case.model.tables.len());
            case.model.tables[table].segments[0].object ^= 1 + case.random.next() as u32 % 1000;
            case.model.save();
            true
        }),
        kind("a segment without leaves", SegmentDecodes, |case| {
            let table = case.random.below(case.model.tables.len());
            case.model.tables[table].segments[0].leaves.clear();
            case.model.save();
            true
        }),
    ]
}

fn segment_slot(case: &mut Case) -> u64 {
    let table = case.random.below(case.model.tables.len());
    case.model.tables[table].segments[0].slot
}

fn fences_and_slots() -> Vec<Kind> {
    use Invariant::{FencesMeet, LeafInsideImage, SlotExists, SlotOwned};
    vec![
        kind("leaves out of order", FencesMeet, |case| {
            let table = case.wide_table();
            let leaves = &mut case.model.tables[table].segments[0].leaves;
            let at = 1 + case.random.below(leaves.len() - 2);
            leaves.swap(at, at + 1);
            case.model.save();
            true
        }),
        kind("a leaf twice", FencesMeet, |case| {
            let table = case.wide_table();
            let leaves = &mut case.model.tables[table].segments[0].leaves;
            let at = case.random.below(leaves.len());
            leaves.insert(at, leaves[at].clone());
            case.model.save();
            true
        }),
        kind("a table whose first leaves are missing", FencesMeet, |case| {
            let table = case.wide_table();
            let leaves = &mut case.model.tables[table].segments[0].leaves;
            leaves.drain(..1 + case.random.below(2));
            case.model.save();
            true
        }),
        kind("a missing segment", FencesMeet, |case| {
            let table = case.random.below(case.model.tables.len());
            case.model.tables[table].segments.clear();
            case.model.save();
            true
        }),
        kind("a missing leaf", LeafInsideImage, |case| {
            let table = case.wide_table();
            let leaves = &mut case.model.tables[table].segments[0].leaves;
            let at = 1 + case.random.below(leaves.len() - 1);
            let takes_over = leaves[at - 1].slot != NONE;
            leaves.remove(at);
            case.model.save();
            takes_over
        }),
        kind("a fence that moved down", LeafInsideImage, |case| {
            let table = case.wide_table();
            let leaves = &mut case.model.tables[table].segments[0].leaves;
            let at = 1 + case.random.below(leaves.len() - 1);
            let (before, low) = (leaves[at - 1].low.clone(), leaves[at].low.clone());
            let lower = between(&before, &low);
            let moves = leaves[at].slot != NONE && lower > before && lower < low;
            leaves[at].low = lower;
            case.model.save();
            moves
        }),
        kind("a fence that moved up", LeafInsideImage, |case| {
            let table = case.wide_table();
            let leaves = &mut case.model.tables[table].segments[0].leaves;
            let at = 1 + case.random.below(leaves.len() - 1);
            leaves[at].low.push(1);
            let moves = leaves[at - 1].slot != NONE;
            case.model.save();
            moves
        }),
        kind("a slot that two leaves name", LeafInsideImage, |case| {
            let table = case.wide_table();
            let leaves = &mut case.model.tables[table].segments[0].leaves;
            let (one, other) = (case.random.below(leaves.len()), case.random.below(leaves.len()));
            let differ = leaves[one].slot != leaves[other].slot && leaves[other].slot != NONE;
            (leaves[one].slot, leaves[one].checksum) = (leaves[other].slot, leaves[other].checksum);
            case.model.save();
            differ
        }),
        kind("a slot behind the end of the file", SlotExists, |case| {
            let (table, segment, leaf) = case.leaf();
            let wrong = 1 << (20 + case.random.below(20));
            case.model.tables[table].segments[segment].leaves[leaf].slot = wrong;
            case.model.save();
            true
        }),
        kind("a slot of a data file that does not exist", SlotExists, |case| {
            let (table, segment, leaf) = case.leaf();
            let file = 1 + case.random.next() % 15;
            case.model.tables[table].segments[segment].leaves[leaf].slot |= file << 48;
            case.model.save();
            true
        }),
        kind("the header's slot as an image", SlotExists, |case| {
            let (table, segment, leaf) = case.leaf();
            case.model.tables[table].segments[segment].leaves[leaf].slot = 0;
            case.model.save();
            true
        }),
        kind("a slot that two tables name", SlotOwned, |case| {
            let ((table, segment, leaf), other) = (case.leaf(), case.leaf());
            let slot = case.slot(other);
            case.model.tables[table].segments[segment].leaves[leaf].slot = slot;
            case.model.save();
            table != other.0
        }),
        kind("a page of the directory as an image", SlotOwned, |case| {
            let (table, segment, leaf) = case.leaf();
            let slot = segment_slot(case);
            case.model.tables[table].segments[segment].leaves[leaf].slot = slot;
            case.model.save();
            true
        }),
    ]
}

/// A key between two others, as long as the second.
fn between(low: &[u8], high: &[u8]) -> Vec<u8> {
    let mut key = high.to_vec();
    for byte in key.iter_mut().rev() {
        if *byte > 0 {
            *byte -= 1;
            break;
        }
        *byte = 0xFF;
    }
    if key.as_slice() > low { key } else { high.to_vec() }
}

fn catalogue() -> Vec<Kind> {
    use Invariant::{CounterBeyond, Counters, DefinitionDecodes, LargeTransactions};
    use Invariant::{NumbersLeft, ObjectNumbers};
    vec![
        kind("a definition with a type that there is not", DefinitionDecodes, |case| {
            let table = case.random.below(case.model.tables.len());
            let definition = &mut case.model.tables[table].definition;
            let at = definition.iter().rposition(|byte| *byte == 0).unwrap();
            definition.truncate(at);
            case.model.save();
            true
        }),
        kind("a definition whose key column does not exist", DefinitionDecodes, |case| {
            let table = case.random.below(case.model.tables.len());
            let definition = &mut case.model.tables[table].definition;
            let last = definition.len() - 1;
            definition[last] = 1 + case.random.below(200) as u8;
            case.model.save();
            true
        }),
        kind("two tables of one name", ObjectNumbers, |case| {
            let tables = &mut case.model.tables;
            let one = 1 + case.random.below(tables.len() - 1);
            let mut other = 1 + case.random.below(tables.len() - 1);
            if other == one {
                other = if one == 1 { 2 } else { 1 };
            }
            tables[one].definition = tables[other].definition.clone();
            case.model.save();
            true
        }),
        kind("an object that was never handed out", ObjectNumbers, |case| {
            case.model.next_object = 1 + case.random.below(4) as u32;
            case.model.save();
            true
        }),
        kind("two tables of one object", ObjectNumbers, |case| {
            let tables = &mut case.model.tables;
            let one = case.random.below(tables.len());
            let other = (one + 1) % tables.len();
            tables[one].object = tables[other].object;
            case.model.save();
            true
        }),
        kind("a counter that is missing", Counters, |case| {
            let table = 1 + case.random.below(case.model.tables.len() - 1);
            case.model.tables[table].counters.clear();
            case.model.save();
            true
        }),
        kind("a counter of a column that needs none", Counters, |case| {
            let table = case.random.below(case.model.tables.len());
            case.model.tables[table].counters.push((1, case.random.next()));
            case.model.save();
            true
        }),
        kind("an identity behind the data", CounterBeyond, |case| {
            let identity =
                case.model.tables.iter().position(|table| {
                    table.definition.windows(8).any(|window| window == b"identity")
                });
            let behind = case.random.next() % 500;
            case.model.tables[identity.unwrap()].counters[0].1 = behind;
            case.model.save();
            true
        }),
        kind("a sequence behind the data", CounterBeyond, |case| {
            let table = 2 + case.random.below(case.model.tables.len() - 2);
            let name = String::from_utf8_lossy(&case.model.tables[table].definition).into_owned();
            case.model.tables[table].counters[0].1 = 0;
            case.model.save();
            // Random keys have no sequence.
            !name.contains("uuid-v4")
        }),
        kind("a large transaction whose number was never given", LargeTransactions, |case| {
            let mut root = case.model.root();
            let id = 9 + case.random.below(100) as u8;
            // The next number is 5; one was committed, at LSN 1, and wrote to no object; no object is private.
            root.extend([5, 1, id, 1, 0, 0]);
            case.model.save_root(&root);
            true
        }),
        kind("table numbers near their end", NumbersLeft, |case| {
            let left = case.random.next() as u32 % (u32::MAX / 16);
            case.model.next_object = u32::MAX - left;
            case.model.save();
            true
        }),
        kind("generated keys near their end", NumbersLeft, |case| {
            let table = 1 + case.random.below(case.model.tables.len() - 1);
            let name = String::from_utf8_lossy(&case.model.tables[table].definition).into_owned();
            // Of all strategies the one with the most numbers has 2^64.
            let left = case.random.next() >> 5;
            case.model.tables[table].counters[0].1 = u64::MAX - left;
            case.model.save();
            !name.contains("uuid-v4")
        }),
    ]
}
