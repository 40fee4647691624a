//! What a backup in the archive is made of: parts with pages, and what else a database folder needs. The log behind
//! it is archived by itself.

use onrush::{LogPosition, Lsn};
use serde::{Deserialize, Serialize};

use crate::error::ArchiveError;
use crate::object::{self, Kind, damaged};
use crate::store::{Place, Store};

/// See the module; its numbers are words, since it is read by people, too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The folder of its parts.
    pub(crate) folder: String,
    pub(crate) database_id: String,
    /// C: where the log begins that is needed with the pages.
    pub(crate) redo_from: String,
    pub(crate) redo_from_lsn: u64,
    /// Bytes of the file of the log segment that C is in.
    pub(crate) segment_bytes: u64,
    /// E: the pages hold what is below.
    pub(crate) must_reach_lsn: u64,
    /// When what is below was durable at the latest, in microseconds since 1970.
    pub(crate) must_reach_us: Option<u64>,
    /// Every commit below is there, with the log up to here.
    pub(crate) end_lsn: u64,
    /// The superblock, without the zeros at its end.
    pub(crate) superblock: String,
    pub(crate) data_files: Vec<DataFile>,
    /// Bytes of each part.
    pub(crate) parts: Vec<u64>,
}

/// A data file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DataFile {
    pub(crate) bytes: u64,
    /// Its header, without the zeros at its end.
    pub(crate) header: String,
}

/// The name of the manifest of a backup.
pub(crate) fn manifest_name(end: Lsn) -> String {
    format!("{}/manifest", backup_folder(end))
}

/// Where the objects of a backup are.
pub(crate) fn backup_folder(end: Lsn) -> String {
    format!("backup/{:020}", end.0)
}

/// The name of a part of a backup.
pub(crate) fn part_name(folder: &str, number: usize) -> String {
    format!("{folder}/part-{number:06}")
}

impl Manifest {
    pub(crate) fn seal(&self, history: u128) -> bytes::Bytes {
        // Words and numbers always are JSON.
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        object::seal(Kind::Manifest, history, &[&text, b"\n"])
    }

    pub(crate) fn open(name: &str, history: u128, bytes: &[u8]) -> Result<Manifest, ArchiveError> {
        let (Kind::Manifest, body) = object::open(name, history, bytes)? else {
            return Err(damaged(name, "it is no manifest of a backup"));
        };
        serde_json::from_slice(body).map_err(|error| damaged(name, &error.to_string()))
    }

    pub(crate) fn start(&self, name: &str) -> Result<LogPosition, ArchiveError> {
        let bytes = from_hex(&self.redo_from, LogPosition::BYTES);
        let bytes = bytes.filter(|bytes| bytes.len() == LogPosition::BYTES);
        let Some(bytes) = bytes.and_then(|bytes| bytes.try_into().ok()) else {
            return Err(damaged(name, "redo_from is no position"));
        };
        Ok(LogPosition::decode(&bytes))
    }
}

/// The ends of the complete backups of a history, the newest last.
pub(crate) async fn complete_backups(
    store: &dyn Store,
    history: &str,
) -> Result<Vec<Lsn>, ArchiveError> {
    let listed = store.list(&format!("{history}/backup")).await?;
    let end = |name: &str| {
        let words: Vec<&str> = name.split('/').collect();
        let [_, "backup", end, "manifest"] = words[..] else { return None };
        end.parse().ok().map(Lsn)
    };
    Ok(listed.iter().filter_map(|listed| end(&listed.name)).collect())
}

/// Reads a manifest.
pub(crate) async fn read(place: &Place, history: u128, end: Lsn) -> Result<Manifest, ArchiveError> {
    let name = manifest_name(end);
    let object = format!("{history:032x}/{name}");
    let bytes = place.store.read(&object).await?;
    let bytes = bytes.ok_or_else(|| damaged(&name, "it is gone"))?;
    Manifest::open(&name, history, &bytes)
}

/// As hexadecimal digits, without zeros at the end.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes[..used].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes that hexadecimal digits stand for, with zeros up to `length`.
pub(crate) fn from_hex(text: &str, length: usize) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let mut bytes: Vec<u8> = digits.map(byte).collect::<Option<_>>()?;
    let is_short = bytes.len() <= length && text.len().is_multiple_of(2);
    bytes.resize(length.max(bytes.len()), 0);
    is_short.then_some(bytes)
}
