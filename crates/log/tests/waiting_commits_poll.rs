//! Durable commits of more threads than there are processors look for the end of the sync instead of
//! sleeping, where the setting lets them.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod common;

use std::sync::Mutex;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::available_parallelism;

use common::*;
use onrush_log::{Log, LogOptions, LogWriter};
use onrush_waits::{Spin, SpinTotal};

/// Four times as many threads as processors commit, each so often, and every sync lasts until all of them
/// wait. Returns their looks.
fn looks_of_commits(commit_polling_us: u64, commits: u32) -> SpinTotal {
    let threads = 4 * available_parallelism().unwrap().get();
    let writer = LogWriter::Thread { cpu: None };
    let options = LogOptions { commit_polling_us, writer, ..options(1) };
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    disk.slow_until.store(threads, SeqCst);
    let held = Mutex::new(());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let recorder = recorder(&options);
                for _ in 0..commits {
                    let held = held.lock().unwrap();
                    let end = append(&log, b"row", &recorder);
                    drop(held);
                    disk.waiting.fetch_add(1, SeqCst);
                    log.wait_durable(end, &recorder).unwrap();
                    disk.waiting.fetch_sub(1, SeqCst);
                    assert!(log.durable() >= end);
                }
                // Nobody need wait for a thread that has ended.
                disk.slow_until.fetch_sub(1, SeqCst);
            });
        }
    });
    options.registry.totals().spin(Spin::CommitGroup).clone()
}

#[test]
fn they_look_as_long_as_the_setting_says() {
    let looks = looks_of_commits(60_000_000, 20);
    assert!(looks.spun.spins > 0, "{looks:?}");
    assert_eq!(looks.spun.sleeps, 0, "none looked for a minute");
}

#[test]
fn they_sleep_when_the_setting_is_zero() {
    assert_eq!(looks_of_commits(0, 20).spun.spins, 0);
}
