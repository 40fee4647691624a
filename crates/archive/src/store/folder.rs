//! Objects as files of a folder, each there whole and durably or not at all.
//!
//! A file is written and synced under a name of its own, then gets its name by a link, which no file that is there
//! loses, and which is durable when [`Folder`] says so. What a crash leaves are files that nobody reads.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;

use super::{Created, Listed, Store, StoreError};

/// How files that are being written are called.
const UNFINISHED: &str = ".unfinished-";

/// See the module.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    /// Makes the names of files that are being written different.
    next: AtomicU64,
}

impl Folder {
    /// The objects in `root`, which is made when the first one is.
    #[must_use]
    pub fn new(root: &Path) -> Folder {
        Folder { root: root.to_owned(), next: AtomicU64::default() }
    }

    fn create_now(&self, name: &str, bytes: &[u8]) -> std::io::Result<Created> {
        let path = self.root.join(name);
        let folder = path.parent().unwrap_or(&self.root);
        create_folder(folder)?;
        if path.try_exists()? {
            return Ok(Created::Exists);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let temporary = folder.join(format!("{UNFINISHED}{}-{number}", std::process::id()));
        let made =
            write_file(&temporary, bytes).and_then(|()| std::fs::hard_link(&temporary, &path));
        let removed = std::fs::remove_file(&temporary);
        match made {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(Created::Exists),
            made => made?,
        }
        removed?;
        sync_folder(folder)?;
        Ok(Created::Created)
    }

    fn visit(&self, folder: &Path, listed: &mut Vec<Listed>) -> std::io::Result<()> {
        let entries = match std::fs::read_dir(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let (path, metadata) = (entry.path(), entry.metadata()?);
            if metadata.is_dir() {
                self.visit(&path, listed)?;
                continue;
            }
            let name = path.strip_prefix(&self.root).ok().and_then(Path::to_str);
            let is_object = |name: &&str| !name.contains(UNFINISHED);
            if let Some(name) = name.filter(is_object) {
                listed.push(Listed { name: name.to_owned(), bytes: metadata.len() });
            }
        }
        Ok(())
    }

    fn folders_now(&self, folder: &str) -> std::io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(self.root.join(folder)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                names.extend(entry.file_name().into_string().ok());
            }
        }
        names.sort();
        Ok(names)
    }
}

#[async_trait]
impl Store for Folder {
    async fn create(&self, name: &str, bytes: Bytes) -> Result<Created, StoreError> {
        self.create_now(name, &bytes).map_err(|cause| self.failed("write", name, &cause))
    }

    async fn read(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        match std::fs::read(self.root.join(name)) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(self.failed("read", name, &cause)),
        }
    }

    async fn list(&self, folder: &str) -> Result<Vec<Listed>, StoreError> {
        let mut listed = Vec::new();
        self.visit(&self.root.join(folder), &mut listed)
            .map_err(|cause| self.failed("list", folder, &cause))?;
        listed.sort();
        Ok(listed)
    }

    async fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.folders_now(folder).map_err(|cause| self.failed("list", folder, &cause))
    }
}

impl Folder {
    fn failed(&self, what: &'static str, name: &str, cause: &std::io::Error) -> StoreError {
        StoreError::new(what, &self.root.join(name).display().to_string(), cause)
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// With all folders above it, and their names durable.
fn create_folder(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().unwrap_or(Path::new("/"));
    create_folder(above)?;
    match std::fs::create_dir(folder) {
        Err(cause) if cause.kind() != ErrorKind::AlreadyExists => Err(cause),
        _ => sync_folder(above),
    }
}

fn sync_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_object_is_created_once() -> Result<(), Box<dyn std::error::Error>> {
        let scratch = tempfile::tempdir()?;
        let folder = Folder::new(&scratch.path().join("a/b"));
        assert_eq!(folder.read("x/1").await?, None);
        assert_eq!(folder.list("x").await?, []);
        assert_eq!(folder.create("x/1", Bytes::from_static(b"one")).await?, Created::Created);
        assert_eq!(folder.create("x/1", Bytes::from_static(b"two")).await?, Created::Exists);
        assert_eq!(folder.create("x/y/2", Bytes::from_static(b"two")).await?, Created::Created);
        assert_eq!(folder.read("x/1").await?, Some(Bytes::from_static(b"one")));
        let names: Vec<String> = folder.list("x").await?.into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["x/1", "x/y/2"]);
        assert_eq!(folder.folders("").await?, ["x"]);
        assert_eq!(folder.folders("x").await?, ["y"]);
        Ok(())
    }
}
