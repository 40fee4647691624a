//! Every kind of column, NULL and the ends of each range, through the files of a local warehouse
//! and back.
//!
//! With `ONRUSH_LAKE_KEEP=<folder>` the table stays there, for other readers to look at.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{Array, RecordBatch};
use futures::TryStreamExt;
use iceberg::spec::{DataFile, PartitionSpec, Schema, Transform};
use iceberg::{Catalog, NamespaceIdent, TableCreation};
use onrush_lake::{
    CatalogueConfig, CatalogueKind, Claimant, ExpectedMark, FileWriter, IcebergTarget, LakeColumn,
    LakeError, LakeKind, LakeValue, NodeId, Verdict,
};

const PATIENCE: Duration = Duration::from_secs(30);
const NODE: NodeId = NodeId(7);
const DAY_MICROS: i64 = 86_400_000_000;
/// Up to here, and from here, all readers know days: year 1 and year 9999.
const FIRST_DAY: i32 = -719_162;
const LAST_DAY: i32 = 2_932_896;
const FIRST_MICROS: i64 = FIRST_DAY as i64 * DAY_MICROS;
const LAST_MICROS: i64 = (LAST_DAY as i64 + 1) * DAY_MICROS - 1;
const DIGITS_38: i128 = 99_999_999_999_999_999_999_999_999_999_999_999_999;

/// A column of each kind, with its lowest, its highest and an ordinary value.
fn kinds() -> Vec<(&'static str, LakeKind, [LakeValue<'static>; 3])> {
    use LakeValue as V;
    let wide = LakeKind::Decimal { precision: 38, scale: 10 };
    let narrow = LakeKind::Decimal { precision: 9, scale: 2 };
    vec![
        ("id", LakeKind::Int64, [V::Int64(i64::MIN), V::Int64(i64::MAX), V::Int64(1)]),
        ("yes", LakeKind::Boolean, [V::Boolean(false), V::Boolean(true), V::Boolean(true)]),
        ("small", LakeKind::Int32, [V::Int32(i32::MIN), V::Int32(i32::MAX), V::Int32(-1)]),
        ("big", LakeKind::Int64, [V::Int64(i64::MIN), V::Int64(i64::MAX), V::Int64(-1)]),
        ("real", LakeKind::Float32, [V::Float32(f32::MIN), V::Float32(f32::NAN), V::Float32(-0.0)]),
        (
            "double",
            LakeKind::Float64,
            [V::Float64(f64::NEG_INFINITY), V::Float64(f64::NAN), V::Float64(0.1)],
        ),
        ("wide", wide, [V::Decimal(-DIGITS_38), V::Decimal(DIGITS_38), V::Decimal(1)]),
        ("narrow", narrow, [V::Decimal(-999_999_999), V::Decimal(999_999_999), V::Decimal(-5)]),
        ("text", LakeKind::Text, [V::Text(""), V::Text("\u{10ffff}\0ä"), V::Text("a text")]),
        ("bytes", LakeKind::Bytes, [V::Bytes(&[]), V::Bytes(&[0, 255]), V::Bytes(b"bytes")]),
        ("uuid", LakeKind::Uuid, [V::Uuid([0; 16]), V::Uuid([255; 16]), V::Uuid([7; 16])]),
        ("day", LakeKind::Date, [V::Date(FIRST_DAY), V::Date(LAST_DAY), V::Date(-1)]),
        (
            "time",
            LakeKind::TimeMicros,
            [V::TimeMicros(0), V::TimeMicros(DAY_MICROS - 1), V::TimeMicros(1)],
        ),
        (
            "stamp",
            LakeKind::TimestampMicros,
            [
                V::TimestampMicros(FIRST_MICROS),
                V::TimestampMicros(LAST_MICROS),
                V::TimestampMicros(-1),
            ],
        ),
        (
            "stamptz",
            LakeKind::TimestamptzMicros,
            [
                V::TimestamptzMicros(FIRST_MICROS),
                V::TimestamptzMicros(LAST_MICROS),
                V::TimestamptzMicros(1_700_000_000_123_456),
            ],
        ),
    ]
}

fn columns() -> Vec<LakeColumn> {
    let column = |(name, kind, _): (&str, LakeKind, [LakeValue<'_>; 3])| LakeColumn {
        name: name.to_owned(),
        kind,
        is_nullable: name != "id",
    };
    kinds().into_iter().map(column).collect()
}

/// Lowest, highest, ordinary, and NULL wherever it may be.
fn values() -> Vec<Vec<LakeValue<'static>>> {
    let mut rows: Vec<Vec<_>> =
        (0..3).map(|row| kinds().iter().map(|(_, _, values)| values[row]).collect()).collect();
    let nulls = columns().into_iter().map(|column| match column.is_nullable {
        true => LakeValue::Null,
        false => LakeValue::Int64(2),
    });
    rows.push(nulls.collect());
    rows
}

async fn catalogue(folder: &Path) -> Arc<dyn Catalog> {
    catalogue_at(format!("file://{}", folder.display()), BTreeMap::new()).await
}

async fn catalogue_at(warehouse: String, properties: BTreeMap<String, String>) -> Arc<dyn Catalog> {
    let config = CatalogueConfig {
        kind: CatalogueKind::Memory,
        uri: None,
        warehouse: Some(warehouse),
        token_variable: None,
        credential_variable: None,
        allow_plain_text: false,
        properties,
    };
    config.connect("test").await.unwrap()
}

async fn drain(
    target: &IcebergTarget,
    write: impl AsyncFn(&mut FileWriter),
    to_lsn: u64,
) -> Vec<DataFile> {
    let by = Claimant { node: NODE, history: 1, nonce: 2, lost: &[] };
    let claim = target.claim(&by, ExpectedMark::start(1), PATIENCE).await.unwrap();
    let mark = claim.mark;
    let mut writer = target.files(NODE, mark.lsn, to_lsn).unwrap();
    write(&mut writer).await;
    let files = writer.close().await.unwrap();
    let verdict = target.append(NODE, &mark, &mark.at(to_lsn), &files, PATIENCE).await.unwrap();
    assert!(matches!(verdict, Verdict::Applied(_)), "{verdict:?}");
    files
}

async fn read(target: &IcebergTarget) -> Vec<RecordBatch> {
    let scan = target.table().scan().select_all().build().unwrap();
    scan.to_arrow().await.unwrap().try_collect().await.unwrap()
}

#[tokio::test]
async fn every_type_reads_back() {
    let temporary = tempfile::tempdir().unwrap();
    let kept = std::env::var("ONRUSH_LAKE_KEEP").ok();
    let folder = kept.as_deref().map_or(temporary.path(), Path::new);
    check_types(catalogue(folder).await).await;
}

async fn check_types(catalogue: Arc<dyn Catalog>) {
    let columns = columns();
    let target = IcebergTarget::open_or_create(catalogue, "a.b.types", &columns, &["id"], PATIENCE)
        .await
        .unwrap();
    let mut batches = target.batches(NODE).unwrap();
    for (place, row) in values().iter().enumerate() {
        batches.row(row, 10 + place as u64, 1_700_000_000_000_000).unwrap();
    }
    let written = batches.finish().unwrap();
    let files = drain(&target, async |writer| writer.write(written.clone()).await.unwrap(), 20);
    let files = files.await;

    let [file] = &files[..] else { panic!("{files:?}") };
    let name = file.file_path();
    assert!(name.contains("/a/b/types/data/onrush/7/1-20-"), "{name}");
    assert!(name.ends_with(".parquet"), "{name}");
    let read = read(&target).await;
    let [read] = &read[..] else { panic!("{} batches", read.len()) };
    assert_eq!(read.num_rows(), written.num_rows());
    for (found, expected) in read.columns().iter().zip(written.columns()) {
        // NaN and the sign of zero count as well.
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
        assert_eq!(found.data_type(), expected.data_type());
    }

    // It opens again, and not with other columns.
    let table = target.table();
    println!("metadata: {}", table.metadata_location().unwrap());
    let identifying: Vec<i32> = table.metadata().current_schema().identifier_field_ids().collect();
    assert_eq!(identifying, [1]);
}

/// `ONRUSH_LAKE_S3=http://127.0.0.1:7070/bucket`, and secrets in the variables of S3's tools.
#[tokio::test]
#[ignore = "needs a store that speaks S3, at ONRUSH_LAKE_S3"]
async fn every_type_reads_back_from_a_bucket() {
    let place = std::env::var("ONRUSH_LAKE_S3").unwrap();
    let (endpoint, bucket) = place.rsplit_once('/').unwrap();
    let properties =
        [("s3.endpoint", endpoint), ("s3.path-style-access", "true"), ("s3.region", "us-east-1")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
    let warehouse = format!("s3://{bucket}/{}", uuid::Uuid::new_v4());
    let catalogue = catalogue_at(warehouse, properties.into()).await;
    check_types(Arc::clone(&catalogue)).await;

    // A file that goes up in parts.
    let column = |name: &str, kind| LakeColumn { name: name.into(), kind, is_nullable: false };
    let columns = [column("id", LakeKind::Int64), column("bytes", LakeKind::Bytes)];
    let opened = IcebergTarget::open_or_create(catalogue, "a.large", &columns, &["id"], PATIENCE);
    let target = opened.await.unwrap();
    let mut batches = target.batches(NODE).unwrap();
    for lsn in 1..40_000 {
        // Bytes that no compression makes shorter.
        let bytes: Vec<u8> = (0..32).flat_map(|_| uuid::Uuid::new_v4().into_bytes()).collect();
        let id = LakeValue::Int64(lsn as i64);
        batches.row(&[id, LakeValue::Bytes(&bytes)], lsn, 0).unwrap();
    }
    let written = batches.finish().unwrap();
    let write = async |writer: &mut FileWriter| writer.write(written.clone()).await.unwrap();
    let files = drain(&target, write, 40_000).await;
    assert!(files[0].file_size_in_bytes() > 16 << 20);
    assert!(target.missing_files(&files).await.unwrap().is_empty());
    let read = read(&target).await;
    let rows: usize = read.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, written.num_rows());
    let sum = |batch: &RecordBatch| -> usize { batch.column(1).get_buffer_memory_size() };
    assert!(read.iter().map(sum).sum::<usize>() > 16 << 20);
}

#[tokio::test]
async fn rows_of_two_days_go_into_their_partitions() {
    let folder = tempfile::tempdir().unwrap();
    let columns = vec![LakeColumn { name: "id".into(), kind: LakeKind::Int64, is_nullable: false }];
    let catalogue = catalogue(folder.path()).await;
    let open = async |columns: &[LakeColumn]| {
        let catalogue = Arc::clone(&catalogue);
        IcebergTarget::open_or_create(catalogue, "a.days", columns, &["id"], PATIENCE).await
    };
    let target = open(&columns).await.unwrap();
    let mut batches = target.batches(NODE).unwrap();
    // Midnight is in the new day; the last batch goes back to the old one.
    let batch = |batches: &mut onrush_lake::BatchBuilder, times: &[i64]| {
        for at in times {
            batches.row(&[LakeValue::Int64(*at)], 1, *at).unwrap();
        }
        batches.finish().unwrap()
    };
    let written = [
        batch(&mut batches, &[DAY_MICROS - 2, DAY_MICROS, DAY_MICROS - 1]),
        batch(&mut batches, &[]),
        batch(&mut batches, &[DAY_MICROS + 1, 2 * DAY_MICROS - 1]),
        batch(&mut batches, &[0, -1]),
    ];
    let write = async |writer: &mut FileWriter| {
        for batch in &written {
            writer.write(batch.clone()).await.unwrap();
        }
    };
    let files = drain(&target, write, 5).await;
    let mut rows: Vec<_> =
        files.iter().map(|file| (format!("{:?}", file.partition()), file.record_count())).collect();
    rows.sort();
    let counts: Vec<u64> = rows.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts.iter().sum::<u64>(), 7);
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert_eq!(read(&target).await.iter().map(RecordBatch::num_rows).sum::<usize>(), 7);
    let table = target.table();
    let spec: &PartitionSpec = table.metadata().default_partition_spec();
    assert_eq!(spec.fields()[0].transform, Transform::Day);

    // The same table opens for the same columns, and for no others.
    assert_eq!(open(&columns).await.unwrap().table_uuid(), target.table_uuid());
    let other = [LakeColumn { kind: LakeKind::Int32, ..columns[0].clone() }];
    let refused = open(&other).await;
    assert!(matches!(refused, Err(LakeError::TableMismatch { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_table_that_somebody_else_made_is_taken_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = catalogue(folder.path()).await;
    let columns = vec![LakeColumn { name: "id".into(), kind: LakeKind::Int64, is_nullable: false }];
    // Without partitions, in another order, and with a column more.
    let theirs = [LakeColumn { name: "more".into(), kind: LakeKind::Text, is_nullable: true }];
    let all: Vec<LakeColumn> = theirs.iter().chain(&columns).cloned().collect();
    let schema: Schema = onrush_lake::columns::iceberg_schema(&all, &["id"]).unwrap();
    let namespace = NamespaceIdent::new("a".to_owned());
    catalogue.create_namespace(&namespace, Default::default()).await.unwrap();
    let creation = TableCreation::builder().name("theirs".to_owned()).schema(schema).build();
    catalogue.create_table(&namespace, creation).await.unwrap();

    let target = IcebergTarget::open_or_create(catalogue, "a.theirs", &columns, &["id"], PATIENCE)
        .await
        .unwrap();
    let mut batches = target.batches(NODE).unwrap();
    batches.row(&[LakeValue::Int64(5)], 1, DAY_MICROS).unwrap();
    batches.row(&[LakeValue::Int64(6)], 2, 0).unwrap();
    let batch = batches.finish().unwrap();
    let files = drain(&target, async |writer| writer.write(batch.clone()).await.unwrap(), 5).await;
    assert_eq!(files.len(), 1);
    let read = read(&target).await;
    assert_eq!(read[0].column_by_name("more").unwrap().null_count(), 2);
    assert_eq!(read[0].column_by_name("id").unwrap().null_count(), 0);
}
