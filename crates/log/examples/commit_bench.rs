//! Commits per second of the log alone: 20-byte records, next to what the device allows.
//!
//! `cargo run --release -p onrush-log --example commit_bench [folder] [seconds per row] [row
//! filter]`
//!
//! F is the time of one durable 4 KiB write, measured before and after each row in the same folder.
//! With N sessions that each wait for their own commit nothing can commit more than N/F times a
//! second.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use onrush_files::{AlignedBuffer, Disk, DiskFile, OpenMode, OsDisk};
use onrush_log::{Log, LogError, LogOptions, LogWriter, Lsn};
use onrush_waits::{Recorder, Registry};

const PAYLOAD: [u8; 19] = [7; 19]; // 20 bytes with its frame
const PROBE_WRITES: u32 = 2000;

/// What one row measures.
#[derive(Clone, Copy)]
enum Row {
    /// Threads that each wait for their own commit.
    Threads(usize),
    /// Sessions shared by so many threads; each session waits for its own commit, a thread only
    /// when all of its do.
    Tasks { sessions: usize, threads: usize },
    /// Threads whose commits are delayed.
    Delayed(usize),
}

struct Bench {
    folder: PathBuf,
    time: Duration,
    probe: Arc<dyn DiskFile>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "commit-bench".into()));
    let seconds: f64 = arguments.next().map_or(Ok(2.0), |text| text.parse())?;
    let filter = arguments.next().unwrap_or_default();
    let disk = OsDisk::new();
    disk.create_folder(&folder)?;
    let bench = Bench {
        probe: open_probe(&disk, &folder)?,
        time: Duration::from_secs_f64(seconds),
        folder,
    };
    println!(
        "{:<24} {:>8} {:>12} {:>9} {:>12} {:>9} {:>11}",
        "row", "F us", "commits/s", "% of N/F", "commits/sync", "syncs/s", "max gap ms"
    );
    let rows = [
        Row::Threads(1),
        Row::Threads(2),
        Row::Threads(3),
        Row::Threads(4),
        Row::Threads(8),
        Row::Threads(24),
        Row::Threads(64),
        Row::Threads(128),
        Row::Threads(256),
        Row::Threads(512),
        Row::Threads(1024),
        Row::Tasks { sessions: 128, threads: 1 },
        Row::Tasks { sessions: 128, threads: 2 },
        Row::Tasks { sessions: 1024, threads: 2 },
        Row::Delayed(1),
        Row::Delayed(2),
        Row::Delayed(24),
    ];
    for row in rows.into_iter().filter(|row| row.name().contains(&filter)) {
        bench.measure(row)?;
    }
    std::fs::remove_dir_all(&bench.folder)?;
    Ok(())
}

impl Row {
    fn name(self) -> String {
        match self {
            Row::Threads(threads) => format!("{threads} threads durable"),
            Row::Tasks { sessions, threads } => format!("{sessions} tasks on {threads}"),
            Row::Delayed(threads) => format!("{threads} threads delayed"),
        }
    }

    fn threads(self) -> usize {
        match self {
            Row::Threads(threads) | Row::Delayed(threads) | Row::Tasks { threads, .. } => threads,
        }
    }

    fn sessions(self) -> usize {
        match self {
            Row::Threads(threads) | Row::Delayed(threads) => threads,
            Row::Tasks { sessions, .. } => sessions,
        }
    }
}

fn open_probe(disk: &OsDisk, folder: &Path) -> Result<Arc<dyn DiskFile>, Box<dyn Error>> {
    let path = folder.join("probe");
    if disk.exists(&path)? {
        disk.remove(&path)?;
    }
    let probe = disk.open(&path, OpenMode::CreateNew)?;
    let zeros = AlignedBuffer::new(1 << 20);
    (0..16_u64).try_for_each(|index| probe.write_at(&zeros, index << 20))?;
    probe.sync()?;
    Ok(probe)
}

impl Bench {
    /// Time of one durable 4 KiB write.
    fn device_time(&self) -> Result<Duration, Box<dyn Error>> {
        let block = AlignedBuffer::new(4096);
        let began = Instant::now();
        for index in 0..PROBE_WRITES {
            self.probe.write_at_durable(&block, u64::from(index % 4096) * 4096)?;
        }
        Ok(began.elapsed() / PROBE_WRITES)
    }

    fn measure(&self, row: Row) -> Result<(), Box<dyn Error>> {
        let folder = self.folder.join("log");
        let disk = OsDisk::new();
        disk.create_folder(&folder)?;
        let registry = Arc::new(Registry::new());
        let mut options = LogOptions::new(folder.clone(), 1, row.threads(), Arc::clone(&registry));
        options.capacity_bytes = 16 << 30;
        options.writer = LogWriter::Thread { cpu: None };
        let log = Log::create(Arc::new(disk), options)?;
        std::thread::sleep(Duration::from_millis(400)); // the first segments are being made
        let before = self.device_time()?;
        let stop = AtomicBool::new(false);
        let began = Instant::now();
        let commits = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..row.threads())
                .map(|permit| {
                    let recorder = Recorder::new(&registry, "bench");
                    let (log, stop) = (&log, &stop);
                    scope.spawn(move || match row {
                        Row::Threads(_) => durable_commits(log, permit, stop, &recorder),
                        Row::Tasks { sessions, threads } => {
                            task_commits(log, permit, sessions / threads, stop, &recorder)
                        }
                        Row::Delayed(_) => delayed_commits(log, permit, stop, &recorder),
                    })
                })
                .collect();
            recycle_until(&log, began, self.time)?;
            stop.store(true, Relaxed);
            workers.into_iter().map(|worker| worker.join().expect("worker panicked")).sum::<Result<
                u64,
                LogError,
            >>(
            )
        })?;
        let time = began.elapsed();
        let device_time = (before + self.device_time()?) / 2; // it drifts
        self.report(row, &log, device_time, commits, time);
        log.close(&Recorder::new(&registry, "close"))?;
        std::fs::remove_dir_all(&folder)?;
        Ok(())
    }

    fn report(&self, row: Row, log: &Log, device_time: Duration, commits: u64, time: Duration) {
        let statistics = log.statistics();
        let rate = commits as f64 / time.as_secs_f64();
        let bound = row.sessions() as f64 / device_time.as_secs_f64();
        let share = match row {
            Row::Delayed(_) => "-".into(),
            _ => format!("{:.1}", 100.0 * rate / bound),
        };
        println!(
            "{:<24} {:>8.1} {:>12.0} {:>9} {:>12.1} {:>9.0} {:>11.2}",
            row.name(),
            device_time.as_secs_f64() * 1e6,
            rate,
            share,
            commits as f64 / statistics.syncs.max(1) as f64,
            statistics.syncs as f64 / time.as_secs_f64(),
            statistics.longest_gap_micros as f64 / 1000.0,
        );
    }
}

/// Stands in for checkpoints: the log below its durable end is given free now and then.
fn recycle_until(log: &Log, began: Instant, time: Duration) -> Result<(), LogError> {
    while began.elapsed() < time {
        std::thread::sleep(Duration::from_millis(20));
        log.recycle_below(&log.position())?;
    }
    Ok(())
}

fn append(log: &Log, permit: usize, recorder: &Recorder) -> Result<Lsn, LogError> {
    let bytes = Log::framed_bytes(PAYLOAD.len());
    while !log.has_space(permit, bytes) {
        log.wait_for_space(bytes, recorder)?;
    }
    let reservation = log.reserve(permit, PAYLOAD.len());
    log.fill(&reservation, &[&PAYLOAD]);
    log.complete(permit);
    Ok(reservation.end)
}

fn durable_commits(
    log: &Log,
    permit: usize,
    stop: &AtomicBool,
    recorder: &Recorder,
) -> Result<u64, LogError> {
    let mut commits = 0;
    while !stop.load(Relaxed) {
        let end = append(log, permit, recorder)?;
        log.wait_durable(end, recorder)?;
        commits += 1;
    }
    Ok(commits)
}

fn task_commits(
    log: &Log,
    permit: usize,
    sessions: usize,
    stop: &AtomicBool,
    recorder: &Recorder,
) -> Result<u64, LogError> {
    let mut ends = vec![Lsn::ZERO; sessions];
    let mut commits = 0;
    while !stop.load(Relaxed) {
        let durable = log.durable();
        let mut oldest = Lsn::MAX;
        let mut went_on = false;
        for end in &mut ends {
            if *end <= durable {
                commits += u64::from(*end > Lsn::ZERO);
                *end = append(log, permit, recorder)?;
                went_on = true;
            }
            oldest = oldest.min(*end);
        }
        if !went_on {
            log.wait_durable(oldest, recorder)?;
        }
    }
    Ok(commits)
}

fn delayed_commits(
    log: &Log,
    permit: usize,
    stop: &AtomicBool,
    recorder: &Recorder,
) -> Result<u64, LogError> {
    let mut commits = 0;
    while !stop.load(Relaxed) {
        let end = append(log, permit, recorder)?;
        log.note_delayed(end, recorder)?;
        commits += 1;
    }
    Ok(commits)
}
