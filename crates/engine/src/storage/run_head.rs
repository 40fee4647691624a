//! The head of a run, byte by byte: `docs/data-file.md`.

use onrush_filter::Filter;
use onrush_log::Lsn;

use super::run::{RunKeys, RunTotals};
use crate::logging::{push_varint, take_varint};
use crate::space::SlotId;
use crate::units::ObjectId;

const MAGIC: &[u8; 4] = b"ONRR";
const BASE: u8 = 1;
const FRAGMENT: u8 = 2;
/// Beside the kind: numbers of large transactions follow.
const HAS_INTENTS: u8 = 0x80;

/// The images of a run, and what they have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RunHead {
    pub(crate) slots: Vec<SlotId>,
    pub(super) checksums: Vec<u32>,
    pub(super) lows: Vec<u8>,
    pub(super) low_ends: Vec<u32>,
    pub(super) totals: RunTotals,
    /// Numbers of the large transactions whose intents the run has, ascending.
    pub(super) owners: Vec<u64>,
}

/// The head as it is written.
pub(super) fn push_head(object: ObjectId, head: &RunHead, keys: &RunKeys) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let kind = if matches!(keys, RunKeys::Base(_)) { BASE } else { FRAGMENT };
    out.push(if head.owners.is_empty() { kind } else { kind | HAS_INTENTS });
    out.extend_from_slice(&object.number().to_le_bytes());
    out.extend_from_slice(&head.totals.newest.0.to_le_bytes());
    push_varint(head.totals.rows, &mut out);
    push_varint(head.totals.bytes, &mut out);
    if !head.owners.is_empty() {
        push_varint(head.owners.len() as u64, &mut out);
        head.owners.iter().for_each(|owner| push_varint(*owner, &mut out));
    }
    push_varint(head.slots.len() as u64, &mut out);
    let mut start = 0;
    for ((slot, checksum), end) in head.slots.iter().zip(&head.checksums).zip(&head.low_ends) {
        let low = &head.lows[start..*end as usize];
        start = *end as usize;
        push_varint(low.len() as u64, &mut out);
        out.extend_from_slice(low);
        out.extend_from_slice(&slot.to_raw().to_le_bytes());
        out.extend_from_slice(&checksum.to_le_bytes());
    }
    match keys {
        RunKeys::Base(filter) => filter.write_to(&mut out),
        RunKeys::Fragment(hashes) => {
            hashes.iter().for_each(|hash| out.extend_from_slice(&hash.to_le_bytes()));
        }
    }
    out
}

/// Reads what [`push_head`] wrote, for a run of `object` in one of `files` data files. None: it does not decode.
pub(crate) fn read_head(
    mut bytes: &[u8],
    object: ObjectId,
    files: usize,
) -> Option<(RunHead, RunKeys)> {
    let from = &mut bytes;
    let kind = match take_array::<5>(from)? {
        [magic @ .., kind] if magic == *MAGIC => kind,
        _ => return None,
    };
    if u32::from_le_bytes(take_array(from)?) != object.number() {
        return None;
    }
    let newest = Lsn(u64::from_le_bytes(take_array(from)?));
    let totals = RunTotals { newest, rows: take_varint(from)?, bytes: take_varint(from)? };
    let owners = if kind & HAS_INTENTS == 0 { Some(Vec::new()) } else { take_owners(from) }?;
    let images = take_varint(from)?;
    let (slots, checksums, lows, low_ends) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut head = RunHead { slots, checksums, lows, low_ends, totals, owners };
    let mut last: &[u8] = &[];
    for image in 0..images {
        let length = usize::try_from(take_varint(from)?).ok()?;
        let (low, rest) = from.split_at_checked(length)?;
        *from = rest;
        let slot = SlotId::from_raw(u64::from_le_bytes(take_array(from)?))?;
        if usize::from(slot.file) >= files || (image > 0 && low <= last) {
            return None;
        }
        last = low;
        head.lows.extend_from_slice(low);
        head.low_ends.push(u32::try_from(head.lows.len()).ok()?);
        head.slots.push(slot);
        head.checksums.push(u32::from_le_bytes(take_array(from)?));
    }
    let keys = match kind & !HAS_INTENTS {
        BASE => RunKeys::Base(Filter::read_from(from).ok()?),
        FRAGMENT => {
            let (hashes, rest) = from.as_chunks::<4>();
            if !rest.is_empty() || hashes.len() as u64 != totals.rows {
                return None;
            }
            RunKeys::Fragment(hashes.iter().map(|hash| u32::from_le_bytes(*hash)).collect())
        }
        _ => return None,
    };
    Some((head, keys))
}

fn take_owners(from: &mut &[u8]) -> Option<Vec<u64>> {
    let count = take_varint(from)?;
    let owners = (0..count).map(|_| take_varint(from)).collect::<Option<Vec<u64>>>()?;
    (count > 0 && owners.is_sorted_by(|a, b| a < b)).then_some(owners)
}

fn take_array<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*bytes)
}
