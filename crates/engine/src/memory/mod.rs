//! Memory that lives as long as the database: frames for leaves, and arenas whose elements never
//! move.

mod advice;
mod arena;
mod frame;
mod plan;
mod prefetch;
mod region;

pub(crate) use arena::Arena;
pub use frame::LargePages;
pub(crate) use frame::{Frame, FramePool, LARGE_PAGE_BYTES};
pub(crate) use plan::MEMORY_BYTES_MIN;
pub use plan::MemoryPlan;
pub(crate) use prefetch::prefetch;
