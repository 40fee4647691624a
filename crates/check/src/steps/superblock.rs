//! The superblock file and the headers of the data files.

use std::path::Path;
use std::sync::Arc;

use onrush_files::{AlignedBuffer, Disk, DiskFile};
use onrush_lsn::Lsn;

use crate::companion::{Anchor, Companion};
use crate::decode::input::{u16_at, u32_at, u128_at};
use crate::decode::slot::SLOT_BYTES;
use crate::decode::superblock::{
    COPY_AT, COPY_BYTES, COUNTER_END, FILE_NAME, FOLDERS_AT, FOLDERS_BYTES, Folders, Sealed,
    Superblock, open_sealed, read_folders, read_superblock,
};
use crate::decode::{FORMAT_VERSION, is_zero};
use crate::error::CheckError;
use crate::finding::Finding;
use crate::findings::Findings;
use crate::invariant::Invariant;
use crate::store::{DataFile, data_file_path};

/// What the superblock file holds.
pub(crate) struct Contents {
    /// The copies that are whole, the newest first; never empty.
    pub(crate) copies: Vec<Superblock>,
    /// The bytes of the newest.
    pub(crate) newest_block: AlignedBuffer,
    /// None with a finding if they cannot be read.
    pub(crate) folders: Option<Folders>,
}

/// Reads all parts of the file that are whole. None with a finding if there is no copy.
pub(crate) fn read(
    file: &dyn DiskFile,
    folder: &Path,
    findings: &Findings,
) -> Result<Option<Contents>, CheckError> {
    let path = folder.join(FILE_NAME);
    let mut copies = [None; 2];
    for (index, at) in COPY_AT.into_iter().enumerate() {
        copies[index] = read_copy(file, &path, at, findings)?;
    }
    let mut whole: Vec<Superblock> = copies.into_iter().flatten().collect();
    // A stable sort: of two alike the first counts.
    whole.sort_by_key(|copy| std::cmp::Reverse(copy.generation));
    let Some(newest) = whole.first() else {
        let found = "neither copy is whole";
        findings.add(Finding::new(Invariant::SuperblockReadable, &path, 0, found));
        return Ok(None);
    };
    check_turns(&path, &copies, findings);
    check_fields(&path, newest, findings);
    check_counters(&path, newest, findings);
    let folders = read_folders_at(file, folder, findings)?;
    let mut newest_block = AlignedBuffer::new(COPY_BYTES);
    let at = copies.iter().position(|copy| *copy == Some(*newest)).unwrap_or(0);
    file.read_at(&mut newest_block, COPY_AT[at]).map_err(CheckError::Disk)?;
    Ok(Some(Contents { copies: whole, newest_block, folders }))
}

fn read_copy(
    file: &dyn DiskFile,
    path: &Path,
    at: u64,
    findings: &Findings,
) -> Result<Option<Superblock>, CheckError> {
    let mut block = AlignedBuffer::new(COPY_BYTES);
    let found = match file.read_at(&mut block, at) {
        Err(error) => error.to_string(),
        Ok(()) => match open_sealed(&block) {
            Sealed::Whole(body) => return Ok(read_superblock(body)),
            Sealed::Future(found) => return Err(future(path, found)),
            Sealed::Damaged => "the copy fails its magic or checksum".to_owned(),
        },
    };
    findings.add(Finding::new(Invariant::SuperblockCopies, path, at, found));
    Ok(None)
}

fn future(path: &Path, found: u32) -> CheckError {
    CheckError::FutureFormat { path: path.into(), found, known: FORMAT_VERSION }
}

/// What a companion must know.
pub(crate) fn anchor<'a>(newest: &Superblock, folders: &Folders, block: &'a [u8]) -> Anchor<'a> {
    Anchor {
        block,
        database_id: newest.database_id,
        history: newest.history(),
        checkpoint: newest.checkpoint,
        data_files: folders.data.len(),
        redo_from_lsn: newest.start.lsn,
        redo_from_segment: newest.start.segment,
        must_reach_lsn: newest.end,
        must_reach_us: newest.end_us,
    }
}

/// Even generations stand in the first copy, odd ones in the second; the very first in both.
fn check_turns(path: &Path, copies: &[Option<Superblock>; 2], findings: &Findings) {
    let report = |at: u64, found: String| {
        findings.add(Finding::new(Invariant::SuperblockTurns, path, at, found));
    };
    for (index, copy) in copies.iter().enumerate() {
        if let Some(copy) = copy
            && copy.generation & 1 != index as u64
            && copy.generation != 1
        {
            report(COPY_AT[index], format!("generation {} in the other's place", copy.generation));
        }
    }
    let [Some(even), Some(odd)] = copies else { return };
    let (older, newer) = if even.generation < odd.generation { (even, odd) } else { (odd, even) };
    let first = (older.generation, newer.generation) == (1, 1) && older == newer;
    if !first && older.generation.checked_add(1) != Some(newer.generation) {
        report(0, format!("generations {} and {}", even.generation, odd.generation));
    }
    let goes_back = newer.checkpoint < older.checkpoint
        || newer.incarnation < older.incarnation
        || newer.end < older.end
        || newer.start.lsn < older.start.lsn
        || newer.end_us < older.end_us
        || newer.database_id != older.database_id
        || newer.restored != older.restored;
    if goes_back {
        report(
            COPY_AT[(newer.generation & 1) as usize],
            format!(
                "the newer copy (checkpoint {}, incarnation {}, E {} of {} us, C {}) is behind the \
                 older one (checkpoint {}, incarnation {}, E {} of {} us, C {}) or of another database",
                newer.checkpoint.unwrap_or(0),
                newer.incarnation,
                newer.end,
                newer.end_us.unwrap_or(0),
                newer.start.lsn,
                older.checkpoint.unwrap_or(0),
                older.incarnation,
                older.end,
                older.end_us.unwrap_or(0),
                older.start.lsn
            ),
        );
    }
}

fn check_fields(path: &Path, superblock: &Superblock, findings: &Findings) {
    let start = superblock.start;
    let faults = [
        (superblock.has_root > 1, "the mark of the root is neither 0 nor 1"),
        (superblock.has_restored > 1, "the mark of a restore is neither 0 nor 1"),
        (
            superblock.restored.is_some_and(|it| it.history == it.from_history),
            "the database was restored of its own history",
        ),
        (
            superblock.restored.is_some_and(|it| it.from_lsn.0 >= COUNTER_END),
            "the LSN up to which the database was restored is one that no database reaches",
        ),
        (
            superblock.checkpoint.is_none() != superblock.root.is_none(),
            "there is a root exactly if there was a checkpoint, and here it is not so",
        ),
        (superblock.end < start.lsn, "E is below C"),
        (
            start.lsn == Lsn::ZERO || start.segment == 0,
            "C has LSN or log segment 0, which do not exist",
        ),
        (
            start.offset < 4096 || !start.offset.is_multiple_of(4096),
            "C does not lie where a block can start",
        ),
        (
            superblock.generation == 0 || superblock.incarnation == 0,
            "generation or incarnation is 0",
        ),
        (start.incarnation > superblock.incarnation, "C is of an incarnation that is yet to come"),
        (!superblock.zeros_follow, "bytes behind the last field are not zero"),
    ];
    let at = COPY_AT[(superblock.generation & 1) as usize];
    for (_, found) in faults.into_iter().filter(|(is_fault, _)| *is_fault) {
        findings.add(Finding::new(Invariant::SuperblockFields, path, at, found));
    }
}

/// Opening refuses a counter that is so high that nothing counts so far. The places are those of
/// `docs/data-file.md`.
fn check_counters(path: &Path, superblock: &Superblock, findings: &Findings) {
    let start = superblock.start;
    let counters = [
        (32, "the generation", superblock.generation),
        (40, "the checkpoint's number", superblock.checkpoint.unwrap_or(0)),
        (48, "the incarnation", superblock.incarnation),
        (56, "E, an LSN,", superblock.end.0),
        (64, "C, an LSN,", start.lsn.0),
        (72, "the log segment of C", start.segment),
        (80, "the offset of C", start.offset),
        (88, "the incarnation of C", start.incarnation),
    ];
    let copy = COPY_AT[(superblock.generation & 1) as usize];
    for (at, name, number) in counters.into_iter().filter(|(.., number)| *number >= COUNTER_END) {
        let found = format!("{name} is {number}, and no database reaches {COUNTER_END}");
        findings.add(Finding::new(Invariant::CountersPossible, path, copy + at, found));
    }
}

fn read_folders_at(
    file: &dyn DiskFile,
    folder: &Path,
    findings: &Findings,
) -> Result<Option<Folders>, CheckError> {
    let path = folder.join(FILE_NAME);
    let mut block = AlignedBuffer::new(FOLDERS_BYTES);
    let found = match file.read_at(&mut block, FOLDERS_AT) {
        Err(error) => error.to_string(),
        Ok(()) => match open_sealed(&block) {
            Sealed::Future(found) => return Err(future(&path, found)),
            Sealed::Damaged => "it fails its magic or checksum".to_owned(),
            Sealed::Whole(body) => match read_folders(folder, body) {
                Some(folders) => return Ok(Some(folders)),
                None => "it does not decode".to_owned(),
            },
        },
    };
    findings.add(Finding::new(Invariant::Folders, &path, FOLDERS_AT, found));
    Ok(None)
}

/// Opens the data files and checks their headers.
pub(crate) fn open_data_files(
    disk: &Arc<dyn Disk>,
    superblock: &Superblock,
    folders: &Folders,
    findings: &Findings,
    companion: &dyn Companion,
) -> Result<Vec<Option<DataFile>>, CheckError> {
    let count = folders.data.len();
    let mut files = Vec::with_capacity(count);
    for (number, folder) in folders.data.iter().enumerate() {
        let path = data_file_path(folder, number);
        let mut header = AlignedBuffer::new(4096);
        let opened = DataFile::open(&**disk, &path)
            .and_then(|file| file.file.read_at(&mut header, 0).map(|()| file));
        match opened {
            Err(error) => {
                let found = error.to_string();
                findings.add(Finding::new(Invariant::DataFileReadable, &path, 0, found));
                files.push(None);
            }
            Ok(file) => {
                let is_sealed = header.starts_with(b"ONRDATA\0")
                    && u32_at(&header, 60) == crc32c::crc32c(&header[..60]);
                if is_sealed && u32_at(&header, 8) > FORMAT_VERSION {
                    return Err(future(&path, u32_at(&header, 8)));
                }
                let is_ours = is_sealed
                    && u128_at(&header, 16) == superblock.database_id
                    && usize::from(u16_at(&header, 32)) == number
                    && usize::from(u16_at(&header, 34)) == count
                    && u32_at(&header, 12) == 0
                    && is_zero(&header[36..60])
                    && is_zero(&header[64..]);
                if !is_ours {
                    let found = if is_sealed {
                        "a header of another database, number or count of files"
                    } else {
                        "a header that fails its magic or checksum"
                    };
                    findings.add(Finding::new(Invariant::DataFileHeader, &path, 0, found));
                }
                companion.data_file(number, file.slots * SLOT_BYTES as u64, &header);
                files.push(Some(file));
            }
        }
    }
    Ok(files)
}
