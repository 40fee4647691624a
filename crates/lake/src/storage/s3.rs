//! Files of tables in buckets of Amazon's S3, or of a store that speaks as it does.
//!
//! Settings and short-lived secrets that the catalogue gives with a table come first, then the
//! environment variables that S3's own tools read (`AWS_ACCESS_KEY_ID` and so on), then the
//! machine's identity. A file's name is fresh, so a PUT that is repeated after a lost answer writes
//! the same bytes again and does no harm; large files go up in parts.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::Stream;
use iceberg::io::{
    FileMetadata, FileRead, FileWrite, InputFile, OutputFile, S3Config, Storage, StorageConfig,
};
use iceberg::{Error, ErrorKind, Result};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::buffered::BufWriter;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;

use super::{forbid, is_loopback};

/// What goes up at once. A smaller file is one PUT.
const PART_BYTES: usize = 8 << 20;

/// The buckets that the paths of a table name.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Buckets {
    /// Holds secrets: for the next part of this process, and for nobody's eyes.
    config: S3Config,
    allow_plain_text: bool,
    /// By name. Each has connections, which are worth keeping.
    #[serde(skip)]
    open: Arc<Mutex<HashMap<String, Arc<AmazonS3>>>>,
}

impl fmt::Debug for Buckets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Buckets").finish_non_exhaustive()
    }
}

impl Buckets {
    pub(super) fn new(config: &StorageConfig, allow_plain_text: bool) -> Result<Buckets> {
        let config = S3Config::try_from(config)?;
        Ok(Buckets { config, allow_plain_text, open: Arc::default() })
    }

    /// The bucket and the key in it.
    fn find(&self, path: &str) -> Result<(Arc<AmazonS3>, Path)> {
        let (_, place) = path.split_once("://").ok_or_else(|| invalid(path, "no bucket"))?;
        let (bucket, key) = place.split_once('/').ok_or_else(|| invalid(path, "no key"))?;
        let key = Path::parse(key).map_err(|cause| invalid(path, &cause.to_string()))?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = open.get(bucket) {
            return Ok((Arc::clone(store), key));
        }
        let store = Arc::new(self.connect(bucket)?);
        open.insert(bucket.to_owned(), Arc::clone(&store));
        Ok((store, key))
    }

    fn connect(&self, bucket: &str) -> Result<AmazonS3> {
        let config = &self.config;
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_virtual_hosted_style_request(config.enable_virtual_host_style);
        if let Some(endpoint) = &config.endpoint {
            builder = builder.with_endpoint(endpoint).with_allow_http(self.may_be_plain(endpoint));
        }
        if let Some(region) = &config.region {
            builder = builder.with_region(region);
        }
        if let (Some(id), Some(secret)) = (&config.access_key_id, &config.secret_access_key) {
            builder = builder.with_access_key_id(id).with_secret_access_key(secret);
        }
        if let Some(token) = &config.session_token {
            builder = builder.with_token(token);
        }
        builder.build().map_err(|cause| failed("reach", bucket, &cause))
    }

    fn may_be_plain(&self, endpoint: &str) -> bool {
        let url = reqwest::Url::parse(endpoint);
        self.allow_plain_text || url.is_ok_and(|url| url.host_str().is_some_and(is_loopback))
    }
}

#[async_trait]
#[typetag::serde(name = "onrush-s3")]
impl Storage for Buckets {
    async fn exists(&self, path: &str) -> Result<bool> {
        let (store, key) = self.find(path)?;
        match store.head(&key).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(cause) => Err(failed("look for", path, &cause)),
        }
    }

    async fn metadata(&self, path: &str) -> Result<FileMetadata> {
        let (store, key) = self.find(path)?;
        let found = store.head(&key).await.map_err(|cause| failed("look for", path, &cause))?;
        Ok(FileMetadata { size: found.size })
    }

    async fn read(&self, path: &str) -> Result<Bytes> {
        let (store, key) = self.find(path)?;
        let read = async { store.get(&key).await?.bytes().await };
        read.await.map_err(|cause| failed("read", path, &cause))
    }

    async fn reader(&self, path: &str) -> Result<Box<dyn FileRead>> {
        let (store, key) = self.find(path)?;
        Ok(Box::new(Object { store, key, path: path.to_owned() }))
    }

    async fn write(&self, path: &str, bytes: Bytes) -> Result<()> {
        let (store, key) = self.find(path)?;
        let written = store.put(&key, bytes.into()).await;
        written.map(drop).map_err(|cause| failed("write", path, &cause))
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn FileWrite>> {
        let (store, key) = self.find(path)?;
        let store: Arc<dyn ObjectStore> = store;
        let upload = Some(BufWriter::with_capacity(store, key, PART_BYTES));
        Ok(Box::new(Upload { upload, path: path.to_owned() }))
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

/// A file that is read in ranges.
struct Object {
    store: Arc<AmazonS3>,
    key: Path,
    path: String,
}

#[async_trait]
impl FileRead for Object {
    async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let read = self.store.get_range(&self.key, range).await;
        read.map_err(|cause| failed("read", &self.path, &cause))
    }
}

/// A file that is there once it is closed, and not at all before.
struct Upload {
    /// `None` once it is closed.
    upload: Option<BufWriter>,
    path: String,
}

#[async_trait]
impl FileWrite for Upload {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        let Some(upload) = &mut self.upload else { return Err(invalid(&self.path, "closed")) };
        upload.put(bytes).await.map_err(|cause| failed("write", &self.path, &cause))
    }

    async fn close(&mut self) -> Result<()> {
        let Some(mut upload) = self.upload.take() else {
            return Err(invalid(&self.path, "closed"));
        };
        upload.shutdown().await.map_err(|cause| failed("complete", &self.path, &cause))
    }
}

fn failed(what: &str, path: &str, cause: &dyn fmt::Display) -> Error {
    Error::new(ErrorKind::Unexpected, format!("cannot {what} {path}: {cause}"))
}

fn invalid(path: &str, cause: &str) -> Error {
    Error::new(ErrorKind::DataInvalid, format!("{path} is no file of a bucket: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(properties: &[(&str, &str)]) -> Buckets {
        let properties =
            properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Buckets::new(&StorageConfig::from_props(properties.collect()), false).unwrap()
    }

    #[test]
    fn a_path_is_a_bucket_and_a_key() {
        let buckets = buckets(&[("s3.region", "eu-central-1")]);
        let (_, key) = buckets.find("s3://bucket/a/b=c%20d.parquet").unwrap();
        assert_eq!(key.as_ref(), "a/b=c%20d.parquet");
        for path in ["s3:bucket", "s3://bucket", "s3://bucket/a//b"] {
            assert!(buckets.find(path).is_err(), "{path}");
        }
        let _ = buckets.find("s3a://bucket/other").unwrap();
        assert_eq!(buckets.open.lock().unwrap().len(), 1);
    }

    #[test]
    fn secrets_are_not_shown() {
        let secrets = [("s3.access-key-id", "shh"), ("s3.secret-access-key", "shh")];
        let buckets = buckets(&secrets);
        buckets.find("s3://bucket/a").unwrap();
        assert!(!format!("{buckets:?}").contains("shh"));
    }

    #[test]
    fn only_this_machine_is_spoken_to_in_the_clear() {
        let buckets = buckets(&[]);
        assert!(buckets.may_be_plain("http://127.0.0.1:9000"));
        assert!(!buckets.may_be_plain("http://store.example.com"));
        assert!(!buckets.may_be_plain("nonsense"));
    }
}
