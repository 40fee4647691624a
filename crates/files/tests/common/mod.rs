//! Disks to test on, and a fresh folder on each.

use std::path::PathBuf;
use std::sync::Arc;

use onrush_files::{Disk, MemoryDisk, OsDisk};

/// A disk and an empty folder on it.
pub struct Place {
    pub disk: Arc<dyn Disk>,
    pub folder: PathBuf,
}

/// An empty folder on every kind of disk; `test` keeps the folders of tests apart.
#[allow(dead_code)] // not every test file uses every helper
pub fn places(test: &str) -> Vec<Place> {
    let disks: [(&str, Arc<dyn Disk>); 3] = [
        ("direct", Arc::new(OsDisk::new())),
        ("buffered", Arc::new(OsDisk::buffered())),
        ("memory", Arc::new(MemoryDisk::new())),
    ];
    disks.map(|(kind, disk)| place(disk, &format!("{test}-{kind}"))).into()
}

/// An empty folder on one disk.
pub fn place(disk: Arc<dyn Disk>, name: &str) -> Place {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder); // left over from an earlier run
    disk.create_folder(&folder).expect("a folder for the test");
    Place { disk, folder }
}
