//! The counters behind tables and generated keys: beyond what is stored, and not near their ends.

use std::collections::HashMap;

use crate::decode::slot::SlotNumber;
use crate::generated::Generated;
use crate::invariant::Invariant;
use crate::steps::catalogue::Catalogue;
use crate::steps::images::Tally;
use crate::steps::records::Records;
use crate::store::Store;

/// A counter with fewer numbers left than one in so many is told of.
const TOLD_PART: u64 = 16;
/// Numbers for tables; the last one is never handed out.
const OBJECTS_END: u64 = u32::MAX as u64;

/// Checks all counters, by what the images and the log from the checkpoint on have shown.
pub(crate) fn check(
    store: &Store<'_>,
    catalogue: &Catalogue,
    records: &Records<'_>,
    tally: &Tally,
) {
    let Some(root) = store.superblock.root else { return };
    if let Some(found) = few_left("table numbers", records.next_object.into(), OBJECTS_END) {
        store.findings.add(store.at_slot(Invariant::NumbersLeft, root.first, found));
    }
    for (index, table) in catalogue.tables.iter().enumerate() {
        let Some(plan) = &table.plan else { continue };
        if catalogue.is_private(table) {
            // They are in the record of the commit.
            continue;
        }
        let stored: HashMap<u32, u64> = table.root.counters.iter().copied().collect();
        for (number, generated) in plan.generated.iter().enumerate() {
            let column = generated.column as u32;
            let logged = records.marks.get(&(table.root.id, column)).copied().unwrap_or(0);
            let mark = stored.get(&column).copied().unwrap_or(0).max(logged);
            let highest = tally.tables[index].highest[number].max(records.highest[index][number]);
            check_mark(store, root.first, &plan.name, generated, (mark, highest));
        }
    }
}

/// One counter: its mark, and the highest number that a stored value comes from.
fn check_mark(
    store: &Store<'_>,
    at: SlotNumber,
    table: &str,
    generated: &Generated,
    (mark, highest): (u64, Option<u64>),
) {
    let name = &generated.name;
    let report = |invariant, found: String| {
        store.findings.add(store.at_slot(invariant, at, found).of_table(table));
    };
    if let Some(highest) = highest.filter(|highest| *highest >= mark) {
        let found = format!(
            "the counter of column {name} stands at {mark}, a stored value comes from number {highest}"
        );
        report(Invariant::CounterBeyond, found);
    }
    if let Some(found) = few_left(&format!("keys of column {name}"), mark, generated.numbers_end) {
        report(Invariant::NumbersLeft, found);
    }
}

/// Says so if few of the numbers below `end` are left when counting goes on at `next`.
fn few_left(what: &str, next: u64, end: u64) -> Option<String> {
    let left = end.saturating_sub(next);
    (left <= end / TOLD_PART).then(|| format!("of {end} {what} {left} are left"))
}
