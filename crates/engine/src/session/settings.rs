//! What a session is told about itself: how its commits are acknowledged, and how it waits for others.

use std::sync::Arc;
use std::time::Duration;

use super::session::Session;
use crate::catalog::Waiting;
use crate::options::Durability;

impl Session {
    /// Its number among [`Database::sessions`](crate::Database::sessions), which no other session
    /// of the database ever has.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.worker.recorder.id()
    }

    /// Chooses when this session's further commits are acknowledged.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    /// How long this session waits where another transaction defines a table or a name; none: until that
    /// has ended, as it is at first.
    pub fn set_lock_timeout(&mut self, timeout: Option<Duration>) {
        self.worker.lock_wait.timeout = timeout;
    }

    /// What the program has to say while this session waits for a definition of another transaction.
    pub fn set_waiting(&mut self, waiting: Option<Arc<dyn Waiting>>) {
        self.worker.lock_wait.waiting = waiting;
    }

    /// The next durable answers rest on all definitions made so far: *there is no such table* must not be
    /// told before whatever dropped it is durable.
    pub fn rest_on_definitions(&mut self) {
        if let Some(changed_at) = self.worker.engine.catalog.changed_at() {
            self.saw(changed_at);
        }
    }

    /// When this session's commits are acknowledged.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.durability
    }
}
