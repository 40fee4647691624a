//! The time of one wait of a task: its thread does something else meanwhile, so nothing is counted for
//! the thread, and the task may go on on another one.

use std::sync::Arc;
use std::time::Instant;

use crate::catalog::Wait;
use crate::recorder::{Recorder, nanos_of};

/// Counts one wait, and its time, when dropped; all of it is resource time.
#[must_use = "a wait lasts as long as its guard"]
#[derive(Debug)]
pub struct TaskWaitGuard {
    recorder: Arc<Recorder>,
    wait: Wait,
    began: Option<Instant>, // None: statistics are off
}

impl TaskWaitGuard {
    pub(crate) fn start(recorder: &Arc<Recorder>, wait: Wait) -> TaskWaitGuard {
        let began = recorder.is_on().then(|| {
            recorder.numbers().waits_now.set(wait.index() as u64 + 1);
            Instant::now()
        });
        TaskWaitGuard { recorder: Arc::clone(recorder), wait, began }
    }
}

impl Drop for TaskWaitGuard {
    fn drop(&mut self) {
        let Some(began) = self.began else { return };
        let numbers = self.recorder.numbers();
        numbers.waits_now.set(0);
        numbers.waited(self.wait, nanos_of(began.elapsed()), 0);
    }
}
