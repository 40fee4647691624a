//! What the engine counts, under the neutral names of [`record`].

use onrush::Statistics;
use onrush_waits::totals::Collisions;
use onrush_waits::{CounterUnit, PhaseClass, WaitClass};

use super::record::{self, CounterRecord, PhaseRecord, Snapshot, Spins, WaitRecord};

/// The engine's statistics under neutral names.
pub(super) fn snapshot(statistics: &Statistics) -> Snapshot {
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let totals = &statistics.totals;
    let waits = totals.waits.iter().map(|total| WaitRecord {
        group: "wait".into(),
        name: total.wait.name().into(),
        count: total.count,
        seconds: seconds(total.nanos),
        resource_s: Some(seconds(total.resource_nanos())),
        signal_s: Some(seconds(total.signal_nanos)),
        max_s: Some(seconds(total.nanos_max)),
        is_idle: total.wait.class() == WaitClass::Idle,
        ..WaitRecord::default()
    });
    let latches = totals.latches.iter().map(|total| WaitRecord {
        group: "latch".into(),
        name: total.latch.name().into(),
        count: total.spun.collisions,
        requests: Some(total.requests.max(total.spun.collisions)),
        seconds: seconds(total.nanos),
        max_s: Some(seconds(total.nanos_max)),
        spins: Some(spins(&total.spun)),
        ..WaitRecord::default()
    });
    let words = totals.spins.iter().map(|total| WaitRecord {
        group: "spin".into(),
        name: total.spin.name().into(),
        count: total.spun.collisions,
        spins: Some(spins(&total.spun)),
        ..WaitRecord::default()
    });
    let phases = totals.phases.iter().map(|total| PhaseRecord {
        name: total.phase.name().into(),
        count: total.count,
        seconds: seconds(total.nanos),
        is_idle: total.phase.class() == PhaseClass::Idle,
    });
    Snapshot {
        waits: waits.chain(latches).chain(words).collect(),
        phases: phases.collect(),
        counters: counters(statistics),
    }
}

/// What a durable write of the log took meanwhile, if there was one, and how many sessions wait for the log.
pub(super) fn log_writes(between: &Statistics) -> Vec<CounterRecord> {
    let [mean, p99, queue] = record::ONRUSH_LOG_WRITES;
    let micros = |name: &str, nanos: Option<u64>| {
        let value = nanos? as f64 / 1e3;
        Some(CounterRecord { value, ..CounterRecord::level(name, "us", 0) })
    };
    let times = [
        micros(mean, between.log.write_nanos_mean()),
        micros(p99, between.log.write_nanos_percentile(99.0)),
    ];
    let queue = CounterRecord::level(queue, "1", between.log_queue);
    times.into_iter().flatten().chain([queue]).collect()
}

fn spins(spun: &Collisions) -> Spins {
    Spins {
        collisions: spun.collisions,
        spins: spun.spins,
        sleeps: spun.sleeps,
        backoffs: spun.backoffs,
    }
}

fn counters(statistics: &Statistics) -> Vec<CounterRecord> {
    let log = &statistics.log;
    let of_log = [
        (record::LOG_BYTES, "bytes", log.bytes),
        (record::LOG_RECORD_BYTES, "bytes", log.record_bytes),
        (record::LOG_BLOCKS, "1", log.blocks),
        (record::LOG_SYNCS, "1", log.syncs),
    ];
    let totals = statistics.totals.counters.iter().filter_map(|total| {
        let unit = if total.counter.class() == CounterUnit::Bytes { "bytes" } else { "1" };
        let is_told = of_log.iter().any(|(name, ..)| *name == total.counter.name());
        (!is_told).then(|| CounterRecord::counted(total.counter.name(), unit, total.value))
    });
    let [log_space, leaves, frames, slots] = record::ONRUSH_LEVELS;
    let levels = [
        (log_space, "bytes", statistics.log_space_bytes.0),
        (leaves, "1", statistics.leaves),
        (frames, "1", statistics.frames.0),
        (slots, "1", statistics.slots),
    ];
    totals
        .chain(of_log.iter().map(|(name, unit, value)| CounterRecord::counted(name, unit, *value)))
        .chain(levels.iter().map(|(name, unit, value)| CounterRecord::level(name, unit, *value)))
        .collect()
}
