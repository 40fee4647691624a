//! Updates, copies and deletes all rows of a table, each in one transaction: `large_transactions ROWS MEMORY_MIB`.
//!
//! Prints how long each took, and the most memory that the process had at a time.

use std::time::Instant;

use onrush::{
    ColumnDefinition, DataType, Database, Durability, Error, Options, Result, ScanOptions, Session,
    Table, TableDefinition, Transaction, Value,
};

/// Rows of a batch, each of which is a transaction, when the table is filled.
const BATCH: i64 = 1000;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(usual);
    let (rows, memory_mib) = (number(1_000_000), number(256));
    let folder = tempfile::tempdir_in(".").map_err(|error| Error::Internal(error.to_string()))?;
    let options = Options::within(memory_mib as u64 * (1 << 20));
    let db = Database::create(folder.path().join("db"), options)?;
    let events = db.create_table(table("events")?)?;
    let copies = db.create_table(table("copies")?)?;
    let mut session = db.session()?;
    session.set_durability(Durability::Delayed);
    timed("inserted in batches", rows, || fill(&mut session, &events, rows))?;
    session.set_durability(Durability::Durable);
    let mut all = |what, change: &mut Change<'_>| {
        timed(what, rows, || {
            let mut transaction = session.begin()?;
            let view = transaction.snapshot();
            for row in view.scan(&events, &ScanOptions::default())? {
                change(&mut transaction, &row?)?;
            }
            transaction.commit()
        })
    };
    all("updated", &mut |transaction, row| {
        let new = [("kind", Value::Int64(2))];
        transaction.update(&events, &row[..1], &new).map(drop)
    })?;
    all("copied", &mut |transaction, row| transaction.insert(&copies, row))?;
    all("deleted", &mut |transaction, row| transaction.delete(&events, &row[..1]).map(drop))?;
    let count = |session: &mut Session, table| {
        session.scan(table, &ScanOptions::default())?.visit_raw(|_, _| {})
    };
    println!(
        "rows left: {}, copies: {}",
        count(&mut session, &events)?,
        count(&mut session, &copies)?
    );
    let before = Instant::now();
    drop(session);
    db.close()?;
    println!(
        "closed: {:.1} s, memory at most {} MiB",
        before.elapsed().as_secs_f64(),
        most_memory_mib()
    );
    Ok(())
}

type Change<'c> = dyn FnMut(&mut Transaction<'_>, &[Value<'static>]) -> Result<()> + 'c;

fn table(name: &str) -> Result<TableDefinition> {
    let column = |name: &str, data_type| ColumnDefinition::new(name, data_type).not_null();
    let table = TableDefinition::builder(name)
        .column(column("id", DataType::Int64))
        .column(column("kind", DataType::Int64))
        .column(column("note", DataType::Text))
        .primary_key(["id"]);
    Ok(table.build()?)
}

fn fill(session: &mut Session, table: &Table, rows: i64) -> Result<()> {
    for first in (0..rows).step_by(BATCH as usize) {
        let row = |id: i64| [id.into(), 1i64.into(), "something that happened".into()];
        let batch: Vec<[Value<'_>; 3]> = (first..rows.min(first + BATCH)).map(row).collect();
        session.insert_many(table, batch.iter().map(|row| row.as_slice()))?;
    }
    Ok(())
}

fn timed(what: &str, rows: i64, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let before = Instant::now();
    work()?;
    let seconds = before.elapsed().as_secs_f64();
    println!("{what}: {seconds:.1} s, {:.0} rows/s", rows as f64 / seconds);
    Ok(())
}

/// From the system; 0 where it does not tell.
fn most_memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}
