//! The names of files and folders: what calls see, what is durable, and the changes in between.
//!
//! Invariants
//! 1. A change is durable when every folder it touched was synced afterwards.
//! 2. Changes of different names are lost independently; changes of the same name only from the
//!    last one backwards, so that a file whose name was durable is never lost by an unsynced
//!    change.
//! 3. Whatever lies in a lost folder is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::image::{CrashMode, NamesFate};
use super::operation::FileId;
use crate::random::Random;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    File(FileId),
    Folder,
}

pub(super) type NameMap = BTreeMap<PathBuf, Node>;

#[derive(Clone, Debug)]
struct Pending {
    change: NameChange,
    unsynced_folders: BTreeSet<PathBuf>,
}

#[derive(Clone, Debug)]
enum NameChange {
    Add { path: PathBuf, node: Node },
    Move { from: PathBuf, to: PathBuf, node: Node },
    Remove { path: PathBuf },
}

impl NameChange {
    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let (first, second) = match self {
            NameChange::Add { path, .. } | NameChange::Remove { path } => (path, None),
            NameChange::Move { from, to, .. } => (from, Some(to)),
        };
        std::iter::once(first).chain(second)
    }

    fn apply(&self, names: &mut NameMap) {
        match self {
            NameChange::Add { path, node } => {
                names.insert(path.clone(), *node);
            }
            NameChange::Move { from, to, node } => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
            NameChange::Remove { path } => {
                names.remove(path);
            }
        }
    }
}

/// All names of a disk. "/" and "." are folders that are always there.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    live: NameMap,
    durable: NameMap,
    pending: Vec<Pending>,
}

impl Names {
    /// The names on a disk that was just switched on.
    pub(super) fn from_durable(names: NameMap) -> Names {
        Names { live: names.clone(), durable: names, pending: Vec::new() }
    }

    pub(super) fn live(&self) -> &NameMap {
        &self.live
    }

    pub(super) fn has_unsynced(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(super) fn file(&self, path: &Path) -> Option<FileId> {
        match self.live.get(path) {
            Some(Node::File(file)) => Some(*file),
            Some(Node::Folder) | None => None,
        }
    }

    pub(super) fn is_folder(&self, path: &Path) -> bool {
        always_there(path) || self.live.get(path) == Some(&Node::Folder)
    }

    pub(super) fn add(&mut self, path: &Path, node: Node) {
        self.change(NameChange::Add { path: path.to_path_buf(), node });
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) {
        if let Some(node) = self.live.get(from).copied() {
            let (from, to) = (from.to_path_buf(), to.to_path_buf());
            self.change(NameChange::Move { from, to, node });
        }
    }

    pub(super) fn remove(&mut self, path: &Path) {
        self.change(NameChange::Remove { path: path.to_path_buf() });
    }

    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.live);
        let folders = change.paths().filter_map(|path| path.parent());
        let unsynced_folders = folders.map(Path::to_path_buf).collect();
        self.pending.push(Pending { change, unsynced_folders });
    }

    pub(super) fn sync_folder(&mut self, folder: &Path) {
        let mut done: Vec<bool> = Vec::with_capacity(self.pending.len());
        for pending in &mut self.pending {
            pending.unsynced_folders.remove(folder);
            done.push(pending.unsynced_folders.is_empty());
        }
        self.include_older_of_same_name(&mut done);
        let mut left = Vec::new();
        for (pending, done) in self.pending.drain(..).zip(done) {
            if done {
                pending.change.apply(&mut self.durable);
            } else {
                left.push(pending);
            }
        }
        self.pending = left;
    }

    /// What a power cut leaves.
    pub(super) fn image(&self, mode: CrashMode, random: &mut Random) -> NameMap {
        let kept_of_8 = 1 + random.below(7);
        let mut kept: Vec<bool> = self
            .pending
            .iter()
            .map(|_| match mode.names_fate() {
                NamesFate::Lost => false,
                NamesFate::Kept => true,
                NamesFate::Subset => random.chance(kept_of_8, 8),
            })
            .collect();
        self.include_older_of_same_name(&mut kept);
        let mut names = self.durable.clone();
        for (pending, kept) in self.pending.iter().zip(kept) {
            if kept {
                pending.change.apply(&mut names);
            }
        }
        drop_orphans(&mut names);
        names
    }

    /// Chooses, for every change chosen, the older ones of the same names too.
    fn include_older_of_same_name(&self, chosen: &mut [bool]) {
        let mut names = BTreeSet::new();
        for (pending, chosen) in self.pending.iter().zip(chosen).rev() {
            *chosen = *chosen || pending.change.paths().any(|path| names.contains(path));
            if *chosen {
                names.extend(pending.change.paths());
            }
        }
    }
}

fn always_there(path: &Path) -> bool {
    path == Path::new("/") || path == Path::new(".") || path.as_os_str().is_empty()
}

/// Takes away what lies in a folder that is not there. Folders come before what lies in them, in
/// the order of the map.
fn drop_orphans(names: &mut NameMap) {
    let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
    names.retain(|path, node| {
        let parent = path.parent().unwrap_or(Path::new("/"));
        let attached = always_there(parent) || folders.contains(parent);
        if attached && *node == Node::Folder {
            folders.insert(path.clone());
        }
        attached
    });
}
