//! How fast rows come into a lake, and what that costs those who insert meanwhile.
//!
//! ```sh
//! cargo run --release -p onrush-lake --example drain_speed -- 4000000
//! ```
//!
//! Inserts the classic row of the studies into a table, in a new folder beside the present one, brings all of them into
//! an Iceberg table in files by one round, and inserts as many again, first beside a drain with a round a second and
//! then without. Two sessions, not synced. The catalogue is in memory.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use onrush::{
    ColumnDefinition, DataType, Database, Durability, KeyStrategy, Options, Table, TableChange,
    TableDefinition,
};
use onrush_lake::drain::attachment::{self, Attachment};
use onrush_lake::{
    CatalogueConfig, CatalogueKind, Drain, DrainCatalogue, DrainOptions, Identity, LakeError,
    NodeId,
};

const SESSIONS: u64 = 2;

fn classic() -> Result<TableDefinition, onrush::Error> {
    let column = |name, data_type| ColumnDefinition::new(name, data_type).not_null();
    let key = column("c1", DataType::Int64).default_key(KeyStrategy::SessionOffset);
    let table = TableDefinition::builder("classic").column(key);
    let table = table.column(column("c2", DataType::Timestamp).default_now());
    let table = table.column(column("c3", DataType::Char(111)).default_value("classic"));
    let table = table.column(column("c4", DataType::Int32).default_value(4i32));
    let table = table.column(column("c5", DataType::Int32).default_value(5i32));
    let table = table.column(column("c6", DataType::Int64).default_value(6i64));
    Ok(table.primary_key(["c1"]).build()?)
}

/// Inserts a row a commit; returns rows a second.
fn insert(database: &Database, table: &Table, rows: u64) -> Result<f64, onrush::Error> {
    let began = Instant::now();
    std::thread::scope(|scope| {
        let sessions = (0..SESSIONS).map(|_| {
            scope.spawn(|| {
                let mut session = database.session()?;
                session.set_durability(Durability::Delayed);
                (0..rows / SESSIONS).try_for_each(|_| session.insert(table, &[]))
            })
        });
        let sessions: Vec<_> = sessions.collect();
        let ends = sessions.into_iter().map(|session| session.join().expect("no panic"));
        ends.collect::<Result<(), onrush::Error>>()
    })?;
    Ok(rows as f64 / began.elapsed().as_secs_f64())
}

fn attach(database: &Database, lag: Duration) -> Result<Table, onrush::Error> {
    attachment::prepare(database)?;
    let mut session = database.session()?;
    let mut transaction = session.begin()?;
    let table = transaction.alter_table("classic", &[TableChange::SetAppendsOnly(true)])?;
    let (catalogue, name) = ("here".to_owned(), "lake.classic".to_owned());
    attachment::put(&mut transaction, &Attachment { table: table.id(), catalogue, name, lag })?;
    transaction.commit()?;
    database.table("classic")
}

fn main() -> Result<(), LakeError> {
    let rows: u64 = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(4_000_000);
    let folder =
        tempfile::tempdir_in(".").map_err(|error| LakeError::Internal(error.to_string()))?;
    let options = Options { leaf_memory_bytes: 2 << 30, ..Options::default() };
    let database = Database::create(folder.path().join("db"), options)?;
    database.create_table(classic()?)?;
    let table = attach(&database, Duration::from_secs(3600))?;
    println!("{:>12.0} rows/s inserted without a drain", insert(&database, &table, rows)?);
    database.barrier()?;

    let config = CatalogueConfig {
        kind: CatalogueKind::Memory,
        uri: None,
        warehouse: Some(format!("file://{}", folder.path().join("lake").display())),
        token_variable: None,
        credential_variable: None,
        allow_plain_text: false,
        properties: BTreeMap::new(),
    };
    let catalogues = BTreeMap::from([("here".to_owned(), DrainCatalogue::Configured(config))]);
    let identity = Identity { node: NodeId(1), history: database.id(), lost: Vec::new() };
    let drain = Drain::start(&database, DrainOptions::new(identity, catalogues))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| LakeError::Internal(error.to_string()))?;
    let began = Instant::now();
    runtime.block_on(drain.flush(table.id()))?;
    let state = &drain.states()[0];
    println!(
        "{:>12.0} rows/s drained by one thread, {:.1} bytes a row in {} files",
        state.rows as f64 / began.elapsed().as_secs_f64(),
        state.bytes as f64 / state.rows as f64,
        state.files
    );

    let table = attach(&database, Duration::from_secs(1))?;
    drain.refresh();
    println!("{:>12.0} rows/s inserted beside a round a second", insert(&database, &table, rows)?);
    database.barrier()?;
    let began = Instant::now();
    runtime.block_on(drain.flush(table.id()))?;
    println!("{:>12.1} s behind at the end", began.elapsed().as_secs_f64());
    drop(drain);
    println!("{:>12.0} rows/s inserted without a drain", insert(&database, &table, rows)?);
    Ok(())
}
