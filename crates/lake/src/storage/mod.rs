//! Where the files of tables are: what Iceberg asks of a store goes to the one that the path names.
//!
//! | path | store |
//! |---|---|
//! | `file:///a`, `/a` | [`files`]: a folder of this machine |
//! | `s3://bucket/a`, `s3a://…` | [`s3`]: Amazon's store, or one that speaks as it does |
//!
//! Another store is another module, and another arm of [`LakeStorage::store`].

mod files;
mod s3;

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::Stream;
use iceberg::io::{
    FileMetadata, FileRead, FileWrite, InputFile, OutputFile, Storage, StorageConfig,
    StorageFactory,
};
use iceberg::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use files::DurableFiles;
use s3::Buckets;

/// The store that a path is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    File,
    S3,
}

/// `None`: no store is built in for the path's scheme.
pub(crate) fn scheme_of(path: &str) -> Option<Scheme> {
    match path.split_once(':') {
        None | Some(("file", _)) => Some(Scheme::File),
        Some(("s3" | "s3a" | "s3n", _)) => Some(Scheme::S3),
        Some(_) => None,
    }
}

/// Whether what is sent there stays on this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Makes a [`LakeStorage`] for each table that is loaded.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct LakeStorageFactory {
    /// Takes a store elsewhere without TLS.
    pub(crate) allow_plain_text: bool,
}

#[typetag::serde(name = "onrush")]
impl StorageFactory for LakeStorageFactory {
    fn build(&self, config: &StorageConfig) -> Result<Arc<dyn Storage>> {
        let buckets = Buckets::new(config, self.allow_plain_text)?;
        Ok(Arc::new(LakeStorage { files: DurableFiles, buckets }))
    }
}

/// All stores that are built in.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct LakeStorage {
    files: DurableFiles,
    buckets: Buckets,
}

impl LakeStorage {
    fn store(&self, path: &str) -> Result<&dyn Storage> {
        match scheme_of(path) {
            Some(Scheme::File) => Ok(&self.files),
            Some(Scheme::S3) => Ok(&self.buckets),
            None => {
                let cause = format!("no store is built in for {path}; file and s3 are");
                Err(Error::new(ErrorKind::FeatureUnsupported, cause))
            }
        }
    }
}

#[async_trait]
#[typetag::serde(name = "onrush")]
impl Storage for LakeStorage {
    async fn exists(&self, path: &str) -> Result<bool> {
        self.store(path)?.exists(path).await
    }

    async fn metadata(&self, path: &str) -> Result<FileMetadata> {
        self.store(path)?.metadata(path).await
    }

    async fn read(&self, path: &str) -> Result<Bytes> {
        self.store(path)?.read(path).await
    }

    async fn reader(&self, path: &str) -> Result<Box<dyn FileRead>> {
        self.store(path)?.reader(path).await
    }

    async fn write(&self, path: &str, bytes: Bytes) -> Result<()> {
        self.store(path)?.write(path, bytes).await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn FileWrite>> {
        self.store(path)?.writer(path).await
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
        self.store(path)?.new_input(path)
    }

    fn new_output(&self, path: &str) -> Result<OutputFile> {
        self.store(path)?.new_output(path)
    }
}

/// The drain needs no right to delete, and takes none.
fn forbid(what: &str) -> Result<()> {
    Err(Error::new(ErrorKind::FeatureUnsupported, format!("the drain does not delete {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_store() {
        for path in ["file:///a", "file:/a", "/a"] {
            assert_eq!(scheme_of(path), Some(Scheme::File));
        }
        assert_eq!(scheme_of("s3://bucket/a"), Some(Scheme::S3));
        assert_eq!(scheme_of("s3a://bucket/a:b"), Some(Scheme::S3));
        assert_eq!(scheme_of("gs://bucket/a"), None);
        let storage = LakeStorageFactory::default().build(&StorageConfig::new()).unwrap();
        assert!(storage.new_input("gs://bucket/a").is_err());
        assert!(storage.new_input("s3://bucket/a").is_ok());
    }

    #[test]
    fn loopback_is_this_machine() {
        for host in ["localhost", "127.0.0.1", "127.8.0.1", "::1", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "example.com", "10.0.0.1", "localhost.example.com"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
