//! Cut the power after any write, with the next one torn in any way: what is read back is a prefix
//! of what was appended, and holds everything that was durable.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod common;

use common::*;
use onrush_log::{Log, Lsn};
use proptest::prelude::*;

/// One round: the lengths of its records.
fn rounds() -> impl Strategy<Value = Vec<Vec<usize>>> {
    let length = prop_oneof![8 => 0_usize..60, 2 => 100_usize..5000, 1 => 8000_usize..16000];
    prop::collection::vec(prop::collection::vec(length, 1..6), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn survivors_are_a_prefix(
        rounds in rounds(),
        cut in any::<prop::sample::Index>(),
        torn in any::<u64>(),
    ) {
        let mut options = options(1);
        options.segment_bytes = 1 << 20; // one segment: its writes can be replayed on a fresh one
        options.capacity_bytes = 8 << 20;
        let recorder = recorder(&options);
        let disk = TestDisk::new();
        let log = Log::create(disk.arc(), options.clone()).unwrap();
        let fresh = disk.copy();
        let mut appended = Vec::new();
        let mut durable_at = vec![(0, 0)]; // (writes, records) when a round was durable
        for round in &rounds {
            let mut end = Lsn::ZERO;
            for length in round {
                let payload = record(appended.len(), *length);
                end = append(&log, &payload, &recorder);
                appended.push(payload);
            }
            log.wait_durable(end, &recorder).unwrap();
            durable_at.push((disk.written().len(), appended.len()));
        }
        drop(log);

        let writes = disk.written();
        let cut = cut.index(writes.len() + 1);
        for write in &writes[..cut] {
            fresh.put(&write.path, write.offset, &write.bytes);
        }
        if let Some(write) = writes.get(cut) {
            for (index, sector) in write.bytes.chunks(512).enumerate() {
                if torn >> (index % 64) & 1 == 1 {
                    fresh.put(&write.path, write.offset + index as u64 * 512, sector);
                }
            }
        }
        let (recovered, records) = recover(&fresh, &options).unwrap();
        let durable = durable_at.iter().rev().find(|(writes, _)| *writes <= cut).unwrap().1;
        prop_assert!(records.len() >= durable, "{} of {durable} durable records", records.len());
        prop_assert_eq!(&records[..], &appended[..records.len()]);

        // Going on and reading again gives the same records and the new one.
        let log = recovered.resume(2).unwrap();
        let end = append(&log, b"after", &recorder);
        log.wait_durable(end, &recorder).unwrap();
        drop(log);
        let (_, again) = recover(&fresh, &options).unwrap();
        prop_assert_eq!(&again[..records.len()], &records[..]);
        prop_assert_eq!(&again[records.len()..], &[b"after".to_vec()][..]);
    }
}
