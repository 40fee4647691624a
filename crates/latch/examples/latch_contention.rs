//! How latches of different making bear many threads: `cargo run --release -p onrush-latch
//! --example latch_contention`.
//!
//! Threads take one lock again and again, hold it for about 50 ns, and work about 50 ns between.
//! Printed for each lock and number of threads: million acquisitions a second, the longest wait for
//! one, the share of the least lucky thread (100 % is even), and the processors kept busy. Before
//! that: what each call costs alone. Argument: milliseconds a run.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use onrush_latch::{Admission, Latch, VersionLatch};
use onrush_waits::{Counter, LatchClass, Phase, Recorder, Registry, Wait};

/// A lock that does something while it is held.
trait Lock: Sync {
    fn with(&self, recorder: &Recorder, work: impl FnOnce(&mut u64));
}

/// What Onrush uses.
impl Lock for Latch<u64> {
    fn with(&self, recorder: &Recorder, work: impl FnOnce(&mut u64)) {
        work(&mut self.exclusive(recorder, LatchClass::Leaf));
    }
}

/// Futex, parks after a short spin.
impl Lock for std::sync::Mutex<u64> {
    fn with(&self, _: &Recorder, work: impl FnOnce(&mut u64)) {
        work(&mut self.lock().expect("no panic"));
    }
}

/// Parks after a short spin, and hands over in turn now and then.
impl Lock for parking_lot::RwLock<u64> {
    fn with(&self, _: &Recorder, work: impl FnOnce(&mut u64)) {
        work(&mut self.write());
    }
}

/// Looks again after so many pauses, for ever: the classic spinlock with 1, a fixed back-off with
/// more.
struct Spin<const PAUSES: u32> {
    held: AtomicBool,
    data: parking_lot::Mutex<u64>, // never contended: the flag decides
}

impl<const PAUSES: u32> Spin<PAUSES> {
    fn new() -> Self {
        Self { held: AtomicBool::new(false), data: parking_lot::Mutex::new(0) }
    }
}

impl<const PAUSES: u32> Lock for Spin<PAUSES> {
    fn with(&self, _: &Recorder, work: impl FnOnce(&mut u64)) {
        while self.held.load(Relaxed)
            || self.held.compare_exchange(false, true, Acquire, Relaxed).is_err()
        {
            pause(PAUSES);
        }
        work(&mut self.data.lock());
        self.held.store(false, Release);
    }
}

fn pause(times: u32) {
    for _ in 0..times {
        std::hint::spin_loop();
    }
}

/// About 50 ns of dependent arithmetic on the locked value.
fn work(value: &mut u64) {
    for _ in 0..65 {
        *value = black_box(*value).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
}

#[derive(Clone, Copy)]
struct Outcome {
    acquisitions: u64,
    longest: Duration,
}

fn hammer(lock: &impl Lock, recorder: &Recorder, stop: &AtomicBool) -> Outcome {
    let mut outcome = Outcome { acquisitions: 0, longest: Duration::ZERO };
    let mut own = 1;
    let mut last = Instant::now();
    while !stop.load(Relaxed) {
        lock.with(recorder, work);
        work(&mut own);
        outcome.acquisitions += 1;
        if outcome.acquisitions.is_multiple_of(16) {
            // The clock is read for one in 16, so that it does not hide the lock.
            let now = Instant::now();
            outcome.longest = outcome.longest.max(now - last);
            last = now;
        }
    }
    outcome
}

fn run(name: &str, threads: usize, time: Duration, lock: &impl Lock) {
    let registry = Registry::new();
    let stop = AtomicBool::new(false);
    let start = Arc::new(Barrier::new(threads + 1));
    let (outcomes, elapsed, busy) = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let start = Arc::clone(&start);
                let (registry, stop) = (&registry, &stop);
                scope.spawn(move || {
                    let recorder = Recorder::new(registry, "worker");
                    start.wait();
                    hammer(lock, &recorder, stop)
                })
            })
            .collect();
        start.wait();
        let (began, cpu) = (Instant::now(), processor_time());
        std::thread::sleep(time);
        stop.store(true, Relaxed);
        let join = |worker: std::thread::ScopedJoinHandle<'_, Outcome>| worker.join().expect("ok");
        let outcomes: Vec<_> = workers.into_iter().map(join).collect();
        (outcomes, began.elapsed(), processor_time() - cpu)
    });
    let all: u64 = outcomes.iter().map(|outcome| outcome.acquisitions).sum();
    let least = outcomes.iter().map(|outcome| outcome.acquisitions).min().unwrap_or(0);
    let longest = outcomes.iter().map(|outcome| outcome.longest).max().unwrap_or_default();
    println!(
        "{name:20} {threads:>7} {:>10.2} {:>12.2} {:>9.0}% {:>9.2}",
        all as f64 / elapsed.as_secs_f64() / 1e6,
        longest.as_secs_f64() * 1e3,
        least as f64 * threads as f64 * 100.0 / all as f64,
        busy.as_secs_f64() / elapsed.as_secs_f64(),
    );
}

/// Processor time of this process so far; in steps of 10 ms, and zero where there is no /proc.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// Nanoseconds for each of the things that every insert does, with nobody in the way.
fn uncontended() {
    const TIMES: u32 = 20_000_000;
    let recorder = Recorder::new(&Registry::new(), "alone");
    let print = |name: &str, action: &mut dyn FnMut()| {
        let began = Instant::now();
        (0..TIMES).for_each(|_| action());
        println!("{name:36} {:>6.1} ns", began.elapsed().as_nanos() as f64 / f64::from(TIMES));
    };
    let latch = Latch::new(0_u64);
    print("nothing", &mut || _ = black_box(&latch));
    print("latch, exclusive", &mut || *latch.exclusive(&recorder, LatchClass::Leaf) += 1);
    print("latch, shared", &mut || _ = black_box(*latch.shared(&recorder, LatchClass::Leaf)));
    let version = VersionLatch::new();
    print("version, read and validate", &mut || {
        black_box(version.validate(version.wait_readable(&recorder)));
    });
    print("version, write", &mut || drop(version.write(&recorder)));
    let admission = Admission::for_this_machine(0);
    let mut ticket = admission.ticket();
    print("admission, enter and leave", &mut || {
        black_box(admission.enter(&mut ticket, &recorder).permit());
    });
    print("admission, and release", &mut || {
        drop(admission.enter(&mut ticket, &recorder));
        ticket.release();
    });
    print("recorder, count", &mut || recorder.count(Counter::Commits, 1));
    print("recorder, sample with two marks", &mut || {
        recorder.begin_call();
        recorder.mark(Phase::Seek);
        recorder.end_call(Phase::Write);
    });
    print("recorder, wait", &mut || drop(recorder.wait(Wait::Admission)));
}

fn main() {
    let millis = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1000);
    let time = Duration::from_millis(millis);
    println!("processors: {}", onrush_latch::available_cpus());
    uncontended();
    println!(
        "{:20} {:>7} {:>10} {:>12} {:>10} {:>9}",
        "lock", "threads", "M/s", "longest ms", "unluckiest", "CPUs busy"
    );
    for threads in [1, 2, 4, 24] {
        run("latch", threads, time, &Latch::new(0));
        run("spin", threads, time, &Spin::<1>::new());
        run("spin every 10 us", threads, time, &Spin::<800>::new());
        run("parking_lot::RwLock", threads, time, &parking_lot::RwLock::new(0));
        run("std::sync::Mutex", threads, time, &std::sync::Mutex::new(0));
    }
}
