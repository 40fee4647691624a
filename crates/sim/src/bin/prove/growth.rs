//! Calm growth: a database many times larger than the memory for its leaves is written, checked, opened
//! again, and each of its rows is compared with what its key says that it must be.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use onrush::{
    ColumnDefinition, DataType, Database, Durability, Options, Row, ScanOptions, Session, Table,
    TableDefinition, Value,
};
use onrush_check::{CheckOptions, Progress, check};
use onrush_files::OsDisk;
use onrush_sim::Random;

use super::temporary_folder;

/// Each writes keys of a range of its own, in ascending order.
const SESSIONS: i64 = 2;
/// The first key of one session behind that of the other.
const RANGE: i64 = 1 << 40;
const PAYLOAD_BYTES: usize = 3000;
const BATCH_ROWS: i64 = 32;

pub(crate) fn run(mib: u64, leaf_memory_mib: usize, folder: Option<PathBuf>) -> Result<()> {
    let temporary = temporary_folder("growth")?;
    let folder = folder.unwrap_or_else(|| temporary.0.clone()).join("database");
    let options = Options {
        leaf_memory_bytes: leaf_memory_mib << 20,
        log_capacity_bytes: 1 << 30,
        log_segment_bytes: 16 << 20,
        log_ring_bytes: 16 << 20,
        checkpoint_log_bytes: 128 << 20,
        ..Options::default()
    };
    let batches = i64::try_from((mib << 20) / PAYLOAD_BYTES as u64)? / (BATCH_ROWS * SESSIONS) + 1;
    let rows = batches * BATCH_ROWS * SESSIONS;

    let began = Instant::now();
    let database = Database::create(&folder, options.clone())?;
    let table = database.create_table(definition()?)?;
    std::thread::scope(|scope| {
        let grow = |own| {
            let (database, table) = (&database, &table);
            scope.spawn(move || grow(database, table, own, batches))
        };
        let sessions: Vec<_> = (0..SESSIONS).map(grow).collect();
        let ended = sessions.into_iter().map(|session| session.join());
        ended
            .map(|ended| ended.unwrap_or_else(|_| Err(anyhow::anyhow!("a panic"))))
            .collect::<Result<Vec<()>>>()
    })?;
    drop(table);
    database.close()?;
    println!("written     {rows} rows, {:.1} s", began.elapsed().as_secs_f64());
    println!(
        "on the disk {} MiB, {leaf_memory_mib} MiB of memory for leaves",
        stored_mib(&folder)?
    );

    let disk = Arc::new(OsDisk::new());
    let report = check(disk, &folder, &CheckOptions::default(), &Progress::default())?;
    ensure!(report.is_sound(), "{report}");
    println!("checked     {:.1} s, {:.2} GB/s, sound", report.seconds, report.gb_per_s);

    let began = Instant::now();
    let database = Database::open(&folder, options)?;
    println!("opened      {:.3} s", began.elapsed().as_secs_f64());
    let began = Instant::now();
    let found = compare(&database)?;
    ensure!(found == rows, "{found} rows are there, {rows} were committed");
    println!("compared    {found} rows, {:.1} s", began.elapsed().as_secs_f64());
    database.close()?;
    Ok(())
}

fn definition() -> Result<TableDefinition> {
    let definition = TableDefinition::builder("grown")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .column(ColumnDefinition::new("payload", DataType::Bytes).not_null())
        .primary_key(["id"]);
    Ok(definition.build()?)
}

/// What the row of a key holds: follows from the key, and no two are alike.
fn payload(id: i64) -> Vec<u8> {
    let mut bytes = vec![0; PAYLOAD_BYTES];
    Random::new(id.cast_unsigned()).fill(&mut bytes);
    bytes
}

/// One session's rows, delayed, and after each batch an earlier row, mostly from the disk.
fn grow(database: &Database, table: &Table, own: i64, batches: i64) -> Result<()> {
    let mut session = database.session()?;
    session.set_durability(Durability::Delayed);
    let mut random = Random::new(own.cast_unsigned());
    for batch in 0..batches {
        let ids = (0..BATCH_ROWS).map(|row| own * RANGE + batch * BATCH_ROWS + row);
        let rows: Vec<[Value<'static>; 2]> =
            ids.map(|id| [Value::Int64(id), Value::Bytes(payload(id).into())]).collect();
        session.insert_many(table, rows.iter().map(|row| row.as_slice()))?;
        let written = ((batch + 1) * BATCH_ROWS).cast_unsigned();
        look_at(&mut session, table, own * RANGE + random.below(written).cast_signed())?;
    }
    Ok(())
}

fn look_at(session: &mut Session, table: &Table, id: i64) -> Result<()> {
    let row = session.get(table, &[Value::Int64(id)])?;
    ensure!(is_right(&row.with_context(|| format!("row {id} is missing"))?), "row {id} is wrong");
    Ok(())
}

fn is_right(row: &Row) -> bool {
    matches!(row.as_slice(), [Value::Int64(id), Value::Bytes(bytes)] if **bytes == *payload(*id))
}

/// How many rows there are; each must be right, and the keys of each session without a gap.
fn compare(database: &Database) -> Result<i64> {
    let table = database.table("grown")?;
    let (mut count, mut last) = (0, -1);
    for row in database.session()?.scan(&table, &ScanOptions::default())? {
        let row = row?;
        let Some(Value::Int64(id)) = row.first() else { anyhow::bail!("a row without a key") };
        ensure!(*id == last + 1 || id % RANGE == 0, "rows between {last} and {id} are missing");
        ensure!(is_right(&row), "row {id} is wrong");
        (count, last) = (count + 1, *id);
    }
    Ok(count)
}

/// Space that the data files take.
fn stored_mib(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("data") {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes >> 20)
}
