//! A small tmpfs that fills up: commits end with a clean error, what was acknowledged is there
//! after the end of the process, and with more space all goes on.
//!
//! The kernel writes short where the disk ends, which is how short writes are met here.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::{oracle, own_program, temporary_folder, workload, works};

/// What a case says if its disk became full.
const FULL: &str = "the disk is full";

/// The smallest disk and the largest, in KiB: no database fits, and all that the workload makes.
const SIZES_KIB: (u64, u64) = (64, 12 << 10);

pub(crate) fn run(sizes: u64) -> Result<()> {
    let may_mount = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"];
    if !works(Command::new(may_mount[0]).args(&may_mount[1..])) {
        println!("skipped: a tmpfs cannot be mounted here (unshare -rm, mount)");
        return Ok(());
    }
    let (began, mut full) = (Instant::now(), 0);
    let (least, most) = SIZES_KIB;
    for kib in (0..sizes).map(|number| least + number * (most - least) / sizes.max(1)) {
        let folder = temporary_folder("full")?;
        let output = Command::new("unshare")
            .arg("-rm")
            .arg(own_program()?)
            .arg("full-disk-case")
            .arg(&folder.0)
            .args(["--kib", &kib.to_string()])
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "a disk of {kib} KiB: {said}");
        full += u64::from(String::from_utf8_lossy(&output.stdout).contains(FULL));
    }
    println!(
        "{sizes} sizes, from {least} to {most} KiB, {full} became full; nothing acknowledged lost, and each went on \
         with more space; {:.1} s",
        began.elapsed().as_secs_f64()
    );
    Ok(())
}

/// One size: fill, end, open while it is full, make space, open, look, go on.
pub(crate) fn case(folder: &Path, kib: u64) -> Result<()> {
    let disk = folder.join("disk");
    std::fs::create_dir_all(&disk)?;
    mount(&disk, &format!("size={kib}k"))?;
    let (database, path) = (disk.join("database"), oracle::path(folder, 1));
    if work(&database, &path, 1, 4000)? {
        println!("{FULL}");
    }
    let mut promises = oracle::Promises::default();
    // While it is full the database may refuse to open, for want of space; never for damage.
    match workload::open(&database) {
        Ok(opened) => promises.look(&opened, 1, &path).context("while the disk is full")?,
        Err(error) => {
            let text = format!("{error:?}").to_lowercase();
            ensure!(text.contains("full") || text.contains("space"), "while it is full: {text}");
        }
    }
    mount(&disk, &format!("remount,size={}k", kib + (64 << 10)))?;
    let mut promises = oracle::Promises::default();
    promises.look(&workload::open(&database)?, 1, &path).context("with more space")?;
    let path = oracle::path(folder, 2);
    work(&database, &path, 2, 20)?;
    promises.look(&workload::open(&database)?, 2, &path).context("after going on")?;
    ensure!(promises.acknowledged >= 20, "nothing went on: {promises:?}");
    Ok(())
}

fn mount(disk: &Path, options: &str) -> Result<()> {
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(disk);
    ensure!(works(&mut command), "mount -o {options} failed");
    Ok(())
}

/// A process of its own, which ends without closing anything if the disk is full. Whether it was.
fn work(database: &Path, oracle: &Path, round: i64, commits: i64) -> Result<bool> {
    let output = Command::new(own_program()?)
        .arg("work")
        .args([database, oracle])
        .args(["--round", &round.to_string(), "--sessions", "4"])
        .args(["--commits", &commits.to_string(), "--filling", "3000"])
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{}: {said}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).contains(workload::STOPPED))
}
