//! Commits in the middle of rounds: by a second thread, since some of them must wait for the round
//! that the first thread is writing.
//!
//! Invariant: at most one commit waits at a time, and the first thread waits for it before it does
//! anything else.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use onrush::Durability;

use super::{Book, RECORD_BYTES_MORE, Run, advance};
use crate::gate::Visitor;
use crate::random::Random;
use onrush_oracle::violation;
use onrush_oracle::{Checked, Violation};

/// A commit that waits for a round for longer hangs.
const HANGS_AFTER: Duration = Duration::from_secs(60);
/// A commit that need not wait, and has not come back after this, waits all the same: the engine may
/// take a round for older than it is. Then time goes on without it.
const PATIENCE: Duration = Duration::from_millis(20);

/// How often it is looked whether a commit is acknowledged that must not be.
const LOOKS: u32 = 100;

/// One commit to make.
struct Request {
    number: i64,
    payload_bytes: usize,
}

/// See the module.
pub(super) struct Helper {
    requests: Option<Sender<Request>>,
    answers: Receiver<Checked<()>>,
    thread: Option<JoinHandle<()>>,
    is_waiting: bool,
    numbers: i64,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Helper {
    pub(super) fn start(run: &Run) -> Checked<Helper> {
        let (requests, to_do) = channel::<Request>();
        let (done, answers) = channel();
        let (disk, table) = (run.disk.clone(), run.table.clone());
        let book = Arc::clone(&run.book);
        let session = run.database.session();
        let mut session = session.map_err(|error| Violation(error.to_string()))?;
        session.set_durability(Durability::Delayed);
        let thread = std::thread::spawn(move || {
            for request in to_do {
                let row = [request.number.into(), vec![9; request.payload_bytes].into()];
                let outcome = session.insert(&table, &row);
                let end = session.last_commit_lsn().map_or(0, |end| end.0);
                let number = request.number;
                super::note(&book, &disk, number, (end, Durability::Delayed));
                let outcome = outcome.map_err(|error| Violation(error.to_string()));
                if done.send(outcome).is_err() {
                    return;
                }
            }
        });
        let (requests, thread) = (Some(requests), Some(thread));
        Ok(Helper { requests, answers, thread, is_waiting: false, numbers: 0 })
    }

    /// The number of the next commit.
    pub(super) fn next_number(&mut self) -> i64 {
        self.numbers += 1;
        self.numbers - 1
    }

    fn request(&mut self, payload_bytes: usize) {
        let number = self.next_number();
        let request = Request { number, payload_bytes };
        self.is_waiting = true;
        if let Some(requests) = &self.requests {
            // A helper that is gone does not answer, which `join` sees.
            let _ = requests.send(request);
        }
    }

    /// Looks for a while whether the commit that was asked for is acknowledged.
    fn looks_done(&self) -> bool {
        (0..LOOKS).any(|_| {
            std::thread::yield_now();
            self.answers.try_recv().is_ok()
        })
    }

    /// Waits for the commit that was asked for, if any.
    pub(super) fn join(&mut self) -> Checked<()> {
        self.wait(HANGS_AFTER)?;
        if self.is_waiting {
            violation!("a commit that came during a round hangs");
        }
        Ok(())
    }

    fn wait(&mut self, at_most: Duration) -> Checked<()> {
        if self.is_waiting
            && let Ok(answer) = self.answers.recv_timeout(at_most)
        {
            self.is_waiting = false;
            return answer;
        }
        Ok(())
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.requests = None;
        // One that hangs has been reported; waiting for it would hide that.
        if let Some(thread) = self.thread.take()
            && !self.is_waiting
        {
            let _ = thread.join();
        }
    }
}

/// What happens while a round is being written: time passes, others commit.
pub(super) fn visitor(run: &mut Run, helper: Arc<Mutex<Helper>>) -> Visitor {
    let mut random = Random::for_part(run.random.next_number(), 1);
    let (plan, disk, database) = (run.plan, run.disk.clone(), run.database.clone());
    let book = Arc::clone(&run.book);
    // The round, told by what was durable when it began, and when that was if it is for a delayed commit.
    let mut round: Option<(u64, Option<u64>)> = None;
    Box::new(move || {
        let durable = database.durable_lsn().0;
        let known = round.filter(|(at, _)| *at == durable);
        let began = known.map_or_else(|| begin(&locked(&book), durable), |(_, began)| began);
        round = Some((durable, began));
        for _ in 0..1 + random.below(4) {
            let micros = random.below(plan.round_micros_max + 1);
            advance(&book, &disk, &database, Duration::from_micros(micros), true);
            // Not free: the first thread waits for the helper, which writes this round itself.
            let Ok(mut helper) = helper.try_lock() else { continue };
            if helper.is_waiting || random.chance(1, 3) {
                continue;
            }
            let payload = random.below(plan.payload_bytes_max + 1);
            let now = locked(&book).now.micros;
            let must_wait = began.is_some_and(|began| now - began > plan.window_micros());
            let end = locked(&book).commits.iter().map(|commit| commit.end).max().unwrap_or(0);
            let behind =
                (end + payload + RECORD_BYTES_MORE).saturating_sub(database.durable_lsn().0);
            helper.request(payload as usize);
            let outcome = if must_wait && helper.looks_done() {
                Err(Violation(format!(
                    "the disk stalled since {began:?}, and a commit did not wait"
                )))
            } else if must_wait || behind > plan.window_bytes {
                Ok(()) // it waits for the round, or may: the next `join` is after it
            } else {
                helper.wait(PATIENCE)
            };
            if let Err(violation) = outcome {
                helper.is_waiting = false;
                locked(&book).failed = Some(violation);
                return;
            }
        }
    })
}

/// Now, if the round that begins is to make an acknowledged commit durable.
fn begin(book: &Book, durable: u64) -> Option<u64> {
    let is_for_one = book.commits.iter().any(|commit| commit.end > durable);
    is_for_one.then_some(book.now.micros)
}
