//! The log of a history, object by object from a backup's C on.

use onrush::LogPosition;
use onrush_log::follow_blocks;

use super::staging::Staging;
use super::{read_object, short};
use crate::error::ArchiveError;
use crate::object::{Kind, LogObject, log_name};
use crate::store::Place;

/// What was found.
pub(super) struct Followed {
    /// Everything below is there.
    pub(super) reached: LogPosition,
    /// Why it ends there, if that is not the end of the archive.
    pub(super) missing: Option<String>,
    pub(super) objects: u64,
    pub(super) bytes: u64,
}

/// Puts all blocks from `start` on into segments.
pub(super) async fn follow(
    place: &Place,
    history: u128,
    start: LogPosition,
    staging: &Staging,
) -> Result<Followed, ArchiveError> {
    let listed = place.store.list(&format!("{history:032x}/log")).await?;
    let names: Vec<&str> = listed.iter().map(|listed| short(&listed.name)).collect();
    let mut followed = Followed { reached: start, missing: None, objects: 0, bytes: 0 };
    let wanted = log_name(&start);
    // The object in which the first block is, or the one that says that the log goes on there.
    let first = names.partition_point(|name| *name <= wanted.as_str()).checked_sub(1);
    let Some(first) = first else {
        followed.missing =
            Some(format!("object {wanted} is missing, where the log of the backup begins"));
        return Ok(followed);
    };
    let mut next = names[first].to_owned();
    let mut has_begun = false;
    loop {
        let object = match read_object(place, history, &next).await {
            Ok(Some(object)) => object,
            Ok(None) => {
                followed.missing = missing(&names, &next, has_begun);
                return Ok(followed);
            }
            Err(error @ ArchiveError::Damaged { .. }) => {
                followed.missing = Some(error.to_string());
                return Ok(followed);
            }
            Err(error) => return Err(error),
        };
        match object.kind {
            Kind::Closed => {
                followed.missing = (!has_begun && !object.from.is_same_place(&start))
                    .then(|| format!("the log of the backup is missing from object {wanted} on"));
                return Ok(followed);
            }
            Kind::GoesOn if !has_begun && object.to.is_same_place(&start) => {
                has_begun = true;
                followed.reached = object.to;
                next = log_name(&object.to);
                continue;
            }
            Kind::GoesOn => {
                let (from, to) = (object.from.lsn, object.to.lsn);
                followed.missing = Some(format!(
                    "the log from LSN {from} to LSN {to} was let go before it was archived (object {next}), and \
                     there is no complete backup behind it"
                ));
                return Ok(followed);
            }
            _ => {}
        }
        let follows = match has_begun {
            true => object.from == followed.reached,
            false => begins(&object, &start),
        };
        if !follows {
            followed.missing = Some(format!("object {next} does not follow the one before"));
            return Ok(followed);
        }
        staging.put_blocks(&object)?;
        has_begun = true;
        followed.reached = object.to;
        followed.objects += 1;
        followed.bytes += object.blocks.len() as u64;
        next = log_name(&object.to);
    }
}

/// Whether the block at `start` is in the object, behind the very block that was before it.
fn begins(object: &LogObject, start: &LogPosition) -> bool {
    if object.from.is_same_place(start) || object.to.is_same_place(start) {
        return true;
    }
    if object.segment != start.segment {
        return false;
    }
    let offset = if object.from.segment == object.segment { object.from.offset } else { 4096 };
    let before = start.offset.checked_sub(offset).and_then(|before| usize::try_from(before).ok());
    let Some(before) = before.and_then(|before| object.blocks.get(..before)) else { return false };
    follow_blocks(object.database_id, object.segment, &object.from, before)
        .is_ok_and(|(at, used)| used == before.len() && at.is_same_place(start))
}

/// Why there is no object `next`: it is the end, unless there are later ones.
fn missing(names: &[&str], next: &str, has_begun: bool) -> Option<String> {
    match names.last().filter(|last| **last > next) {
        Some(last) => Some(format!("object {next} is missing; there are later ones, up to {last}")),
        None if has_begun => None,
        None => Some(format!("object {next} is missing, where the log of the backup begins")),
    }
}
