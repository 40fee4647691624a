//! What memory the parts of a database take, by what they hold. Figures for each: `docs/memory.md`.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::buffer::{Image, Leaf};
use crate::engine::Engine;
use crate::memory::MemoryPlan;
use crate::node::fence::Fence;
use crate::node::inner::InnerNode;
use crate::units::LEAF_BYTES;

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

/// What the allocator takes for a piece beside its bytes, at most.
const PIECE_BYTES: u64 = 16;

/// What stands beside the header of each leaf: the low fence and the high one, the image with its
/// counts, and its place in the directory.
fn beside_header_bytes() -> u64 {
    let fences = 2 * (size_of::<u64>() as u64 + PIECE_BYTES);
    let image = (size_of::<Image>() + 2 * size_of::<usize>()) as u64 + PIECE_BYTES;
    let place_in_directory = size_of::<usize>() as u64;
    fences + image + place_in_directory
}

/// Headers of all leaves, in memory or not, with what belongs to each.
fn header_bytes(engine: &Engine) -> u64 {
    let headers = (engine.leaves.made() * size_of::<Leaf>()) as u64;
    headers + engine.leaf_count() * beside_header_bytes()
}

fn inner_bytes(engine: &Engine) -> u64 {
    (engine.inners.made() * InnerNode::memory_bytes()) as u64
}

/// All parts of the engine.
pub(crate) fn parts(engine: &Engine) -> Vec<MemoryPart> {
    let options = &engine.options;
    let plan = options.memory_bytes.map(MemoryPlan::of);
    let frames = engine.frames.frames() as u64;
    let in_use = frames - (engine.frames.available() as u64).min(frames);
    let of = MemoryPart::new;
    let ring = options.log_ring_bytes as u64;
    let mut parts = vec![
        of("leaves", in_use * LEAF_BYTES as u64, Some(frames * LEAF_BYTES as u64)),
        of("leaf headers", header_bytes(engine), None),
        of("inner nodes", inner_bytes(engine), None),
        of("log ring", ring, Some(ring)),
        of("image writes", engine.image_buffer_bytes(), plan.map(|plan| plan.work)),
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
    parts.extend(engine.memory_of_program.0.lock().iter().map(|count| count()));
    parts
}

/// Frames that there are more than fit beside the headers of all leaves and the inner nodes.
pub(crate) fn frames_too_many(engine: &Engine) -> usize {
    let Some(memory) = engine.options.memory_bytes else { return 0 };
    let share = MemoryPlan::of(memory).leaves;
    let frames = engine.frames.frames();
    let beside = header_bytes(engine) + inner_bytes(engine);
    let fitting = (share.saturating_sub(beside) / LEAF_BYTES as u64) as usize;
    // Below a quarter of the share a table is too large for the memory, and statistics tell so.
    let least = (share / 4 / LEAF_BYTES as u64) as usize;
    frames.saturating_sub(fitting.max(least))
}

const _: () = assert!(size_of::<Fence>() <= 32, "a fence is a head and a boxed key");
