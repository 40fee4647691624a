//! Batches become Parquet files of the table, under fresh names, with what Iceberg wants to know
//! of each.
//!
//! A file is `<data>/onrush/<node>/<from>-<to>-<uuid>.parquet`, where `<data>` is the table's
//! folder for data. No name is used twice, so nothing is ever overwritten, and whoever finds a file
//! without a snapshot sees which node's which rows it was to bring. The files are part of the table
//! once they are committed; files that never are stay for the table's own removal of orphans.

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{Array, RecordBatch};
use iceberg::arrow::RecordBatchPartitionSplitter;
use iceberg::spec::{DataFile, PartitionKey, PartitionSpecRef, SchemaRef, Struct};
use iceberg::table::Table;
use iceberg::writer::base_writer::data_file_writer::DataFileWriterBuilder;
use iceberg::writer::file_writer::ParquetWriterBuilder;
use iceberg::writer::file_writer::location_generator::{
    DefaultLocationGenerator, FileNameGenerator, LocationGenerator,
};
use iceberg::writer::file_writer::rolling_writer::RollingFileWriterBuilder;
use iceberg::writer::partitioning::PartitioningWriter;
use iceberg::writer::partitioning::fanout_writer::FanoutWriter;
use parquet_58::basic::Compression;
use parquet_58::file::properties::WriterProperties;
use uuid::Uuid;

use crate::columns::AT_COLUMN;
use crate::error::LakeError;
use crate::mark::NodeId;

/// A file that has grown beyond is closed and the next begun.
const FILE_BYTES: usize = 128 << 20;
const WRITING: &str = "write data files of the lake table";

/// Writes the rows of one round.
pub struct FileWriter {
    spec: PartitionSpecRef,
    schema: SchemaRef,
    /// `None` for a table without partitions.
    splitter: Option<RecordBatchPartitionSplitter>,
    /// The earliest and the latest row of a batch have the partitions of all between.
    is_by_time: bool,
    writer: FanoutWriter<DataFileWriterBuilder<ParquetWriterBuilder, Folder, Names>>,
}

impl FileWriter {
    /// For the rows of a node in a range of its LSNs.
    pub(crate) fn new(
        table: &Table,
        node: NodeId,
        from_lsn: u64,
        to_lsn: u64,
    ) -> Result<FileWriter, LakeError> {
        let metadata = table.metadata();
        let schema = metadata.current_schema().clone();
        let spec = metadata.default_partition_spec().clone();
        let internal = |cause: iceberg::Error| LakeError::io(WRITING, &cause);
        let splitter = if spec.is_unpartitioned() {
            None
        } else {
            let (schema, spec) = (schema.clone(), spec.clone());
            let splitter = RecordBatchPartitionSplitter::try_new_with_computed_values(schema, spec);
            Some(splitter.map_err(internal)?)
        };
        let at = schema.field_by_name(AT_COLUMN).map(|field| field.id);
        let is_by_time = spec
            .fields()
            .iter()
            .all(|field| Some(field.source_id) == at && field.transform.preserves_order());
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("onrush {}", env!("CARGO_PKG_VERSION")))
            .build();
        let data = DefaultLocationGenerator::new(metadata).map_err(internal)?;
        let rolling = RollingFileWriterBuilder::new(
            ParquetWriterBuilder::new(properties, schema.clone()),
            FILE_BYTES,
            table.file_io().clone(),
            Folder { data, node },
            Names { from_lsn, to_lsn },
        );
        let writer = FanoutWriter::new(DataFileWriterBuilder::new(rolling));
        Ok(FileWriter { spec, schema, splitter, is_by_time, writer })
    }

    /// Writes a batch that a [`BatchBuilder`](crate::BatchBuilder) made for this table.
    ///
    /// # Errors
    /// [`LakeError::Io`]: the round needs a new writer, and what this one wrote stays behind.
    pub async fn write(&mut self, batch: RecordBatch) -> Result<(), LakeError> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        for (key, part) in self.split(batch)? {
            let written = self.writer.write(key, part).await;
            written.map_err(|cause| LakeError::io(WRITING, &cause))?;
        }
        Ok(())
    }

    /// Completes the files. They can be committed, as often as it takes.
    ///
    /// # Errors
    /// [`LakeError::Io`], as for [`FileWriter::write`].
    pub async fn close(self) -> Result<Vec<DataFile>, LakeError> {
        self.writer.close().await.map_err(|cause| LakeError::io(WRITING, &cause))
    }

    /// The batch by partitions. A round seldom spans two, and finding the partition of every row
    /// takes longer than writing it, so the earliest and the latest row are asked first.
    fn split(&self, batch: RecordBatch) -> Result<Vec<(PartitionKey, RecordBatch)>, LakeError> {
        let Some(splitter) = &self.splitter else {
            let spec = self.spec.as_ref().clone();
            let key = PartitionKey::new(spec, self.schema.clone(), Struct::empty());
            return Ok(vec![(key, batch)]);
        };
        let split = |batch: &RecordBatch| {
            splitter.split(batch).map_err(|cause| LakeError::io(WRITING, &cause))
        };
        if self.is_by_time
            && let Some((earliest, latest)) = time_bounds(&batch)
        {
            let mut first = split(&batch.slice(earliest, 1))?;
            let last = split(&batch.slice(latest, 1))?;
            if let (Some((key, _)), Some((other, _))) = (first.pop(), last.first())
                && key.data() == other.data()
            {
                return Ok(vec![(key, batch)]);
            }
        }
        split(&batch)
    }
}

/// Where in a batch its earliest and its latest row are.
fn time_bounds(batch: &RecordBatch) -> Option<(usize, usize)> {
    let at = batch.column_by_name(AT_COLUMN)?.as_primitive_opt::<TimestampMicrosecondType>()?;
    if at.null_count() > 0 {
        return None;
    }
    let at = at.values();
    let earliest = (0..at.len()).min_by_key(|row| at[*row])?;
    let latest = (0..at.len()).max_by_key(|row| at[*row])?;
    Some((earliest, latest))
}

/// One folder a node, whatever the partition: the manifests know it, names need not.
#[derive(Debug, Clone)]
struct Folder {
    data: DefaultLocationGenerator,
    node: NodeId,
}

impl LocationGenerator for Folder {
    fn generate_location(&self, _: Option<&PartitionKey>, file_name: &str) -> String {
        self.data.generate_location(None, &format!("onrush/{}/{file_name}", self.node))
    }
}

/// `<from>-<to>-<uuid>.parquet`
#[derive(Debug, Clone)]
struct Names {
    from_lsn: u64,
    to_lsn: u64,
}

impl FileNameGenerator for Names {
    fn generate_file_name(&self) -> String {
        format!("{}-{}-{}.parquet", self.from_lsn, self.to_lsn, Uuid::new_v4())
    }
}
