//! A lake table at one snapshot, for those who read it: the marks of all nodes, and the files.
//!
//! One load of the table gives both, so they belong together: what a node's mark says is in the
//! files of this snapshot, no more and no less, however the table goes on. Nothing here is Arrow's or
//! Iceberg's: whoever reads the files has readers of its own.
//!
//! Invariants
//! 1. Files are found by the snapshot, and columns in them by Iceberg's field ids.
//! 2. What would have to be taken into account and is not known here is refused by name: files with
//!    deletes, other formats than Parquet, encryption.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, Range};
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use iceberg::expr::{Predicate, Reference};
use iceberg::io::FileIO;
use iceberg::scan::FileScanTask;
use iceberg::spec::{DataFileFormat, Datum, PrimitiveType, Schema, SchemaRef, Transform};
use iceberg::table::Table;
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::batch::LakeValue;
use crate::columns::{LakeColumn, added_columns, check_table};
use crate::error::{FencedBecause, LakeError};
use crate::line::mark_on_main;
use crate::mark::{Mark, NodeId};

const PLANNING: &str = "find the files of the lake table";
const READING: &str = "read a file of the lake table";

/// See the module.
pub struct Cut {
    name: String,
    node: NodeId,
    own: Option<Mark>,
    marks: BTreeMap<NodeId, Mark>,
    columns: Vec<LakeColumn>,
    /// Of the node's columns and the three added, in their order.
    field_ids: Vec<i32>,
    schema: SchemaRef,
    table: Table,
    /// Where files are read.
    runtime: Handle,
}

/// What all rows that are wanted have in common. Files in which no row has it are left out.
#[derive(Debug, Clone, PartialEq)]
pub struct CutCondition<'v> {
    /// The column, by its place among the node's columns and the three added.
    pub column: usize,
    /// What it says of the values.
    pub values: CutValues<'v>,
}

/// What a [`CutCondition`] says of the values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum CutValues<'v> {
    /// They are some of these.
    OneOf(Vec<LakeValue<'v>>),
    /// They are between these.
    Between(Bound<LakeValue<'v>>, Bound<LakeValue<'v>>),
}

/// A Parquet file of the table.
pub struct CutFile {
    path: String,
    bytes: u64,
    required: Vec<i32>,
    files: FileIO,
    runtime: Handle,
}

/// Without the table, which holds secrets and would show them.
impl fmt::Debug for Cut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, marks) = (&self.name, &self.marks);
        write!(formatter, "Cut of {name} at {:?}, {marks:?}", self.snapshot_id())
    }
}

impl fmt::Debug for CutFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.path)
    }
}

impl Cut {
    /// Of a table as it was loaded, for a node with these columns. Files are read on `runtime`.
    pub(crate) fn new(
        table: Table,
        node: NodeId,
        columns: &[LakeColumn],
        runtime: Handle,
    ) -> Result<Cut, LakeError> {
        let metadata = table.metadata();
        let name = table.identifier().to_string();
        let fence = |because| {
            let because = Box::new(because);
            LakeError::Fenced { node, table: name.clone(), because }
        };
        let own = mark_on_main(metadata, node).map_err(fence)?;
        let mut marks = BTreeMap::new();
        for other in metadata.properties().keys().filter_map(|name| NodeId::from_property(name)) {
            let found = Mark::find(metadata.properties(), other);
            if let Some(mark) =
                found.map_err(|cause| fence(FencedBecause::MarkUnreadable(cause)))?
            {
                marks.insert(other, mark);
            }
        }
        let schema = Arc::clone(metadata.current_schema());
        check_table(&schema, columns)?;
        let id = |column: &LakeColumn| {
            let field = schema.field_by_name(&column.name).map(|field| field.id);
            field.ok_or_else(|| LakeError::Internal(format!("{} has no field", column.name)))
        };
        let field_ids = columns.iter().chain(&added_columns()).map(id).collect::<Result<_, _>>()?;
        let columns = columns.to_vec();
        Ok(Cut { name, node, own, marks, columns, field_ids, schema, table, runtime })
    }

    /// The table's name in the catalogue.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which table it is.
    #[must_use]
    pub fn table_uuid(&self) -> Uuid {
        self.table.metadata().uuid()
    }

    /// Main's snapshot; `None` in a table that was never claimed.
    #[must_use]
    pub fn snapshot_id(&self) -> Option<i64> {
        self.table.metadata().current_snapshot_id()
    }

    /// The node whose columns these are.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// How far the node's own rows are in it; `None` before its first claim.
    #[must_use]
    pub fn own_mark(&self) -> Option<Mark> {
        self.own
    }

    /// How far each node's rows are in it.
    #[must_use]
    pub fn marks(&self) -> &BTreeMap<NodeId, Mark> {
        &self.marks
    }

    /// Iceberg's ids of the node's columns and of the three added, in their order.
    #[must_use]
    pub fn field_ids(&self) -> &[i32] {
        &self.field_ids
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    pub(crate) fn is_of(&self, columns: &[LakeColumn]) -> bool {
        self.columns == columns
    }

    /// The files that may have rows for which all conditions hold.
    ///
    /// # Errors
    /// [`LakeError::Io`]; [`LakeError::Unreadable`]: a file with deletes, or not of Parquet.
    pub async fn files(&self, conditions: &[CutCondition<'_>]) -> Result<Vec<CutFile>, LakeError> {
        let Some(snapshot_id) = self.snapshot_id() else { return Ok(Vec::new()) };
        let metadata = self.table.metadata();
        let snapshot = metadata.snapshot_by_id(snapshot_id);
        let schema = snapshot.map(|snapshot| snapshot.schema(metadata)).transpose();
        // Columns may have had other names when the snapshot was made.
        let schema = schema.map_err(|cause| LakeError::io(PLANNING, &cause))?;
        let predicate = conditions
            .iter()
            .filter_map(|condition| self.predicate(schema.as_deref()?, condition))
            .fold(Predicate::AlwaysTrue, Predicate::and);
        let table = self.table.clone();
        let plan = async move {
            let scan = table.scan().snapshot_id(snapshot_id).select_empty();
            scan.with_filter(predicate)
                .build()?
                .plan_files()
                .await?
                .try_collect::<Vec<FileScanTask>>()
                .await
        };
        let tasks = on(&self.runtime, plan).await?;
        let tasks = tasks.map_err(|cause| LakeError::io(PLANNING, &cause))?;
        tasks.into_iter().map(|task| self.file(task)).collect()
    }

    fn file(&self, task: FileScanTask) -> Result<CutFile, LakeError> {
        let (path, bytes) = (task.data_file_path, task.file_size_in_bytes);
        let refuse = |cause: String| {
            let table = self.name.clone();
            Err(LakeError::Unreadable { table, file: path.clone(), cause })
        };
        if let Some(delete) = task.deletes.first() {
            return refuse(format!(
                "somebody has deleted rows of it, by {}: rewrite the data files with the engine \
                 that did",
                delete.file_path
            ));
        }
        if task.data_file_format != DataFileFormat::Parquet {
            return refuse(format!(
                "it is of {}, not of Parquet: rewrite it with the engine that wrote it",
                task.data_file_format
            ));
        }
        if task.start != 0 || task.length != bytes {
            return refuse("it was planned in parts".to_owned());
        }
        // Where such a field is missing in the file, its values are not NULL but elsewhere.
        let mut required: Vec<i32> = self
            .schema
            .as_struct()
            .fields()
            .iter()
            .filter(|field| field.required || field.initial_default.is_some())
            .map(|field| field.id)
            .collect();
        if let Some(spec) = &task.partition_spec {
            let identities = spec.fields().iter();
            let identities = identities.filter(|field| field.transform == Transform::Identity);
            required.extend(identities.map(|field| field.source_id));
        }
        let files = self.table.file_io().clone();
        Ok(CutFile { path, bytes, required, files, runtime: self.runtime.clone() })
    }

    /// The condition in Iceberg's words; `None` where its order is not that of the node's values.
    fn predicate(&self, schema: &Schema, condition: &CutCondition<'_>) -> Option<Predicate> {
        let field = schema.field_by_id(*self.field_ids.get(condition.column)?)?;
        let of = field.field_type.as_primitive_type()?;
        let column = || Reference::new(&field.name);
        match &condition.values {
            CutValues::OneOf(values) => {
                let values: Option<Vec<Datum>> =
                    values.iter().map(|value| datum(of, value)).collect();
                Some(column().is_in(values?))
            }
            CutValues::Between(from, to) => {
                let from = match from {
                    Bound::Unbounded => Predicate::AlwaysTrue,
                    Bound::Included(value) => column().greater_than_or_equal_to(datum(of, value)?),
                    Bound::Excluded(value) => column().greater_than(datum(of, value)?),
                };
                let to = match to {
                    Bound::Unbounded => Predicate::AlwaysTrue,
                    Bound::Included(value) => column().less_than_or_equal_to(datum(of, value)?),
                    Bound::Excluded(value) => column().less_than(datum(of, value)?),
                };
                Some(from.and(to))
            }
        }
    }
}

/// The value as Iceberg compares it; `None` where writers of files do not agree on an order: floats, of
/// which some have NaN and two zeros, and uuids.
fn datum(of: &PrimitiveType, value: &LakeValue<'_>) -> Option<Datum> {
    let datum = match (of, value) {
        (PrimitiveType::Boolean, LakeValue::Boolean(value)) => Datum::bool(*value),
        (PrimitiveType::Int, LakeValue::Int32(value)) => Datum::int(*value),
        (PrimitiveType::Long, LakeValue::Int64(value)) => Datum::long(*value),
        (PrimitiveType::String, LakeValue::Text(value)) => Datum::string(value),
        (PrimitiveType::Binary, LakeValue::Bytes(value)) => Datum::binary(value.iter().copied()),
        (PrimitiveType::Date, LakeValue::Date(days)) => Datum::date(*days),
        (PrimitiveType::Time, LakeValue::TimeMicros(micros)) => Datum::time_micros(*micros).ok()?,
        (PrimitiveType::Timestamp, LakeValue::TimestampMicros(micros)) => {
            Datum::timestamp_micros(*micros)
        }
        (PrimitiveType::Timestamptz, LakeValue::TimestamptzMicros(micros)) => {
            Datum::timestamptz_micros(*micros)
        }
        _ => return None,
    };
    Some(datum)
}

impl CutFile {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// How large it is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The ids of fields that it must have: of one that is missing the values would be wrong.
    #[must_use]
    pub fn required(&self) -> &[i32] {
        &self.required
    }

    /// A part of its bytes.
    ///
    /// # Errors
    /// [`LakeError::Io`]
    pub async fn read(&self, range: Range<u64>) -> Result<Bytes, LakeError> {
        // A file is open no longer than that: a table may have more of them than there may be open.
        let (files, path) = (self.files.clone(), self.path.clone());
        let read = async move { files.new_input(&path)?.reader().await?.read(range).await };
        let bytes = on(&self.runtime, read).await?;
        bytes.map_err(|cause| LakeError::Io {
            what: format!("{READING}, {}", self.path),
            cause: format!("{cause}. If somebody has removed it with its snapshot, ask again"),
        })
    }
}

/// Runs `work` on another runtime, as long as somebody waits for it.
pub(crate) async fn on<T: Send + 'static>(
    runtime: &Handle,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, LakeError> {
    /// Ends what nobody waits for any more.
    struct Waited<T>(tokio::task::JoinHandle<T>);
    impl<T> Drop for Waited<T> {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    let mut waited = Waited(runtime.spawn(work));
    let gone = |cause| LakeError::Internal(format!("the lake cannot be read any more: {cause}"));
    (&mut waited.0).await.map_err(gone)
}
