//! Files of tables in a folder of this machine, or one that is mounted here.
//!
//! The crate's own local storage leaves a new name in its folder unsynced, and may overwrite.
//! Exactly once assumes more of a store: a file that was completed stays, even if the power fails
//! right after the commit, and no file is written twice. Nothing is deleted through here, so no
//! path of the drain can.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::Stream;
use iceberg::io::{
    FileMetadata, FileRead, FileWrite, InputFile, LocalFsStorage, OutputFile, Storage,
};
use iceberg::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use super::forbid;

/// Reads as the crate's local storage does, and writes each file once and durably.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct DurableFiles;

#[async_trait]
#[typetag::serde(name = "onrush-files")]
impl Storage for DurableFiles {
    async fn exists(&self, path: &str) -> Result<bool> {
        LocalFsStorage.exists(path).await
    }

    async fn metadata(&self, path: &str) -> Result<FileMetadata> {
        LocalFsStorage.metadata(path).await
    }

    async fn read(&self, path: &str) -> Result<Bytes> {
        LocalFsStorage.read(path).await
    }

    async fn reader(&self, path: &str) -> Result<Box<dyn FileRead>> {
        LocalFsStorage.reader(path).await
    }

    async fn write(&self, path: &str, bytes: Bytes) -> Result<()> {
        let mut file = self.writer(path).await?;
        file.write(bytes).await?;
        file.close().await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn FileWrite>> {
        let path = local_path(path);
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        create_folder(&folder).map_err(|cause| failed("create folder", &folder, &cause))?;
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(|cause| failed("create", &path, &cause))?;
        Ok(Box::new(DurableFile { file: Some(file), path, folder }))
    }

    async fn delete(&self, path: &str) -> Result<()> {
        forbid(path)
    }

    async fn delete_prefix(&self, path: &str) -> Result<()> {
        forbid(path)
    }

    async fn delete_stream(&self, _: Pin<Box<dyn Stream<Item = String> + Send>>) -> Result<()> {
        forbid("files")
    }

    fn new_input(&self, path: &str) -> Result<InputFile> {
        Ok(InputFile::new(Arc::new(self.clone()), path.to_owned()))
    }

    fn new_output(&self, path: &str) -> Result<OutputFile> {
        Ok(OutputFile::new(Arc::new(self.clone()), path.to_owned()))
    }
}

/// A file that is there, for good, once it is closed.
struct DurableFile {
    /// `None` once it is closed.
    file: Option<File>,
    path: PathBuf,
    folder: PathBuf,
}

#[async_trait]
impl FileWrite for DurableFile {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        let Some(file) = &mut self.file else { return Err(closed(&self.path)) };
        file.write_all(&bytes).map_err(|cause| failed("write", &self.path, &cause))
    }

    async fn close(&mut self) -> Result<()> {
        let Some(file) = self.file.take() else { return Err(closed(&self.path)) };
        file.sync_all().map_err(|cause| failed("sync", &self.path, &cause))?;
        // The name must survive as well as what it names.
        sync_folder(&self.folder).map_err(|cause| failed("sync folder", &self.folder, &cause))
    }
}

/// With all folders above it, and their names durable.
fn create_folder(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().unwrap_or(Path::new("/"));
    create_folder(above)?;
    match fs::create_dir(folder) {
        Err(cause) if cause.kind() != std::io::ErrorKind::AlreadyExists => Err(cause),
        _ => sync_folder(above),
    }
}

fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

/// `file:///a`, `file:/a` and `/a` are the same.
fn local_path(path: &str) -> PathBuf {
    let path = path.strip_prefix("file:").unwrap_or(path).trim_start_matches('/');
    Path::new("/").join(path)
}

fn failed(what: &str, path: &Path, cause: &std::io::Error) -> Error {
    Error::new(ErrorKind::Unexpected, format!("cannot {what} {}: {cause}", path.display()))
}

fn closed(path: &Path) -> Error {
    Error::new(ErrorKind::Unexpected, format!("{} is closed already", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_written_once_and_never_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = format!("file://{}/a/b/file", folder.path().display());
        let files = DurableFiles;
        files.write(&path, Bytes::from_static(b"first")).await.unwrap();
        assert!(files.write(&path, Bytes::from_static(b"second")).await.is_err());
        assert!(files.delete(&path).await.is_err());
        assert!(files.delete_prefix(&path).await.is_err());
        assert!(files.exists(&path).await.unwrap());
        assert_eq!(files.read(&path).await.unwrap(), "first");
        assert_eq!(files.metadata(&path).await.unwrap().size, 5);
        assert_eq!(fs::read(folder.path().join("a/b/file")).unwrap(), b"first");
    }

    #[tokio::test]
    async fn a_writer_is_closed_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = format!("{}/file", folder.path().display());
        let mut file = DurableFiles.writer(&path).await.unwrap();
        file.write(Bytes::from_static(b"12")).await.unwrap();
        file.write(Bytes::from_static(b"34")).await.unwrap();
        file.close().await.unwrap();
        assert!(file.close().await.is_err());
        assert!(file.write(Bytes::new()).await.is_err());
        assert_eq!(DurableFiles.read(&path).await.unwrap(), "1234");
    }

    #[test]
    fn a_path_has_three_spellings() {
        for path in ["file:///a/b", "file:/a/b", "/a/b"] {
            assert_eq!(local_path(path), Path::new("/a/b"));
        }
    }
}
