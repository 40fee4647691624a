//! One Iceberg table as the target of one or many nodes: open it, claim it, append to it.
//!
//! Invariants
//! 1. A commit carries a node's files and its mark, or neither.
//! 2. A commit is applied only to metadata in which the node's mark is the one it starts from.
//! 3. Whether a commit was applied is read from the mark, never from the catalogue's answer: what
//!    it calls a failure may have happened, and what it calls a success is read back as well.
//! 4. No file is deleted, whatever happens.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use iceberg::spec::{DataFile, TableMetadata};
use iceberg::table::Table;
use iceberg::transaction::{ApplyTransactionAction, Transaction};
use iceberg::{Catalog, ErrorKind, NamespaceIdent, TableCreation, TableIdent};
use onrush_fault::{Fault, planted};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::{Pause, TargetState, Verdict, check_range, deadline_in};
use crate::batch::BatchBuilder;
use crate::claim::{Change, Claim, Claimant, Confirmed, ExpectedMark, Step, is_applied, next_step};
use crate::columns::{LakeColumn, check_table, iceberg_schema, partition_spec};
use crate::error::{FencedBecause, LakeError};
use crate::files::FileWriter;
use crate::guard::Guard;
use crate::line::{check_confirmed, mark_on_main};
use crate::mark::{Mark, NodeId};

/// One Iceberg table, into which rows are drained.
///
/// All calls run on the caller's runtime, which needs its timers. Each takes for how long it may
/// go on asking a catalogue that does not answer, and may be cancelled at any time: then the
/// outcome is unknown, as after [`LakeError::Away`].
pub struct IcebergTarget {
    catalogue: Arc<dyn Catalog>,
    identifier: TableIdent,
    /// The table that was opened. Another of the same name is another target.
    table_uuid: Uuid,
    columns: Vec<LakeColumn>,
    /// As the catalogue showed it last. Never decides anything: commits load anew.
    newest: Mutex<Table>,
}

/// Without the catalogue and the table, which hold secrets and would show them.
impl fmt::Debug for IcebergTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("IcebergTarget")
            .field("identifier", &self.identifier)
            .field("table_uuid", &self.table_uuid)
            .finish_non_exhaustive()
    }
}

impl IcebergTarget {
    /// Opens the table `namespace.table`, or makes it with these columns and key. The namespace
    /// may have several levels, parted by dots; over REST only where the catalogue parts levels by
    /// the unit separator, since `iceberg` sends no other.
    ///
    /// # Errors
    /// [`LakeError::TableMismatch`] if the columns do not fit, [`LakeError::Away`].
    pub async fn open_or_create(
        catalogue: Arc<dyn Catalog>,
        name: &str,
        columns: &[LakeColumn],
        key: &[&str],
        patience: Duration,
    ) -> Result<IcebergTarget, LakeError> {
        let schema = iceberg_schema(columns, key)?;
        let identifier = parse_name(name)?;
        let deadline = deadline_in(patience);
        let table = match load(&*catalogue, &identifier, deadline).await? {
            Some(table) => table,
            None => {
                let creation = TableCreation::builder()
                    .name(identifier.name().to_owned())
                    .partition_spec(partition_spec(&schema)?)
                    .schema(schema)
                    .build();
                // The answer may be lost, or another node may be quicker: load tells.
                let answer = create(&*catalogue, &identifier, creation, deadline).await;
                match (load(&*catalogue, &identifier, deadline).await?, answer) {
                    (Some(table), _) => table,
                    (None, Err(cause)) => return Err(LakeError::Away { cause }),
                    (None, Ok(())) => {
                        let cause = "it made the table and does not show it".to_owned();
                        return Err(LakeError::Away { cause });
                    }
                }
            }
        };
        check_table(table.metadata().current_schema(), columns)?;
        Ok(IcebergTarget {
            catalogue,
            table_uuid: table.metadata().uuid(),
            identifier,
            columns: columns.to_vec(),
            newest: Mutex::new(table),
        })
    }

    /// The table's name in the catalogue.
    #[must_use]
    pub fn name(&self) -> String {
        self.identifier.to_string()
    }

    /// Which table was opened.
    #[must_use]
    pub fn table_uuid(&self) -> Uuid {
        self.table_uuid
    }

    /// The table as the catalogue showed it last, for readers.
    #[must_use]
    pub fn table(&self) -> Table {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the table says now.
    ///
    /// # Errors
    /// [`LakeError::Away`]; [`LakeError::Internal`] if there is no table.
    pub async fn load(&self, patience: Duration) -> Result<TargetState, LakeError> {
        let deadline = deadline_in(patience);
        let Some(table) = load(&*self.catalogue, &self.identifier, deadline).await? else {
            return Err(LakeError::Internal(format!("there is no table {}", self.identifier)));
        };
        let metadata = table.metadata();
        let mut state = TargetState {
            table_uuid: metadata.uuid(),
            snapshot_id: metadata.current_snapshot_id(),
            marks: BTreeMap::new(),
            unreadable: Vec::new(),
        };
        for node in metadata.properties().keys().filter_map(|name| NodeId::from_property(name)) {
            match Mark::find(metadata.properties(), node) {
                Ok(Some(mark)) => {
                    state.marks.insert(node, mark);
                }
                Ok(None) => {}
                Err(_) => state.unreadable.push(node),
            }
        }
        state.unreadable.sort_unstable();
        self.remember(table);
        Ok(state)
    }

    /// A builder for rows of the node, in the order of the columns that the table was opened with.
    ///
    /// # Errors
    /// [`LakeError::TableMismatch`]: the table's columns were changed meanwhile.
    pub fn batches(&self, node: NodeId) -> Result<BatchBuilder, LakeError> {
        BatchBuilder::new(self.table().metadata().current_schema(), &self.columns, node)
    }

    /// A writer for the rows of the node between two LSNs.
    ///
    /// # Errors
    /// [`LakeError::Io`]: the table's partitions cannot be made.
    pub fn files(&self, node: NodeId, from_lsn: u64, to_lsn: u64) -> Result<FileWriter, LakeError> {
        FileWriter::new(&self.table(), node, from_lsn, to_lsn)
    }

    /// Which of the files are not in the store any more. To be asked before files are appended
    /// that were written long ago: somebody may have taken them for orphans.
    ///
    /// # Errors
    /// [`LakeError::Io`]: the store does not say.
    pub async fn missing_files(&self, files: &[DataFile]) -> Result<Vec<String>, LakeError> {
        let table = self.table();
        let mut missing = Vec::new();
        for file in files {
            let exists = table.file_io().exists(file.file_path()).await;
            if !exists.map_err(|cause| LakeError::io("look for data files", &cause))? {
                missing.push(file.file_path().to_owned());
            }
        }
        Ok(missing)
    }

    /// Makes this process the one that appends as the claimant's node: one commit sets a mark with
    /// the new nonce where the mark is, closes the nodes that were lost, and adds an empty snapshot.
    /// The marks stop a predecessor, and who lives on as a lost node, at their next load, and the
    /// snapshot stops what they have in flight, since that requires main to be where it was.
    ///
    /// After [`LakeError::Away`] the same call, with the same nonce, may be made again.
    ///
    /// # Errors
    /// [`LakeError::Fenced`] if the table is not as the node left it, [`LakeError::Away`].
    pub async fn claim(
        &self,
        by: &Claimant<'_>,
        expected: ExpectedMark,
        patience: Duration,
    ) -> Result<Claim, LakeError> {
        let (node, deadline) = (by.node, deadline_in(patience));
        let fence = |because| self.fence(node, because);
        let mut predecessor: Option<Option<u128>> = None;
        let mut pause = Pause::new();
        loop {
            let table = self.load_own(node, deadline).await?;
            let step = self.next_step(table.metadata(), by, &expected).map_err(fence)?;
            let (own, closed) = match step {
                Step::Applied(mark) => {
                    let snapshot_id = table.metadata().current_snapshot_id();
                    let snapshot_id = snapshot_id.ok_or_else(|| fence(FencedBecause::MainGone))?;
                    let (table_uuid, lsn) = (self.table_uuid, mark.lsn);
                    let confirmed = Confirmed { table_uuid, snapshot_id, lsn };
                    return Ok(Claim { mark, confirmed });
                }
                Step::LostNodeMoved => return Err(LakeError::lost_node_moved()),
                Step::Write { own, closed } => (own, closed),
            };
            let nonce = own.before.map(|found| found.nonce);
            // Whoever claimed while this claim was tried came later, and is the one to stay.
            match (predecessor, own.before) {
                (Some(before), Some(found)) if before != nonce => {
                    return Err(fence(FencedBecause::OtherNonce { found }));
                }
                (Some(_), _) => pause.wait(deadline, "it does not take the claim").await?,
                (None, _) => predecessor = Some(nonce),
            }
            let changes = [vec![own], closed].concat();
            let _ = self.commit(&table, &changes, &[], deadline).await;
        }
    }

    fn next_step(
        &self,
        metadata: &TableMetadata,
        by: &Claimant<'_>,
        expected: &ExpectedMark,
    ) -> Result<Step, FencedBecause> {
        let confirmed = expected.confirmed(by.node).map(|(_, confirmed)| confirmed);
        if let Some(confirmed) = confirmed.filter(|it| it.table_uuid != metadata.uuid()) {
            let (expected, found) = (confirmed.table_uuid, metadata.uuid());
            return Err(FencedBecause::OtherTable { expected, found });
        }
        let mut marks = BTreeMap::new();
        for node in by.lost.iter().map(|lost| lost.node).chain([by.node]) {
            if let Some(mark) = mark_on_main(metadata, node)? {
                marks.insert(node, mark);
            }
        }
        let step = next_step(&marks, by, expected)?;
        confirmed.map_or(Ok(()), |it| check_confirmed(metadata, it.snapshot_id))?;
        Ok(step)
    }

    /// Appends the files, which hold the node's rows between the two marks, and moves the mark: one
    /// commit, tried once, and then the verdict.
    ///
    /// # Errors
    /// [`LakeError::Fenced`]: this process must stop appending as `node`. [`LakeError::Away`]: ask
    /// [`IcebergTarget::verdict`] until it answers.
    pub async fn append(
        &self,
        node: NodeId,
        from: &Mark,
        to: &Mark,
        files: &[DataFile],
        patience: Duration,
    ) -> Result<Verdict, LakeError> {
        check_range(from, to)?;
        let deadline = deadline_in(patience);
        let table = self.table();
        let change = Change { node, before: Some(*from), after: *to };
        let answer = self.commit(&table, &[change], files, deadline).await;
        if planted(Fault::LakeFilesDeleted) && answer.is_err() {
            for file in files {
                let _ = table.file_io().delete(file.file_path()).await;
            }
        }
        if let (Err(cause), true) = (&answer, planted(Fault::LakeAnswerBelieved)) {
            return Ok(Verdict::NotApplied { cause: cause.clone() });
        }
        let verdict = self.judge(node, from, to, deadline).await?;
        Ok(match (verdict, answer) {
            (Verdict::NotApplied { .. }, Err(cause)) => Verdict::NotApplied { cause },
            (Verdict::NotApplied { .. }, Ok(())) => {
                let cause = "the catalogue said that it was applied, and it is not".to_owned();
                Verdict::NotApplied { cause }
            }
            (applied, _) => applied,
        })
    }

    /// Whether an append between these marks was applied. Asking changes nothing.
    ///
    /// # Errors
    /// As for [`IcebergTarget::append`].
    pub async fn verdict(
        &self,
        node: NodeId,
        from: &Mark,
        to: &Mark,
        patience: Duration,
    ) -> Result<Verdict, LakeError> {
        check_range(from, to)?;
        self.judge(node, from, to, deadline_in(patience)).await
    }

    async fn judge(
        &self,
        node: NodeId,
        from: &Mark,
        to: &Mark,
        deadline: Instant,
    ) -> Result<Verdict, LakeError> {
        let table = self.load_own(node, deadline).await?;
        let fence = |because| self.fence(node, because);
        let found = mark_on_main(table.metadata(), node).map_err(fence)?;
        if !is_applied(found, from, to).map_err(fence)? {
            return Ok(Verdict::NotApplied { cause: String::new() });
        }
        let Some(snapshot_id) = table.metadata().current_snapshot_id() else {
            return Err(fence(FencedBecause::MainGone));
        };
        let (table_uuid, lsn) = (self.table_uuid, to.lsn);
        Ok(Verdict::Applied(Confirmed { table_uuid, snapshot_id, lsn }))
    }

    async fn commit(
        &self,
        base: &Table,
        changes: &[Change],
        files: &[DataFile],
        deadline: Instant,
    ) -> Result<(), String> {
        if planted(Fault::LakeMarkApart) && !files.is_empty() {
            self.commit_at_once(base, changes, &[], deadline).await?;
            return self.commit_at_once(base, &[], files, deadline).await;
        }
        self.commit_at_once(base, changes, files, deadline).await
    }

    /// One attempt: snapshot and properties in one commit, through the guard. What comes back is for
    /// people, and decides nothing.
    async fn commit_at_once(
        &self,
        base: &Table,
        changes: &[Change],
        files: &[DataFile],
        deadline: Instant,
    ) -> Result<(), String> {
        let expected = changes.iter().map(|change| (change.node, change.before)).collect();
        let guard = Guard::new(Arc::clone(&self.catalogue), self.table_uuid, expected);
        let marks: HashMap<String, String> =
            changes.iter().map(|it| (it.node.property(), it.after.to_string())).collect();
        let transaction = Transaction::new(base);
        // Looking for the files in every manifest of the table would make each commit slower than
        // the one before; the mark already says whether they are in.
        let append = transaction
            .fast_append()
            .with_check_duplicate(false)
            .set_snapshot_properties(marks.clone())
            .add_data_files(files.iter().cloned());
        let properties = marks
            .into_iter()
            .fold(transaction.update_table_properties(), |properties, (property, value)| {
                properties.set(property, value)
            });
        let commit = async {
            let transaction = match planted(Fault::LakeClaimWithoutSnapshot) && files.is_empty() {
                true => transaction,
                false => append.apply(transaction)?,
            };
            properties.apply(transaction)?.commit(&guard).await
        };
        match timeout_at(deadline, commit).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(cause)) => Err(cause.to_string()),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }

    /// The table, which must be the one that was opened.
    async fn load_own(&self, node: NodeId, deadline: Instant) -> Result<Table, LakeError> {
        let Some(table) = load(&*self.catalogue, &self.identifier, deadline).await? else {
            return Err(self.fence(node, FencedBecause::TableGone));
        };
        let (expected, found) = (self.table_uuid, table.metadata().uuid());
        if expected != found {
            return Err(self.fence(node, FencedBecause::OtherTable { expected, found }));
        }
        self.remember(table.clone());
        Ok(table)
    }

    fn remember(&self, table: Table) {
        if table.metadata().uuid() == self.table_uuid {
            *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = table;
        }
    }

    fn fence(&self, node: NodeId, because: FencedBecause) -> LakeError {
        LakeError::Fenced { node, table: self.name(), because: Box::new(because) }
    }
}

fn parse_name(name: &str) -> Result<TableIdent, LakeError> {
    let parts: Vec<&str> = name.split('.').collect();
    let refuse = || LakeError::Internal(format!("{name:?} is not of the form namespace.table"));
    if parts.len() < 2 || parts.iter().any(|part| part.is_empty()) {
        return Err(refuse());
    }
    TableIdent::from_strs(parts).map_err(|_| refuse())
}

/// Asks for the table until the catalogue answers; `None` if it has none.
async fn load(
    catalogue: &dyn Catalog,
    identifier: &TableIdent,
    deadline: Instant,
) -> Result<Option<Table>, LakeError> {
    let mut pause = Pause::new();
    loop {
        let cause = match timeout_at(deadline, catalogue.load_table(identifier)).await {
            Ok(Ok(table)) => return Ok(Some(table)),
            Ok(Err(error)) => match error.kind() {
                ErrorKind::TableNotFound | ErrorKind::NamespaceNotFound => return Ok(None),
                _ => error.to_string(),
            },
            Err(_) => "no answer in time".to_owned(),
        };
        pause.wait(deadline, &cause).await?;
    }
}

/// Makes the table, and its namespace if that is missing.
async fn create(
    catalogue: &dyn Catalog,
    identifier: &TableIdent,
    creation: TableCreation,
    deadline: Instant,
) -> Result<(), String> {
    let work = async {
        ensure_namespace(catalogue, identifier.namespace()).await?;
        catalogue.create_table(identifier.namespace(), creation).await
    };
    match timeout_at(deadline, work).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(cause)) => Err(format!("table {identifier} cannot be made: {cause}")),
        Err(_) => Err(format!("table {identifier} cannot be made: no answer in time")),
    }
}

async fn ensure_namespace(
    catalogue: &dyn Catalog,
    namespace: &NamespaceIdent,
) -> iceberg::Result<()> {
    let mut levels = Vec::with_capacity(namespace.len());
    for level in namespace.iter() {
        levels.push(level);
        let level = NamespaceIdent::from_strs(&levels)?;
        if !catalogue.namespace_exists(&level).await? {
            match catalogue.create_namespace(&level, HashMap::new()).await {
                Err(cause) if cause.kind() != ErrorKind::NamespaceAlreadyExists => {
                    return Err(cause);
                }
                _ => {}
            }
        }
    }
    Ok(())
}
