//! The two background threads: one writes for delayed commits and futures, one makes segments ahead
//! of need.
//!
//! [`Log::callers_write`]: crate::Log::callers_write
//!
//! A log with the writer place `Callers` has neither. Durable commits need neither: whoever waits
//! for one writes.
//!
//! Invariants
//! 1. A thread that finds its flag of the bell set already has nothing to do: the writer will take
//!    all flags before the round that it begins.
//! 2. Where callers have promised to write what is awaited ([`Log::callers_write`]), a commit that is
//!    awaited does not call the writer. It only looks, once a tick, as long as commits are awaited now
//!    and then, and writes for those of whom it sees that nothing became durable for a tick.
//! 3. The writer begins a round for delayed commits when half the milliseconds of the window are
//!    over, so that a sync of ordinary length still ends inside it.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use onrush_fault::{Fault, planted};
use onrush_waits::{Recorder, Wait};

use crate::core::Core;
use crate::options::WriterPlace;
use crate::pool::Prepared;

/// How long the writer leaves the processor to a thread whose record is not complete.
const COMPLETION_PAUSE: Duration = Duration::from_micros(50);

/// How long a commit that is awaited waits for those who have promised to write, at least.
const WATCH_TICK: Duration = Duration::from_millis(1);
/// Ticks without an awaited commit after which nobody looks any more.
const WATCH_TICKS_MAX: u32 = 50;

const STOP: u32 = 1;
const WRITE_NOW: u32 = 2;
const DELAYED: u32 = 4;
const WATCH: u32 = 8;

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

    /// Somebody awaits a commit that others have promised to write.
    #[inline]
    pub(crate) fn ring_for_watch(&self) {
        self.ring(WATCH);
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
        if let WriterPlace::Thread { cpu } = core.options.writer {
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
    let mut watch = Watch::default();
    loop {
        let flags = core.bell.flags.swap(0, AcqRel);
        if flags & STOP != 0 {
            return;
        }
        if flags & WRITE_NOW == 0 {
            let until_due = (flags & DELAYED != 0).then(|| time_until_due(core));
            let seen = if flags & WATCH != 0 { watch.look(core) } else { Seen::Nobody };
            let until_tick = (seen != Seen::Nobody).then_some(WATCH_TICK);
            let keep = if matches!(until_due, Some(Some(_))) { DELAYED } else { 0 }
                | if until_tick.is_some() { WATCH } else { 0 };
            core.bell.flags.fetch_or(keep, AcqRel);
            if until_due != Some(None) && seen != Seen::Overdue {
                let _idle = recorder.wait(Wait::LogIdle);
                let time_left = until_due.flatten().into_iter().chain(until_tick).min();
                if core.bell.flags.load(Acquire) == keep {
                    time_left.map_or_else(thread::park, thread::park_timeout);
                }
                continue;
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
            core.ring_for_awaited();
            thread::yield_now();
        }
    }
}

/// What the writer has seen of commits that are awaited, while others have promised to write them.
#[derive(Debug, Default)]
struct Watch {
    /// What was durable at the last look, if somebody waited then.
    durable_then: Option<u64>,
    ticks_without: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    /// Nobody has waited for many ticks.
    Nobody,
    /// Nobody waits, or not for long.
    InTime,
    /// Nothing has become durable since the last look, and somebody waited then.
    Overdue,
}

impl Watch {
    fn look(&mut self, core: &Core) -> Seen {
        let durable = core.durable.0.load(Acquire);
        if !core.wakers.is_waited_for() {
            self.durable_then = None;
            self.ticks_without += 1;
            if self.ticks_without <= WATCH_TICKS_MAX {
                return Seen::InTime;
            }
            self.ticks_without = 0;
            return Seen::Nobody;
        }
        self.ticks_without = 0;
        if self.durable_then.replace(durable) == Some(durable) {
            Seen::Overdue
        } else {
            Seen::InTime
        }
    }
}

/// How long the oldest delayed commit may still wait for its round to begin; `None` if that is due
/// or there is none.
pub(crate) fn time_until_due(core: &Core) -> Option<Duration> {
    let since = core.delayed.since();
    if since == 0 {
        return None;
    }
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
            // Also on a full disk: whoever needs the room will try for itself, and say so.
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
