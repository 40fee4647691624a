//! The process that is killed: sessions that commit one row after the other, and say so to the
//! oracle.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::Args;
use onrush::{Database, Durability, Error, Options};
use onrush_files::{Disk, OsDisk};
use onrush_sim::PlantedDisk;

use super::oracle::{self, Oracle};
use super::own_program;

/// Sessions of a process that is killed.
const SESSIONS: i64 = 16;
/// What the process says when its disk has failed or is full.
pub(crate) const STOPPED: &str = "stopped:";

/// What the process does.
#[derive(Args, Clone, Debug)]
pub(crate) struct Work {
    /// Folder of the database; made if there is none.
    pub(crate) database: PathBuf,
    /// File of the oracle.
    pub(crate) oracle: PathBuf,
    #[arg(long)]
    pub(crate) round: i64,
    #[arg(long)]
    pub(crate) sessions: i64,
    /// Commits of each session.
    #[arg(long, default_value_t = i64::MAX)]
    pub(crate) commits: i64,
    /// Bytes of a row's filling.
    #[arg(long, default_value_t = 100)]
    pub(crate) filling: usize,
    /// Plants a fault in the engine (needs the feature planted-faults).
    #[arg(long)]
    pub(crate) fault: Option<String>,
}

/// Small enough that kills fall into checkpoints, too.
pub(crate) fn options() -> Options {
    Options { checkpoint_log_bytes: 64 << 10, delayed_window_ms: 5, ..Options::small() }
}

/// Works until it is done, killed, or the engine has stopped, which is no failure of this.
///
/// # Errors
/// What cannot happen: the oracle cannot be written, the database refuses what is right.
pub(crate) fn run(work: &Work) -> Result<()> {
    if let Some(fault) = &work.fault {
        ensure!(onrush_sim::plant(fault), "there is no fault {fault}, or none can be planted here");
    }
    let outcome = open(&work.database).and_then(|database| {
        let table = database.table("done")?;
        let oracle = Oracle::open(&work.oracle)?;
        let outcomes: Vec<Result<()>> = std::thread::scope(|scope| {
            let sessions: Vec<_> = (0..work.sessions)
                .map(|own| {
                    let (database, table, oracle) = (&database, &table, &oracle);
                    scope.spawn(move || session(work, own, database, table, oracle))
                })
                .collect();
            let ended = sessions.into_iter().map(|session| session.join());
            ended.map(|ended| ended.unwrap_or_else(|_| Err(anyhow::anyhow!("a panic")))).collect()
        });
        outcomes.into_iter().collect::<Result<Vec<()>>>()?;
        database.close()?;
        Ok(())
    });
    match outcome {
        Err(error) if is_of_the_disk(&error) => {
            println!("{STOPPED} {error}");
            Ok(())
        }
        outcome => outcome,
    }
}

/// Opens the database, or makes it with its table.
pub(crate) fn open(folder: &Path) -> Result<Database> {
    let disk: Arc<dyn Disk> = Arc::new(PlantedDisk(Arc::new(OsDisk::new())));
    let database = match Database::open_on(Arc::clone(&disk), folder, options()) {
        Err(Error::NotFound { .. }) => Database::create_on(disk, folder, options())?,
        opened => opened?,
    };
    if database.table("done").is_err() {
        database.create_table(oracle::definition()?)?;
    }
    Ok(database)
}

fn session(
    work: &Work,
    own: i64,
    database: &Database,
    table: &onrush::Table,
    oracle: &Oracle,
) -> Result<()> {
    let mut session = database.session()?;
    for number in 1..=work.commits {
        // Every third session delays all its commits, the others every fourth.
        let durable = own % 3 != 2 && number % 4 != 0;
        session.set_durability(if durable { Durability::Durable } else { Durability::Delayed });
        oracle.intends(own, number, durable)?;
        oracle::commit(&mut session, table, (work.round, own), number, work.filling)?;
        oracle.acknowledges(own, number, durable)?;
    }
    Ok(())
}

/// Whether an error says that the disk has failed or is full: then it is right to stop.
fn is_of_the_disk(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Error>().is_some_and(|error| {
        error.is_fatal() || matches!(error, Error::DiskFull { .. } | Error::Disk(_))
    })
}

/// Lets a process with [`SESSIONS`] sessions work for so many microseconds.
pub(crate) fn work_until_killed(
    database: &Path,
    oracle: &Path,
    (round, micros): (i64, u64),
    fault: Option<&str>,
) -> Result<()> {
    let mut child = Command::new(own_program()?)
        .arg("work")
        .args([database, oracle])
        .args(["--round", &round.to_string(), "--sessions", &SESSIONS.to_string()])
        .args(fault.into_iter().flat_map(|fault| ["--fault", fault]))
        .stdout(Stdio::null())
        .spawn()?;
    // Not before it has begun, so that most rounds have something to lose.
    while !oracle.exists() {
        if let Some(status) = child.try_wait()? {
            bail!("the process ended by itself: {status}");
        }
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_micros(micros));
    child.kill()?;
    child.wait()?;
    Ok(())
}
