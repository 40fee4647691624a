//! The engine's own threads run where the settings say: checkpoints and eviction on the processors of
//! `cpu_mask`, the log on `log_writer_cpu`. One test, because threads are found by their names in the
//! whole process.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::time::{Duration, Instant};

use common::Fixture;
use onrush::Background;

/// The processors that the thread in this folder of `/proc` may use, as the system writes them.
fn allowed(thread: &str) -> Option<String> {
    let status = read_to_string(format!("{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(line.trim().to_owned())
}

/// The threads of this process that the engine has started, with the processors of each.
fn own_threads() -> BTreeMap<String, String> {
    let folders = std::fs::read_dir("/proc/self/task").unwrap();
    let thread = |folder: std::io::Result<std::fs::DirEntry>| {
        let folder = folder.unwrap().path().to_str().unwrap().to_owned();
        let name = read_to_string(format!("{folder}/comm")).ok()?.trim().to_owned();
        name.starts_with("onrush-").then_some((name, allowed(&folder)?))
    };
    folders.filter_map(thread).collect()
}

#[test]
fn wherever_the_sessions_run() {
    let usable = allowed("/proc/thread-self").unwrap();
    let last: usize = usable.rsplit([',', '-']).next().unwrap().parse().unwrap();
    let mut fixture = Fixture::new();
    fixture.options.background = Background::Threads;
    fixture.options.cpu_mask = Some(1 << last);
    fixture.options.log_writer_cpu = Some(last);
    let db = fixture.create();
    // A thread is there before it has gone to its processor. The system cuts names off after 15 letters.
    let wanted = ["onrush-checkpoi", "onrush-evict", "onrush-log"]
        .map(|name| (name.to_owned(), last.to_string()));
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut found = own_threads();
    while !wanted.iter().all(|(name, on)| found.get(name) == Some(on)) {
        assert!(Instant::now() < deadline, "{found:?}");
        std::thread::yield_now();
        found = own_threads();
    }
    assert_eq!(allowed("/proc/thread-self").unwrap(), usable, "the caller stays where it was");
    db.close().unwrap();
}
