//! The memory of queries: one bound for all of them, one for each statement, and files for what spills.
//!
//! An operator that sorts, groups or merges asks before it takes memory. Where it gets none it writes what
//! it holds to a temporary file and goes on; one that cannot, the smaller side of a hash join, ends its
//! statement with an error that names the setting.
//!
//! Invariants
//! 1. A statement has no more than its own bound, and all together no more than theirs, but for what an
//!    operator takes without asking (`grow`), which is counted.
//! 2. Nobody waits for memory, so statements cannot wait for each other in a circle.
//! 3. Temporary files go with the query; those of a process that was killed go when the next one starts.

use std::fmt::{Display, Formatter};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::resources_datafusion_err;
use datafusion::error::DataFusionError;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use onrush_files::scratch_folder;

use crate::error::Result;

/// Where queries write what their memory does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillOptions {
    /// A folder for temporary files, made when it is missing. What lies in it is removed at the start.
    pub folder: PathBuf,
    /// The most that the files of all queries may take, in bytes.
    pub bytes_max: u64,
}

/// What all queries have together.
#[derive(Debug)]
pub struct QueryMemory {
    limit_bytes: usize,
    used_bytes: AtomicUsize,
}

impl QueryMemory {
    pub(crate) fn new(limit_bytes: usize) -> QueryMemory {
        QueryMemory { limit_bytes, used_bytes: AtomicUsize::new(0) }
    }

    /// What all queries have now, in bytes.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// What all queries may have, in bytes.
    #[must_use]
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    fn try_take(&self, bytes: usize) -> bool {
        let order = Ordering::Relaxed;
        let more = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit_bytes);
        self.used_bytes.fetch_update(order, order, more).is_ok()
    }

    fn take(&self, bytes: usize) {
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn give_back(&self, bytes: usize) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The memory of one statement: operators that can spill share it evenly.
#[derive(Debug)]
struct StatementMemory {
    own: FairSpillPool,
    limit_bytes: usize,
    all: Arc<QueryMemory>,
}

impl Display for StatementMemory {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl MemoryPool for StatementMemory {
    fn name(&self) -> &str {
        "statement"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.own.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.own.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.own.grow(reservation, additional);
        self.all.take(additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.own.shrink(reservation, shrink);
        self.all.give_back(shrink);
    }

    fn try_grow(
        &self,
        reservation: &MemoryReservation,
        additional: usize,
    ) -> std::result::Result<(), DataFusionError> {
        self.own.try_grow(reservation, additional)?;
        if self.all.try_take(additional) {
            return Ok(());
        }
        self.own.shrink(reservation, additional);
        Err(resources_datafusion_err!(
            "all queries together have {} of {} bytes, and this one needs {additional} more",
            self.all.used_bytes(),
            self.all.limit_bytes
        ))
    }

    fn reserved(&self) -> usize {
        self.own.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit_bytes)
    }
}

/// Makes what each statement runs in.
pub(crate) struct Runtimes {
    base: RuntimeEnv,
    statement_bytes: usize,
    all: Arc<QueryMemory>,
}

impl Runtimes {
    /// # Errors
    /// A folder for temporary files that cannot be made or emptied.
    pub(crate) fn new(
        memory_bytes: usize,
        statement_bytes: usize,
        spill: Option<&SpillOptions>,
    ) -> Result<Runtimes> {
        let files = match spill {
            None => DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled),
            Some(spill) => {
                scratch_folder(&spill.folder)?;
                DiskManagerBuilder::default()
                    .with_mode(DiskManagerMode::Directories(vec![spill.folder.clone()]))
                    .with_max_temp_directory_size(spill.bytes_max)
            }
        };
        let base = RuntimeEnvBuilder::new().with_disk_manager_builder(files).build()?;
        let all = Arc::new(QueryMemory::new(memory_bytes));
        Ok(Runtimes { base, statement_bytes: statement_bytes.min(memory_bytes), all })
    }

    pub(crate) fn memory(&self) -> &Arc<QueryMemory> {
        &self.all
    }

    /// For one statement.
    pub(crate) fn statement(&self) -> Arc<RuntimeEnv> {
        let memory = StatementMemory {
            own: FairSpillPool::new(self.statement_bytes),
            limit_bytes: self.statement_bytes,
            all: Arc::clone(&self.all),
        };
        Arc::new(RuntimeEnv { memory_pool: Arc::new(memory), ..self.base.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reservation(runtimes: &Runtimes) -> MemoryReservation {
        let pool = Arc::clone(&runtimes.statement().memory_pool);
        MemoryConsumer::new("test").with_can_spill(true).register(&pool)
    }

    #[test]
    fn statements_together_have_no_more_than_all_may_have() {
        let runtimes = Runtimes::new(100, 80, None).unwrap();
        let (one, two) = (reservation(&runtimes), reservation(&runtimes));
        one.try_grow(70).unwrap();
        assert!(two.try_grow(31).is_err());
        two.try_grow(30).unwrap();
        assert_eq!(runtimes.memory().used_bytes(), 100);
        drop(one);
        assert_eq!(runtimes.memory().used_bytes(), 30);
        two.try_grow(50).unwrap();
    }

    #[test]
    fn a_statement_has_no_more_than_its_own_bound_and_a_refusal_takes_nothing() {
        let runtimes = Runtimes::new(100, 80, None).unwrap();
        let one = reservation(&runtimes);
        assert!(one.try_grow(81).is_err());
        assert_eq!(runtimes.memory().used_bytes(), 0);
        one.try_grow(80).unwrap();
    }
}
