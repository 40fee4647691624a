//! Every row of one image.

use onrush_lsn::Lsn;

use crate::decode::image::{Entry, Fences, Image, Intent, entry_offset, take_entry};
use crate::decode::row::RowFault;
use crate::invariant::Invariant;
use crate::steps::catalogue::TablePlan;
use crate::steps::large::LargeStatuses;

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

/// What the images are of: not all may have the same kinds of entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holder {
    /// Rows and intents of large transactions.
    Leaf,
    /// The same.
    Base,
    /// The same, and removals.
    Fragment,
}

/// What entries are held against.
#[derive(Clone, Copy)]
pub(crate) struct Limits<'a> {
    pub(crate) holder: Holder,
    /// The low fence, and the high one if there is one; None where nobody knows them.
    pub(crate) fences: Option<Fences<'a>>,
    /// E.
    pub(crate) end: Lsn,
    /// Large transactions below were begun.
    pub(crate) next_large: u64,
}

impl Limits<'_> {
    /// What is wrong with the stamp of an entry.
    fn stamp_fault(&self, entry: &Entry<'_>) -> Option<(Invariant, String)> {
        let Limits { holder, end, next_large, .. } = *self;
        if entry.is_removal() && holder != Holder::Fragment {
            return Some((Invariant::EntryHolder, "a removal outside of a fragment".to_owned()));
        }
        let Some(Intent { id, .. }) = entry.intent() else {
            let is_possible = entry.lsn().is_some_and(|lsn| (Lsn::FIRST..end).contains(&lsn));
            let found = || format!("LSN {}, where E is {end}", entry.lsn().unwrap_or_default());
            return (!is_possible).then(|| (Invariant::RowLsn, found()));
        };
        let is_possible = entry.is_of_large() && id > 0 && id < next_large;
        let found = || format!("an intent of transaction {id}, where {next_large} comes next");
        (!is_possible).then(|| (Invariant::RowLsn, found()))
    }
}

/// Checks all rows of an image against its table. Raises the highest numbers of the generated columns.
pub(crate) fn check<'b>(
    image: &Image<'b>,
    plan: &TablePlan,
    limits: Limits<'_>,
    highest: &mut [Option<u64>],
    mut report: impl FnMut(Fault<'b>),
) {
    let mut rest = image.entries;
    let mut previous: &[u8] = &[];
    let mut had_intent = false;
    for number in 0..image.count {
        let start = rest;
        let Some(entry) = take_entry(&mut rest) else {
            let found = format!("entry {number} of {} goes beyond the entries", image.count);
            return report(fault(image, Invariant::ImageAddsUp, start, &[], found));
        };
        let key = entry.key;
        let mut at = |invariant, found: String| report(fault(image, invariant, start, key, found));
        let intent = entry.intent();
        if let Some((invariant, found)) = limits.stamp_fault(&entry) {
            at(invariant, found);
        }
        // An intent stands behind the row of its key.
        let is_beside = intent.is_some() && !had_intent && previous == key;
        had_intent = intent.is_some();
        if number > 0 && !is_beside && !is_below(previous, key) {
            at(Invariant::KeysAscend, "a key that is not above the one before".to_owned());
        }
        if let Err(found) = plan.key.check(key) {
            at(Invariant::KeyDecodes, found.to_owned());
        }
        let removes = entry.is_removal() || intent.is_some_and(|intent| intent.removes);
        let checked = match removes {
            true if entry.value.is_empty() => Ok(()),
            true => Err(RowFault::Shape("a removal with a row")),
            false => plan.row.check(entry.value),
        };
        match checked {
            _ if removes && checked.is_ok() => {}
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
        if let Some((low, high)) = limits.fences
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

/// What lies between two fences of an image: rows, with what committed intents make of them, and changes of
/// transactions that are not committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) rows: u64,
    pub(crate) undecided: u64,
}

/// Counts what lies between two fences of an image.
pub(crate) fn count_between(
    image: &Image<'_>,
    low: &[u8],
    high: Option<&[u8]>,
    is_committed: impl Fn(u64) -> bool,
) -> Counted {
    let mut rest = image.entries;
    let mut counted = Counted::default();
    // Whether the entry before was a row of this key, which an intent may replace.
    let mut row_before: Option<&[u8]> = None;
    while let Some(entry) = take_entry(&mut rest) {
        if entry.key < low || high.is_some_and(|high| entry.key >= high) {
            continue;
        }
        let Some(intent) = entry.intent() else {
            counted.rows += 1;
            row_before = Some(entry.key);
            continue;
        };
        if is_committed(intent.id) {
            counted.rows -= u64::from(row_before == Some(entry.key));
            counted.rows += u64::from(!intent.removes);
        } else {
            counted.undecided += 1;
        }
    }
    counted
}

/// Whether the image holds intents.
pub(crate) fn has_intents(image: &Image<'_>) -> bool {
    let mut rest = image.entries;
    std::iter::from_fn(|| take_entry(&mut rest)).any(|entry| entry.intent().is_some())
}

/// The rows of an image of `object`, with the intents that count in place of the rows that they replace.
pub(crate) fn resolved<'i>(
    image: &Image<'i>,
    object: u32,
    statuses: &'i LargeStatuses,
) -> impl Iterator<Item = Entry<'i>> {
    let mut rest = image.entries;
    std::iter::from_fn(move || {
        loop {
            let entry = take_entry(&mut rest)?;
            let mut behind = rest;
            let next = take_entry(&mut behind).filter(|next| next.key == entry.key);
            let counts = |entry: &Entry<'_>| {
                entry.intent().is_some_and(|it| statuses.intent_counts(it, object, entry.key))
            };
            let stands = match (entry.intent(), next) {
                (Some(intent), _) if intent.removes => false,
                (Some(_), _) => counts(&entry),
                (None, Some(next)) => !counts(&next),
                (None, None) => true,
            };
            if stands {
                return Some(entry);
            }
        }
    })
}
