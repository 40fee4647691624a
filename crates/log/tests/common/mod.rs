//! A log on a disk that remembers every block write, so that a test can cut the power after any of
//! them.
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]
#![allow(dead_code, reason = "each test uses a part")]

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};

use onrush_files::{
    Disk, DiskError, DiskErrorKind, DiskFile, DiskLayer, FileLayer, MemoryDisk, OpenMode,
};
use onrush_log::{
    DelayedWindow, Log, LogError, LogOptions, LogPosition, LogWriter, Lsn, RecoveredLog,
};
use onrush_waits::{Recorder, Registry};

pub const FOLDER: &str = "/log";
pub const DATABASE: u128 = 42;

/// Small sizes, and no background thread.
pub fn options(permits: usize) -> LogOptions {
    LogOptions {
        folder: FOLDER.into(),
        kept_folder: None,
        keep_from_segment: None,
        database_id: DATABASE,
        permits,
        ring_bytes: 64 << 10,
        segment_bytes: 64 << 10,
        block_bytes_max: 8 << 10,
        capacity_bytes: 1 << 20,
        record_bytes_max: 16 << 10,
        window: DelayedWindow { milliseconds: 1000, bytes: 4096 },
        processors: 2,
        commit_polling_us: 0,
        writer: LogWriter::Callers,
        registry: Arc::new(Registry::new()),
        progress: None,
    }
}

/// A block write as it reached the disk.
#[derive(Clone, Debug)]
pub struct BlockWrite {
    pub path: PathBuf,
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// A memory disk that remembers durable writes, and can fail one of them.
#[derive(Clone, Debug)]
pub struct TestDisk {
    pub memory: MemoryDisk,
    pub writes: Arc<Mutex<Vec<BlockWrite>>>,
    /// Who waits for a durable write, as the test counts them.
    pub waiting: Arc<AtomicUsize>,
    /// A durable write takes until so many wait.
    pub slow_until: Arc<AtomicUsize>,
    fail_in: Arc<AtomicUsize>, // durable writes until one fails, counted from 1; 0: never
}

impl TestDisk {
    pub fn new() -> Self {
        let memory = MemoryDisk::new();
        memory.create_folder(Path::new(FOLDER)).unwrap();
        Self {
            memory,
            writes: Arc::default(),
            waiting: Arc::default(),
            slow_until: Arc::default(),
            fail_in: Arc::default(),
        }
    }

    pub fn arc(&self) -> Arc<dyn Disk> {
        Arc::new(self.clone())
    }

    /// Lets the durable write fail that comes `count`-th from now.
    pub fn fail_in(&self, count: usize) {
        self.fail_in.store(count, SeqCst);
    }

    pub fn written(&self) -> Vec<BlockWrite> {
        self.writes.lock().unwrap().clone()
    }

    /// The disk as it is now, on its own.
    pub fn copy(&self) -> TestDisk {
        let copy = TestDisk::new();
        for name in self.memory.list(Path::new(FOLDER)).unwrap() {
            let path = Path::new(FOLDER).join(name);
            let file = self.memory.open(&path, OpenMode::ReadOnly).unwrap();
            let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
            file.read_at(&mut bytes, 0).unwrap();
            copy.memory.open(&path, OpenMode::CreateNew).unwrap().write_at(&bytes, 0).unwrap();
        }
        copy
    }

    /// Writes bytes behind the log's back.
    pub fn put(&self, path: &Path, offset: u64, bytes: &[u8]) {
        self.memory.open(path, OpenMode::ReadWrite).unwrap().write_at(bytes, offset).unwrap();
    }

    /// Flips one bit.
    pub fn flip(&self, path: &Path, offset: u64) {
        let file = self.memory.open(path, OpenMode::ReadWrite).unwrap();
        let mut byte = [0];
        file.read_at(&mut byte, offset).unwrap();
        file.write_at(&[byte[0] ^ 0x10], offset).unwrap();
    }
}

impl DiskLayer for TestDisk {
    fn below(&self) -> &dyn Disk {
        &self.memory
    }

    fn around(&self, inner: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(TestFile { inner, disk: self.clone() })
    }
}

#[derive(Debug)]
struct TestFile {
    inner: Arc<dyn DiskFile>,
    disk: TestDisk,
}

impl FileLayer for TestFile {
    fn below(&self) -> &dyn DiskFile {
        &*self.inner
    }

    fn write_durable(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        while self.disk.waiting.load(SeqCst) < self.disk.slow_until.load(SeqCst) {
            std::thread::yield_now();
        }
        let left = self.disk.fail_in.load(SeqCst);
        self.disk.fail_in.store(left.saturating_sub(1), SeqCst);
        if left == 1 {
            return Err(DiskError::new(DiskErrorKind::Other, "write", self.inner.path()).at(offset));
        }
        let path = self.inner.path().to_path_buf();
        let write = BlockWrite { path, offset, bytes: buffer.to_vec() };
        self.disk.writes.lock().unwrap().push(write);
        self.inner.write_at_durable(buffer, offset)
    }
}

/// A recorder for whoever does not care.
pub fn recorder(options: &LogOptions) -> Arc<Recorder> {
    Recorder::new(&options.registry, "test")
}

/// Appends a record at permit 0; returns its end.
pub fn append(log: &Log, payload: &[u8], recorder: &Recorder) -> Lsn {
    try_append(log, payload, recorder).unwrap()
}

/// As [`append`], if there is space.
pub fn try_append(log: &Log, payload: &[u8], recorder: &Recorder) -> Result<Lsn, LogError> {
    let bytes = Log::framed_bytes(payload.len());
    while !log.has_space(0, bytes) {
        log.wait_for_space(bytes, recorder)?;
    }
    let reservation = log.reserve(0, payload.len());
    log.fill(&reservation, &[payload]);
    log.complete(0);
    Ok(reservation.end)
}

/// Where a new log begins.
pub fn start() -> LogPosition {
    LogPosition {
        lsn: Lsn::FIRST,
        segment: 1,
        offset: 4096,
        incarnation: 1,
        previous_checksum: None,
    }
}

/// Reads the log from `from`; returns it and its records.
pub fn recover_from(
    disk: &TestDisk,
    options: &LogOptions,
    from: LogPosition,
    must_reach: Lsn,
) -> Result<(RecoveredLog, Vec<Vec<u8>>), LogError> {
    let mut records = Vec::new();
    let mut next = from.lsn;
    let recovered =
        Log::recover(disk.arc(), options.clone(), from, must_reach, &mut |lsn, record| {
            assert_eq!(lsn, next, "records come in order, without a gap");
            next = lsn + Log::framed_bytes(record.len()) as u64;
            records.push(record.to_vec());
            Ok(())
        })?;
    assert_eq!(recovered.end(), next);
    Ok((recovered, records))
}

/// Reads the whole log.
pub fn recover(
    disk: &TestDisk,
    options: &LogOptions,
) -> Result<(RecoveredLog, Vec<Vec<u8>>), LogError> {
    recover_from(disk, options, start(), Lsn::FIRST)
}

/// A record that can be told from others.
pub fn record(number: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (number.wrapping_mul(31) + index) as u8).collect()
}
