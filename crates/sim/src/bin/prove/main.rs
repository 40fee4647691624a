//! Proofs on the real disk: a process that works on a database is killed, its system calls fail, its
//! disk fills up; afterwards a file outside the engine says what was acknowledged.
//!
//! - `oracle.rs`: that file, and what must be there by it. `workload.rs`: what the process does.
//! - `kill.rs`: kill -9 at random moments. `calls.rs`: the Nth system call kills or fails, by strace.
//!   `full_disk.rs`: a small tmpfs. `lost_cache.rs` (feature `lost-cache`): kill -9 on a disk that
//!   loses what was not synced, `mounted.rs`. `growth.rs`: a database much larger than its memory.
//!
//! A killed process loses its memory and nothing that it has handed to the system: what syncs are
//! worth is for the simulator to show, and for the disk that loses its cache.

mod calls;
mod full_disk;
mod growth;
mod kill;
#[cfg(feature = "lost-cache")]
mod lost_cache;
#[cfg(feature = "lost-cache")]
mod mounted;
mod oracle;
mod workload;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Proofs on the real disk that nothing acknowledged is lost.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    proof: Proof,
}

#[derive(Subcommand)]
enum Proof {
    /// Kills a process with 16 sessions, again and again, on one database.
    Kill {
        /// How often.
        #[arg(long, default_value_t = 1000)]
        rounds: u64,
        /// For the random moments.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// An empty folder for database and oracle; a temporary one unless given.
        #[arg(long)]
        folder: Option<PathBuf>,
    },
    /// Kills a process, again and again, whose disk then loses what was not synced (needs FUSE and the
    /// right to mount).
    #[cfg(feature = "lost-cache")]
    LostCache {
        /// How often.
        #[arg(long, default_value_t = 1000)]
        rounds: u64,
        /// For the random moments and losses.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Plants a fault in the engine (needs the feature planted-faults).
        #[arg(long)]
        fault: Option<String>,
    },
    /// Lets the Nth system call of each kind kill the process, fail, or write nothing (needs strace).
    Calls {
        /// The highest N.
        #[arg(long, default_value_t = 40)]
        until: u64,
        /// One N in so many.
        #[arg(long, default_value_t = 1)]
        step: u64,
    },
    /// Fills small disks of many sizes (needs the right to mount a tmpfs).
    FullDisk {
        /// How many sizes.
        #[arg(long, default_value_t = 100)]
        sizes: u64,
    },
    /// Writes a large database with little memory, checks it, opens it again and compares each row.
    Growth {
        /// Bytes of rows, in MiB.
        #[arg(long, default_value_t = 10_500)]
        mib: u64,
        /// Memory for leaves, in MiB.
        #[arg(long, default_value_t = 64)]
        leaf_memory_mib: usize,
        /// An empty folder for the database; a temporary one unless given.
        #[arg(long)]
        folder: Option<PathBuf>,
    },
    /// The process that is killed: works until it is, or until so many commits.
    #[command(hide = true)]
    Work(workload::Work),
    /// The rounds of lost caches, inside a namespace of their own.
    #[cfg(feature = "lost-cache")]
    #[command(hide = true)]
    LostCacheRounds {
        folder: PathBuf,
        #[arg(long)]
        rounds: u64,
        #[arg(long)]
        seed: u64,
        #[arg(long)]
        fault: Option<String>,
    },
    /// One disk that fills up, inside its own namespace.
    #[command(hide = true)]
    FullDiskCase {
        folder: PathBuf,
        #[arg(long)]
        kib: u64,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().proof) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:?}");
            ExitCode::FAILURE
        }
    }
}

fn run(proof: Proof) -> Result<()> {
    match proof {
        Proof::Kill { rounds, seed, folder } => kill::run(rounds, seed, folder),
        #[cfg(feature = "lost-cache")]
        Proof::LostCache { rounds, seed, fault } => lost_cache::run(rounds, seed, fault.as_deref()),
        #[cfg(feature = "lost-cache")]
        Proof::LostCacheRounds { folder, rounds, seed, fault } => {
            lost_cache::rounds(&folder, rounds, seed, fault.as_deref())
        }
        Proof::Calls { until, step } => calls::run(until, step),
        Proof::FullDisk { sizes } => full_disk::run(sizes),
        Proof::Growth { mib, leaf_memory_mib, folder } => growth::run(mib, leaf_memory_mib, folder),
        Proof::Work(work) => workload::run(&work),
        Proof::FullDiskCase { folder, kib } => full_disk::case(&folder, kib),
    }
}

/// This program, to be started again.
fn own_program() -> Result<PathBuf> {
    Ok(std::env::current_exe()?)
}

/// Whether a command can be run and succeeds; its output is of no interest.
fn works(command: &mut Command) -> bool {
    let output = command.output();
    output.is_ok_and(|output| output.status.success())
}

/// A folder that is removed in the end.
fn temporary_folder(name: &str) -> Result<TemporaryFolder> {
    let folder = std::env::temp_dir().join(format!("onrush-prove-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    Ok(TemporaryFolder(folder))
}

struct TemporaryFolder(PathBuf);

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // Nothing depends on it.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
