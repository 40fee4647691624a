//! Tables, and what makes them durable as a whole: checkpoints.

use std::ops::Deref;

use super::{CheckpointerCell, Progress, Records, Throttle};
use crate::catalog::Relations;

/// See the module.
pub(crate) struct Store {
    relations: Relations,
    /// What checkpoints carry from one to the next.
    pub(crate) checkpointer: CheckpointerCell,
    /// How far the running one is.
    pub(crate) progress: Progress,
    /// The ones that were taken last.
    pub(crate) checkpoints: Records,
    /// How long inserts pause, so that a checkpoint can catch up.
    pub(crate) throttle: Throttle,
}

impl Deref for Store {
    type Target = Relations;

    #[inline]
    fn deref(&self) -> &Relations {
        &self.relations
    }
}

impl Store {
    pub(crate) fn new(relations: Relations) -> Store {
        Store {
            relations,
            checkpointer: CheckpointerCell::default(),
            progress: Progress::default(),
            checkpoints: Records::default(),
            throttle: Throttle::default(),
        }
    }
}
