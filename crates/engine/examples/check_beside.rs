//! What an online check costs those who insert: `check_beside [BUSY_PERCENT [THREADS [ROUNDS]]]`.
//!
//! Rounds without a check and rounds with one take turns in one run; threads insert one row a commit,
//! not synced unless `DURABLE=1`, all the time. Environment: `DIR` the folder, replaced and removed;
//! `ROWS` rows before the first round; `SECONDS` of a round; `NICE` the nice value of the check;
//! `COMPARE=0` leaves the comparison of rows out.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use onrush::{
    CheckProgress, ColumnDefinition, DataType, Database, Durability, KeyStrategy, OnlineOptions,
    Options, Table, TableDefinition,
};

fn number<T: std::str::FromStr>(text: Option<String>, or: T) -> T {
    text.and_then(|text| text.parse().ok()).unwrap_or(or)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let busy_percent: u8 = number(arguments.next(), OnlineOptions::default().busy_percent);
    let threads: u64 = number(arguments.next(), 24);
    let rounds: u64 = number(arguments.next(), 5);
    let rows: u64 = number(std::env::var("ROWS").ok(), 5_000_000);
    let round = Duration::from_secs(number(std::env::var("SECONDS").ok(), 1));
    let compare_rows = std::env::var("COMPARE").as_deref() != Ok("0");
    let folder = std::env::var("DIR").unwrap_or_else(|_| "onrush-check-beside".into());
    let _ = std::fs::remove_dir_all(&folder);
    let (db, table) = create(&folder);
    let (stop, inserted) = (AtomicBool::new(false), AtomicU64::new(0));
    let nice = number(std::env::var("NICE").ok(), OnlineOptions::default().nice);
    let options = OnlineOptions { busy_percent, nice, compare_rows, ..OnlineOptions::default() };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| insert(&db, &table, &stop, &inserted));
        }
        while inserted.load(Relaxed) < rows {
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut rates = [Vec::new(), Vec::new()];
        let (mut read_bytes, mut check_s) = (0, 0.0);
        for turn in 0..2 * rounds {
            let (started, before) = (Instant::now(), inserted.load(Relaxed));
            let with_check = turn % 2 == 1;
            let progress = CheckProgress::default();
            std::thread::scope(|scope| {
                let check = with_check.then(|| scope.spawn(|| db.check(&options, &progress)));
                std::thread::sleep(round);
                progress.cancel();
                if let Some(check) = check {
                    let report = check.join().unwrap().unwrap();
                    assert_eq!(report.damage(), 0, "{report}");
                    (read_bytes, check_s) =
                        (read_bytes + report.read_bytes, check_s + report.seconds);
                }
            });
            let rate = (inserted.load(Relaxed) - before) as f64 / started.elapsed().as_secs_f64();
            rates[usize::from(with_check)].push(rate / 1e6);
        }
        stop.store(true, Relaxed);
        let [without, with] = rates.map(median);
        println!(
            "{threads} threads: {without:.3} M rows/s without, {with:.3} beside a check that is busy \
             {busy_percent} % of its time: {:.1} %; {:.0} MB/s of images and log checked",
            100.0 * with / without,
            read_bytes as f64 / 1e6 / check_s
        );
    });
    db.close().unwrap();
    let _ = std::fs::remove_dir_all(&folder);
}

fn create(folder: &str) -> (Database, Table) {
    let options = Options {
        durability: match std::env::var("DURABLE").as_deref() {
            Ok("1") => Durability::Durable,
            _ => Durability::Delayed,
        },
        leaf_memory_bytes: 10 << 30,
        ..Options::default()
    };
    let db = Database::create(folder, options).unwrap();
    let key = KeyStrategy::SessionOffset;
    let table = TableDefinition::builder("big")
        .column(ColumnDefinition::new("c1", key.natural_type()).not_null().default_key(key))
        .column(ColumnDefinition::new("c2", DataType::Timestamp).default_now())
        .column(ColumnDefinition::new("c3", DataType::Char(111)).default_value("a"))
        .column(ColumnDefinition::new("c4", DataType::Int32).default_value(1i32))
        .column(ColumnDefinition::new("c5", DataType::Int32).default_value(2i32))
        .column(ColumnDefinition::new("c6", DataType::Int64).default_value(42i64))
        .primary_key(["c1"]);
    let table = db.create_table(table.build().unwrap()).unwrap();
    (db, table)
}

fn insert(db: &Database, table: &Table, stop: &AtomicBool, inserted: &AtomicU64) {
    let mut session = db.session().unwrap();
    while !stop.load(Relaxed) {
        for _ in 0..100 {
            session.insert(table, &[]).unwrap();
        }
        inserted.fetch_add(100, Relaxed);
    }
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
