//! One file: its footer, where its columns are, and one row group after the other.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;
use futures::future::{BoxFuture, FutureExt};
use futures::{StreamExt, TryStreamExt, stream};
use parquet_59::arrow::ProjectionMask;
use parquet_59::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet_59::arrow::async_reader::{
    AsyncFileReader, MetadataFetch, ParquetRecordBatchStream, ParquetRecordBatchStreamBuilder,
};
use parquet_59::errors::ParquetError;
use parquet_59::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use super::ColdFile;
use super::columns::FromFile;
use super::statistics::Pruning;
use crate::error::{QueryError, Result};

/// Read with the end of a file, in which its footer is.
const FOOTER_BYTES: usize = 64 << 10;
/// Parts of a file that are so near to each other are read as one.
const GAP_BYTES: u64 = 256 << 10;
/// Parts of a file that are read at a time.
const READS: usize = 4;

/// A file as the reader of Parquet reads it.
#[derive(Clone, Debug)]
struct Bytewise(Arc<dyn ColdFile>);

impl Bytewise {
    async fn get(&self, range: Range<u64>) -> parquet_59::errors::Result<Bytes> {
        self.0.read(range).await.map_err(|error| ParquetError::External(Box::new(error)))
    }
}

impl MetadataFetch for Bytewise {
    fn fetch(&mut self, range: Range<u64>) -> BoxFuture<'_, parquet_59::errors::Result<Bytes>> {
        self.get(range).boxed()
    }
}

impl AsyncFileReader for Bytewise {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, parquet_59::errors::Result<Bytes>> {
        self.get(range).boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, parquet_59::errors::Result<Vec<Bytes>>> {
        let file = self.clone();
        async move {
            let joined = joined(&ranges);
            let reads = joined.iter().cloned().map(|range| file.get(range));
            let parts: Vec<Bytes> = stream::iter(reads).buffered(READS).try_collect().await?;
            let part = |range: &Range<u64>| {
                let at = joined.partition_point(|part| part.end < range.end);
                let found = joined.get(at).zip(parts.get(at));
                let cut = found.and_then(|(whole, bytes)| {
                    let from = usize::try_from(range.start.checked_sub(whole.start)?).ok()?;
                    let to = usize::try_from(range.end.checked_sub(whole.start)?).ok()?;
                    (to <= bytes.len()).then(|| bytes.slice(from..to))
                });
                cut.ok_or_else(|| ParquetError::EOF(format!("no bytes at {range:?}")))
            };
            ranges.iter().map(part).collect()
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, parquet_59::errors::Result<Arc<ParquetMetaData>>> {
        async move {
            let bytes = self.0.bytes();
            let reader = ParquetMetaDataReader::new().with_prefetch_hint(Some(FOOTER_BYTES));
            Ok(Arc::new(reader.load_and_finish(&mut *self, bytes).await?))
        }
        .boxed()
    }
}

/// The ranges, those that are near to each other as one, ascending.
fn joined(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted = ranges.to_vec();
    sorted.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(GAP_BYTES) => {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
    }
    joined
}

/// What is wanted of files.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// The columns, and the ids of their fields.
    pub(super) schema: SchemaRef,
    pub(super) field_ids: Vec<i32>,
    /// Which row groups may be left out.
    pub(super) pruning: Option<Arc<Pruning>>,
    pub(super) batch_rows: usize,
}

/// A file that is open.
pub(super) struct OpenFile {
    file: Bytewise,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    columns: FromFile,
    batch_rows: usize,
    /// Row groups to read, next one last.
    groups: Vec<usize>,
    now: Option<ParquetRecordBatchStream<Bytewise>>,
}

impl OpenFile {
    pub(super) async fn open(file: Arc<dyn ColdFile>, wanted: &Wanted) -> Result<OpenFile> {
        let name = file.name().to_owned();
        let mut bytewise = Bytewise(file);
        // What others note of their own types there is theirs.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = ArrowReaderMetadata::load_async(&mut bytewise, options).await;
        let metadata = metadata.map_err(|error| of_parquet(&name, &error))?;
        let places = places(&metadata, &*bytewise.0, wanted)?;
        let mut roots: Vec<usize> = places.iter().copied().flatten().collect();
        roots.sort_unstable();
        roots.dedup();
        let in_batch = |root: usize| roots.binary_search(&root).ok();
        let in_batches = places.iter().map(|root| root.and_then(in_batch)).collect();
        let mask = ProjectionMask::roots(metadata.parquet_schema(), roots.iter().copied());
        let mut groups: Vec<usize> = match &wanted.pruning {
            Some(pruning) => pruning.kept(&metadata, &places_by_id(&metadata))?,
            None => (0..metadata.metadata().num_row_groups()).collect(),
        };
        groups.reverse();
        Ok(OpenFile {
            columns: FromFile::new(Arc::clone(&wanted.schema), in_batches, name),
            file: bytewise,
            metadata,
            mask,
            batch_rows: wanted.batch_rows,
            groups,
            now: None,
        })
    }

    /// The next rows; none at the end. What is held of the file is taken from `memory`.
    pub(super) async fn next(&mut self, memory: &MemoryReservation) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(now) = &mut self.now {
                match now.next().await {
                    Some(Ok(batch)) => return self.columns.batch(&batch).map(Some),
                    Some(Err(error)) => return Err(of_parquet(self.file.0.name(), &error)),
                    None => self.now = None,
                }
            }
            let Some(group) = self.groups.pop() else {
                memory.free();
                return Ok(None);
            };
            memory.try_resize(self.bytes_of(group))?;
            let (file, metadata) = (self.file.clone(), self.metadata.clone());
            let stream = ParquetRecordBatchStreamBuilder::new_with_metadata(file, metadata)
                .with_projection(self.mask.clone())
                .with_batch_size(self.batch_rows)
                .with_row_groups(vec![group])
                .build();
            let stream = stream.map_err(|error| of_parquet(self.file.0.name(), &error))?;
            self.now = Some(stream);
        }
    }

    /// What is held of a row group while it is read.
    fn bytes_of(&self, group: usize) -> usize {
        let columns = self.metadata.metadata().row_group(group).columns().iter().enumerate();
        let wanted = columns.filter(|(leaf, _)| self.mask.leaf_included(*leaf));
        let bytes = wanted.map(|(_, column)| column.compressed_size().max(0)).sum::<i64>();
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

/// Where the columns of a file are that have an id, by that.
fn places_by_id(metadata: &ArrowReaderMetadata) -> HashMap<i32, usize> {
    let fields = metadata.parquet_schema().root_schema().get_fields().iter().enumerate();
    let with_id = fields.filter(|(_, field)| field.is_primitive());
    let with_id = with_id.filter(|(_, field)| field.get_basic_info().has_id());
    with_id.map(|(at, field)| (field.get_basic_info().id(), at)).collect()
}

/// Where each wanted column is in the file; none where its values are NULL.
fn places(
    metadata: &ArrowReaderMetadata,
    file: &dyn ColdFile,
    wanted: &Wanted,
) -> Result<Vec<Option<usize>>> {
    let by_id = places_by_id(metadata);
    let is_lacking = |id: &&i32| file.required().contains(*id) && !by_id.contains_key(*id);
    if let Some(at) = wanted.field_ids.iter().position(|id| is_lacking(&id)) {
        let (column, name) = (wanted.schema.field(at).name(), file.name());
        let message =
            format!("file {name} has no field {} for column \"{column}\"", wanted.field_ids[at]);
        return Err(QueryError::refused("0A000", message).hint(
            "Columns are found by Iceberg's field ids. Have the file rewritten by the engine that wrote it.",
        ));
    }
    Ok(wanted.field_ids.iter().map(|id| by_id.get(id).copied()).collect())
}

fn of_parquet(file: &str, error: &ParquetError) -> QueryError {
    if let ParquetError::External(inner) = error
        && let Some(own) = inner.downcast_ref::<QueryError>()
    {
        return own.clone();
    }
    QueryError::refused("58030", format!("file {file} cannot be read as Parquet: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_near_are_read_as_one() {
        let far = GAP_BYTES + 100;
        let ranges = [10..20, 30..40, far + 41..far + 50, 0..5];
        assert_eq!(joined(&ranges), [0..40, far + 41..far + 50]);
        assert!(joined(&[]).is_empty());
    }
}
