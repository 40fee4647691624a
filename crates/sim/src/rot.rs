//! Bits of a closed database's log that flip: below what was durable that is damage, and opening
//! must refuse; it must never pass for the torn tail of a crash.
//!
//! The log ends with the marker of a clean close here, so there is no blind spot.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use onrush::Database;
use onrush_files::{Disk, OpenMode};

use crate::cuts::guarded;
use crate::disk::{CrashDisk, CrashMode};
use crate::gate::database_folder;
use crate::plan::Plan;
use crate::random::Random;
use crate::summary::Summary;
use crate::world::{self, World, locked};
use onrush_oracle::violation;
use onrush_oracle::{Checked, Violation};

/// Where a byte is looked for that is not zero.
const LOOKS: u32 = 2000;

/// Runs one seed, closes the database without a checkpoint, and flips `flips` bits of the log, one
/// at a time.
///
/// # Errors
/// The first flip after which the database opens with other rows.
pub fn flip_log_bits(seed: u64, flips: u64, summary: &mut Summary) -> Checked<()> {
    guarded(&format!("rot of seed {seed}"), || {
        let plan = Arc::new(Plan::new(seed));
        summary.runs += 1;
        let disk = CrashDisk::new();
        let shared = Arc::new(Mutex::new(World::create(Arc::clone(&plan), disk.clone())?));
        world::prepare(&shared)?;
        world::run(&shared, plan.actions)?;
        locked(&shared).finish();
        let digest = locked(&shared).history.now().digest();
        let mut random = Random::for_part(seed, 4);
        for _ in 0..flips {
            let copy = disk.crash_image(disk.operation_count(), CrashMode::AllKept, 0);
            let place = flip(&copy, &mut random).map_err(|error| Violation(error.to_string()))?;
            *summary.images.entry(CrashMode::AllKept).or_default() += 1;
            summary.recoveries += 1;
            guarded(&place, || {
                let opened =
                    Database::open_on(Arc::new(copy), database_folder(), plan.options.clone());
                // Refused, as it should be; or the bit was of no use.
                let Ok(database) = opened else { return Ok(()) };
                if world::digest_of(&database)? != digest {
                    violation!("other rows than were closed, and no error");
                }
                Ok(())
            })?;
        }
        Ok(())
    })
}

/// Flips a bit of some byte of the log that is not zero. Returns where.
fn flip(disk: &CrashDisk, random: &mut Random) -> Result<String, onrush_files::DiskError> {
    let segments = segments_below(disk, &database_folder())?;
    for _ in 0..LOOKS {
        let path = &segments[random.below(segments.len() as u64) as usize];
        let file = disk.open(path, OpenMode::ReadWrite)?;
        // Segments are filled from the start.
        let until = 1 + random.below(64 << 10);
        let at = random.below(file.len()?.min(until));
        let mut byte = [0];
        file.read_at(&mut byte, at)?;
        if byte[0] != 0 {
            byte[0] ^= 1 << random.below(8);
            file.write_at(&byte, at)?;
            return Ok(format!("{} byte {at}", path.display()));
        }
    }
    Ok("nowhere".into())
}

fn segments_below(
    disk: &CrashDisk,
    folder: &std::path::Path,
) -> Result<Vec<PathBuf>, onrush_files::DiskError> {
    let mut segments = Vec::new();
    for name in disk.list(folder)? {
        let path = folder.join(&name);
        if name.ends_with(".segment") {
            segments.push(path);
        } else if let Ok(inside) = segments_below(disk, &path) {
            segments.extend(inside);
        }
    }
    Ok(segments)
}
