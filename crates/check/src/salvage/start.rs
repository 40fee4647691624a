//! Where a salvage starts: a superblock, its files, and a root that can be read.

use std::path::Path;
use std::sync::Arc;

use onrush_files::{Disk, FolderLock, OpenMode};

use crate::decode::superblock::{FILE_NAME, Folders, Superblock};
use crate::error::CheckError;
use crate::findings::Findings;
use crate::progress::Progress;
use crate::report::checkpoint_words;
use crate::run::lock_others;
use crate::salvage::SalvageReport;
use crate::source::LogLimit;
use crate::steps::catalogue::{self, Catalogue};
use crate::steps::owners::Owners;
use crate::steps::superblock;
use crate::store::Store;

/// See the module.
pub(super) struct Start<'a> {
    pub(super) store: Store<'a>,
    pub(super) catalogue: Catalogue,
}

impl<'a> Start<'a> {
    /// None: there is nothing to start from, and the findings say why.
    pub(super) fn find(
        disk: &Arc<dyn Disk>,
        folder: &Path,
        findings: &'a Findings,
        progress: &'a Progress,
        report: &mut SalvageReport,
    ) -> Result<Option<Start<'a>>, CheckError> {
        let file = disk.open(&folder.join(FILE_NAME), OpenMode::ReadOnly)?;
        let Some(contents) = superblock::read(&*file, folder, findings)? else {
            return Ok(None);
        };
        let newest = contents.copies[0];
        if contents.copies.len() == 1 {
            report.notes.push(format!(
                "one copy of the superblock is damaged; the other one is used: {}. If it is the older \
                 one, what came after its checkpoint is there as far as the log still has it",
                words(&newest)
            ));
        }
        let folders = contents.folders.unwrap_or_else(|| {
            report.notes.push(
                "the names of the folders are damaged; data and log are looked for where a new \
                 database has them"
                    .to_owned(),
            );
            Folders { data: vec![folder.to_owned()], log: folder.join("log") }
        });
        let files = superblock::open_data_files(disk, &newest, &folders, findings, &())?;
        let disk = Arc::clone(disk);
        let mut store = Store {
            disk,
            superblock: newest,
            log_folders: vec![folders.log.clone()],
            folders,
            log_limit: LogLimit::None,
            durable_lsn: None,
            files,
            findings,
            progress,
            companion: &(),
        };
        for copy in contents.copies {
            store.superblock = copy;
            let mut owners = Owners::new(&store);
            let Some(catalogue) = catalogue::read(&store, &mut owners) else { continue };
            if copy != newest {
                report.notes.push(format!(
                    "the root that the newest superblock ({}) names cannot be read; the older one \
                     is used: {}",
                    words(&newest),
                    words(&copy)
                ));
            }
            report.checkpoint = copy.checkpoint;
            return Ok(Some(Start { store, catalogue }));
        }
        Ok(None)
    }

    pub(super) fn lock_others(&self, folder: &Path) -> Result<Vec<FolderLock>, CheckError> {
        lock_others(&*self.store.disk, folder, &self.store.folders)
    }
}

fn words(superblock: &Superblock) -> String {
    let Superblock { generation, checkpoint, .. } = superblock;
    format!("generation {generation}, {}", checkpoint_words(*checkpoint))
}
