//! Power cuts: at the boundaries of a round, and in the start of the server on what they leave.
//!
//! What is found on a disk follows from the disk alone, so disks with the same bytes are looked at once; each cut is
//! judged by itself, because what must be there depends on its boundary.
//!
//! Invariant: everything follows from the round and the budget.

use std::collections::HashMap;

use onrush_sim::{CrashDisk, CrashMode, Random};

use crate::history::{Checked, Violation};
use crate::look::{self, Found};
use crate::round::Ended;
use crate::summary::Summary;
use onrush_oracle::violation;

/// Names that are taken after each look, if they are free.
const PROBES: [&str; 3] = ["p", "q", "m"];

/// How many cuts.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Of one round, at least one at each boundary at which something is unsynced as long as there are some left.
    pub cuts: u64,
    /// One in so many disks is checked before a server opens it.
    pub check_one_in: u64,
    /// In the start on one in so many disks the power is cut again.
    pub nested_one_in: u64,
    /// So often.
    pub nested_cuts: u64,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { cuts: 400, check_one_in: 8, nested_one_in: 16, nested_cuts: 12 }
    }
}

/// What was found on disks, by what is on them: nothing on one that a lie has broken.
type Known = HashMap<u128, Option<Found>>;

/// Cuts the power of a round.
///
/// # Errors
/// The first violation, with where the power was cut.
pub fn cut(round: &Ended, budget: Budget, summary: &mut Summary) -> Checked<()> {
    let mut sweep = round.disk.sweep();
    sweep.advance_to(round.begun_at);
    let boundaries = (sweep.last_operation() - sweep.at_operation()) as u64 + 1;
    summary.boundaries += boundaries;
    let mut random = Random::for_part(round.plan.seed, 2);
    let mut known = Known::new();
    let mut left = budget.cuts;
    loop {
        let boundary = sweep.at_operation();
        let boundaries_left = (sweep.last_operation() - boundary) as u64 + 1;
        // Evenly over what is left, and each mode in turn where there is enough.
        let mut wanted = left / boundaries_left
            + u64::from(random.chance(left % boundaries_left, boundaries_left));
        wanted = wanted.min(if sweep.has_unsynced() { CrashMode::ALL.len() as u64 } else { 1 });
        let first = random.below(CrashMode::ALL.len() as u64) as usize;
        for turn in 0..wanted as usize {
            let mode = CrashMode::ALL[(first + turn) % CrashMode::ALL.len()];
            let seed = random.next_number();
            summary.cuts += 1;
            let disk = sweep.image(mode, seed);
            let outcome = judge(round, boundary, disk, seed, budget, &mut known, summary);
            outcome.map_err(|Violation(text)| {
                Violation(format!("cut at boundary {boundary}, {mode:?}: {text}"))
            })?;
        }
        left -= wanted.min(left);
        if !sweep.advance() {
            return Ok(());
        }
    }
}

fn judge(
    round: &Ended,
    boundary: usize,
    disk: CrashDisk,
    seed: u64,
    budget: Budget,
    known: &mut Known,
    summary: &mut Summary,
) -> Checked<()> {
    let digest = disk.digest();
    let found = match known.get(&digest) {
        Some(found) => found.clone(),
        None if round.plan.is_lying => {
            summary.starts += 1;
            let found = look_after_lies(&disk)?;
            summary.broken += u64::from(found.is_none());
            known.insert(digest, found.clone());
            found
        }
        None => {
            if seed.is_multiple_of(budget.check_one_in) {
                summary.checks += 1;
                look::prove_sound(&disk)?;
            }
            summary.starts += 1;
            let found = look::look(&disk, &PROBES)?;
            if (seed >> 8).is_multiple_of(budget.nested_one_in) {
                cut_start(round, boundary, &disk, &found, (seed, budget), summary)?;
            }
            known.insert(digest, Some(found.clone()));
            Some(found)
        }
    };
    let Some(found) = found else { return Ok(()) };
    let judged = match round.plan.is_lying {
        true => round.history.judge_after_lies(boundary, &found.lines),
        false => round.history.judge(boundary, &found.lines),
    };
    judged.map(drop)
}

/// What is on a disk that has lied; nothing if it is refused as damaged, which is right, too. A server that ends or
/// that does not know its own error is not.
fn look_after_lies(disk: &CrashDisk) -> Checked<Option<Found>> {
    match look::look(disk, &[]) {
        Ok(found) => Ok(Some(found)),
        Err(Violation(text)) if text.contains("XX000") || text.contains("hung up") => {
            Err(Violation(text))
        }
        Err(_) => Ok(None),
    }
}

/// The power is cut again, while the database recovers and the server starts on what the first cut has left.
fn cut_start(
    round: &Ended,
    boundary: usize,
    disk: &CrashDisk,
    found: &Found,
    (seed, budget): (u64, Budget),
    summary: &mut Summary,
) -> Checked<()> {
    let mut random = Random::for_part(seed, 3);
    let mut sweep = disk.sweep();
    let boundaries = found.seen_at as u64 + 1;
    for again in 0..=found.seen_at {
        sweep.advance_to(again);
        // What somebody has seen stays.
        let is_seen = again == found.seen_at;
        if !is_seen && !random.chance(budget.nested_cuts.min(boundaries), boundaries) {
            continue;
        }
        let mode = CrashMode::ALL[random.below(CrashMode::ALL.len() as u64) as usize];
        summary.nested += 1;
        let image = sweep.image(mode, random.next_number());
        let place = format!("cut again at boundary {again} of the start, {mode:?}");
        let second = look::look(&image, &[])
            .map_err(|Violation(text)| Violation(format!("{place}: {text}")))?;
        if is_seen && second.lines != found.lines {
            let lines = crate::history::difference(&found.lines, &second.lines).join("\n    ");
            violation!(
                "{place}: what a client has seen after the start is not there any more\n    {lines}"
            );
        }
        let judged = round.history.judge(boundary, &second.lines);
        judged.map_err(|Violation(text)| Violation(format!("{place}: {text}")))?;
    }
    Ok(())
}
