//! What a study measures: Onrush and its rivals behind one trait.
//!
//! A [`Target`] says what it is and what it can do, without side effects, so that cases which are
//! impossible are known before the run. [`Target::prepare`] makes an [`Instance`]: a fresh, empty
//! database for one run of one case, which is loaded, asked for its statistics, verified, and
//! removed.
//!
//! - [`checked`]: one pass of a check, and who can check what.
//! - [`record`]: waits, phases and counters under neutral names.
//! - `onrush.rs`: Onrush in this process; `counted.rs`: what it counts. `null.rs`: the load generator alone.
//! - `instances.rs`: several of a target side by side, in processes of their own.
//! - `embedded.rs`: what rivals in this process share; `rows.rs` makes their rows; `sqlite.rs`,
//!   `lmdb.rs`, `redb.rs`, `fjall.rs` and `rocksdb.rs` say how each is opened and commits.
//! - `server/`: servers, our own among them, started by the lab or reached by an address.
//!
//! Invariants
//! 1. An instance's folder is made for it, and everything it leaves is below that folder: whoever
//!    runs the study removes it.
//! 2. A commit counts as acknowledged when the target's call has returned, and not before.
//! 3. An instance is verified after it was closed and opened again, where the target can be.

mod checked;
mod counted;
mod embedded;
mod fjall;
pub(crate) mod instances;
mod lmdb;
mod null;
mod onrush;
pub mod record;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod rows;
#[cfg(feature = "servers")]
pub(crate) mod server;
mod sqlite;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::error::LabError;
use onrush_measure::nearest::nearest;
use onrush_measure::progress::{Observer, Step};
use onrush_measure::result::Percentiles;
use onrush_measure::verify::Verification;
use serde::{Deserialize, Serialize};

use crate::study::{Settings, TargetShown};
pub use checked::Checked;
pub use instances::serve as serve_instance;
use record::{Mark, Snapshot};

/// The names that a study may give, whether or not they are built in or installed here.
pub const NAMES: &[&str] = &[
    "onrush",
    "null",
    "sqlite",
    "lmdb",
    "redb",
    "fjall",
    "rocksdb",
    "onrush-server",
    "postgresql",
    "mariadb",
    "sqlserver",
];

/// Something that rows can be inserted into.
pub trait Target: Send + Sync {
    /// Its name, one of [`NAMES`].
    fn name(&self) -> &'static str;

    /// Why it cannot be measured here at all, and how to get it: not installed, for example.
    fn missing(&self) -> Option<String> {
        None
    }

    /// Why it cannot run this case, whatever machine it is on.
    fn impossible(&self, settings: &Settings) -> Option<String>;

    /// Its version and how it would be configured for this case.
    ///
    /// # Errors
    /// It cannot be asked.
    fn shown(&self, settings: &Settings) -> Result<TargetShown, LabError>;

    /// Makes an empty database with the classic table below `folder`, which is empty.
    ///
    /// # Errors
    /// Whatever the target or the disk refuses.
    fn prepare(&self, settings: &Settings, folder: &Path) -> Result<Box<dyn Instance>, LabError>;
}

/// A load to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadOrder {
    /// Rows of all sessions together.
    pub rows: u64,
    /// What it is for: preloading, warming up or measuring.
    pub step: Step,
}

/// What a load did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadFigures {
    /// Rows acknowledged.
    pub rows: u64,
    /// Transactions acknowledged.
    pub commits: u64,
    /// From the first session's start to the last acknowledgement.
    pub elapsed: Duration,
    /// Processor time of target and load.
    pub cpu: Duration,
    /// Time of a commit until it was acknowledged.
    pub commit_latency_us: Percentiles,
}

/// Takes a target's statistics from another thread while it is loaded.
pub type Sampler = Box<dyn FnMut() -> Option<Snapshot> + Send>;

/// A target prepared for one run of one case.
pub trait Instance: Send {
    /// Inserts rows as the case's settings say; preloading may be faster, where the target can.
    ///
    /// # Errors
    /// The first error of any session; the load then was stopped.
    fn load(&mut self, order: LoadOrder, observer: &dyn Observer) -> Result<LoadFigures, LabError>;

    /// Waits until everything acknowledged is on disk, so that the next case does not pay for it.
    ///
    /// # Errors
    /// Whatever the target reports.
    fn settle(&mut self) -> Result<(), LabError> {
        Ok(())
    }

    /// Closes the database, if it is not closed yet, and checks once what is stored in it, as the
    /// case's settings say. The clock runs for the check alone.
    ///
    /// # Errors
    /// It has no check, it could not check, or it found damage.
    fn check(&mut self, _observer: &dyn Observer) -> Result<Checked, LabError> {
        Err(LabError::Setting("it has no check of what is stored".into()))
    }

    /// Its own statistics, counted since it was prepared. Empty for targets that have none.
    ///
    /// # Errors
    /// It cannot be asked.
    fn statistics(&mut self) -> Result<Snapshot, LabError> {
        Ok(Snapshot::default())
    }

    /// For counters over time; None for targets without counters.
    fn sampler(&mut self) -> Option<Sampler> {
        None
    }

    /// Moments worth a line in charts since the load of this step began.
    fn marks(&mut self) -> Vec<Mark> {
        Vec::new()
    }

    /// Closes the database, opens it again where that is possible, and compares all rows of all
    /// loads with what was acknowledged. None for a target that keeps nothing.
    ///
    /// # Errors
    /// It could not be compared. A wrong result is no error.
    fn verify(&mut self, observer: &dyn Observer) -> Result<Option<Verification>, LabError>;

    /// Closes it and ends its processes. The files are removed by whoever made the folder.
    ///
    /// # Errors
    /// Whatever the target reports.
    fn clean_up(self: Box<Self>) -> Result<(), LabError> {
        Ok(())
    }
}

/// Every target of this build.
pub fn all() -> Vec<Box<dyn Target>> {
    vec![
        Box::<onrush::Onrush>::default(),
        Box::new(null::Null),
        Box::new(sqlite::Sqlite),
        Box::new(lmdb::Lmdb),
        Box::new(redb::Redb),
        Box::new(fjall::Fjall),
        #[cfg(feature = "rocksdb")]
        Box::new(rocksdb::RocksDb),
        #[cfg(feature = "servers")]
        Box::new(server::OnrushServer),
        #[cfg(feature = "servers")]
        Box::new(server::Postgresql),
        #[cfg(feature = "servers")]
        Box::new(server::Mariadb),
        #[cfg(feature = "servers")]
        Box::new(server::SqlServer),
    ]
}

/// The target of this name.
///
/// # Errors
/// There is none of this name, or none in this build: a sentence with the cure.
pub fn find(name: &str) -> Result<Box<dyn Target>, String> {
    known(name)?;
    all().into_iter().find(|target| target.name() == name).ok_or_else(|| not_built(name))
}

/// The same, and Onrush serves its statistics for Prometheus on an address while a database is open.
/// Only one process can: of several instances, which are processes of their own, none does.
///
/// # Errors
/// As [`find`].
pub fn find_serving(name: &str, metrics: Option<SocketAddr>) -> Result<Box<dyn Target>, String> {
    match name {
        "onrush" => Ok(Box::new(onrush::Onrush { metrics })),
        _ => find(name),
    }
}

/// Whether a study may name it.
///
/// # Errors
/// A sentence with the nearest name there is.
pub(crate) fn known(name: &str) -> Result<(), String> {
    match NAMES.contains(&name) {
        true => Ok(()),
        false => {
            let hint = nearest(name, NAMES.iter().copied());
            Err(format!("there is no target {name:?}; {hint}"))
        }
    }
}

fn not_built(name: &str) -> String {
    match name {
        "rocksdb" => "rocksdb is not in this build, since it takes minutes to compile; build with \
                      --features rocksdb (needs a C++ compiler and libclang)"
            .to_owned(),
        "onrush-server" | "postgresql" | "mariadb" | "sqlserver" if !cfg!(feature = "servers") => {
            format!(
                "{name} is not in this build, since its driver takes minutes to compile; build with \
             --features servers"
            )
        }
        _ => format!("{name} is not in this version"),
    }
}
