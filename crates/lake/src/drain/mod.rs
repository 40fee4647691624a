//! Carries the rows of tables into their tables in the lake, a round after the other.
//!
//! One thread drains all attached tables of a database, one after the other. What a round takes is told by the table
//! itself: each row has the LSN that wrote it, and only leaves with newer ones are read. So no log is held, and a
//! database that was closed in between goes on where it was.
//!
//! - [`attachment`]: which tables are attached to which tables of the lake; kept in the database.
//! - `columns`: columns and values of a table as the lake has them.
//! - `notes`: how far each table is, as this node knows it; kept in the database, before and after each commit.
//! - `round`: one round of one table.
//! - `rows`: the rows that it brings.
//! - `thread`: whose turn it is.
//! - [`state`]: what is told of it.
//! - `reader`: what is attached, as queries read it.
//!
//! Invariants
//! 1. Rows of attached tables are inserted only ([`TableChange::SetAppendsOnly`](onrush::TableChange)): no row that was
//!    drained changes, and none that is to be drained goes.
//! 2. A round takes what a durable snapshot sees: nothing that a crash could take back is in the lake.
//! 3. A mark that this node has not noted before it asked for it is somebody else's, and stops the drain.
//! 4. A database that was restored drains as a node of its own, which closes the one that was lost ([`claim`]).
//!
//! [`claim`]: crate::claim

pub mod attachment;
mod columns;
mod notes;
mod reader;
mod round;
mod rows;
pub mod state;
mod thread;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use iceberg::Catalog;
use onrush::Database;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};

use crate::catalogue::CatalogueConfig;
use crate::claim::LostNode;
use crate::error::LakeError;
use crate::mark::NodeId;
use attachment::Attachment;
pub use reader::{LakeReader, lake_value};
use state::TableState;
use thread::{Command, Drains};

/// Which of many nodes a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its number, which is of one history for ever.
    pub node: NodeId,
    /// Drawn when the database was made or restored.
    pub history: u128,
    /// The nodes that it was restored from, one from the other, the oldest first.
    pub lost: Vec<LostNode>,
}

/// Who drains, and where to.
#[derive(Debug, Clone)]
pub struct DrainOptions {
    /// Which of many nodes the database is.
    pub identity: Identity,
    /// The catalogues that tables may be attached to, by their names.
    pub catalogues: BTreeMap<String, DrainCatalogue>,
    /// How long a catalogue that does not answer is asked before a table has to wait for its next turn.
    pub patience: Duration,
}

impl DrainOptions {
    /// A catalogue is asked for ten seconds.
    #[must_use]
    pub fn new(identity: Identity, catalogues: BTreeMap<String, DrainCatalogue>) -> DrainOptions {
        DrainOptions { identity, catalogues, patience: Duration::from_secs(10) }
    }
}

/// A catalogue that tables may be attached to.
#[derive(Debug, Clone)]
pub enum DrainCatalogue {
    /// One that is connected to when it is needed.
    Configured(CatalogueConfig),
    /// One of the caller's.
    Open(Arc<dyn Catalog>),
}

/// What the thread and others share.
struct Shared {
    database: Database,
    options: DrainOptions,
    /// By the numbers of tables.
    states: Mutex<BTreeMap<u32, TableState>>,
}

/// The thread that drains; dropping it stops it between two steps of a round, which the next start goes on from.
pub struct Drain {
    shared: Arc<Shared>,
    commands: mpsc::UnboundedSender<Command>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Drain {
    /// Starts to drain the attached tables of a database.
    ///
    /// # Errors
    /// [`LakeError::Internal`]: the attached tables cannot be read, or the system gives no thread.
    pub fn start(database: &Database, options: DrainOptions) -> Result<Drain, LakeError> {
        let ((commands, inbox), (stop, stopping)) =
            (mpsc::unbounded_channel(), watch::channel(false));
        let (database, states) = (database.clone(), Mutex::default());
        let shared = Arc::new(Shared { database, options, states });
        let mut drains = Drains::new(&shared, inbox, stopping)?;
        drains.refresh()?;
        let thread = std::thread::Builder::new().name("onrush-lake".into());
        let thread = thread.spawn(move || drains.run());
        let thread = thread.map_err(|cause| LakeError::Internal(format!("no thread: {cause}")))?;
        Ok(Drain { shared, commands, stop, thread: Some(thread) })
    }

    /// Which node drains.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.shared.options.identity.node
    }

    /// Whether a table could be attached so: opens its Iceberg table, which is made if there is none. In the database
    /// nothing is kept.
    ///
    /// # Errors
    /// What keeps it from being attached.
    pub async fn check(&self, attachment: &Attachment) -> Result<(), LakeError> {
        self.ask(|told| Command::Check(attachment.clone(), told)).await
    }

    /// Which tables are attached was changed in the database.
    pub fn refresh(&self) {
        let _ = self.commands.send(Command::Refresh);
    }

    /// Drains everything that is durable now; returns when it is in the lake. A table that has stopped is tried again.
    ///
    /// # Errors
    /// Why it is not.
    pub async fn flush(&self, table: u32) -> Result<(), LakeError> {
        self.ask(|told| Command::Flush(table, told)).await
    }

    async fn ask(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<(), LakeError>>) -> Command,
    ) -> Result<(), LakeError> {
        let (told, outcome) = oneshot::channel();
        let gone = || LakeError::Internal("the drain has stopped".into());
        self.commands.send(command(told)).map_err(|_| gone())?;
        outcome.await.map_err(|_| gone())?
    }

    /// What is told of each attached table.
    #[must_use]
    pub fn states(&self) -> Vec<TableState> {
        self.shared.states.lock().values().cloned().collect()
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}
