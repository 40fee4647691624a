//! Whoever watches a log being read sees bytes done and bytes to do, and at the end both are one.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{TestDisk, append, options, record, recorder, start};
use onrush_log::{Log, Lsn, ReadProgress};

#[test]
fn bytes_ascend_to_no_more_than_was_foretold_and_end_where_the_log_does() {
    let disk = TestDisk::new();
    let mut options = options(1);
    let segment_bytes = options.segment_bytes;
    let recorder = recorder(&options);
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    let mut end = Lsn::FIRST;
    let bytes = segment_bytes as usize / 16;
    for number in 0..40 {
        end = append(&log, &record(number, bytes), &recorder);
        log.wait_durable(end, &recorder).unwrap();
    }
    drop(log);
    let progress = Arc::new(ReadProgress::default());
    options.progress = Some(Arc::clone(&progress));
    let mut seen = Vec::new();
    let mut foretold = Vec::new();
    let recovered = Log::recover(disk.arc(), options, start(), end, &mut |_, _| {
        seen.push(progress.read_bytes());
        foretold.push(progress.total_bytes());
        Ok(())
    });
    assert_eq!(recovered.unwrap().end(), end);
    assert!(seen.is_sorted() && seen[0] < seen[39], "{seen:?}");
    let all = progress.read_bytes();
    assert!(all >= end - Lsn::FIRST);
    assert_eq!(progress.total_bytes(), all);
    assert!(foretold.iter().all(|total| *total >= all), "{foretold:?} {all}");
    assert!(foretold[0] <= all + segment_bytes, "{foretold:?} {all}");
}
