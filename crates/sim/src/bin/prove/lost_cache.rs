//! kill -9 at random moments, and the power fails with it: the process works on a disk whose cache
//! is lost, round after round on one database.
//!
//! The disk is `mounted.rs`. The rounds run in a namespace of their own, so that the mount goes
//! away with the process, whatever becomes of it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use fuser::{BackgroundSession, Config, MountOption};
use onrush_check::{CheckOptions, Progress, check};
use onrush_sim::{CrashDisk, CrashMode, Random};

use super::mounted::Mounted;
use super::{oracle, own_program, temporary_folder, workload, works};

/// The longest that a process works, in microseconds.
const WORK_MICROS_MAX: u64 = 150_000;
/// One in so many databases is checked as the power cut has left it.
const CHECK_ONE_IN: u64 = 5;

/// Starts the rounds where they can mount something.
pub(crate) fn run(rounds: u64, seed: u64, fault: Option<&str>) -> Result<()> {
    let program = own_program()?;
    let folder = temporary_folder("lost-cache")?;
    let rounds_in = |rounds: u64| {
        let mut command = Command::new("unshare");
        command.arg("-rm").arg(&program).arg("lost-cache-rounds").arg(&folder.0);
        command.args(["--rounds", &rounds.to_string(), "--seed", &seed.to_string()]);
        command.args(fault.into_iter().flat_map(|fault| ["--fault", fault]));
        command
    };
    if !works(&mut rounds_in(0)) {
        println!("skipped: a FUSE file system cannot be mounted here (unshare -rm, /dev/fuse)");
        return Ok(());
    }
    let status = rounds_in(rounds).status()?;
    ensure!(status.success(), "the rounds failed: {status}");
    Ok(())
}

/// The rounds; without any it is tried whether the disk can be mounted.
pub(crate) fn rounds(folder: &Path, rounds: u64, seed: u64, fault: Option<&str>) -> Result<()> {
    let mount = folder.join("disk");
    std::fs::create_dir_all(&mount)?;
    let mut disk = CrashDisk::new();
    drop(mounted(&disk, &mount)?);
    let database = mount.join("database");
    let mut random = Random::new(seed);
    let mut promises = oracle::Promises::default();
    let mut cuts: BTreeMap<CrashMode, u64> = BTreeMap::new();
    let (began, mut checks, mut lossy) = (Instant::now(), 0, 0);
    for round in 1..=rounds {
        disk.forget_history();
        let number = i64::try_from(round)?;
        let path = oracle::path(folder, number);
        let session = mounted(&disk, &mount)?;
        let micros = random.below(WORK_MICROS_MAX);
        workload::work_until_killed(&database, &path, (number, micros), fault)
            .with_context(|| format!("round {round}"))?;
        unmount(session)?;
        let mode = CrashMode::ALL[random.below(CrashMode::ALL.len() as u64) as usize];
        *cuts.entry(mode).or_default() += 1;
        lossy += u64::from(disk.has_unsynced());
        disk = disk.crash_image(disk.operation_count(), mode, random.next_number());
        let place = || format!("round {round} of seed {seed}, {mode:?}");
        if round.is_multiple_of(CHECK_ONE_IN) {
            checks += 1;
            is_sound(&disk).with_context(place)?;
        }
        let session = mounted(&disk, &mount)?;
        let opened = workload::open(&database).with_context(place)?;
        promises.look(&opened, number, &path).with_context(place)?;
        // Now and then with a clean end, so that the next round begins without a log.
        match random.chance(1, 4) {
            true => opened.close()?,
            false => drop(opened),
        }
        unmount(session)?;
        std::fs::remove_file(&path)?;
    }
    if rounds > 0 {
        println!(
            "{rounds} rounds, {} commits intended, {} acknowledged, {} of them delayed and lost, \
             none acknowledged as durable lost; in {lossy} something was not synced; {checks} \
             checks; {:.1} s",
            promises.intended,
            promises.acknowledged,
            promises.lost_delayed,
            began.elapsed().as_secs_f64()
        );
        for (mode, cuts) in cuts {
            println!("  {:<14}{cuts}", format!("{mode:?}"));
        }
    }
    Ok(())
}

fn mounted(disk: &CrashDisk, at: &Path) -> Result<BackgroundSession> {
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("onrush-lost-cache".into())];
    fuser::spawn_mount(Mounted::new(disk.clone()), at, &config)
        .with_context(|| format!("mount on {}", at.display()))
}

/// Nobody has a file of it open any more.
fn unmount(session: BackgroundSession) -> Result<()> {
    match session.umount_and_join() {
        // How the kernel may tell the thread that serves the mount that it is gone.
        Err(error) if error.kind() == ErrorKind::ConnectionAborted => Ok(()),
        outcome => outcome.context("unmount"),
    }
}

/// A power cut is no damage.
fn is_sound(disk: &CrashDisk) -> Result<()> {
    // A database whose creation was cut off is not there yet.
    let folder = Path::new("/database");
    let options = CheckOptions { dop: 1, ..CheckOptions::default() };
    match check(Arc::new(disk.clone()), folder, &options, &Progress::default()) {
        Ok(report) => ensure!(report.is_sound(), "{report}"),
        Err(onrush_check::CheckError::NotFound { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
