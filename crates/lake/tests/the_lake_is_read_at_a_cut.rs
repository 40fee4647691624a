//! A cut of the lake names the files that conditions leave, and refuses what it could not read right: deletes of
//! others, and rows that are not this database's.

#![allow(clippy::unwrap_used)]

mod world;

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use iceberg::spec::{
    DataContentType, DataFileBuilder, DataFileFormat, ManifestListWriter, ManifestWriterBuilder,
    Operation, Snapshot, SnapshotReference, SnapshotRetention, Summary,
};
use iceberg::{Catalog, TableUpdate};
use onrush::{ColumnDefinition, DataType, Database, Options, Table, TableChange, TableDefinition};
use onrush_lake::drain::attachment::{self, Attachment};
use onrush_lake::{
    CutCondition, CutValues, Drain, DrainCatalogue, DrainOptions, FencedBecause, Identity,
    LakeError, LakeReader, LakeValue, NodeId,
};
use world::*;

const NODE: u32 = 7;
/// Places of columns among those of the table and the three added.
const ID: usize = 0;
const LSN: usize = 3;
const AT: usize = 4;

struct Node {
    database: Database,
    table: Table,
    attachment: Attachment,
    drain: Drain,
    reader: LakeReader,
}

fn options(database: &Database, catalogue: &Arc<FaultyCatalogue>) -> DrainOptions {
    let catalogue: Arc<dyn Catalog> = Arc::clone(catalogue) as _;
    let catalogues = BTreeMap::from([("prod".to_owned(), DrainCatalogue::Open(catalogue))]);
    let node = NodeId(NODE);
    let identity = Identity { node, history: database.id(), lost: Vec::new() };
    let options = DrainOptions::new(identity, catalogues);
    DrainOptions { patience: Duration::from_millis(500), ..options }
}

fn create(folder: &Path, catalogue: &Arc<FaultyCatalogue>) -> Node {
    let database = Database::create(folder, Options::small()).unwrap();
    let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    let note = ColumnDefinition::new("note", DataType::Text);
    let events = TableDefinition::builder("events").column(id).column(note).primary_key(["id"]);
    database.create_table(events.build().unwrap()).unwrap();
    attachment::prepare(&database).unwrap();
    let mut session = database.session().unwrap();
    let mut transaction = session.begin().unwrap();
    let table = transaction.alter_table("events", &[TableChange::SetAppendsOnly(true)]).unwrap();
    let attachment = Attachment {
        table: table.id(),
        catalogue: "prod".to_owned(),
        name: TABLE.to_owned(),
        lag: Duration::from_secs(3600),
    };
    attachment::put(&mut transaction, &attachment).unwrap();
    transaction.commit().unwrap();
    drop(session);
    open(database, attachment, catalogue)
}

fn open(database: Database, attachment: Attachment, catalogue: &Arc<FaultyCatalogue>) -> Node {
    let table = database.table("events").unwrap();
    let drain = Drain::start(&database, options(&database, catalogue)).unwrap();
    let reader = LakeReader::new(&database, options(&database, catalogue)).unwrap();
    Node { database, table, attachment, drain, reader }
}

impl Node {
    async fn round(&self, ids: std::ops::Range<i64>) {
        // The round with which the drain begins is over then, and takes none of the rows.
        self.drain.flush(self.table.id()).await.unwrap();
        let mut session = self.database.session().unwrap();
        for id in ids {
            session.insert(&self.table, &[id.into(), "a note".into()]).unwrap();
        }
        self.drain.flush(self.table.id()).await.unwrap();
    }

    async fn files(&self, conditions: &[CutCondition<'_>]) -> Result<usize, LakeError> {
        Ok(self.reader.cut(&self.attachment).await?.files(conditions).await?.len())
    }

    async fn fenced(&self) -> FencedBecause {
        match self.reader.cut(&self.attachment).await {
            Err(LakeError::Fenced { because, .. }) => *because,
            other => panic!("{other:?}"),
        }
    }
}

fn one_of<'v>(column: usize, values: &[LakeValue<'v>]) -> CutCondition<'v> {
    CutCondition { column, values: CutValues::OneOf(values.to_vec()) }
}

fn from(column: usize, value: LakeValue<'_>) -> CutCondition<'_> {
    CutCondition { column, values: CutValues::Between(Bound::Included(value), Bound::Unbounded) }
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_leave_out_files_without_such_rows() {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = Arc::new(FaultyCatalogue::new());
    let node = create(&folder.path().join("db"), &catalogue);
    node.drain.flush(node.table.id()).await.unwrap();
    let cut = node.reader.cut(&node.attachment).await.unwrap();
    assert_eq!((cut.marks().len(), cut.files(&[]).await.unwrap().len()), (1, 0));
    for round in 0..4 {
        node.round(round * 100..round * 100 + 100).await;
    }
    // What was loaded stays what it was.
    assert_eq!(cut.files(&[]).await.unwrap().len(), 0);
    assert_eq!(node.files(&[]).await.unwrap(), 4);
    assert_eq!(node.files(&[one_of(ID, &[LakeValue::Int64(150)])]).await.unwrap(), 1);
    // Of a list Iceberg takes the least and the greatest value.
    let two = [LakeValue::Int64(150), LakeValue::Int64(250)];
    assert_eq!(node.files(&[one_of(ID, &two)]).await.unwrap(), 2);
    assert_eq!(node.files(&[from(ID, LakeValue::Int64(200))]).await.unwrap(), 2);
    assert_eq!(node.files(&[from(AT, LakeValue::TimestamptzMicros(0))]).await.unwrap(), 4);
    let tomorrow = i64::MAX / 2;
    assert_eq!(node.files(&[from(AT, LakeValue::TimestamptzMicros(tomorrow))]).await.unwrap(), 0);
    let cut = node.reader.cut(&node.attachment).await.unwrap();
    let mark = i64::try_from(cut.own_mark().unwrap().lsn).unwrap();
    assert_eq!(node.files(&[from(LSN, LakeValue::Int64(mark))]).await.unwrap(), 0);
    // Of another kind than the column: it says nothing.
    assert_eq!(node.files(&[one_of(ID, &[LakeValue::Text("x")])]).await.unwrap(), 4);
    let file = &cut.files(&[]).await.unwrap()[0];
    let bytes = file.read(file.bytes() - 4..file.bytes()).await.unwrap();
    assert_eq!(&bytes[..], b"PAR1");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_with_deletes_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = Arc::new(FaultyCatalogue::new());
    let node = create(&folder.path().join("db"), &catalogue);
    node.round(0..10).await;
    let loaded = table(&catalogue).await;
    let metadata = loaded.metadata();
    let main = metadata.current_snapshot().unwrap();
    let entries = loaded.manifest_list_reader(main).load().await.unwrap();
    let data = entries.entries()[0].load_manifest(loaded.file_io()).await.unwrap();
    let partition = data.entries()[0].data_file().partition().clone();
    let delete = DataFileBuilder::default()
        .content(DataContentType::EqualityDeletes)
        .file_path("memory:///gone.parquet".to_owned())
        .file_format(DataFileFormat::Parquet)
        .partition(partition)
        .partition_spec_id(metadata.default_partition_spec_id())
        .record_count(1)
        .file_size_in_bytes(1)
        .equality_ids(Some(vec![1]))
        .build()
        .unwrap();
    let (snapshot_id, sequence) = (4711, metadata.last_sequence_number() + 1);
    let output = loaded.file_io().new_output("memory:///deletes.avro").unwrap();
    let mut writer = ManifestWriterBuilder::new(
        output,
        Some(snapshot_id),
        metadata.current_schema().clone(),
        metadata.default_partition_spec().as_ref().clone(),
    )
    .build_v2_deletes();
    writer.add_file(delete, sequence).unwrap();
    let manifest = writer.write_manifest_file().await.unwrap();
    let output = loaded.file_io().new_output("memory:///list.avro").unwrap();
    let parent = Some(main.snapshot_id());
    let mut list =
        ManifestListWriter::v2(output.writer().await.unwrap(), snapshot_id, parent, sequence);
    list.add_manifests(entries.entries().iter().cloned().chain([manifest])).unwrap();
    list.close().await.unwrap();
    let snapshot = Snapshot::builder()
        .with_snapshot_id(snapshot_id)
        .with_parent_snapshot_id(parent)
        .with_sequence_number(sequence)
        .with_timestamp_ms(main.timestamp_ms() + 1)
        .with_manifest_list("memory:///list.avro")
        .with_summary(Summary {
            operation: Operation::Delete,
            additional_properties: HashMap::new(),
        })
        .with_schema_id(metadata.current_schema_id())
        .build();
    let retention = SnapshotRetention::branch(None, None, None);
    let updates = vec![
        TableUpdate::AddSnapshot { snapshot },
        TableUpdate::SetSnapshotRef {
            ref_name: "main".to_owned(),
            reference: SnapshotReference::new(snapshot_id, retention),
        },
    ];
    catalogue.change(&ident(), updates).await;
    let refused = node.files(&[]).await.unwrap_err();
    assert!(matches!(refused, LakeError::Unreadable { .. }), "{refused}");
    let told = refused.to_string();
    assert!(told.contains("gone.parquet") && told.contains("rewrite"), "{told}");
    // Files that have no part in a query do not matter to it.
    assert_eq!(node.files(&[one_of(ID, &[LakeValue::Int64(99)])]).await.unwrap(), 0);
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        match path.is_dir() {
            true => copy_folder(&path, &to),
            false => drop(std::fs::copy(path, to).unwrap()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_copy_of_the_database_are_not_taken_for_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = Arc::new(FaultyCatalogue::new());
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let Node { database, attachment, drain, reader, table } = create(&one, &catalogue);
    drain.flush(table.id()).await.unwrap();
    drop((drain, reader, table));
    database.close().unwrap();
    copy_folder(&one, &two);
    let copy = Database::open(&two, Options::small()).unwrap();
    let copy = open(copy, attachment.clone(), &catalogue);
    copy.round(0..10).await;
    assert_eq!(copy.files(&[]).await.unwrap(), 1);
    let original = Database::open(&one, Options::small()).unwrap();
    let reader = LakeReader::new(&original, options(&original, &catalogue)).unwrap();
    match reader.cut(&attachment).await {
        Err(LakeError::Fenced { because, .. }) => {
            assert!(matches!(*because, FencedBecause::NotNoted { .. }), "{because}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_away_gone_or_another_one_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = Arc::new(FaultyCatalogue::new());
    let node = create(&folder.path().join("db"), &catalogue);
    node.round(0..10).await;
    catalogue.fail_loads(1).await;
    let away = node.reader.cut(&node.attachment).await.unwrap_err();
    assert!(matches!(away, LakeError::Away { .. }), "{away}");
    assert_eq!(node.files(&[]).await.unwrap(), 1);
    catalogue.drop_table(&ident()).await.unwrap();
    assert!(matches!(node.fenced().await, FencedBecause::TableGone));
    // Somebody makes it anew: what is in it now are not all of this node's rows.
    drop(start(&catalogue, 8).await);
    assert!(matches!(node.fenced().await, FencedBecause::MarkMissing));
}
