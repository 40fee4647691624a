//! What admission costs: `cargo run --release -p onrush-latch --example admission`.
//!
//! Each operation is enter, about 100 ns of work, leave. Printed: million operations a second, and
//! that as a share of what one thread a processor did without admission just before; the longest
//! time 16 operations took, waiting included; the share of the least lucky thread; places taken
//! from absent owners; ADMISSION waits, their median (rounded up to a power of two) and the
//! longest. With "commits", every tenth operation releases the place and sleeps 150 us, as a
//! durable commit would. Argument: milliseconds a run.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use onrush_latch::{Admission, Ticket, available_cpus};
use onrush_waits::{Counter, Recorder, Registry, Totals, Wait};

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Open,
    Admitted,
    Commits,
}

struct Outcome {
    operations: u64,
    longest: Duration,
}

/// About 100 ns.
fn work(value: &mut u64) {
    for _ in 0..130 {
        *value = black_box(*value).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
}

fn operation(mode: Mode, admission: &Admission, ticket: &mut Ticket, recorder: &Recorder) {
    let mut value = 1;
    if mode == Mode::Open {
        work(&mut value);
    } else {
        let entered = admission.enter(ticket, recorder);
        work(&mut value);
        drop(entered);
    }
}

fn session(mode: Mode, admission: &Admission, registry: &Registry, stop: &AtomicBool) -> Outcome {
    let recorder = Recorder::new(registry, "session");
    let mut ticket = admission.ticket();
    let mut outcome = Outcome { operations: 0, longest: Duration::ZERO };
    let mut last = Instant::now();
    while !stop.load(Relaxed) {
        operation(mode, admission, &mut ticket, &recorder);
        outcome.operations += 1;
        if mode == Mode::Commits && outcome.operations.is_multiple_of(10) {
            ticket.release();
            std::thread::sleep(Duration::from_micros(150));
        }
        if outcome.operations.is_multiple_of(16) {
            let now = Instant::now();
            outcome.longest = outcome.longest.max(now - last);
            last = now;
        }
    }
    outcome
}

/// Runs so many sessions for so long: million operations a second, what each did, and the
/// statistics.
fn run(mode: Mode, threads: usize, time: Duration) -> (f64, Vec<Outcome>, Totals) {
    let registry = Registry::new();
    let admission = Admission::for_this_machine(0);
    let stop = AtomicBool::new(false);
    let began = Instant::now();
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| session(mode, &admission, &registry, &stop)))
            .collect();
        std::thread::sleep(time);
        stop.store(true, Relaxed);
        workers.into_iter().map(|worker| worker.join().expect("no panic")).collect()
    });
    let all: u64 = outcomes.iter().map(|outcome| outcome.operations).sum();
    let rate = all as f64 / began.elapsed().as_secs_f64() / 1e6;
    (rate, outcomes, registry.totals())
}

/// One line: the run, compared with one just before it of a thread a processor without admission.
fn print_run(name: &str, mode: Mode, threads: usize, time: Duration) {
    let (base, ..) = run(Mode::Open, available_cpus(), time / 2);
    let (rate, outcomes, totals) = run(mode, threads, time);
    let least = outcomes.iter().map(|outcome| outcome.operations).min().unwrap_or(0);
    let longest = outcomes.iter().map(|outcome| outcome.longest).max().unwrap_or_default();
    let mean = outcomes.iter().map(|outcome| outcome.operations).sum::<u64>() as f64
        / outcomes.len() as f64;
    let waits = totals.wait(Wait::Admission);
    println!(
        "{name:24} {threads:>7} {rate:>8.2} {:>7.0}% \
         {:>11.1} {:>10.0}% {:>8} {:>10} {:>10.1} {:>8.1}",
        rate * 100.0 / base,
        longest.as_secs_f64() * 1e3,
        least as f64 * 100.0 / mean,
        totals.counter(Counter::AdmissionSteals),
        waits.count,
        waits.percentile_nanos(50.0).unwrap_or(0) as f64 / 1e6,
        waits.nanos_max as f64 / 1e6,
    );
}

fn main() {
    let millis = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2000);
    let time = Duration::from_millis(millis);
    let cpus = available_cpus();
    println!("processors: {cpus}, places: {}", cpus + 1);
    println!(
        "{:24} {:>7} {:>8} {:>8} {:>11} {:>11} {:>8} {:>10} {:>10} {:>8}",
        "",
        "threads",
        "M/s",
        "of base",
        "longest ms",
        "unluckiest",
        "steals",
        "ADMISSION",
        "median ms",
        "max ms"
    );
    for threads in [cpus, 12 * cpus] {
        print_run("without admission", Mode::Open, threads, time);
    }
    for threads in [1, cpus, 2 * cpus, 12 * cpus, 64 * cpus] {
        print_run("with admission", Mode::Admitted, threads, time);
    }
    for threads in [cpus, 12 * cpus, 64 * cpus] {
        print_run("with admission, commits", Mode::Commits, threads, time);
    }
}
