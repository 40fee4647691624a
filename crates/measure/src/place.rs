//! The folders of one measurement: made before, removed after, never anybody else's.
//!
//! Invariants
//! 1. Only folders that this measurement made, or was given empty, are removed or emptied.
//! 2. Without `keep` nothing is left, also after an error or an interruption (see
//!    [`remove_temporary_folders`]); after a failed verification everything is kept, since it is
//!    the evidence.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use onrush::{KeyStrategy, Options};

use crate::error::{FolderError, MeasureError};
use crate::machine::FileSystem;
use crate::settings::Placement;

/// Space for a row under an ascending key, in a full image; some are written twice.
const ASCENDING_ROW_BYTES: u64 = 256;
/// Space for a row under a random key: leaves are two thirds full, and all of them are written out
/// of place by each checkpoint.
const RANDOM_ROW_BYTES: u64 = 2 * 256 + 64;
/// Space that any database takes.
const FIXED_BYTES: u64 = 256 << 20;

/// What is to be removed should the process be interrupted. Pushed to by [`Place::prepare`], popped
/// when the place is dropped or kept.
static TEMPORARY: Mutex<Vec<Removal>> = Mutex::new(Vec::new());

/// Folders to remove, and folders to empty.
#[derive(Clone, Debug, Default, PartialEq)]
struct Removal {
    made: Vec<PathBuf>,    // removed as a whole
    emptied: Vec<PathBuf>, // given empty; only what is in them is removed
}

/// Removes the folders of every measurement that is running and was not asked to keep them. For a
/// process that is about to end because it was interrupted.
pub fn remove_temporary_folders() {
    // The engine is still running, and may make a file in a folder that is just being removed.
    const TRIES: usize = 3;
    let all = std::mem::take(&mut *temporary());
    for _ in 0..TRIES {
        all.iter().for_each(Removal::remove);
    }
}

/// The folders of one measurement.
#[derive(Debug)]
pub struct Place {
    folder: PathBuf,
    data_folders: Vec<PathBuf>,
    log_folder: Option<PathBuf>,
    removal: Removal,
    keep: bool,
}

impl Place {
    /// Makes the folders.
    pub fn prepare(placement: &Placement) -> Result<Place, MeasureError> {
        let unique = unique_name();
        let folder = match &placement.folder {
            Some(folder) => folder.clone(),
            None => PathBuf::from(&unique),
        };
        let folder = std::path::absolute(&folder)
            .map_err(|error| FolderError::new("find", &folder, error))?;
        let mut place = Place {
            folder: folder.clone(),
            data_folders: Vec::new(),
            log_folder: None,
            removal: Removal::default(),
            keep: placement.keep,
        };
        place.take(&folder)?;
        if placement.data_folders.is_empty() && placement.data_files > 1 {
            let inside = (0..placement.data_files).map(|n| folder.join(format!("data-{n:02}")));
            place.data_folders = inside.collect();
        }
        for data_folder in &placement.data_folders {
            let own = place.take_inside(data_folder, &format!("{unique}-data"))?;
            place.data_folders.push(own);
        }
        if let Some(log_folder) = &placement.log_folder {
            place.log_folder = Some(place.take_inside(log_folder, &format!("{unique}-log"))?);
        }
        if !place.keep {
            temporary().push(place.removal.clone());
        }
        Ok(place)
    }

    /// The database's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the log's blocks are synced, and so where the sync time counts.
    pub fn sync_folder(&self) -> &Path {
        self.log_folder.as_deref().unwrap_or(&self.folder)
    }

    /// Sets the folders in the engine's options.
    pub fn apply(&self, options: &mut Options) {
        options.data_folders.clone_from(&self.data_folders);
        options.log_folder.clone_from(&self.log_folder);
    }

    /// Whether the disks have space for so many rows; a generous estimate.
    pub fn check_space(
        &self,
        rows: u64,
        key: KeyStrategy,
        log_bytes: u64,
    ) -> Result<(), MeasureError> {
        let row_bytes = match key {
            KeyStrategy::UuidV4 | KeyStrategy::BitReversed => RANDOM_ROW_BYTES,
            _ => ASCENDING_ROW_BYTES,
        };
        let needed_bytes = rows.saturating_mul(row_bytes).saturating_add(log_bytes + FIXED_BYTES);
        let all = self.data_folders.iter().chain([&self.folder]);
        for folder in all {
            let free_bytes = FileSystem::under(folder)
                .map_err(|error| FolderError::new("measure the free space of", folder, error))?
                .free_bytes;
            if free_bytes < needed_bytes {
                let folder = folder.clone();
                return Err(MeasureError::NoSpace { folder, free_bytes, needed_bytes });
            }
        }
        Ok(())
    }

    /// Keeps everything, whatever was asked for.
    pub fn keep(&mut self) {
        self.keep = true;
        self.forget();
    }

    /// Whether the files stay.
    pub fn is_kept(&self) -> bool {
        self.keep
    }

    fn take(&mut self, folder: &Path) -> Result<(), MeasureError> {
        match fs::read_dir(folder) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(MeasureError::NotEmpty(folder.to_owned()));
                }
                self.removal.emptied.push(folder.to_owned());
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.make(folder),
            Err(error) => Err(FolderError::new("read folder", folder, error).into()),
        }
    }

    fn take_inside(&mut self, parent: &Path, name: &str) -> Result<PathBuf, MeasureError> {
        let parent =
            std::path::absolute(parent).map_err(|error| FolderError::new("find", parent, error))?;
        let mut own = parent.join(name);
        for number in 2.. {
            if !own.exists() {
                break;
            }
            own = parent.join(format!("{name}-{number}"));
        }
        self.make(&own)?;
        Ok(own)
    }

    /// Makes a folder and those above it; all that were missing are removed in the end.
    fn make(&mut self, folder: &Path) -> Result<(), MeasureError> {
        let missing = folder.ancestors().take_while(|above| !above.exists());
        let topmost = missing.last().unwrap_or(folder).to_owned();
        fs::create_dir_all(folder)
            .map_err(|error| FolderError::new("create folder", folder, error))?;
        self.removal.made.push(topmost);
        Ok(())
    }

    fn forget(&self) {
        temporary().retain(|removal| *removal != self.removal);
    }
}

impl Removal {
    fn remove(&self) {
        // A folder that cannot be removed is left: the result is printed all the same.
        for folder in &self.made {
            let _ = fs::remove_dir_all(folder);
        }
        for folder in &self.emptied {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let _ =
                    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.keep {
            self.forget();
            self.removal.remove();
        }
    }
}

fn temporary() -> MutexGuard<'static, Vec<Removal>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unique_name() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("onrush-lab-{}-{:06}", std::process::id(), since.subsec_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(folder: PathBuf, keep: bool) -> Placement {
        Placement { folder: Some(folder), keep, data_files: 1, ..Placement::default() }
    }

    #[test]
    fn folders_that_were_made_are_removed_with_those_above_them() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("a/b");
        let place = Place::prepare(&placement(folder.clone(), false)).unwrap();
        fs::write(folder.join("file"), "x").unwrap();
        drop(place);
        assert!(!outer.path().join("a").exists());
        assert!(outer.path().exists());
    }

    #[test]
    fn an_empty_folder_is_emptied_and_stays() {
        let outer = tempfile::tempdir().unwrap();
        let place = Place::prepare(&placement(outer.path().into(), false)).unwrap();
        fs::create_dir(outer.path().join("log")).unwrap();
        drop(place);
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_with_something_in_it_is_refused_and_untouched() {
        let outer = tempfile::tempdir().unwrap();
        fs::write(outer.path().join("letter"), "dear").unwrap();
        let refused = Place::prepare(&placement(outer.path().into(), false)).unwrap_err();
        assert!(matches!(refused, MeasureError::NotEmpty(_)));
        assert!(outer.path().join("letter").exists());
    }

    #[test]
    fn what_is_to_be_kept_stays() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("kept");
        drop(Place::prepare(&placement(folder.clone(), true)).unwrap());
        assert!(folder.exists());
    }

    #[test]
    fn other_folders_get_one_of_our_own_inside() {
        let outer = tempfile::tempdir().unwrap();
        let fast = outer.path().join("fast");
        fs::create_dir(&fast).unwrap();
        fs::write(fast.join("mine"), "x").unwrap();
        let mut wanted = placement(outer.path().join("db"), false);
        wanted.data_folders = vec![fast.clone(), fast.clone()];
        wanted.log_folder = Some(fast.clone());
        let place = Place::prepare(&wanted).unwrap();
        let mut options = Options::default();
        place.apply(&mut options);
        assert_eq!(options.data_folders.len(), 2);
        assert_ne!(options.data_folders[0], options.data_folders[1]);
        drop(place);
        assert_eq!(fs::read_dir(&fast).unwrap().count(), 1);
    }

    #[test]
    fn a_load_that_does_not_fit_is_refused_with_both_sizes() {
        let outer = tempfile::tempdir().unwrap();
        let place = Place::prepare(&placement(outer.path().into(), false)).unwrap();
        let key = KeyStrategy::UuidV4;
        place.check_space(1, key, 0).unwrap();
        let refused = place.check_space(u64::MAX, key, 0).unwrap_err().to_string();
        assert!(refused.contains("free") && refused.contains("fewer --rows"), "{refused}");
    }
}
