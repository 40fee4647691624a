//! Goes along with a check and writes what it hands over into the new folder.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use onrush_check::{Anchor, Companion};
use onrush_files::unfinished::unmark;
use onrush_files::{AlignedBuffer, Disk, DiskError, DiskFile, OpenMode, Unfinished};
use onrush_lsn::Lsn;

use crate::seal::{self, Restored};

const SUPERBLOCK_FILE: &str = "superblock.onrush";
const UNNAMED_SUPERBLOCK_FILE: &str = "superblock.new";
const ZERO_BYTES: usize = 1 << 20;

/// See the module.
pub(crate) struct Copier<'a> {
    disk: Arc<dyn Disk>,
    folder: &'a Path,
    /// Who else goes along: says when to rest.
    beside: &'a dyn Companion,
    anchor: OnceLock<OwnAnchor>,
    data: Mutex<Vec<Arc<dyn DiskFile>>>,
    log: Mutex<Option<Segment>>,
    made: Mutex<Vec<PathBuf>>,
    written_bytes: AtomicU64,
    failure: OnceLock<DiskError>,
}

/// What is kept of the source's superblock.
#[derive(Clone, Debug)]
pub(crate) struct OwnAnchor {
    superblock: Vec<u8>,
    data_files: usize,
    pub(crate) database_id: u128,
    pub(crate) history: u128,
    pub(crate) redo_from_lsn: Lsn,
    pub(crate) redo_from_segment: u64,
    pub(crate) must_reach_lsn: Lsn,
    pub(crate) must_reach_us: Option<u64>,
}

/// The log segment that is written.
struct Segment {
    file: Arc<dyn DiskFile>,
    bytes: u64,
    /// The end of its last block.
    end: u64,
}

/// Makes a database of a folder in which everything else is durable: data files, and the log in the folder `log`.
///
/// # Errors
/// It cannot be written.
pub fn write_superblock(
    disk: &dyn Disk,
    folder: &Path,
    superblock: &[u8],
    data_files: usize,
) -> Result<(), DiskError> {
    let temporary = folder.join(UNNAMED_SUPERBLOCK_FILE);
    let file = disk.open(&temporary, OpenMode::CreateNew)?;
    file.allocate(seal::SUPERBLOCK_FILE_BYTES)?;
    file.write_at(&seal::folders(superblock, data_files), seal::FOLDERS_AT)?;
    // The older copy names the same: it is the only checkpoint that is here.
    let newest = seal::generation(superblock);
    for generation in [newest, newest.saturating_sub(1).max(1)] {
        let at = match generation {
            1 if newest == 1 => seal::COPIES_AT,
            _ => [seal::COPIES_AT[(generation & 1) as usize]; 2],
        };
        let copy = seal::with_generation(superblock, generation);
        at.iter().try_for_each(|at| file.write_at(&copy, *at))?;
    }
    file.sync()?;
    // The names of all that the superblock needs, before its own.
    disk.sync_folder(folder)?;
    disk.rename(&temporary, &folder.join(SUPERBLOCK_FILE))?;
    disk.sync_folder(folder)
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Copier<'a> {
    /// Writes into `folder`, which is empty or not there; it has the mark from now on.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        folder: &'a Path,
        mark: &Unfinished,
        beside: &'a dyn Companion,
    ) -> Result<Copier<'a>, DiskError> {
        disk.create_folder(folder)?;
        let begun = mark.mark(&*disk);
        let begun = begun.and_then(|()| disk.create_folder(&folder.join(seal::LOG_FOLDER)));
        if let Err(error) = begun {
            let _ = unmark(&*disk, folder);
            return Err(error);
        }
        Ok(Copier {
            disk,
            folder,
            beside,
            anchor: OnceLock::new(),
            data: Mutex::default(),
            log: Mutex::default(),
            made: Mutex::default(),
            written_bytes: AtomicU64::new(0),
            failure: OnceLock::new(),
        })
    }

    /// What was learnt from the source's superblock, if it could be read.
    pub(crate) fn anchor(&self) -> Option<&OwnAnchor> {
        self.anchor.get()
    }

    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// The first write that failed.
    pub(crate) fn failure(&self) -> Result<(), DiskError> {
        self.failure.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Everything has been handed over and is sound: makes it durable, and the folder a database, with a history of
    /// its own if `restored` says so.
    pub(crate) fn finish(
        &self,
        manifest: &[u8],
        restored: Option<&Restored>,
    ) -> Result<(), DiskError> {
        self.failure()?;
        let Some(anchor) = self.anchor.get() else { return Ok(()) };
        guard(&self.data).iter().try_for_each(|file| file.sync())?;
        self.end_segment()?;
        self.disk.sync_folder(&self.folder.join(seal::LOG_FOLDER))?;
        let file = self.create(&self.folder.join("backup.json"))?;
        file.write_at(manifest, 0)?;
        file.sync()?;
        let superblock = match restored {
            Some(restored) => seal::with_restored(&anchor.superblock, restored).to_vec(),
            None => anchor.superblock.clone(),
        };
        guard(&self.made).push(self.folder.join(UNNAMED_SUPERBLOCK_FILE));
        write_superblock(&*self.disk, self.folder, &superblock, anchor.data_files)?;
        unmark(&*self.disk, self.folder)
    }

    /// Removes what was written, as far as that is possible.
    pub(crate) fn remove_all(&self) {
        for path in guard(&self.made).drain(..) {
            // What cannot be removed has no superblock beside it, so it is no database.
            let _ = self.disk.remove(&path);
        }
        // Last: what could not be removed is no database meanwhile.
        let _ = unmark(&*self.disk, self.folder);
    }

    fn create(&self, path: &Path) -> Result<Arc<dyn DiskFile>, DiskError> {
        let file = self.disk.open(path, OpenMode::CreateNew)?;
        guard(&self.made).push(path.to_owned());
        Ok(file)
    }

    /// Does some of the writing, unless some has failed already.
    fn attempt(&self, write: impl FnOnce() -> Result<usize, DiskError>) {
        if self.failure.get().is_some() {
            return;
        }
        match write() {
            Ok(bytes) => {
                self.written_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            }
            Err(error) => {
                let _ = self.failure.set(error);
            }
        }
    }

    /// The last segment is durable, with zeros behind its last block: the database goes on there.
    fn end_segment(&self) -> Result<(), DiskError> {
        let Some(segment) = guard(&self.log).take() else { return Ok(()) };
        let zeros = AlignedBuffer::new(ZERO_BYTES);
        let mut at = segment.end;
        while at < segment.bytes {
            let count = (segment.bytes - at).min(ZERO_BYTES as u64);
            segment.file.write_at(&zeros[..count as usize], at)?;
            at += count;
        }
        segment.file.sync()
    }
}

impl Companion for Copier<'_> {
    fn superblock(&self, anchor: &Anchor<'_>) {
        let own = OwnAnchor {
            superblock: anchor.block.to_vec(),
            data_files: anchor.data_files,
            database_id: anchor.database_id,
            history: anchor.history,
            redo_from_lsn: anchor.redo_from_lsn,
            redo_from_segment: anchor.redo_from_segment,
            must_reach_lsn: anchor.must_reach_lsn,
            must_reach_us: anchor.must_reach_us,
        };
        let _ = self.anchor.set(own);
    }

    fn data_file(&self, number: usize, bytes: u64, header: &[u8]) {
        self.attempt(|| {
            let file = self.create(&self.folder.join(format!("data-{number:02}.onrush")))?;
            // Space for all of it: who opens it must not meet a full disk in the middle.
            file.allocate(bytes)?;
            file.write_at(header, 0)?;
            guard(&self.data).push(file);
            Ok(header.len())
        });
    }

    fn pages(&self, file: usize, offset: u64, pages: &[u8]) {
        self.attempt(|| {
            let file = guard(&self.data).get(file).cloned();
            let Some(file) = file else { return Ok(0) };
            file.write_at(pages, offset)?;
            Ok(pages.len())
        });
    }

    fn segment(&self, number: u64, bytes: u64, header: &[u8]) {
        self.attempt(|| {
            self.end_segment()?;
            let folder = self.folder.join(seal::LOG_FOLDER);
            let file = self.create(&folder.join(format!("log-{number:016}.segment")))?;
            file.allocate(bytes)?;
            file.write_at(header, 0)?;
            *guard(&self.log) = Some(Segment { file, bytes, end: header.len() as u64 });
            Ok(header.len())
        });
    }

    fn block(&self, offset: u64, block: &[u8], record_bytes: usize) {
        self.attempt(|| {
            let mut log = guard(&self.log);
            let Some(segment) = &mut *log else { return Ok(0) };
            let short = seal::shortened(block, record_bytes);
            let block = short.as_deref().unwrap_or(block);
            segment.file.write_at(block, offset)?;
            segment.end = offset + block.len() as u64;
            Ok(block.len())
        });
    }

    fn log_is_read(&self) {
        self.beside.log_is_read();
    }

    fn rest(&self, worked: Duration) {
        self.beside.rest(worked);
    }

    fn gives_up(&self) -> bool {
        self.failure.get().is_some() || self.beside.gives_up()
    }
}
