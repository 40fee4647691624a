//! A catalogue in memory that fails on demand, at the one place that matters: the commit.
//!
//! Its swap is what the drain assumes of any catalogue: the requirements are checked against the
//! metadata that the new metadata replaces, in one step.

use std::collections::{HashMap, VecDeque};
use std::str::FromStr;

use async_trait::async_trait;
use iceberg::io::FileIO;
use iceberg::spec::{TableMetadata, TableMetadataBuilder};
use iceberg::table::Table;
use iceberg::{
    Catalog, Error, ErrorKind, MetadataLocation, Namespace, NamespaceIdent, Result, Runtime,
    TableCommit, TableCreation, TableIdent, TableRequirement, TableUpdate,
};
use tokio::sync::Mutex;

/// What becomes of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is applied, and the answer says so.
    None,
    /// It never arrives.
    LoseRequest,
    /// It is applied, and the answer never arrives.
    LoseAnswer,
    /// It arrives twice, and the second answer is the one that is seen.
    Twice,
    /// It is on its way until [`FaultyCatalogue::release`], and no answer arrives.
    Delay,
    /// All that is on its way arrives first.
    AfterDelayed,
    /// It is not applied, and the answer says that it was.
    Lie,
    /// The client waits for an answer for ever.
    Hang,
}

/// A commit as it is on its way.
#[derive(Debug, Clone)]
struct Sent {
    table: TableIdent,
    requirements: Vec<TableRequirement>,
    updates: Vec<TableUpdate>,
}

#[derive(Debug)]
pub struct FaultyCatalogue {
    file_io: FileIO,
    runtime: Runtime,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Where each table's metadata is.
    tables: HashMap<TableIdent, String>,
    /// Of the commits to come; then there are no faults.
    faults: VecDeque<Fault>,
    /// So many loads fail.
    loads_failing: usize,
    /// So many loads fail from the next commit on.
    loads_failing_next: usize,
    delayed: VecDeque<Sent>,
}

fn unknown() -> Error {
    // Said to be retryable, since that is what misleads whoever retries blindly.
    Error::new(ErrorKind::Unexpected, "the connection was reset").with_retryable(true)
}

impl FaultyCatalogue {
    pub fn new() -> FaultyCatalogue {
        FaultyCatalogue {
            file_io: FileIO::new_with_memory(),
            runtime: Runtime::current(),
            state: Mutex::default(),
        }
    }

    pub async fn fail_commits(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.lock().await.faults.extend(faults);
    }

    pub async fn fail_loads(&self, loads_failing: usize) {
        self.state.lock().await.loads_failing = loads_failing;
    }

    /// With the next commit the catalogue is away, for so many loads.
    pub async fn fail_loads_after_commit(&self, loads_failing: usize) {
        self.state.lock().await.loads_failing_next = loads_failing;
    }

    /// Forgets all faults. What is on its way stays so.
    pub async fn heal(&self) {
        let mut state = self.state.lock().await;
        state.faults.clear();
        (state.loads_failing, state.loads_failing_next) = (0, 0);
    }

    /// Lets the oldest commit that is on its way arrive: whether it was applied, if there is one.
    pub async fn release(&self) -> Option<bool> {
        let mut state = self.state.lock().await;
        let sent = state.delayed.pop_front()?;
        Some(self.apply(&mut state, sent).await.is_ok())
    }

    /// Changes a table by hand, as an operator would.
    pub async fn change(&self, table: &TableIdent, updates: Vec<TableUpdate>) {
        let mut state = self.state.lock().await;
        let sent = Sent { table: table.clone(), requirements: Vec::new(), updates };
        self.apply(&mut state, sent).await.unwrap();
    }

    /// Sets a table back to what it was at this metadata, as a restored catalogue would.
    pub async fn set_back(&self, table: &TableIdent, metadata_location: &str) {
        let mut state = self.state.lock().await;
        state.tables.insert(table.clone(), metadata_location.to_owned());
    }

    fn table(&self, ident: &TableIdent, metadata: TableMetadata, location: &str) -> Result<Table> {
        Table::builder()
            .identifier(ident.clone())
            .metadata(metadata)
            .metadata_location(location)
            .file_io(self.file_io.clone())
            .runtime(self.runtime.clone())
            .build()
    }

    async fn read(&self, state: &State, ident: &TableIdent) -> Result<Table> {
        let Some(location) = state.tables.get(ident) else {
            return Err(Error::new(ErrorKind::TableNotFound, "no such table"));
        };
        let metadata = TableMetadata::read_from(&self.file_io, location).await?;
        self.table(ident, metadata, location)
    }

    async fn apply(&self, state: &mut State, sent: Sent) -> Result<Table> {
        let base = self.read(state, &sent.table).await?;
        for requirement in &sent.requirements {
            requirement.check(Some(base.metadata()))?;
        }
        let before = base.metadata_location_result()?.to_owned();
        let mut builder = base.metadata().clone().into_builder(Some(before.clone()));
        for update in sent.updates {
            builder = update.apply(builder)?;
        }
        let metadata = builder.build()?.metadata;
        let location =
            MetadataLocation::from_str(&before)?.with_next_version().with_new_metadata(&metadata);
        metadata.write_to(&self.file_io, &location).await?;
        let location = location.to_string();
        state.tables.insert(sent.table.clone(), location.clone());
        self.table(&sent.table, metadata, &location)
    }
}

#[async_trait]
impl Catalog for FaultyCatalogue {
    async fn load_table(&self, table: &TableIdent) -> Result<Table> {
        let mut state = self.state.lock().await;
        if state.loads_failing > 0 {
            state.loads_failing -= 1;
            return Err(unknown());
        }
        self.read(&state, table).await
    }

    async fn update_table(&self, mut commit: TableCommit) -> Result<Table> {
        let mut state = self.state.lock().await;
        let sent = Sent {
            table: commit.identifier().clone(),
            requirements: commit.take_requirements(),
            updates: commit.take_updates(),
        };
        state.loads_failing += std::mem::take(&mut state.loads_failing_next);
        match state.faults.pop_front().unwrap_or(Fault::None) {
            Fault::None => self.apply(&mut state, sent).await,
            Fault::LoseRequest => Err(unknown()),
            Fault::LoseAnswer => {
                let _ = self.apply(&mut state, sent).await;
                Err(unknown())
            }
            Fault::Twice => {
                let _ = self.apply(&mut state, sent.clone()).await;
                self.apply(&mut state, sent).await
            }
            Fault::Delay => {
                state.delayed.push_back(sent);
                Err(unknown())
            }
            Fault::AfterDelayed => {
                while let Some(delayed) = state.delayed.pop_front() {
                    let _ = self.apply(&mut state, delayed).await;
                }
                self.apply(&mut state, sent).await
            }
            Fault::Lie => self.read(&state, &sent.table).await,
            Fault::Hang => {
                drop(state);
                std::future::pending().await
            }
        }
    }

    async fn create_table(&self, ns: &NamespaceIdent, mut made: TableCreation) -> Result<Table> {
        let mut state = self.state.lock().await;
        let ident = TableIdent::new(ns.clone(), made.name.clone());
        let location = format!("memory:///{ns}/{}-{}", made.name, state.tables.len());
        made.location = Some(location.clone());
        let metadata = TableMetadataBuilder::from_table_creation(made)?.build()?.metadata;
        let location = MetadataLocation::new_with_metadata(location, &metadata);
        metadata.write_to(&self.file_io, &location).await?;
        state.tables.insert(ident.clone(), location.to_string());
        self.table(&ident, metadata, &location.to_string())
    }

    async fn drop_table(&self, table: &TableIdent) -> Result<()> {
        self.state.lock().await.tables.remove(table);
        Ok(())
    }

    async fn namespace_exists(&self, _: &NamespaceIdent) -> Result<bool> {
        Ok(true)
    }

    async fn list_namespaces(&self, _: Option<&NamespaceIdent>) -> Result<Vec<NamespaceIdent>> {
        unimplemented!()
    }

    async fn create_namespace(
        &self,
        _: &NamespaceIdent,
        _: HashMap<String, String>,
    ) -> Result<Namespace> {
        unimplemented!()
    }

    async fn get_namespace(&self, _: &NamespaceIdent) -> Result<Namespace> {
        unimplemented!()
    }

    async fn update_namespace(&self, _: &NamespaceIdent, _: HashMap<String, String>) -> Result<()> {
        unimplemented!()
    }

    async fn drop_namespace(&self, _: &NamespaceIdent) -> Result<()> {
        unimplemented!()
    }

    async fn list_tables(&self, _: &NamespaceIdent) -> Result<Vec<TableIdent>> {
        unimplemented!()
    }

    async fn purge_table(&self, _: &TableIdent) -> Result<()> {
        unimplemented!()
    }

    async fn table_exists(&self, _: &TableIdent) -> Result<bool> {
        unimplemented!()
    }

    async fn rename_table(&self, _: &TableIdent, _: &TableIdent) -> Result<()> {
        unimplemented!()
    }

    async fn register_table(&self, _: &TableIdent, _: String) -> Result<Table> {
        unimplemented!()
    }
}
