//! Where the objects of archives are. An object is created once, whole and for good, and never overwritten.
//!
//! | URL | store |
//! |---|---|
//! | `file:///folder` | [`folder`]: a folder of this machine, or one that is mounted here |
//! | `s3://bucket/prefix` | [`bucket`]: Amazon's store, or one that speaks as it does |

mod bucket;
mod folder;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

pub use bucket::Bucket;
pub use folder::Folder;

use crate::error::ArchiveError;

/// What came of [`Store::create`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// The object is there, with these bytes, for good.
    Created,
    /// There is an object of that name already, and it is as it was.
    Exists,
}

/// An object that is there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// Its whole name.
    pub name: String,
    /// How long it is.
    pub bytes: u64,
}

/// What a store that answers wrongly is told of.
pub(crate) const CONTRADICTION: &str = "the store says that it is there, and that it is not";

/// The store did not do it, or its answer was lost: what was asked for may have been done.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot {what} {name}: {cause}")]
pub struct StoreError {
    /// What was asked for.
    pub what: &'static str,
    /// Of which object or prefix.
    pub name: String,
    /// What the store said.
    pub cause: String,
}

impl StoreError {
    pub(crate) fn new(what: &'static str, name: &str, cause: &dyn fmt::Display) -> StoreError {
        StoreError { what, name: name.to_owned(), cause: cause.to_string() }
    }
}

/// See the module. Names are words with `/` between them.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// Makes an object, unless there is one of that name.
    async fn create(&self, name: &str, bytes: Bytes) -> Result<Created, StoreError>;

    /// The bytes of an object; none if there is none.
    async fn read(&self, name: &str) -> Result<Option<Bytes>, StoreError>;

    /// All objects whose names begin with `folder` and a `/`, by name.
    async fn list(&self, folder: &str) -> Result<Vec<Listed>, StoreError>;

    /// The words that follow `folder` and a `/` in names that go on behind them, in order; `folder` may be empty.
    async fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError>;
}

/// A store, and where in it archives are.
#[derive(Clone, Debug)]
pub struct Place {
    pub(crate) store: Arc<dyn Store>,
    /// As it was named.
    url: String,
    /// The history that the URL names, if it does.
    history: Option<u128>,
}

impl Place {
    /// The place that a URL names: `file:///folder` or `s3://bucket/prefix`, each with a history behind it or not.
    ///
    /// # Errors
    /// A URL of another form.
    pub fn of_url(url: &str) -> Result<Place, ArchiveError> {
        let bad =
            |reason: &str| ArchiveError::BadUrl { url: url.to_owned(), reason: reason.to_owned() };
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| bad("it has no scheme; write file:///folder or s3://bucket/prefix"))?;
        let (rest, history) = split_history(rest);
        let store: Arc<dyn Store> = match scheme {
            "file" => {
                let path = Path::new(rest);
                if !path.is_absolute() {
                    return Err(bad("write the folder's whole path, as in file:///srv/archive"));
                }
                Arc::new(Folder::new(path))
            }
            "s3" => {
                let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
                if bucket.is_empty() {
                    return Err(bad("it names no bucket, as in s3://bucket/prefix"));
                }
                Arc::new(Bucket::of_s3(bucket, prefix).map_err(|cause| bad(&cause))?)
            }
            _ => return Err(bad("there are file:///folder and s3://bucket/prefix")),
        };
        Ok(Place { store, url: url.to_owned(), history })
    }

    /// A place in a store of the caller's.
    #[must_use]
    pub fn of_store(store: Arc<dyn Store>) -> Place {
        Place { store, url: "the store".to_owned(), history: None }
    }

    /// The same place, of one history.
    #[must_use]
    pub fn of_history(self, history: u128) -> Place {
        Place { history: Some(history), ..self }
    }

    /// The history that it names.
    #[must_use]
    pub fn history(&self) -> Option<u128> {
        self.history
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.url)
    }
}

/// A last word of 32 hexadecimal digits is a history.
fn split_history(path: &str) -> (&str, Option<u128>) {
    let path = path.trim_end_matches('/');
    match path.rsplit_once('/') {
        Some((before, last)) => match history_of(last) {
            Some(history) => (before, Some(history)),
            None => (path, None),
        },
        None => (path, None),
    }
}

/// The history that a word of 32 hexadecimal digits is.
pub(crate) fn history_of(word: &str) -> Option<u128> {
    let is_history =
        word.len() == 32 && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_history.then(|| u128::from_str_radix(word, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_store_and_perhaps_a_history() -> Result<(), ArchiveError> {
        let word = "00112233445566778899aabbccddeeff";
        for (url, history) in [
            ("file:///srv/archive".to_owned(), None),
            (format!("file:///srv/archive/{word}"), u128::from_str_radix(word, 16).ok()),
            (format!("file:///srv/archive/{word}/"), u128::from_str_radix(word, 16).ok()),
        ] {
            assert_eq!(Place::of_url(&url)?.history(), history, "{url}");
        }
        Ok(())
    }

    #[test]
    fn a_url_of_another_form_is_refused_with_what_to_write() {
        for url in ["", "/srv/archive", "file://srv", "gs://bucket", "s3://", "s3:///prefix"] {
            let error = Place::of_url(url).map(drop).map_err(|error| error.to_string());
            assert!(
                error.as_ref().is_err_and(|it| it.contains(":///") || it.contains("s3://")),
                "{error:?}"
            );
        }
    }
}
