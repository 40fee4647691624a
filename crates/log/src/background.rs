//! The two background threads: one writes for delayed commits and futures, one makes segments ahead
//! of need.
//!
//! A log with the log writer `Callers` has neither. Durable commits need neither: whoever waits
//! for one writes.
//!
//! Invariants
//! 1. A thread that finds its flag of the bell set already has nothing to do: the writer will take
//!    all flags before the round that it begins.
//! 2. The writer begins a round for delayed commits when half the milliseconds of the window are
//!    over, so that a sync of ordinary length still ends inside it.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use onrush_fault::{Fault, planted};
use onrush_waits::{Recorder, Wait};

use crate::core::Core;
use crate::options::LogWriter;
use crate::pool::Prepared;

/// How long the writer leaves the processor to a thread whose record is not complete.
const COMPLETION_PAUSE: Duration = Duration::from_micros(50);

const STOP: u32 = 1;
const WRITE_NOW: u32 = 2;
const DELAYED: u32 = 4;

/// Calls the writer thread.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    flags: AtomicU32,         // set by anyone, taken by the writer thread
    thread: OnceLock<Thread>, // set once, before the log is handed out; empty if there is no thread
}

impl Bell {
    /// Somebody waits who cannot write, or the window is half full.
    #[inline]
    pub(crate) fn ring_for_write(&self) {
        self.ring(WRITE_NOW);
    }

    /// There is a delayed commit.
    #[inline]
    pub(crate) fn ring_for_delayed(&self) {
        self.ring(DELAYED);
    }

    #[inline]
    fn ring(&self, flag: u32) {
        let Some(thread) = self.thread.get() else { return };
        if self.flags.load(Relaxed) & flag == 0 && self.flags.fetch_or(flag, AcqRel) & flag == 0 {
            thread.unpark();
        }
    }
}

/// The running threads of a log.
#[derive(Debug, Default)]
pub(crate) struct Background {
    threads: Vec<JoinHandle<()>>,
}

impl Background {
    /// Starts the threads that the options ask for.
    pub(crate) fn start(core: &Arc<Core>) -> std::io::Result<Self> {
        let mut threads = Vec::new();
        if let LogWriter::Thread { cpu } = core.options.writer {
            let recorder = Recorder::new(&core.options.registry, "log writer");
            let shared = Arc::clone(core);
            let writer = thread::Builder::new()
                .name("onrush-log".into())
                .spawn(move || run_writer(&shared, cpu, &recorder))?;
            // The thread has not been called before this: flags set meanwhile are seen when it
            // takes them.
            let _ = core.bell.thread.set(writer.thread().clone());
            writer.thread().unpark();
            threads.push(writer);
            let recorder = Recorder::new(&core.options.registry, "log segments");
            let shared = Arc::clone(core);
            let segments = thread::Builder::new()
                .name("onrush-segments".into())
                .spawn(move || run_segments(&shared, &recorder))?;
            threads.push(segments);
        }
        Ok(Self { threads })
    }

    /// Stops the threads, without a last round. The core must be closed or failed.
    pub(crate) fn stop(&mut self, core: &Core) {
        core.bell.ring(STOP);
        core.pool.wake_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has printed why; what it wrote for is not durable, and says
            // so.
            let _ = thread.join();
        }
    }
}

fn run_writer(core: &Core, cpu: Option<usize>, recorder: &Recorder) {
    if let Some(cpu) = cpu {
        pin_to(cpu);
    }
    loop {
        let flags = core.bell.flags.swap(0, AcqRel);
        if flags & STOP != 0 {
            return;
        }
        if flags & WRITE_NOW == 0 {
            let time_left = (flags & DELAYED != 0).then(|| time_until_due(core)).flatten();
            match (flags & DELAYED != 0, time_left) {
                (true, Some(time_left)) => {
                    core.bell.flags.fetch_or(DELAYED, AcqRel);
                    let _idle = recorder.wait(Wait::LogIdle);
                    if core.bell.flags.load(Acquire) == DELAYED {
                        thread::park_timeout(time_left);
                    }
                    continue;
                }
                (true, None) => {}
                (false, _) => {
                    let _idle = recorder.wait(Wait::LogIdle);
                    thread::park();
                    continue;
                }
            }
        }
        let written = core.written.load(Acquire);
        core.write_or_wait(recorder);
        if core.written.load(Acquire) == written && core.in_flight.tail() > written {
            // Whoever copies the record that is next does not run. It needs a processor, perhaps
            // this one: looking again and again would only keep it waiting.
            let _waiting = recorder.wait(Wait::LogCompletion);
            thread::sleep(COMPLETION_PAUSE);
        }
        if core.wakers.is_waited_for() && core.failure().is_none() {
            // A record before theirs was not complete yet, or they came during the round.
            core.bell.ring_for_write();
            thread::yield_now();
        }
    }
}

/// How long the oldest delayed commit may still wait for its round to begin; `None` if that is due
/// or there is none.
pub(crate) fn time_until_due(core: &Core) -> Option<Duration> {
    let since = core.delayed.since()?;
    let due_after = core.options.window.milliseconds.saturating_mul(500);
    let due_after = if planted(Fault::WindowTooLong) { due_after * 4 } else { due_after };
    let due = since + due_after;
    let left = due.saturating_sub(core.clock.now_micros());
    (left > 0).then(|| Duration::from_micros(left))
}

fn run_segments(core: &Core, recorder: &Recorder) {
    loop {
        let seen = core.pool.changes();
        if core.check().is_err() {
            return;
        }
        match core.prepare_segment(recorder) {
            Ok(Prepared::Made) => {}
            // Also on a full disk: whoever needs the space will try for itself, and say so.
            Ok(Prepared::Enough | Prepared::AtCapacity) | Err(_) => {
                let _idle = recorder.wait(Wait::BackgroundIdle);
                core.pool.wait_for_change(seen);
            }
        }
    }
}

/// Pins the calling thread; where the system refuses, it runs anywhere, which is only slower.
#[cfg(target_os = "linux")]
fn pin_to(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    if cpu < rustix::thread::CpuSet::MAX_CPU {
        set.set(cpu);
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
}

#[cfg(not(target_os = "linux"))]
fn pin_to(_cpu: usize) {}
