//! Measures the check of what was preloaded: some passes, of which the middle one counts.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::LabError;
use onrush_files::OsDisk;
use onrush_measure::disk::{SyncTime, sync_time};
use onrush_measure::machine::cpus;
use onrush_measure::progress::Observer;

use super::turn::SYNC_BUDGET;
use crate::study::device::DeviceCount;
use crate::study::outcome::Repeat;
use crate::study::setting::Setting;
use crate::study::settings::Settings;
use crate::target::Instance;

/// Passes go on until they took so long together: a check of a small database is over in a blink.
const PASSES_TIME: Duration = Duration::from_millis(500);
/// And there are no more than so many.
const PASSES_MAX: usize = 25;

/// Closes the database, checks it, opens it again and compares its rows.
pub(super) fn measure(
    instance: &mut dyn Instance,
    settings: &Settings,
    folder: &Path,
    sync_before: SyncTime,
    observer: &dyn Observer,
) -> Result<Repeat, LabError> {
    if settings.is(Setting::CheckReads, "memory") {
        instance.check(observer)?; // it leaves in memory what the measured passes read
    }
    let started = Instant::now();
    let device_before = DeviceCount::under(folder);
    let mut passes = vec![instance.check(observer)?];
    while started.elapsed() < PASSES_TIME && passes.len() < PASSES_MAX {
        passes.push(instance.check(observer)?);
    }
    let device = device_before.zip(DeviceCount::under(folder));
    let device = device.map(|(before, after)| after.since(&before, started.elapsed()));
    passes.sort_by_key(|pass| pass.elapsed);
    let middle = passes[passes.len() / 2];
    let verification = instance.verify(observer)?;
    let sync_after = sync_time::measure(&OsDisk::new(), folder, SYNC_BUDGET)?;
    let elapsed_s = middle.elapsed.as_secs_f64().max(1e-9);
    Ok(Repeat {
        rows: middle.rows,
        elapsed_s,
        rows_per_s: middle.rows as f64 / elapsed_s,
        gb_per_s: Some(middle.bytes as f64 / 1e9 / elapsed_s),
        cpu_percent: 100.0 * middle.cpu.as_secs_f64() / (elapsed_s * cpus() as f64),
        cpu_s: middle.cpu.as_secs_f64(),
        device,
        sync_time_us: sync_before.better(sync_after),
        verification,
        ..Repeat::default()
    })
}
