//! The checkpoints that were taken last, for whoever looks on.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use super::progress::{CheckpointStage, Progress};
use super::report::CheckpointReport;

/// How many are remembered.
const RECORDS_MAX: usize = 100;

/// A checkpoint that was taken since the database was opened, or is being taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointRecord {
    /// What it is doing; none once it is done.
    pub stage: CheckpointStage,
    /// When it began, in microseconds since 1970-01-01 00:00:00 UTC.
    pub began_unix_micros: u64,
    /// What it did, so far.
    pub report: CheckpointReport,
}

/// Those that are done, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Records(Mutex<VecDeque<CheckpointRecord>>);

impl Records {
    pub(super) fn put(&self, began_unix_micros: u64, report: &CheckpointReport) {
        let mut records = self.0.lock();
        if records.len() == RECORDS_MAX {
            records.pop_front();
        }
        let (stage, report) = (CheckpointStage::None, report.clone());
        records.push_back(CheckpointRecord { stage, began_unix_micros, report });
    }

    /// With the one that is being taken as the last one.
    pub(crate) fn read(&self, progress: &Progress) -> Vec<CheckpointRecord> {
        // Before those that are done: it may become one of them.
        let running = progress.running();
        let mut records: Vec<_> = self.0.lock().iter().cloned().collect();
        let is_done = |running: &CheckpointRecord| {
            records.iter().any(|record| record.report.number == running.report.number)
        };
        records.extend(running.filter(|running| !is_done(running)));
        records
    }
}

impl Progress {
    fn running(&self) -> Option<CheckpointRecord> {
        let now = self.read();
        let (number, began_unix_micros) = self.beginning();
        (now.stage != CheckpointStage::None).then(|| CheckpointRecord {
            stage: now.stage,
            began_unix_micros,
            report: CheckpointReport {
                number,
                images: now.written,
                duration: Duration::from_micros(unix_micros().saturating_sub(began_unix_micros)),
                ..CheckpointReport::default()
            },
        })
    }
}

/// Microseconds since 1970 by the clock of the machine.
pub(crate) fn unix_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(number: u64) -> CheckpointReport {
        CheckpointReport { number, ..CheckpointReport::default() }
    }

    #[test]
    fn the_last_ones_are_remembered() {
        let (records, progress) = (Records::default(), Progress::default());
        for number in 1..=RECORDS_MAX as u64 + 2 {
            records.put(number, &report(number));
        }
        let read = records.read(&progress);
        assert_eq!(read.len(), RECORDS_MAX);
        assert_eq!((read[0].report.number, read[0].began_unix_micros), (3, 3));
    }

    #[test]
    fn one_that_is_being_taken_is_there_once() {
        let (records, progress) = (Records::default(), Progress::default());
        records.put(5, &report(1));
        let _running = progress.begin(2, 7);
        progress.add_written(3);
        let read = records.read(&progress);
        assert_eq!((read[1].stage, read[1].report.images), (CheckpointStage::WriteBack, 3));
        assert_eq!((read[1].report.number, read[1].began_unix_micros), (2, 7));
        records.put(7, &report(2));
        assert_eq!(records.read(&progress).len(), 2);
    }
}
