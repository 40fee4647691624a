//! kill -9 at random moments, round after round on one database.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use onrush_check::{CheckOptions, Progress, check};
use onrush_files::OsDisk;
use onrush_sim::Random;

use super::{oracle, temporary_folder, workload};

/// One in so many databases is checked as the kill has left it.
const CHECK_ONE_IN: u64 = 10;

pub(crate) fn run(rounds: u64, seed: u64, folder: Option<PathBuf>) -> Result<()> {
    let temporary = temporary_folder("kill")?;
    let folder = folder.unwrap_or_else(|| temporary.0.clone());
    let database = folder.join("database");
    let mut random = Random::new(seed);
    let mut promises = oracle::Promises::default();
    let (began, mut checks) = (Instant::now(), 0);
    for round in 1..=rounds {
        let number = i64::try_from(round)?;
        let path = oracle::path(&folder, number);
        let micros = random.below(150_000);
        workload::work_until_killed(&database, &path, (number, micros), None)
            .with_context(|| format!("round {round}"))?;
        if round.is_multiple_of(CHECK_ONE_IN) {
            checks += 1;
            let disk = Arc::new(OsDisk::new());
            let report = check(disk, &database, &CheckOptions::default(), &Progress::default())?;
            ensure!(report.is_sound(), "round {round}: {report}");
        }
        let opened = workload::open(&database).with_context(|| format!("round {round}"))?;
        promises.look(&opened, number, &path)?;
        // Now and then with a clean end, so that the next round begins without a log.
        if random.chance(1, 4) {
            opened.close()?;
        }
        std::fs::remove_file(&path)?;
    }
    println!(
        "{rounds} rounds, {} commits intended, {} acknowledged, {} of them delayed and lost, \
         none acknowledged as durable lost; {checks} checks; {:.1} s",
        promises.intended,
        promises.acknowledged,
        promises.lost_delayed,
        began.elapsed().as_secs_f64()
    );
    Ok(())
}
