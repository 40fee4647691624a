//! What a salvage has handed over, and what it could not.

use onrush_lsn::Lsn;

use serde::Serialize;

use crate::decode::slot::SLOT_BYTES;
use crate::finding::Finding;
use crate::findings::Findings;
use crate::invariant::{Invariant, Severity};
use crate::salvage::survey::Wanted;
use crate::steps::runs::Lost;

/// Something that was stored and is lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// The broken invariant, the file, the byte in it, the table, the keys.
    #[serde(flatten)]
    pub finding: Finding,
    /// Images lost here; None where nobody can tell.
    pub images: Option<u64>,
    /// Bytes lost here; None where nobody can tell. Of the log: those that were durable at least.
    pub bytes: Option<u64>,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SalvageReport {
    /// What is lost, in the order of its discovery.
    pub losses: Vec<Loss>,
    /// What is wrong without a row being lost by it.
    pub warnings: Vec<Finding>,
    /// What was done instead of what could not be, in words.
    pub notes: Vec<String>,
    /// The checkpoint that was salvaged from; none if there was none, or none to be found.
    pub checkpoint: Option<u64>,
    /// The log is good up to this LSN. Commits from here on are lost if the log is among the losses.
    pub log_end_lsn: Lsn,
    /// What was handed over of each table.
    pub tables: Vec<SalvagedRows>,
}

/// What was handed over of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SalvagedRows {
    /// The name.
    pub name: String,
    /// Images that are good.
    pub images: u64,
    /// Rows from images; of a range with a stock those that count.
    pub image_rows: u64,
    /// Rows that the log put.
    pub log_puts: u64,
    /// Rows that the log removed.
    pub log_removes: u64,
}

impl SalvageReport {
    pub(super) fn begin(&mut self, wanted: &Wanted) {
        let rows = |name: &String| SalvagedRows { name: name.clone(), ..SalvagedRows::default() };
        self.tables = wanted.tables.iter().map(|table| rows(&table.plan.name)).collect();
    }

    /// Takes what was found so far; of losses nobody knows the extent.
    pub(super) fn take(&mut self, findings: &Findings) {
        self.take_as(findings, |_| (None, None));
    }

    /// The same of leaves whose images cannot be found.
    pub(super) fn take_directory(&mut self, findings: &Findings) {
        self.take_as(findings, |invariant| match invariant {
            Invariant::SlotExists | Invariant::SlotOwned => (Some(1), Some(SLOT_BYTES as u64)),
            _ => (None, None),
        });
    }

    /// The same of the log, which is good up to `end` and was durable up to `proven` at least.
    pub(super) fn take_log(&mut self, findings: &Findings, end: Lsn, proven: Lsn) {
        self.log_end_lsn = end;
        self.take_as(findings, |invariant| match invariant {
            Invariant::RecordFits => (Some(0), None),
            _ => (Some(0), Some(proven.bytes_since(end))),
        });
    }

    /// Takes the rows of the log that only a second look has shown to be none. The log itself was
    /// told of before.
    pub(super) fn take_unlike(&mut self, findings: &Findings) {
        let found = findings.take().into_iter();
        let unlike = found.filter(|finding| finding.invariant == Invariant::RecordFits);
        let loss = |finding| Loss { finding, images: Some(0), bytes: None };
        self.losses.extend(unlike.map(loss));
    }

    /// Takes what was found in a stock.
    pub(super) fn take_lost(&mut self, lost: Vec<Lost>) {
        for (finding, images, bytes) in lost {
            if is_loss(&finding) {
                self.losses.push(Loss { finding, images, bytes });
            } else {
                self.warnings.push(finding);
            }
        }
    }

    fn take_as(
        &mut self,
        findings: &Findings,
        extent: impl Fn(Invariant) -> (Option<u64>, Option<u64>),
    ) {
        for finding in findings.take() {
            if is_loss(&finding) {
                let (images, bytes) = extent(finding.invariant);
                self.losses.push(Loss { finding, images, bytes });
            } else {
                self.warnings.push(finding);
            }
        }
    }
}

/// Whether damage of this kind takes rows away, or may.
fn is_loss(finding: &Finding) -> bool {
    use Invariant::{
        Counters, DataFileHeader, Folders, RunKnowsKeys, SuperblockFields, SuperblockTurns,
    };
    let harmless =
        [Counters, DataFileHeader, Folders, RunKnowsKeys, SuperblockFields, SuperblockTurns];
    finding.severity == Severity::Damage && !harmless.contains(&finding.invariant)
}
