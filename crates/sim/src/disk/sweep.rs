//! From boundary to boundary: what every possible power cut of a run leaves.
//!
//! Invariant: an image depends on the run, the boundary, the mode and the seed, and on nothing
//! else.

use super::boundary::{BoundaryKind, Roles};
use super::image::CrashMode;
use super::model::Model;
use super::operation::Operation;
use super::{CrashDisk, image_of};

/// Walks through the operations of a run. Each step costs what the operation cost, each image what
/// was unsynced.
#[derive(Clone, Debug)]
pub struct Sweep {
    model: Model,
    roles: Roles,
    operations: Vec<Operation>,
    first: usize, // number of operations forgotten before the list begins
    at: usize,    // operations done, the forgotten ones included
}

impl Sweep {
    pub(super) fn new(model: Model, operations: Vec<Operation>, first: usize) -> Sweep {
        let roles = Roles::of(model.names().live());
        Sweep { model, roles, operations, first, at: first }
    }

    /// The boundary: how many operations are done.
    pub fn at_operation(&self) -> usize {
        self.at
    }

    /// The last boundary: how many operations there were.
    pub fn last_operation(&self) -> usize {
        self.first + self.operations.len()
    }

    /// The operation just before the boundary.
    pub fn done(&self) -> Option<&Operation> {
        self.at.checked_sub(self.first + 1).and_then(|index| self.operations.get(index))
    }

    /// What kind of boundary this is.
    pub fn kind(&self) -> BoundaryKind {
        self.roles.kind(self.done(), self.operations.get(self.at - self.first))
    }

    /// Goes to the next boundary; false at the last one.
    pub fn advance(&mut self) -> bool {
        let Some(operation) = self.operations.get(self.at - self.first) else { return false };
        self.model.apply(self.at, operation);
        self.roles.apply(operation);
        self.at += 1;
        true
    }

    /// Goes forward to a boundary.
    ///
    /// # Panics
    /// When it lies behind, or after the last one.
    pub fn advance_to(&mut self, at_operation: usize) {
        assert!(self.at <= at_operation, "a sweep only goes forward");
        while self.at < at_operation {
            assert!(self.advance(), "the run had only {} operations", self.last_operation());
        }
    }

    /// Whether a power cut here could lose anything; if not, all images here are the same.
    pub fn has_unsynced(&self) -> bool {
        self.model.has_unsynced()
    }

    /// What a power cut here leaves.
    pub fn image(&self, mode: CrashMode, seed: u64) -> CrashDisk {
        image_of(&self.model, self.at, mode, seed)
    }

    /// One image in every mode, of which the random ones follow from the seed.
    pub fn images(&self, seed: u64) -> impl Iterator<Item = (CrashMode, CrashDisk)> + '_ {
        CrashMode::ALL.into_iter().map(move |mode| (mode, self.image(mode, seed)))
    }
}
