//! The simulator: the real engine on a disk that loses power, tears writes and fails on purpose.
//!
//! Beside the life of an insert: nothing here runs in production. What is promised about a crash is
//! tested by cutting the power after every operation the engine did on its disk, opening what is
//! left, and comparing it with what was acknowledged.
//!
//! - [`disk`]: the crash disk, its images, its sweep from boundary to boundary, and its faults.
//! - [`gate`]: the same disk with a door in front: work can happen while a checkpoint is writing.
//! - [`plan`]: what a run does, drawn from its seed: settings, tables, kinds of operations.
//! - [`world`]: the engine beside the model, which is that of [`onrush_oracle`], as is the history of commits.
//! - [`cuts`]: power cuts at the boundaries of a run, and in the recoveries from them.
//! - [`lists`]: every short list of actions, cut everywhere. [`torn`]: rounds of the log, cut twice
//!   at the same place.
//! - [`errors`]: runs in which a call of the disk fails. [`window`]: delayed commits against the
//!   clock. [`rot`]: flipped bits of the log. [`campaign`]: seed after seed.
//! - [`random`]: numbers that follow from a seed, the same for ever.
//!
//! Invariant: with one thread, everything follows from the seed, so that a failure can be run
//! again.

pub mod campaign;
pub mod cuts;
pub mod disk;
pub mod errors;
#[cfg(feature = "planted-faults")]
pub mod faults;
pub mod gate;
pub mod lists;
pub mod plan;
pub mod random;
pub mod rot;
pub mod summary;
pub mod torn;
pub mod window;
pub mod world;

pub use disk::{
    Call, CrashDisk, CrashMode, Fault, FaultError, FileId, Operation, PlantedDisk, Repeat, Sweep,
    Unsynced,
};
pub use random::Random;

/// Plants the fault of this name; false if there is none, or this build cannot plant any.
#[cfg(feature = "planted-faults")]
pub fn plant(name: &str) -> bool {
    let found = onrush::Fault::ALL.iter().find(|fault| format!("{fault:?}") == name);
    found.map(|fault| onrush::plant(*fault)).is_some()
}

/// Plants the fault of this name; false if there is none, or this build cannot plant any.
#[cfg(not(feature = "planted-faults"))]
pub fn plant(_name: &str) -> bool {
    false
}
