//! The engine's own threads: one takes checkpoints when they are due; one keeps frames free, takes
//! emptied leaves of unlogged tables out of their trees, and samples the statistics every second; one flushes ranges,
//! and one compacts their stocks.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onrush_waits::{Recorder, Wait};

use crate::checkpoint::{self, LogUse};
use crate::error::Error;
use crate::options::Background;
use crate::recovery::RecoveryReport;
use crate::statistics::Observer;

/// How often the threads look when nobody wakes them.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// After a checkpoint that found the disk full.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Starts the threads that the settings ask for.
pub(crate) fn start(observer: &Arc<Observer>) -> Vec<JoinHandle<()>> {
    let engine = observer.engine();
    if engine.options.background == Background::Callers {
        return Vec::new();
    }
    let flush: fn(&Observer, &Recorder) =
        |observer, recorder| checkpoint::flush_ranges(observer.engine(), recorder);
    let jobs: [(&str, fn(&Observer, &Recorder)); 5] = [
        ("onrush-checkpoint", take_checkpoints),
        ("onrush-evict", keep_frames_free),
        // While one waits for the device the other copies rows.
        ("onrush-flush", flush),
        ("onrush-flush", flush),
        ("onrush-compact", |observer, recorder| {
            checkpoint::compact_ranges(observer.engine(), recorder);
        }),
    ];
    let spawn = |(name, job): (&str, fn(&Observer, &Recorder))| {
        let observer = Arc::clone(observer);
        let recorder = Recorder::new(&engine.registry, name);
        let run = move || {
            let engine = observer.engine();
            engine.run_on_own_processors();
            let _stop = engine.stop_on_panic();
            job(&observer, &recorder);
        };
        std::thread::Builder::new().name(name.into()).spawn(run).ok()
    };
    let threads: Vec<_> = jobs.into_iter().filter_map(spawn).collect();
    if let Some(evictor) = threads.get(1) {
        engine.set_evictor_thread(evictor.thread().clone());
    }
    let of_ranges = threads.iter().skip(2).map(|thread| thread.thread().clone());
    engine.ranges.set_threads(of_ranges.collect());
    threads
}

fn take_checkpoints(observer: &Observer, recorder: &Recorder) {
    let engine = observer.engine();
    let mut last = Instant::now();
    let mut not_before = Instant::now();
    while !engine.is_closing() && !engine.has_failed() {
        {
            let _idle = recorder.wait(Wait::CheckpointIdle);
            std::thread::park_timeout(LOOK_EVERY);
        }
        // What a crash left to redo waits for a checkpoint, too.
        let redo = throttle_inserts(observer);
        let now = Instant::now();
        let space = engine.log.space();
        let options = &engine.options;
        let every = Duration::from_secs(options.checkpoint_seconds);
        let due_by_time = !every.is_zero() && now - last >= every && redo.used_bytes > 0;
        // As much again may come while it is taken.
        let due = redo.used_bytes >= options.checkpoint_log_bytes.min(redo.limit_bytes / 2)
            || space.in_use_bytes * 2 >= space.capacity_bytes
            || due_by_time;
        if now < not_before {
            continue;
        }
        let taken = if due {
            checkpoint::run(engine, recorder).map(|_| last = now)
        } else if checkpoint::is_space_install_due(engine) {
            checkpoint::install_space(engine, recorder).map(drop)
        } else {
            continue;
        };
        match taken {
            Ok(()) => {}
            Err(Error::DiskFull { .. }) => not_before = now + RETRY_AFTER,
            Err(error) => engine.stop_for(&error.to_string()),
        }
    }
}

/// The log that recovery would redo now, and the most that it redoes within `recovery_seconds`.
fn redo_use(observer: &Observer) -> LogUse {
    /// Redo has been faster wherever it was measured.
    const BYTES_PER_S: f64 = (32 << 20) as f64;
    /// With fewer bytes a measured rate says nothing.
    const MEASURED_BYTES_MIN: u64 = 64 << 20;
    let engine = observer.engine();
    let limit_bytes = match engine.options.recovery_seconds {
        0 => u64::MAX,
        seconds => {
            let measured =
                Some(observer.recovery()).filter(|redo| redo.log_bytes >= MEASURED_BYTES_MIN);
            let rate = measured.and_then(RecoveryReport::log_bytes_per_s).unwrap_or(BYTES_PER_S);
            (rate * seconds as f64) as u64
        }
    };
    LogUse { used_bytes: engine.throttle.redo_bytes(engine.log.tail()), limit_bytes }
}

/// Sets how long inserts pause; returns the log that recovery would redo now. Both threads see to it: while a
/// checkpoint is taken, which is when the log fills, the one that takes it cannot.
fn throttle_inserts(observer: &Observer) -> LogUse {
    let engine = observer.engine();
    let space = engine.log.space();
    let files = LogUse { used_bytes: space.in_use_bytes, limit_bytes: space.capacity_bytes };
    let redo = redo_use(observer);
    engine.throttle.set(files, redo, engine.progress.read());
    redo
}

fn keep_frames_free(observer: &Observer, recorder: &Recorder) {
    let engine = observer.engine();
    while !engine.is_closing() && !engine.has_failed() {
        throttle_inserts(observer);
        observer.sample_if_due();
        engine.merge_emptied(recorder);
        match engine.keep_frames_free(recorder) {
            Ok(true) => {}
            Ok(false) => {
                let _idle = recorder.wait(Wait::BackgroundIdle);
                std::thread::park_timeout(LOOK_EVERY * 4);
            }
            Err(error) => engine.stop_for(&error.to_string()),
        }
    }
}
