//! The simulator: the real engine on a disk that loses power, tears writes and fails on purpose.
//!
//! Beside the life of an insert: nothing here runs in production. What is promised about a crash is
//! tested by cutting the power after every operation the engine did on its disk, opening what is
//! left, and comparing it with what was acknowledged.
//!
//! - [`disk`]: the crash disk, its images, its sweep from boundary to boundary, and its faults.
//! - [`random`]: numbers that follow from a seed, the same for ever.
//!
//! Invariant: with one thread, everything follows from the seed, so that a failure can be run
//! again.

pub mod disk;
pub mod random;

pub use disk::{
    Call, CrashDisk, CrashMode, Fault, FaultError, FileId, Operation, Repeat, Sweep, Unsynced,
};
pub use random::Random;
