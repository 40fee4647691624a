//! What memory the parts of a database take, by what they hold. Figures for each: `docs/memory.md`.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::checkpoint::WRITERS_MAX;
use crate::engine::Engine;
use crate::memory::MemoryPlan;
use crate::storage::EVICTORS;
use crate::units::{EXTENT_SLOTS, LEAF_BYTES};

/// A part of the memory of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPart {
    /// Its name.
    pub name: String,
    /// What it takes now, in bytes.
    pub used_bytes: u64,
    /// What it may take, where that is bounded.
    pub limit_bytes: Option<u64>,
}

impl MemoryPart {
    /// A part by its name, what it takes now and what it may take.
    #[must_use]
    pub fn new(name: &str, used_bytes: u64, limit_bytes: Option<u64>) -> MemoryPart {
        MemoryPart { name: name.to_owned(), used_bytes, limit_bytes }
    }
}

/// Counts a part of the memory that something above the engine holds.
pub(crate) type CountPart = Box<dyn Fn() -> MemoryPart + Send + Sync>;

/// Parts that the program around the engine counts, as a server does its queries.
#[derive(Default)]
pub(crate) struct PartsOfProgram(Mutex<Vec<CountPart>>);

impl PartsOfProgram {
    pub(crate) fn add(&self, count: CountPart) {
        self.0.lock().push(count);
    }
}

/// Memory for images on their way to disk: of those who make frames free, and of the writers of
/// checkpoints.
const IMAGE_WRITES_BYTES: usize = (EVICTORS + WRITERS_MAX) * EXTENT_SLOTS * LEAF_BYTES;

/// All parts of the engine.
pub(crate) fn parts(engine: &Engine, program: &PartsOfProgram) -> Vec<MemoryPart> {
    let options = &engine.options;
    let plan = options.memory_bytes.map(MemoryPlan::of);
    let frames = engine.frames.frames() as u64;
    let in_use = frames - (engine.frames.available() as u64).min(frames);
    let of = MemoryPart::new;
    let ring = options.log_ring_bytes as u64;
    let mut parts = vec![
        of("leaves", in_use * LEAF_BYTES as u64, Some(frames * LEAF_BYTES as u64)),
        of("leaf headers", engine.header_bytes(), None),
        of("inner nodes", engine.inner_bytes(), None),
        of("stocks", engine.ranges.stock_bytes(), None),
        of("log ring", ring, Some(ring)),
        of("image writes", IMAGE_WRITES_BYTES as u64, plan.map(|plan| plan.work)),
        of(
            "old versions",
            engine.old_versions.bytes() as u64,
            Some(engine.options.old_versions_bytes),
        ),
        of(
            "open transactions",
            engine.open_changes.bytes() as u64,
            Some(engine.options.open_transactions_bytes),
        ),
    ];
    parts.extend(program.0.lock().iter().map(|count| count()));
    parts
}
