//! A backup into the archive: pages of one checkpoint, in parts, while sessions go on. The log behind it is archived
//! by itself, so the manifest, which makes a backup of the parts, is written when that log is there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use onrush::{CheckProgress, Lsn, PageCopy};
use onrush_check::{Anchor, Companion};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::error::ArchiveError;
use crate::manifest::{DataFile, Manifest, backup_folder, part_name, to_hex};
use crate::object::{self, Kind};
use crate::store::{CONTRADICTION, Created, Store, StoreError};

/// How often a part is asked for before the backup is given up, and made anew later.
const ATTEMPTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Before the pages: the number of their data file, how many bytes they have, and where they lie.
const PIECE_HEADER_BYTES: usize = 16;

/// A backup that is being made.
pub(crate) struct BackupJob {
    pub(crate) copy: PageCopy,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) history: u128,
    pub(crate) part_bytes: usize,
    /// Whether to give up.
    pub(crate) is_stopped: Arc<AtomicBool>,
}

impl BackupJob {
    /// Stores the pages. On a thread that is none of the runtime's.
    pub(crate) fn run(self, runtime: &Handle) -> Result<Manifest, ArchiveError> {
        let redo_from = self.copy.redo_from();
        let end = self.copy.end();
        // A fresh name: what an attempt that was cut off has left is nobody's.
        let folder = format!("{}/{}", backup_folder(end), uuid::Uuid::new_v4().simple());
        let parts = Parts {
            job: &self,
            runtime,
            folder: folder.clone(),
            pending: Mutex::default(),
            failure: Mutex::default(),
            has_failed: AtomicBool::new(false),
        };
        let report = self.copy.run(&parts, &CheckProgress::default())?;
        if let Some(failure) = parts.failure.lock().take() {
            return Err(failure.into());
        }
        if self.is_stopped.load(Ordering::Acquire) {
            return Err(ArchiveError::Stopped);
        }
        if !report.is_sound() || !report.complete {
            return Err(ArchiveError::DatabaseDamaged(Box::new(report)));
        }
        let mut pending = parts.pending.lock();
        if !pending.part.is_empty() {
            let (number, part) = pending.take();
            parts.store(number, &part)?;
        }
        let manifest = Manifest {
            folder,
            redo_from: to_hex_whole(&redo_from.encode()),
            redo_from_lsn: redo_from.lsn.0,
            end_lsn: end.0,
            ..std::mem::take(&mut pending.manifest)
        };
        Ok(manifest)
    }
}

fn to_hex_whole(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Goes along with the check of the pages, and stores them.
struct Parts<'a> {
    job: &'a BackupJob,
    runtime: &'a Handle,
    folder: String,
    pending: Mutex<Pending>,
    failure: Mutex<Option<StoreError>>,
    has_failed: AtomicBool,
}

/// What is not stored yet.
#[derive(Default)]
struct Pending {
    manifest: Manifest,
    part: Vec<u8>,
}

impl Pending {
    fn take(&mut self) -> (usize, Vec<u8>) {
        let number = self.manifest.parts.len();
        self.manifest.parts.push(self.part.len() as u64);
        (number, std::mem::take(&mut self.part))
    }
}

impl Parts<'_> {
    fn store(&self, number: usize, part: &[u8]) -> Result<(), StoreError> {
        let name = format!("{:032x}/{}", self.job.history, part_name(&self.folder, number));
        let object = object::seal(Kind::Pages, self.job.history, &[part]);
        self.runtime.block_on(self.create(&name, object))?;
        Ok(())
    }

    /// The name is of this attempt alone: what is there already are these bytes, whose answer was lost.
    async fn create(&self, name: &str, object: Bytes) -> Result<(), StoreError> {
        let mut pause = FIRST_PAUSE;
        for attempt in 1.. {
            match self.try_create(name, &object).await {
                Ok(()) => break,
                Err(error) if attempt == ATTEMPTS || self.gives_up() => return Err(error),
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause *= 2;
        }
        Ok(())
    }

    async fn try_create(&self, name: &str, object: &Bytes) -> Result<(), StoreError> {
        let is_there = self.job.store.create(name, object.clone()).await? == Created::Created
            || self.job.store.read(name).await?.as_ref() == Some(object);
        match is_there {
            true => Ok(()),
            false => Err(StoreError::new("write", name, &CONTRADICTION)),
        }
    }
}

impl Companion for Parts<'_> {
    fn superblock(&self, anchor: &Anchor<'_>) {
        let manifest = &mut self.pending.lock().manifest;
        manifest.database_id = format!("{:032x}", anchor.database_id);
        manifest.must_reach_lsn = anchor.must_reach_lsn.0;
        manifest.must_reach_us = anchor.must_reach_us;
        manifest.superblock = to_hex(anchor.block);
    }

    fn data_file(&self, number: usize, bytes: u64, header: &[u8]) {
        let files = &mut self.pending.lock().manifest.data_files;
        files.resize(files.len().max(number + 1), DataFile::default());
        files[number] = DataFile { bytes, header: to_hex(header) };
    }

    fn segment(&self, number: u64, bytes: u64, _: &[u8]) {
        if number == self.job.copy.redo_from().segment {
            self.pending.lock().manifest.segment_bytes = bytes;
        }
    }

    fn pages(&self, file: usize, offset: u64, pages: &[u8]) {
        if self.gives_up() {
            return;
        }
        let full = {
            let mut pending = self.pending.lock();
            let mut header = [0; PIECE_HEADER_BYTES];
            header[..4].copy_from_slice(&(file as u32).to_le_bytes());
            header[4..8].copy_from_slice(&(pages.len() as u32).to_le_bytes());
            header[8..].copy_from_slice(&offset.to_le_bytes());
            pending.part.extend_from_slice(&header);
            pending.part.extend_from_slice(pages);
            (pending.part.len() >= self.job.part_bytes).then(|| pending.take())
        };
        if let Some((number, part)) = full
            && let Err(error) = self.store(number, &part)
        {
            self.failure.lock().get_or_insert(error);
            self.has_failed.store(true, Ordering::Release);
        }
    }

    fn gives_up(&self) -> bool {
        self.has_failed.load(Ordering::Acquire) || self.job.is_stopped.load(Ordering::Acquire)
    }
}

/// Some pages out of a part: their data file, where they lie, and what they hold.
pub(crate) type Piece<'p> = (usize, u64, &'p [u8]);

/// The pages of a part. None: the part is cut off.
pub(crate) fn pieces(mut part: &[u8]) -> Option<Vec<Piece<'_>>> {
    let mut pieces = Vec::new();
    while !part.is_empty() {
        let (header, rest) = part.split_at_checked(PIECE_HEADER_BYTES)?;
        let word = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let mut offset = [0; 8];
        offset.copy_from_slice(&header[8..]);
        let (pages, rest) = rest.split_at_checked(word(4) as usize)?;
        pieces.push((word(0) as usize, u64::from_le_bytes(offset), pages));
        part = rest;
    }
    Some(pieces)
}

/// Up to where a backup reaches.
pub(crate) fn end_of(manifest: &Manifest) -> Lsn {
    Lsn(manifest.end_lsn)
}
