//! The Nth system call of a kind, of each thread: it kills the process, fails, or writes nothing.
//!
//! A call that fails may stop the engine, and may not: what must hold is that the process does not
//! crash, and that the database opens afterwards with all that was acknowledged.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::{oracle, own_program, temporary_folder, workload, works};

/// Calls by which a database changes its files.
const CALLS: [&str; 6] = ["pwrite64", "pwritev2", "fdatasync", "fsync", "fallocate", "rename"];
/// What strace does to them.
const FATES: [&str; 5] = ["signal=KILL", "error=EIO", "error=ENOSPC", "error=EINTR", "retval=0"];
const SESSIONS: i64 = 4;
const COMMITS: i64 = 60;

pub(crate) fn run(until: u64, step: u64) -> Result<()> {
    if !works(Command::new("strace").args(["-qq", "-e", "trace=none", "true"])) {
        println!("skipped: strace is missing, or may not trace here");
        return Ok(());
    }
    let began = Instant::now();
    let (mut cases, mut met, mut killed) = (0, 0, 0);
    for call in CALLS {
        for fate in FATES {
            // A sync that returns 0 has succeeded: as if there were none, which a process cannot
            // tell.
            if fate == "retval=0" && !call.starts_with("pwrite") {
                continue;
            }
            for nth in (1..=until).step_by(usize::try_from(step.max(1))?) {
                let case = format!("{call}:{fate}:when={nth}");
                let outcome = one(&case).with_context(|| case.clone())?;
                cases += 1;
                met += u64::from(outcome != Outcome::NotMet);
                killed += u64::from(outcome == Outcome::Killed);
                if outcome == Outcome::NotMet {
                    break; // nor are the later ones
                }
            }
        }
    }
    println!(
        "{cases} cases, {met} met their call, {killed} were killed by it; nothing acknowledged as \
         durable lost; {:.1} s",
        began.elapsed().as_secs_f64()
    );
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    NotMet,
    Met,
    Killed,
}

fn one(case: &str) -> Result<Outcome> {
    let folder = temporary_folder("calls")?;
    let (database, path) = (folder.0.join("database"), oracle::path(&folder.0, 1));
    let trace = folder.0.join("trace");
    let call = case.split(':').next().unwrap_or(case);
    let output = Command::new("strace")
        .args(["-f", "-qq", "-o"])
        .arg(&trace)
        .args(["-e", &format!("trace={call}"), "-e", &format!("inject={case}")])
        .arg(own_program()?)
        .arg("work")
        .args([&database, &path])
        .args(["--round", "1", "--sessions", &SESSIONS.to_string()])
        .args(["--commits", &COMMITS.to_string(), "--filling", "700"])
        .stdin(Stdio::null())
        .output()?;
    let was_killed = output.status.signal() == Some(9) || output.status.code() == Some(137);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(was_killed || output.status.success(), "{}: {said}", output.status);
    ensure!(!said.contains("panicked"), "{said}");
    look(&database, &path)?;
    let traced = std::fs::read(&trace).unwrap_or_default();
    let traced = String::from_utf8_lossy(&traced);
    let is_met = was_killed || traced.contains("INJECTED");
    Ok(match (was_killed, is_met) {
        (true, _) => Outcome::Killed,
        (false, true) => Outcome::Met,
        (false, false) => Outcome::NotMet,
    })
}

/// What was acknowledged is there; a database whose creation was cut off is not, and can be made.
fn look(database: &Path, path: &Path) -> Result<()> {
    let opened = workload::open(database).context("open afterwards")?;
    oracle::Promises::default().look(&opened, 1, path)?;
    opened.close()?;
    Ok(())
}
