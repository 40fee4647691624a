//! What sessions wait for, seen by looking often: for servers that tell what a session does at this
//! moment, but add nothing up. Each look counts for the time since the one before.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Connection;
use crate::target::record::WaitRecord;

/// How often to look: often enough for a load of seconds, and for 24 sessions about one per cent
/// of one processor.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What some sessions were seen doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) group: String,
    pub(super) name: String,
    pub(super) sessions: u64,
    pub(super) is_idle: bool,
}

/// Everything seen since the instance was prepared.
#[derive(Debug, Default)]
pub(super) struct Watch {
    waits: Arc<Mutex<BTreeMap<(String, String), WaitRecord>>>,
}

/// Looks on until it is dropped.
pub(super) struct Watching {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to look, by a connection of its own.
    pub(super) fn start(&self, mut connection: impl Connection + 'static) -> Watching {
        let waits = Arc::clone(&self.waits);
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let mut before = Instant::now();
            while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                let mut seen = Vec::new();
                if connection.look(&mut |one| seen.push(one)).is_err() {
                    return; // the load meets the same error, and tells it
                }
                let now = Instant::now();
                let since = now.duration_since(before).as_secs_f64();
                before = now;
                let mut waits = waits.lock().unwrap_or_else(PoisonError::into_inner);
                seen.into_iter().for_each(|one| add(&mut waits, one, since));
            }
        });
        Watching { stop: Some(stop), thread: Some(thread) }
    }

    /// What was seen so far.
    pub(super) fn waits(&self) -> Vec<WaitRecord> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

fn add(waits: &mut BTreeMap<(String, String), WaitRecord>, seen: Seen, since_s: f64) {
    let key = (seen.group.clone(), seen.name.clone());
    let wait = waits.entry(key).or_insert_with(|| WaitRecord {
        group: seen.group,
        name: seen.name,
        is_idle: seen.is_idle,
        is_sampled: true,
        ..WaitRecord::default()
    });
    wait.count += seen.sessions;
    wait.seconds += seen.sessions as f64 * since_s;
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It took what it saw along with it; the load itself is not in doubt.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_look_counts_for_the_time_since_the_one_before() {
        let mut waits = BTreeMap::new();
        let seen = |name: &str, sessions| Seen {
            group: "LWLock".to_owned(),
            name: name.to_owned(),
            sessions,
            is_idle: false,
        };
        add(&mut waits, seen("WALWrite", 20), 0.1);
        add(&mut waits, seen("WALWrite", 10), 0.2);
        add(&mut waits, seen("WALInsert", 1), 0.2);
        let write = &waits[&("LWLock".to_owned(), "WALWrite".to_owned())];
        assert_eq!((write.count, write.is_sampled), (30, true));
        assert!((write.seconds - 4.0).abs() < 1e-9);
        assert_eq!(waits.len(), 2);
    }
}
