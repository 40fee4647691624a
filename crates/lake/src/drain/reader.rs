//! What is attached, as queries read it: the lake's table at its newest snapshot, of which it is known that the node's
//! own rows in it are those of this database.
//!
//! Queries have a runtime of their own here: neither do they wait for rounds, nor rounds for them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use iceberg::{Catalog, ErrorKind, TableIdent};
use onrush::{DataType, Database, Value};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::attachment::Attachment;
use super::notes::{NoteTable, Notes};
use super::{DrainCatalogue, DrainOptions, columns};
use crate::batch::LakeValue;
use crate::cut::{Cut, on};
use crate::error::{FencedBecause, LakeError};
use crate::line::check_confirmed;
use crate::mark::NodeId;

/// A value of a column of this type as the lake has it, for conditions on files; none for one that is not there, or is
/// written in several ways.
#[must_use]
pub fn lake_value<'v>(data_type: DataType, value: &'v Value<'_>) -> Option<LakeValue<'v>> {
    match data_type {
        DataType::Json | DataType::Jsonb => None,
        _ if value.is_null() => None,
        _ => columns::value_of(data_type, value).ok(),
    }
}

/// Threads that wait for catalogues and stores.
const THREADS: usize = 2;
/// How often notes and table are looked at together until no round came between.
const TRIES: u32 = 20;

/// See the module.
pub struct LakeReader {
    shared: Arc<Shared>,
    /// Taken when the reader goes.
    runtime: Option<Runtime>,
}

struct Shared {
    database: Database,
    options: DrainOptions,
    notes: NoteTable,
    /// Those that were connected to.
    catalogues: tokio::sync::Mutex<BTreeMap<String, Arc<dyn Catalog>>>,
    /// The newest cut of each table: of one that has not moved the manifests are read once.
    newest: Mutex<BTreeMap<u32, Arc<Cut>>>,
}

/// Without catalogues, which hold secrets and would show them.
impl fmt::Debug for LakeReader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "LakeReader of node {}", self.node())
    }
}

impl LakeReader {
    /// For the attached tables of a database.
    ///
    /// # Errors
    /// [`LakeError::Internal`]: the system gives no threads.
    pub fn new(database: &Database, options: DrainOptions) -> Result<LakeReader, LakeError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("onrush-lake-read")
            .enable_all()
            .build()
            .map_err(|cause| LakeError::Internal(format!("no threads: {cause}")))?;
        let shared = Shared {
            database: database.clone(),
            options,
            notes: NoteTable::open(database)?,
            catalogues: tokio::sync::Mutex::default(),
            newest: Mutex::default(),
        };
        Ok(LakeReader { shared: Arc::new(shared), runtime: Some(runtime) })
    }

    /// Which node reads.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.shared.options.identity.node
    }

    /// The attached table's Iceberg table as it is now. May be given up at any time.
    ///
    /// # Errors
    /// [`LakeError::Away`]; [`LakeError::Fenced`]: the node's rows in it are not those of this database, or it is
    /// another table; [`LakeError::TableMismatch`].
    pub async fn cut(&self, attachment: &Attachment) -> Result<Arc<Cut>, LakeError> {
        let Some(runtime) = &self.runtime else {
            return Err(LakeError::Internal("the lake cannot be read any more".into()));
        };
        let (shared, attachment) = (Arc::clone(&self.shared), attachment.clone());
        let handle = runtime.handle().clone();
        on(runtime.handle(), async move { shared.cut(&attachment, &handle).await }).await?
    }
}

impl Drop for LakeReader {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    async fn cut(
        &self,
        attachment: &Attachment,
        runtime: &tokio::runtime::Handle,
    ) -> Result<Arc<Cut>, LakeError> {
        let mut doubt = None;
        for _ in 0..TRIES {
            let before = self.notes.read(attachment)?;
            let cut = self.load(attachment, runtime).await?;
            let after = self.notes.read(attachment)?;
            match self.check(&cut, &before, &after) {
                Ok(()) => {
                    self.newest.lock().insert(attachment.table, Arc::clone(&cut));
                    return Ok(cut);
                }
                // More rounds than one may have come between.
                Err(because) if before != after => doubt = Some(because),
                Err(because) => return Err(self.fence(attachment, because)),
            }
        }
        let because = doubt.unwrap_or(FencedBecause::MarkMissing);
        Err(self.fence(attachment, because))
    }

    /// Whether the node's own rows in the table are those that this database has brought.
    fn check(&self, cut: &Cut, before: &Notes, after: &Notes) -> Result<(), FencedBecause> {
        let own = cut.own_mark();
        if let Some(mark) = own
            && mark.history != self.database.id()
        {
            let (expected, found) = (self.database.id(), mark.history);
            return Err(FencedBecause::OtherHistory { expected, found });
        }
        before.check(own).or_else(|because| after.check(own).map_err(|_| because))?;
        if let Some((confirmed, _)) = before.confirmed {
            let (expected, found) = (confirmed.table_uuid, cut.table_uuid());
            if expected != found {
                return Err(FencedBecause::OtherTable { expected, found });
            }
            check_confirmed(cut.table().metadata(), confirmed.snapshot_id)?;
        }
        Ok(())
    }

    async fn load(
        &self,
        attachment: &Attachment,
        runtime: &tokio::runtime::Handle,
    ) -> Result<Arc<Cut>, LakeError> {
        let number = attachment.table;
        let table = self.database.table_numbered(number).ok_or(LakeError::NoTable { number })?;
        let (columns, _) = columns::of_table(table.definition())?;
        let away = |cause: String| LakeError::Away { cause };
        let patience = self.options.patience;
        let work = async {
            let catalogue = self.catalogue(&attachment.catalogue).await?;
            let name = TableIdent::from_strs(attachment.name.split('.'));
            let name = name.map_err(|cause| LakeError::Internal(cause.to_string()))?;
            catalogue.load_table(&name).await.map_err(|error| match error.kind() {
                ErrorKind::TableNotFound | ErrorKind::NamespaceNotFound => {
                    self.fence(attachment, FencedBecause::TableGone)
                }
                _ => away(error.to_string()),
            })
        };
        let loaded = timeout(patience, work).await;
        let loaded = loaded.map_err(|_| away("no answer in time".to_owned()))??;
        let known = self.newest.lock().get(&number).cloned();
        if let Some(known) = known
            && known.table().metadata_location().is_some()
            && known.table().metadata_location() == loaded.metadata_location()
            && known.table().identifier() == loaded.identifier()
            && known.is_of(&columns)
        {
            return Ok(known);
        }
        Ok(Arc::new(Cut::new(loaded, self.options.identity.node, &columns, runtime.clone())?))
    }

    async fn catalogue(&self, named: &str) -> Result<Arc<dyn Catalog>, LakeError> {
        let mut catalogues = self.catalogues.lock().await;
        if let Some(known) = catalogues.get(named) {
            return Ok(Arc::clone(known));
        }
        let catalogue = match self.options.catalogues.get(named) {
            Some(DrainCatalogue::Configured(config)) => config.connect(named).await?,
            Some(DrainCatalogue::Open(catalogue)) => Arc::clone(catalogue),
            None => {
                let (name, cause) = (named.to_owned(), "none is configured so".into());
                return Err(LakeError::NoSuchCatalogue { name, cause });
            }
        };
        catalogues.insert(named.to_owned(), Arc::clone(&catalogue));
        Ok(catalogue)
    }

    fn fence(&self, attachment: &Attachment, because: FencedBecause) -> LakeError {
        let (node, table) = (self.options.identity.node, attachment.name.clone());
        LakeError::Fenced { node, table, because: Box::new(because) }
    }
}
