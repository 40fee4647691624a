//! Kinds of boundaries: what was done just before, and what was about to be done, to which file.
//!
//! Boundaries of one kind may still differ in what is unsynced; but a kind at which the power was
//! never cut is a pair of steps whose order nothing has tried.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use super::names::{NameMap, Node};
use super::operation::{FileId, Operation};

/// What a file is for, told from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The superblock, also under its temporary name.
    Superblock,
    /// A data file.
    Data,
    /// A log segment.
    Log,
    /// Anything else.
    Other,
}

/// One operation as far as its kind goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    what: &'static str,
    role: Role,
}

/// The steps on both sides of a boundary; none at the ends of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BoundaryKind {
    before: Option<Step>,
    after: Option<Step>,
}

/// The roles of all files, kept along with the operations.
#[derive(Clone, Debug, Default)]
pub(super) struct Roles(BTreeMap<FileId, Role>);

impl Roles {
    pub(super) fn of(names: &NameMap) -> Roles {
        let files = names.iter().filter_map(|(path, node)| match node {
            Node::File(file) => Some((*file, Role::of(path))),
            Node::Folder => None,
        });
        Roles(files.collect())
    }

    pub(super) fn apply(&mut self, operation: &Operation) {
        if let Operation::Create { path, file } = operation {
            self.0.insert(*file, Role::of(path));
        }
    }

    pub(super) fn kind(
        &self,
        before: Option<&Operation>,
        after: Option<&Operation>,
    ) -> BoundaryKind {
        BoundaryKind {
            before: before.map(|operation| self.step(operation)),
            after: after.map(|operation| self.step(operation)),
        }
    }

    fn step(&self, operation: &Operation) -> Step {
        let of = |file: &FileId| self.0.get(file).copied().unwrap_or(Role::Other);
        let (what, role) = match operation {
            // A file that is about to be made has no role yet.
            Operation::Create { path, .. } => ("create", Role::of(path)),
            Operation::MakeFolder { .. } => ("make folder", Role::Other),
            Operation::Rename { from, .. } => ("rename", Role::of(from)),
            Operation::Remove { path } => ("remove", Role::of(path)),
            Operation::SyncFolder { .. } => ("sync folder", Role::Other),
            Operation::Write { file, .. } => ("write", of(file)),
            Operation::MakeDurable { file, .. } => ("make durable", of(file)),
            Operation::Sync { file } => ("sync", of(file)),
            Operation::LoseUnsynced { file } => ("fail to sync", of(file)),
            Operation::SetLen { file, .. } => ("set length", of(file)),
            Operation::Allocate { file, .. } => ("allocate", of(file)),
        };
        Step { what, role }
    }
}

impl Role {
    pub(super) fn of(path: &Path) -> Role {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("superblock") {
            Role::Superblock
        } else if name.ends_with(".segment") {
            Role::Log
        } else if name.starts_with("data") {
            Role::Data
        } else {
            Role::Other
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match self.role {
            Role::Superblock => " superblock",
            Role::Data => " data",
            Role::Log => " log",
            Role::Other => "",
        };
        write!(f, "{}{role}", self.what)
    }
}

impl fmt::Display for BoundaryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.before {
            Some(step) => write!(f, "{step}")?,
            None => write!(f, "start")?,
        }
        match self.after {
            Some(step) => write!(f, " | {step}"),
            None => write!(f, " | end"),
        }
    }
}
