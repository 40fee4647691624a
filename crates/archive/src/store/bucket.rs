//! Objects in a bucket of Amazon's S3, or of any other store that `object_store` knows.
//!
//! Where it is and with which secrets is said by the environment variables that S3's own tools read
//! (`AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID` and so on), or by the machine's identity.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, RetryConfig};

use super::{Created, Listed, Store, StoreError};

/// The store's client repeats what failed so often before it says so; the archiver repeats it then.
const RETRIES: usize = 2;
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl Bucket {
    /// The objects of `store` below `prefix`.
    #[must_use]
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path) -> Bucket {
        Bucket { store, prefix }
    }

    pub(super) fn of_s3(bucket: &str, prefix: &str) -> Result<Bucket, String> {
        let mut builder =
            AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(RetryConfig {
                max_retries: RETRIES,
                retry_timeout: RETRY_TIMEOUT,
                ..RetryConfig::default()
            });
        let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
        if endpoint.is_some_and(|endpoint| is_on_this_machine(&endpoint)) {
            builder = builder.with_allow_http(true);
        }
        let store = builder.build().map_err(|error| error.to_string())?;
        let prefix = Path::parse(prefix).map_err(|error| error.to_string())?;
        Ok(Bucket::new(Arc::new(store), prefix))
    }

    fn path(&self, name: &str) -> Path {
        name.split('/').filter(|word| !word.is_empty()).fold(self.prefix.clone(), Path::join)
    }

    fn failed(&self, what: &'static str, name: &str, cause: &Error) -> StoreError {
        StoreError::new(what, self.path(name).as_ref(), cause)
    }

    /// Without the prefix.
    fn name(&self, path: &Path) -> Option<String> {
        let words: Vec<_> = path.prefix_match(&self.prefix)?.collect();
        Some(words.iter().map(|word| word.as_ref()).collect::<Vec<_>>().join("/"))
    }
}

#[async_trait]
impl Store for Bucket {
    async fn create(&self, name: &str, bytes: Bytes) -> Result<Created, StoreError> {
        let options = PutOptions::from(PutMode::Create);
        match self.store.put_opts(&self.path(name), bytes.into(), options).await {
            Ok(_) => Ok(Created::Created),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(Created::Exists),
            Err(cause) => Err(self.failed("write", name, &cause)),
        }
    }

    async fn read(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        let read = async { self.store.get(&self.path(name)).await?.bytes().await };
        match read.await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(cause) => Err(self.failed("read", name, &cause)),
        }
    }

    async fn list(&self, folder: &str) -> Result<Vec<Listed>, StoreError> {
        let found: Vec<_> = self
            .store
            .list(Some(&self.path(folder)))
            .try_collect()
            .await
            .map_err(|cause| self.failed("list", folder, &cause))?;
        let listed = |meta: object_store::ObjectMeta| {
            Some(Listed { name: self.name(&meta.location)?, bytes: meta.size })
        };
        let mut listed: Vec<Listed> = found.into_iter().filter_map(listed).collect();
        listed.sort();
        Ok(listed)
    }

    async fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let found = self
            .store
            .list_with_delimiter(Some(&self.path(folder)))
            .await
            .map_err(|cause| self.failed("list", folder, &cause))?;
        let last = |path: &Path| path.filename().map(str::to_owned);
        let mut names: Vec<String> = found.common_prefixes.iter().filter_map(last).collect();
        names.sort();
        Ok(names)
    }
}

/// Whether what is sent there without TLS is seen by nobody else.
fn is_on_this_machine(endpoint: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(endpoint) else { return false };
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_object_is_created_once() -> Result<(), Box<dyn std::error::Error>> {
        let memory = Arc::new(object_store::memory::InMemory::new());
        let bucket = Bucket::new(memory, Path::from("a/b"));
        assert_eq!(bucket.read("x/1").await?, None);
        assert_eq!(bucket.create("x/1", Bytes::from_static(b"one")).await?, Created::Created);
        assert_eq!(bucket.create("x/1", Bytes::from_static(b"two")).await?, Created::Exists);
        assert_eq!(bucket.create("x/y/2", Bytes::from_static(b"two")).await?, Created::Created);
        assert_eq!(bucket.read("x/1").await?, Some(Bytes::from_static(b"one")));
        let names: Vec<String> = bucket.list("x").await?.into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["x/1", "x/y/2"]);
        assert_eq!(bucket.folders("").await?, ["x"]);
        Ok(())
    }

    #[test]
    fn only_this_machine_is_spoken_to_in_the_clear() {
        assert!(is_on_this_machine("http://127.0.0.1:9000"));
        assert!(is_on_this_machine("http://[::1]:9000"));
        assert!(!is_on_this_machine("http://store.example.com"));
        assert!(!is_on_this_machine("nonsense"));
    }
}
