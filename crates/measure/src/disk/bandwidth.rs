//! How many bytes a second the device takes and gives back, and how many leaves a second it gives back.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use onrush_files::{AlignedBuffer, Disk, DiskError, DiskFile};
use serde::Serialize;

use super::ScratchFile;

/// One write: what a checkpoint writes at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// One read: a leaf.
const LEAF_BYTES: usize = 16 << 10;
/// Never write more than this.
const FILE_BYTES_MAX: u64 = 2 << 30;
/// Writers at a time, as checkpoints have several images on their way.
const WRITERS: usize = 4;
/// Readers at a time.
const READERS: usize = 32;
/// Time for each of the three.
const BUDGET: Duration = Duration::from_millis(1500);

/// Sequential writes and reads, and random reads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bandwidth {
    /// Sequential writes of 1 MiB, four at a time, synced at the end: millions of bytes a second.
    pub write_mb_per_s: f64,
    /// Sequential reads of 1 MiB, four at a time, past the page cache: millions of bytes a second.
    pub read_mb_per_s: f64,
    /// Random reads of 16 KiB, 32 at a time, past the page cache: reads a second.
    pub random_reads_per_s: f64,
    /// Bytes written for this.
    pub written_bytes: u64,
}

/// Measures for about five seconds, in `folder`.
///
/// # Errors
/// What the disk reports.
pub fn measure(disk: &dyn Disk, folder: &Path, free_bytes: u64) -> Result<Bandwidth, DiskError> {
    let chunk = CHUNK_BYTES as u64;
    let chunks_max = (free_bytes / 4).min(FILE_BYTES_MAX) / chunk;
    let chunks_max = chunks_max.max(16);
    let scratch = ScratchFile::new(disk, folder, "bandwidth")?;
    scratch.file.allocate(chunks_max * chunk)?;
    let (written_bytes, write_time) = write(&*scratch.file, chunks_max)?;
    let (read_bytes, sequential_time) = read_in_order(&*scratch.file, written_bytes)?;
    let (reads, read_time) = read(&*scratch.file, written_bytes)?;
    Ok(Bandwidth {
        read_mb_per_s: read_bytes as f64 / 1e6 / sequential_time.as_secs_f64(),
        write_mb_per_s: written_bytes as f64 / 1e6 / write_time.as_secs_f64(),
        random_reads_per_s: reads as f64 / read_time.as_secs_f64(),
        written_bytes,
    })
}

/// Writes chunk after chunk; returns the bytes without gaps from the start, and the time.
fn write(file: &dyn DiskFile, chunks_max: u64) -> Result<(u64, Duration), DiskError> {
    let next = AtomicU64::new(0);
    let started = Instant::now();
    in_parallel(WRITERS, || {
        let buffer = AlignedBuffer::from_bytes(&vec![0x5A; CHUNK_BYTES]);
        while started.elapsed() < BUDGET {
            let chunk = next.fetch_add(1, Ordering::Relaxed);
            if chunk >= chunks_max {
                break;
            }
            file.write_at(&buffer, chunk * CHUNK_BYTES as u64)?;
        }
        Ok(())
    })?;
    file.sync()?;
    let written = next.load(Ordering::Relaxed).min(chunks_max) * CHUNK_BYTES as u64;
    Ok((written, started.elapsed()))
}

/// Reads chunk after chunk, from the start again at the end; returns the bytes and the time.
fn read_in_order(file: &dyn DiskFile, file_bytes: u64) -> Result<(u64, Duration), DiskError> {
    let chunks = (file_bytes / CHUNK_BYTES as u64).max(1);
    let (next, read) = (AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    in_parallel(WRITERS, || {
        let mut buffer = AlignedBuffer::new(CHUNK_BYTES);
        while started.elapsed() < BUDGET {
            let chunk = next.fetch_add(1, Ordering::Relaxed) % chunks;
            file.read_at(&mut buffer, chunk * CHUNK_BYTES as u64)?;
            read.fetch_add(CHUNK_BYTES as u64, Ordering::Relaxed);
        }
        Ok(())
    })?;
    Ok((read.load(Ordering::Relaxed), started.elapsed()))
}

/// Reads leaves at random; returns how many, and the time.
fn read(file: &dyn DiskFile, file_bytes: u64) -> Result<(u64, Duration), DiskError> {
    let leaves = (file_bytes / LEAF_BYTES as u64).max(1);
    let (reads, seed) = (AtomicU64::new(0), AtomicU64::new(1));
    let started = Instant::now();
    in_parallel(READERS, || {
        let mut buffer = AlignedBuffer::new(LEAF_BYTES);
        let mut state = seed.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut own_reads = 0;
        while started.elapsed() < BUDGET {
            // Any spread will do; this is an xorshift generator.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            file.read_at(&mut buffer, state % leaves * LEAF_BYTES as u64)?;
            own_reads += 1;
        }
        reads.fetch_add(own_reads, Ordering::Relaxed);
        Ok(())
    })?;
    Ok((reads.load(Ordering::Relaxed), started.elapsed()))
}

/// Runs the same work on several threads; the first error wins.
fn in_parallel(
    threads: usize,
    work: impl Fn() -> Result<(), DiskError> + Sync,
) -> Result<(), DiskError> {
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                if let Err(error) = work() {
                    failure.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(error);
                }
            });
        }
    });
    failure.into_inner().unwrap_or_else(|e| e.into_inner()).map_or(Ok(()), Err)
}
