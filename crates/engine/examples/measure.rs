//! Measures the insert path, without the lab around it: `measure KEY THREADS ROWS [durable]`.
//!
//! Environment: `BATCH` rows a commit, of which one is a batch, too; `STATEMENTS` inserts them one by
//! one; `TASKS` sessions a thread, each with one durable commit on its way; `FULL` logs whole rows;
//! `MEM` memory for leaves and `CKPT` checkpoint interval in MiB; `PAST` keeps cold key ranges in
//! stocks; `SECONDS_APART` prints the rates so often; `COLD` leaves memory untouched at open; `READ` reads
//! afterwards; `STATS` prints counters, waits and phases; `DIR` the folder, replaced and removed; `INDEXES` so many
//! indexes of a column of random uuids, which the table then has, with 0, too; `REFERENCES` 1: a column of the table
//! references the one row of another table; 0: the column references nothing.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;

use onrush::{
    ColumnDefinition, DataType, Database, Durability, KeyStrategy, NewForeignKey, NewIndex,
    Options, PastMemory, TableDefinition,
};
use onrush_waits::Counter;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let strategy: KeyStrategy = args[1].parse().unwrap();
    let threads: u64 = args[2].parse().unwrap();
    let rows: u64 = args[3].parse().unwrap();
    let durability = if args.get(4).is_some_and(|d| d == "durable") {
        Durability::Durable
    } else {
        Durability::Delayed
    };
    let folder =
        std::path::PathBuf::from(std::env::var("DIR").unwrap_or_else(|_| "onrush-measure".into()));
    let _ = std::fs::remove_dir_all(&folder);
    let options = Options {
        durability,
        leaf_memory_bytes: std::env::var("MEM")
            .map_or(6 << 30, |m| m.parse::<usize>().unwrap() << 20),
        elide_defaults: std::env::var("FULL").is_err(),
        checkpoint_log_bytes: std::env::var("CKPT")
            .map_or(1 << 30, |m| m.parse::<u64>().unwrap() << 20),
        prefault_leaf_memory: std::env::var("COLD").is_err(),
        past_memory: match std::env::var("PAST") {
            Ok(_) => PastMemory::Auto,
            Err(_) => PastMemory::Off,
        },
        ..Options::default()
    };
    let db = Database::create(&folder, options.clone()).unwrap();
    let indexes: Option<u32> = std::env::var("INDEXES").ok().map(|n| n.parse().unwrap());
    let tag = ColumnDefinition::new("tag", DataType::Uuid).default_key(KeyStrategy::UuidV4);
    let definition = TableDefinition::builder("big");
    let definition = if indexes.is_some() { definition.column(tag) } else { definition };
    let references: Option<u32> = std::env::var("REFERENCES").ok().map(|n| n.parse().unwrap());
    let parent = ColumnDefinition::new("parent", DataType::Int64).default_value(1i64);
    let definition = if references.is_some() { definition.column(parent) } else { definition };
    let mut table = db
        .create_table(
            definition
                .column(
                    ColumnDefinition::new("c1", strategy.natural_type())
                        .not_null()
                        .default_key(strategy),
                )
                .column(ColumnDefinition::new("c2", DataType::Timestamp).default_now())
                .column(ColumnDefinition::new("c3", DataType::Char(111)).default_value("a"))
                .column(ColumnDefinition::new("c4", DataType::Int32).default_value(1i32))
                .column(ColumnDefinition::new("c5", DataType::Int32).default_value(2i32))
                .column(ColumnDefinition::new("c6", DataType::Int64).default_value(42i64))
                .primary_key(["c1"])
                .build()
                .unwrap(),
        )
        .unwrap();
    for number in 0..indexes.unwrap_or(0) {
        let index = NewIndex::new(format!("by_tag_{number}"), ["tag"]);
        table = db.create_index("big", &index).unwrap();
    }
    if references == Some(1) {
        let id = ColumnDefinition::new("id", DataType::Int64).not_null();
        let parents = TableDefinition::builder("parents").column(id).primary_key(["id"]);
        let parents = db.create_table(parents.build().unwrap()).unwrap();
        db.session().unwrap().insert(&parents, &[1i64.into()]).unwrap();
        let foreign_key = NewForeignKey::new("big_parent", ["parent"], "parents");
        table = db.add_foreign_key("big", &foreign_key).unwrap();
    }
    let barrier = Arc::new(std::sync::Barrier::new(threads as usize + 1));
    let processor_nanos = Arc::new(AtomicU64::new(0));
    let handles: Vec<_> = (0..threads)
        .map(|_| {
            let (db, table, barrier) = (db.clone(), table.clone(), barrier.clone());
            let processor_nanos = Arc::clone(&processor_nanos);
            std::thread::spawn(move || {
                if let Ok(tasks) = std::env::var("TASKS") {
                    return insert_by_tasks(
                        &db,
                        &table,
                        &barrier,
                        tasks.parse().unwrap(),
                        rows / threads,
                    );
                }
                let mut session = db.session().unwrap();
                barrier.wait();
                let _processor_time = ProcessorTime::begin(&processor_nanos);
                let batch: Option<u64> = std::env::var("BATCH").ok().map(|b| b.parse().unwrap());
                let Some(batch) = batch else {
                    for _ in 0..rows / threads {
                        session.insert(&table, &[]).unwrap();
                    }
                    return;
                };
                if std::env::var("STATEMENTS").is_ok() {
                    for _ in 0..rows / threads / batch {
                        let mut transaction = session.begin().unwrap();
                        for _ in 0..batch {
                            transaction.insert(&table, &[]).unwrap();
                        }
                        transaction.commit().unwrap();
                    }
                } else {
                    for _ in 0..rows / threads / batch {
                        session
                            .insert_many(&table, std::iter::repeat_n(&[][..], batch as usize))
                            .unwrap();
                    }
                }
            })
        })
        .collect();
    barrier.wait();
    let start = Instant::now();
    let seconds = std::env::var("SECONDS_APART").map(|apart| {
        let (db, apart) = (db.clone(), std::time::Duration::from_secs_f64(apart.parse().unwrap()));
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let print = move || {
            let mut before = db.statistics().totals;
            while stopped.recv_timeout(apart).is_err_and(|error| error == RecvTimeoutError::Timeout) {
                let now = db.statistics().totals;
                let of = |counter| now.counter(counter) - before.counter(counter);
                let rows = of(Counter::RowsInserted) as f64 / apart.as_secs_f64() / 1e6;
                println!(
                    "{:.1} s: {rows:.3} M rows/s, loads {}, flushes {}, compactions {}, ranges made {}, \
                     stock reads {}",
                    start.elapsed().as_secs_f64(),
                    of(Counter::LeafLoads),
                    of(Counter::RangeFlushes),
                    of(Counter::RangeCompactions),
                    of(Counter::RangesMade),
                    of(Counter::StockReads)
                );
                before = now;
            }
        };
        (std::thread::spawn(print), stop)
    });
    for h in handles {
        h.join().unwrap();
    }
    if let Ok((printer, stop)) = seconds {
        drop(stop);
        printer.join().unwrap();
    }
    let t = start.elapsed().as_secs_f64();
    let db_rows = db.statistics().totals.counter(Counter::RowsInserted);
    let s = db.statistics();
    println!(
        "{} {threads} threads: {:.3} M rows/s in {t:.2} s, log {:.1} B/row, commits/sync {:.1}, \
         leaves {} rows/leaf {:.1} gap {} us",
        args[1],
        rows as f64 / t / 1e6,
        s.log.record_bytes as f64 / rows as f64,
        rows as f64 / s.log.syncs.max(1) as f64,
        s.leaves,
        rows as f64 / s.leaves as f64,
        s.log.longest_gap_micros
    );
    // What the machine does beside it changes this less than the rate.
    println!(
        "processor time of the inserting threads {} ns/row",
        processor_nanos.load(Relaxed) / rows
    );
    if std::env::var("STATS").is_ok() {
        for c in Counter::ALL {
            println!("{} {}", c.name(), s.totals.counter(*c));
        }
        println!(
            "{}\n{}\n{}",
            s.totals.wait_report(),
            s.totals.latch_report(),
            s.totals.phase_report()
        );
    }
    if std::env::var("READ").is_ok() {
        let mut session = db.session().unwrap();
        let keys: Vec<_> = session
            .scan(&table, &Default::default())
            .unwrap()
            .step_by(7)
            .take(200_000)
            .map(|r| r.unwrap()[0].clone())
            .collect();
        let mut x = 12345u64;
        let mut next_key = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            std::slice::from_ref(&keys[(x >> 33) as usize % keys.len()])
        };
        let o = Instant::now();
        for _ in 0..1_000_000 {
            assert!(session.get(&table, next_key()).unwrap().is_some());
        }
        println!("gets {:.2} M/s one thread", 1.0 / o.elapsed().as_secs_f64());
        let o = Instant::now();
        for _ in 0..1_000_000 {
            assert!(session.get_raw(&table, next_key(), |_, _| ()).unwrap().is_some());
        }
        println!("gets as bytes {:.2} M/s one thread", 1.0 / o.elapsed().as_secs_f64());
        let o = Instant::now();
        let n = session.scan(&table, &Default::default()).unwrap().visit_raw(|_, _| ()).unwrap();
        println!("scan in memory {:.2} M rows/s", n as f64 / o.elapsed().as_secs_f64() / 1e6);
    }
    db.close().unwrap();
    println!(
        "sustained incl. close {:.3} M rows/s",
        rows as f64 / start.elapsed().as_secs_f64() / 1e6
    );
    let o = Instant::now();
    let db = Database::open(&folder, options).unwrap();
    let table = db.table("big").unwrap();
    let open_t = o.elapsed();
    let mut session = db.session().unwrap();
    let o = Instant::now();
    let n = session.scan(&table, &Default::default()).unwrap().visit_raw(|_, _| ()).unwrap();
    println!(
        "open {open_t:?}, {:?}, scan {:.2} M rows/s",
        db.recovery(),
        n as f64 / o.elapsed().as_secs_f64() / 1e6
    );
    assert_eq!(n, db_rows, "every row is there");
    drop(session);
    drop(db);
    let _ = std::fs::remove_dir_all(&folder);
}

/// Adds the processor time of its thread to a sum when it ends.
struct ProcessorTime<'a> {
    sum: &'a AtomicU64,
    began_at: u64,
}

impl ProcessorTime<'_> {
    fn begin(sum: &AtomicU64) -> ProcessorTime<'_> {
        ProcessorTime { sum, began_at: Self::now() }
    }

    /// In nanoseconds; 0 where the system does not tell.
    fn now() -> u64 {
        let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        told.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
    }
}

impl Drop for ProcessorTime<'_> {
    fn drop(&mut self) {
        self.sum.fetch_add(Self::now() - self.began_at, Relaxed);
    }
}

/// Inserts by many sessions in turn; each waits until its commit before is durable. Where the oldest one
/// is not, this thread writes the log.
fn insert_by_tasks(
    db: &Database,
    table: &onrush::Table,
    barrier: &std::sync::Barrier,
    tasks: usize,
    rows: u64,
) {
    let mut sessions: Vec<_> = (0..tasks).map(|_| (db.session().unwrap(), None)).collect();
    barrier.wait();
    for row in 0..rows as usize + tasks {
        let (session, on_its_way): &mut (_, Option<onrush::CommitToken>) =
            &mut sessions[row % tasks];
        if let Some(token) = on_its_way.take() {
            while !token.is_durable() {
                db.write_log().unwrap();
                std::thread::yield_now();
            }
        }
        if row < rows as usize {
            *on_its_way = Some(session.insert_token(table, &[]).unwrap());
        }
    }
}
