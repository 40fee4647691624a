//! Measures scans of a table that memory does not hold: `scan ROWS TIMES ROUNDS`, the table being `TIMES`
//! as large as the memory for leaves.
//!
//! Each round opens the database and scans it three times forward and twice backward. Environment:
//! `CACHED` reads through the system's page cache; `INSERTS` lets one session insert beside all scans,
//! into another table; `STATS` prints what was waited
//! for and counted; `DIR` the folder, replaced and removed.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use onrush::{
    ColumnDefinition, DataType, Database, Direction, Durability, KeyStrategy, Options, ScanOptions,
    Session, Table, TableDefinition,
};
use onrush_files::{Disk, OsDisk};
use onrush_waits::Counter;

const LEAF_BYTES: u64 = 16 << 10;

fn definition(name: &str, strategy: KeyStrategy) -> TableDefinition {
    let key = ColumnDefinition::new("c1", strategy.natural_type()).not_null();
    TableDefinition::builder(name)
        .column(key.default_key(strategy))
        .column(ColumnDefinition::new("c2", DataType::Timestamp).default_now())
        .column(ColumnDefinition::new("c3", DataType::Char(111)).default_value("a"))
        .column(ColumnDefinition::new("c4", DataType::Int32).default_value(1i32))
        .column(ColumnDefinition::new("c5", DataType::Int32).default_value(2i32))
        .column(ColumnDefinition::new("c6", DataType::Int64).default_value(42i64))
        .primary_key(["c1"])
        .build()
        .expect("the definition is sound")
}

/// Millions of rows a second.
fn scan(session: &mut Session, table: &Table, direction: Direction, rows: u64) -> f64 {
    let options = ScanOptions { direction, ..ScanOptions::default() };
    let start = Instant::now();
    let mut bytes = 0;
    let scan = session.scan(table, &options).expect("the bounds are sound");
    let found = scan.visit_raw(|key, value| bytes += key.len() + value.len()).expect("it reads");
    assert_eq!(found, rows);
    rows as f64 / start.elapsed().as_secs_f64() / 1e6
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |at: usize| args[at].parse::<f64>().expect("a number");
    let (rows, times, rounds) = (number(1) as u64, number(2), number(3) as u64);
    let folder = PathBuf::from(std::env::var("DIR").unwrap_or_else(|_| "onrush-scan".into()));
    let _ = std::fs::remove_dir_all(&folder);
    let is_cached = std::env::var("CACHED").is_ok();
    let disk: Arc<dyn Disk> = Arc::new(if is_cached { OsDisk::buffered() } else { OsDisk::new() });
    let mut options = Options { durability: Durability::Delayed, ..Options::default() };
    let db = Database::create_on(Arc::clone(&disk), &folder, options.clone()).expect("created");
    let strategy = KeyStrategy::SessionOffset;
    let table = db.create_table(definition("big", strategy)).expect("created");
    db.create_table(definition("beside", strategy)).expect("created");
    let mut session = db.session().expect("open");
    (0..rows).for_each(|_| session.insert(&table, &[]).expect("inserted"));
    let leaves = db.statistics().leaves;
    drop((session, table));
    db.close().expect("closed");
    options.leaf_memory_bytes = ((leaves * LEAF_BYTES) as f64 / times) as usize;
    options.prefault_leaf_memory = true;
    for _ in 0..rounds {
        let db = Database::open_on(Arc::clone(&disk), &folder, options.clone()).expect("opened");
        let (stop, inserted) = (AtomicBool::new(false), AtomicU64::new(0));
        let start = Instant::now();
        std::thread::scope(|scope| {
            if std::env::var("INSERTS").is_ok() {
                scope.spawn(|| insert_until(&db, &stop, &inserted));
            }
            let table = db.table("big").expect("it is there");
            let mut session = db.session().expect("open");
            for direction in [Direction::Forward, Direction::Backward] {
                let times = if direction == Direction::Forward { 3 } else { 2 };
                let rates = (0..times).map(|_| scan(&mut session, &table, direction, rows));
                let words: Vec<String> = rates.map(|rate| format!("{rate:.2}")).collect();
                print!("{direction:?} {} M rows/s; ", words.join(", "));
            }
            stop.store(true, Ordering::Relaxed);
            if std::env::var("STATS").is_ok() {
                let totals = db.statistics().totals;
                let counters = Counter::ALL.iter().map(|of| (of.name(), totals.counter(*of)));
                let counters: Vec<_> = counters.filter(|(_, count)| *count > 0).collect();
                println!("{}\n{}\n{counters:?}", totals.wait_report(), totals.latch_report());
            }
        });
        let inserted = inserted.load(Ordering::Relaxed);
        println!("inserted {:.3} M rows/s", inserted as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
    let _ = std::fs::remove_dir_all(&folder);
}

fn insert_until(db: &Database, stop: &AtomicBool, inserted: &AtomicU64) {
    let table = db.table("beside").expect("it is there");
    let mut session = db.session().expect("open");
    while !stop.load(Ordering::Relaxed) {
        session.insert(&table, &[]).expect("inserted");
        inserted.fetch_add(1, Ordering::Relaxed);
    }
}
