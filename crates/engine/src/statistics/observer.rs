//! Who looks at an open database from above, and remembers what is needed for that. Each part of the engine counts
//! for itself, and knows nothing of being looked at.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use onrush_waits::Wait;

use super::history::History;
use super::memory::{self, CountPart, PartsOfProgram};
use super::{Rates, Statistics};
use crate::engine::Engine;
use crate::recovery::RecoveryReport;

/// Whoever waits for one of these waits for the log to be written.
const LOG_QUEUE: &[Wait] = &[Wait::WriteLog, Wait::LogBuffer, Wait::DelayedWindow];

/// See the module.
pub(crate) struct Observer {
    engine: Arc<Engine>,
    recovery: RecoveryReport,
    /// What the program around the engine counts of its memory.
    program: PartsOfProgram,
    history: History,
}

impl Observer {
    pub(crate) fn new(engine: Arc<Engine>, recovery: RecoveryReport) -> Observer {
        let (program, history) = (PartsOfProgram::default(), History::default());
        Observer { engine, recovery, program, history }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// What opening had to do.
    pub(crate) fn recovery(&self) -> &RecoveryReport {
        &self.recovery
    }

    /// Adds a part to the memory that is counted.
    pub(crate) fn count_memory(&self, count: CountPart) {
        self.program.add(count);
    }

    /// How things are, and what was done since the database was opened or the last reset.
    pub(crate) fn statistics(&self) -> Statistics {
        let engine = &*self.engine;
        let (available, frames) = (engine.frames.available(), engine.frames.frames());
        let space = engine.log.space();
        Statistics {
            unix_millis: unix_millis(),
            elapsed_nanos: self.history.elapsed_nanos(),
            totals: engine.registry.totals(),
            log: self.history.log_since_reset(&engine.log.statistics()),
            log_space_bytes: (space.in_use_bytes, space.capacity_bytes),
            log_queue: engine.registry.waiting_now(LOG_QUEUE),
            leaves: engine.leaf_count(),
            // Frames are given away and come again meanwhile: the two need not be of one moment.
            frames: (frames.saturating_sub(available) as u64, frames as u64),
            memory: memory::parts(engine, &self.program),
            memory_limit_bytes: engine.options.memory_bytes,
            large_transactions: engine.resolver.large.open(),
            slots: engine.space.slots(),
            checkpoint: engine.progress.read(),
            recovery: self.recovery.clone(),
        }
    }

    /// Takes a sample if a second is over since the last one.
    pub(crate) fn sample_if_due(&self) {
        self.history.sample_if_due(|| self.statistics());
    }

    /// The seconds that are kept, oldest first.
    pub(crate) fn rates(&self) -> Vec<Rates> {
        self.history.rates()
    }

    /// From now on snapshots begin at nothing. The seconds that are kept stay.
    pub(crate) fn reset(&self) {
        self.engine.registry.reset();
        self.history.reset(self.engine.log.statistics());
    }
}

fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
