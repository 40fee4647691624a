//! A disk that is slow to write the log: while it does, clients run statements.
//!
//! What they are told meanwhile must not rest on what the disk has not confirmed. A statement that has to wait for the
//! log to be written once more, or that nobody may leave waiting, lets the log go on.
//!
//! Invariant: the log and a client's statement never run at once, so that everything follows from the plan.

use std::sync::mpsc::{Receiver, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Round, stops_at_the_gate};
use crate::history::Checked;
use crate::kinds::Kind;

/// So often others may run: before and after the first call. By the next one what was written may be durable, and
/// those who waited for it are on their way.
const STOPS: usize = 2;

/// The thread that writes the log arrives before and after each call of the disk, and waits to go on.
pub(super) struct HeldLog {
    arrivals: Receiver<()>,
    go_on: SyncSender<()>,
    writer: JoinHandle<()>,
}

impl Round {
    /// Whether the disk takes its time for the log now. In a checkpoint the gate has other visitors.
    pub(super) fn is_log_slow(&mut self) -> bool {
        self.plan.kinds.has(Kind::Slow) && !self.in_checkpoint && self.random.chance(2, 3)
    }

    /// Writes the log; in the middle of it others run statements.
    pub(super) fn write_log_slowly(&mut self) -> Checked<()> {
        let (visitor, (arrivals, go_on)) = stops_at_the_gate();
        self.gate.open_for_log(visitor);
        let database = self.database.clone();
        let writer = std::thread::spawn(move || {
            // A log that has failed says so to those who wait for it.
            let _ = database.write_log();
        });
        self.held_log = Some(HeldLog { arrivals, go_on, writer });
        let mut stops = 0;
        let mut outcome = Ok(());
        while let Some(held) = &self.held_log {
            if held.arrivals.recv_timeout(Duration::from_micros(20)).is_err() {
                if held.writer.is_finished() {
                    break;
                }
                continue;
            }
            outcome = self.overtake();
            stops += 1;
            if stops == STOPS || outcome.is_err() || !self.is_log_held_on() {
                break;
            }
        }
        self.let_log_go_on();
        outcome
    }

    /// Lets the log be written to where it stops next, if somebody holds it.
    fn is_log_held_on(&self) -> bool {
        self.held_log.as_ref().is_some_and(|held| held.go_on.send(()).is_ok())
    }

    /// Lets the log be written to its end, if somebody holds it.
    pub(super) fn let_log_go_on(&mut self) {
        let Some(HeldLog { arrivals, go_on, writer }) = self.held_log.take() else { return };
        drop((arrivals, go_on));
        if let Err(panic) = writer.join() {
            std::panic::resume_unwind(panic);
        }
        self.gate.close();
    }

    /// Some statements of clients that have nothing in flight.
    fn overtake(&mut self) -> Checked<()> {
        while self.held_log.is_some() && self.random.chance(2, 3) && !self.has_failed {
            let is_ready =
                |seat: &usize| self.seats[*seat].in_flight.is_none() && self.seats[*seat].left > 0;
            let ready: Vec<usize> = (0..self.seats.len()).filter(is_ready).collect();
            if ready.is_empty() {
                return Ok(());
            }
            self.overtaken += 1;
            let chosen = self.random.below(ready.len() as u64) as usize;
            self.step(ready[chosen])?;
        }
        Ok(())
    }
}
