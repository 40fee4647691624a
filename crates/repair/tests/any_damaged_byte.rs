//! One byte anywhere is damaged: a repair does not panic, leaves the damaged files alone, and every
//! row that it salvages was once committed as it is; if it tells of no loss, all rows are there.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use common::{History, Left, damage, disk_of, files, folder};
use onrush_files::MemoryDisk;
use onrush_repair::{Outcome, RepairError};
use proptest::prelude::*;

struct Sample {
    files: BTreeMap<PathBuf, Vec<u8>>,
    history: History,
    /// File and byte of all that is not zero: zeros are mostly free space.
    used: Vec<(PathBuf, usize)>,
}

impl Sample {
    fn new(left: Left) -> Sample {
        let disk = MemoryDisk::new();
        let mut history = common::sample(&disk, 120, left);
        history.last.get_mut("notes").unwrap().clear();
        let files = files(&disk, &folder());
        let mut used = Vec::new();
        for (path, bytes) in &files {
            let is_used = |at: &usize| bytes[*at] != 0;
            used.extend((0..bytes.len()).filter(is_used).map(|at| (path.clone(), at)));
        }
        Sample { files, history, used }
    }
}

fn samples() -> &'static [Sample; 2] {
    static SAMPLES: OnceLock<[Sample; 2]> = OnceLock::new();
    SAMPLES.get_or_init(|| [Left::Closed, Left::Dropped].map(Sample::new))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn salvaged_rows_were_once_committed(
        left in 0..2usize,
        place in any::<prop::sample::Index>(),
        mask in 1..=255u8,
    ) {
        let sample = &samples()[left];
        let (path, offset) = place.get(&sample.used);
        let disk = disk_of(&sample.files);
        damage(&disk, path, *offset, mask);
        let before = files(&disk, &folder());
        let repaired = common::repair_disk(&disk);
        prop_assert_eq!(files(&disk, &folder()), before);
        let report = match repaired {
            Ok(report) => report,
            Err(error) => {
                prop_assert!(matches!(error, RepairError::Check(_)), "{error}");
                return Ok(());
            }
        };
        if report.outcome == Outcome::NothingSalvaged {
            return Ok(());
        }
        let rows = common::repaired_rows(&disk);
        for (table, rows) in &rows {
            for row in rows {
                let row = (table.clone(), format!("{row:?}"));
                prop_assert!(sample.history.once.contains(&row), "{row:?} never was; {report}");
            }
        }
        let told = !report.salvaged.losses.is_empty() || !report.salvaged.warnings.is_empty();
        prop_assert!(told || rows == sample.history.last, "{report}");
    }
}
