//! The state of the disk as a function of the operations done on it.
//!
//! The live disk and the sweep run the same function, so that both mean the same by "after
//! operation N".

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::content::{Change, Content};
use super::image::CrashMode;
use super::names::{Names, Node};
use super::operation::{FileId, Operation};
use crate::random::Random;

/// All files and names.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    names: Names,
    files: BTreeMap<FileId, Content>, // also those without a name: somebody may have them open
    next_file: u64,
}

impl Model {
    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    pub(super) fn content(&self, file: FileId) -> &Content {
        self.files.get(&file).expect("an open file has content")
    }

    /// The id of the next file made.
    pub(super) fn next_file(&self) -> FileId {
        FileId(self.next_file)
    }

    /// All names and the bytes of their files, in one number.
    pub(super) fn digest(&self) -> u128 {
        let mut hasher = Xxh3::new();
        for (path, node) in self.names.live() {
            hasher.update(path.as_os_str().as_encoded_bytes());
            match node {
                Node::Folder => hasher.update(&[0]),
                Node::File(file) => {
                    let bytes = self.content(*file).live();
                    hasher.update(&[1]);
                    hasher.update(&bytes.len().to_le_bytes());
                    for (page, content) in bytes.pages() {
                        hasher.update(&page.to_le_bytes());
                        hasher.update(content);
                    }
                }
            }
        }
        hasher.digest128()
    }

    /// Whether a power cut now could lose anything.
    pub(super) fn has_unsynced(&self) -> bool {
        self.names.has_unsynced() || self.files.values().any(Content::has_unsynced)
    }

    /// Does operation `number`.
    pub(super) fn apply(&mut self, number: usize, operation: &Operation) {
        match operation {
            Operation::Create { path, file } => {
                self.files.insert(*file, Content::default());
                self.names.add(path, Node::File(*file));
                self.next_file = self.next_file.max(file.0 + 1);
            }
            Operation::MakeFolder { path } => self.names.add(path, Node::Folder),
            Operation::Rename { from, to } => self.names.rename(from, to),
            Operation::Remove { path } => self.names.remove(path),
            Operation::SyncFolder { folder } => self.names.sync_folder(folder),
            Operation::Write { file, offset, bytes } => {
                let change = Change::Write { offset: *offset, bytes: Arc::clone(bytes) };
                self.file(*file).change(number, change);
            }
            Operation::SetLen { file, len_bytes } => {
                self.file(*file).change(number, Change::SetLen(*len_bytes));
            }
            Operation::Allocate { file, len_bytes } => {
                self.file(*file).change(number, Change::Allocate(*len_bytes));
            }
            Operation::MakeDurable { file, write } => self.file(*file).make_durable(*write),
            Operation::Sync { file } => self.file(*file).sync(),
            Operation::LoseUnsynced { file } => self.file(*file).lose_unsynced(),
        }
    }

    fn file(&mut self, file: FileId) -> &mut Content {
        self.files.get_mut(&file).expect("an open file has content")
    }

    /// The disk as it is switched on again after a power cut.
    pub(super) fn image(&self, mode: CrashMode, random: &mut Random) -> Model {
        let names = self.names.image(mode, random);
        let mut files = BTreeMap::new();
        for node in names.values() {
            if let Node::File(file) = node {
                let bytes = self.content(*file).image(mode, random);
                files.insert(*file, Content::from_durable(bytes));
            }
        }
        Model { names: Names::from_durable(names), files, next_file: self.next_file }
    }

    /// The names directly in a folder, sorted.
    pub(super) fn list(&self, folder: &Path) -> Vec<String> {
        let inside = self.names.live().keys().filter(|path| path.parent() == Some(folder));
        inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
    }
}
