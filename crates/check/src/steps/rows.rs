//! Every row of one image.

use crate::decode::image::{Image, entry_offset, take_entry};
use crate::decode::row::RowFault;
use crate::invariant::Invariant;
use crate::steps::catalogue::TablePlan;

/// Key and row together take no more.
const ROW_BYTES_MAX: usize = 8000;

/// A row that is not as it must be.
pub(crate) struct Fault<'b> {
    pub(crate) invariant: Invariant,
    /// Byte position in the image.
    pub(crate) offset: usize,
    pub(crate) key: &'b [u8],
    pub(crate) found: String,
}

/// Checks all rows of an image against its table; `end` is E. Raises the highest numbers of the
/// generated columns.
pub(crate) fn check<'b>(
    image: &Image<'b>,
    plan: &TablePlan,
    end: u64,
    highest: &mut [Option<u64>],
    mut report: impl FnMut(Fault<'b>),
) {
    let mut rest = image.entries;
    let mut previous: &[u8] = &[];
    for number in 0..image.count {
        let start = rest;
        let Some(entry) = take_entry(&mut rest) else {
            let found = format!("entry {number} of {} goes beyond the entries", image.count);
            return report(fault(image, Invariant::ImageAddsUp, start, &[], found));
        };
        let key = entry.key;
        let mut at = |invariant, found: String| report(fault(image, invariant, start, key, found));
        if entry.lsn.wrapping_sub(1) >= end.wrapping_sub(1) {
            at(Invariant::RowLsn, format!("LSN {}, where E is {end}", entry.lsn));
        }
        if number > 0 && !is_below(previous, key) {
            at(Invariant::KeysAscend, "a key that is not above the one before".to_owned());
        }
        if let Err(found) = plan.key.check(key) {
            at(Invariant::KeyDecodes, found.to_owned());
        }
        match plan.row.check(entry.value) {
            Ok(()) if key.len() + entry.value.len() > ROW_BYTES_MAX => {
                at(Invariant::RowDecodes, "key and row take more bytes than they may".to_owned());
            }
            Ok(()) => {
                for (generated, highest) in plan.generated.iter().zip(highest.iter_mut()) {
                    *highest =
                        (*highest).max(generated.number(&plan.key, &plan.row, key, entry.value));
                }
            }
            Err(RowFault::Shape(found)) => at(Invariant::RowDecodes, found.to_owned()),
            Err(RowFault::Value(column, found)) => {
                at(Invariant::ValuesFit, format!("column {column}: {found}"));
            }
        }
        if let Some((low, high)) = image.fences
            && (number == 0 || number + 1 == image.count)
            && (key < low || high.is_some_and(|high| key >= high))
        {
            at(Invariant::RowInsideFences, "a key outside the fences of its image".to_owned());
        }
        previous = key;
    }
    if !rest.is_empty() {
        let found = format!("{} bytes are left over after the last entry", rest.len());
        report(fault(image, Invariant::ImageAddsUp, rest, &[], found));
    }
}

#[cold]
fn fault<'b>(
    image: &Image<'b>,
    invariant: Invariant,
    rest: &[u8],
    key: &'b [u8],
    found: String,
) -> Fault<'b> {
    Fault { invariant, offset: entry_offset(image, rest), key, found }
}

/// Keys of eight bytes are compared without a call.
#[inline]
fn is_below(left: &[u8], right: &[u8]) -> bool {
    match (left.as_array::<8>(), right.as_array::<8>()) {
        (Some(left), Some(right)) => u64::from_be_bytes(*left) < u64::from_be_bytes(*right),
        _ => left < right,
    }
}

/// How many rows of an image lie between two fences.
pub(crate) fn count_between(image: &Image<'_>, low: &[u8], high: Option<&[u8]>) -> u64 {
    let mut rest = image.entries;
    let mut found = 0;
    while let Some(entry) = take_entry(&mut rest) {
        let inside = entry.key >= low && high.is_none_or(|high| entry.key < high);
        found += u64::from(inside);
    }
    found
}
