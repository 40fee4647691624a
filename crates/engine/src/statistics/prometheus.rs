//! Statistics as a page for Prometheus.

use onrush_waits::exposition::{Exposition, MetricKind};

use super::Statistics;
use crate::checkpoint::CheckpointStage;

/// The whole page.
pub(super) fn page(statistics: &Statistics) -> String {
    let mut page = Exposition::default();
    page.totals(&statistics.totals);
    log(&mut page, statistics);
    let gauges = [
        ("onrush_leaves", "Leaves of all tables, in memory or not.", statistics.leaves),
        ("onrush_frames_in_use", "Frames for leaves in use.", statistics.frames.0),
        ("onrush_frames", "Frames for leaves in all.", statistics.frames.1),
        ("onrush_slots", "Slots of 16 KiB in the data files.", statistics.slots),
        ("onrush_log_in_use_bytes", "Log not superfluous yet.", statistics.log_space_bytes.0),
        ("onrush_log_capacity_bytes", "Log that there may be.", statistics.log_space_bytes.1),
        ("onrush_log_queue", "Sessions that wait for the log.", statistics.log_queue),
        (
            "onrush_checkpoint_running",
            "1 while a checkpoint is being taken.",
            u64::from(statistics.checkpoint.stage != CheckpointStage::None),
        ),
        ("onrush_checkpoint_leaves", "Leaves it has to write.", statistics.checkpoint.leaves),
        (
            "onrush_checkpoint_written",
            "Leaves it has written, or need not write any more.",
            statistics.checkpoint.written,
        ),
        ("onrush_recovery_records", "Records redone at opening.", statistics.recovery.records),
        ("onrush_recovery_log_bytes", "Log read at opening.", statistics.recovery.log_bytes),
    ];
    let (large, large_bytes) = statistics.large_transactions;
    let large = [
        ("onrush_large_transactions", "Large transactions that are open.", large),
        ("onrush_large_transaction_bytes", "Log that their pieces take.", large_bytes),
    ];
    for (name, help, value) in gauges.into_iter().chain(large) {
        page.single(name, MetricKind::Gauge, help, value as f64);
    }
    memory(&mut page, statistics);
    page.into_text()
}

fn memory(page: &mut Exposition, statistics: &Statistics) {
    let name = "onrush_memory_bytes";
    page.family(name, MetricKind::Gauge, "Memory that a part of the process takes.");
    for part in &statistics.memory {
        page.sample(name, &[("part", &part.name)], part.used_bytes as f64);
    }
    let name = "onrush_memory_limit_bytes";
    page.family(name, MetricKind::Gauge, "Memory that a part may take, or all of them.");
    for part in &statistics.memory {
        if let Some(limit) = part.limit_bytes {
            page.sample(name, &[("part", &part.name)], limit as f64);
        }
    }
    if let Some(limit) = statistics.memory_limit_bytes {
        page.sample(name, &[("part", "all")], limit as f64);
    }
}

fn log(page: &mut Exposition, statistics: &Statistics) {
    let log = &statistics.log;
    let counters = [
        ("onrush_log_bytes_total", "Bytes written, headers and padding included.", log.bytes),
        ("onrush_log_blocks_total", "Blocks written.", log.blocks),
        ("onrush_log_record_bytes_total", "Record bytes written.", log.record_bytes),
        ("onrush_log_waiters_total", "Waits that ended with a round.", log.waiters_served),
    ];
    for (name, help, value) in counters {
        page.single(name, MetricKind::Counter, help, value as f64);
    }
    let name = "onrush_log_write_seconds";
    page.family(name, MetricKind::Histogram, "Durable writes of the log by time.");
    let mut below = 0;
    for (bucket, count) in log.write_nanos_histogram.iter().enumerate() {
        below += count;
        if bucket + 1 < log.write_nanos_histogram.len() && bucket >= 10 {
            let end = (2_u64 << bucket) as f64 / 1e9;
            page.sample(&format!("{name}_bucket"), &[("le", &end.to_string())], below as f64);
        }
    }
    page.sample(&format!("{name}_bucket"), &[("le", "+Inf")], log.syncs as f64);
    page.sample(&format!("{name}_sum"), &[], log.write_nanos as f64 / 1e9);
    page.sample(&format!("{name}_count"), &[], log.syncs as f64);
}
