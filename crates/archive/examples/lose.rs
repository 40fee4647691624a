//! Loses machines: kills a process with its database with SIGKILL, deletes its folder, restores it from its archive,
//! and counts.
//!
//! ```sh
//! cargo run --release -p onrush-archive --example lose -- 10 1.0
//! ```
//!
//! Ten losses with an archive interval of a second. Four threads wait for the archive with each commit, four do not.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use onrush::{
    CheckProgress, ColumnDefinition, DataType, Database, Options, ScanOptions, TableDefinition,
};
use onrush_archive::{Archive, ArchiveOptions, FromArchive, Place, restore};
use onrush_files::{Disk, OsDisk};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const CLIENTS: i64 = 8;
const ROWS_A_CLIENT: i64 = 1 << 40;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [child, folder, store, seconds] if child == "child" => {
            serve(Path::new(folder), store, seconds.parse()?)
        }
        [losses, seconds] => lose(losses.parse()?, seconds),
        _ => Err("losses and seconds are wanted, as in 10 1.0".into()),
    }
}

fn open(folder: &Path) -> Outcome<Database> {
    let options = Options { archive_log_bytes: 16 << 30, ..Options::within(512 << 20) };
    Ok(Database::open_or_create(folder, options)?)
}

/// Inserts until it is killed, and says what was acknowledged.
fn serve(folder: &Path, store: &str, seconds: f64) -> Outcome<()> {
    let database = open(folder)?;
    let table = match database.table("numbers") {
        Ok(table) => table,
        Err(_) => {
            let number = ColumnDefinition::new("n", DataType::Int64).not_null();
            let text = ColumnDefinition::new("text", DataType::Text);
            let table = TableDefinition::builder("numbers").column(number).column(text);
            database.create_table(table.primary_key(["n"]).build()?)?
        }
    };
    let options =
        ArchiveOptions { interval: Duration::from_secs_f64(seconds), ..ArchiveOptions::default() };
    let archive = Arc::new(Archive::start(&database, &Place::of_url(store)?, options)?);
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(archive.wait(database.durable_lsn()))?;
    println!("ready");
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (database, table, archive, runtime) = (&database, &table, &archive, &runtime);
            scope.spawn(move || -> Outcome<()> {
                let mut session = database.session()?;
                for number in 0.. {
                    let row = client * ROWS_A_CLIENT + number;
                    let text = "t".repeat((number % 300) as usize);
                    let token = session.insert_token(table, &[row.into(), text.into()])?;
                    token.wait()?;
                    if client % 2 == 0 {
                        runtime.block_on(archive.wait(token.lsn()))?;
                    }
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "{client} {number}")?;
                    out.flush()?;
                }
                Ok(())
            });
        }
    });
    Ok(())
}

fn lose(losses: u32, seconds: &str) -> Outcome<()> {
    let scratch = tempfile::tempdir()?;
    let (mut worst, mut worst_rows, mut back, mut waiting) = (Duration::ZERO, 0, Vec::new(), 0.0);
    for loss in 0..losses {
        let store = format!("file://{}/store-{loss}", scratch.path().display());
        let folder = scratch.path().join(format!("node-{loss}"));
        let mut child = Command::new(std::env::current_exe()?)
            .args(["child".as_ref(), folder.as_os_str(), store.as_ref(), seconds.as_ref()])
            .stdout(Stdio::piped())
            .spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let reader = std::thread::spawn(move || {
            let mut acknowledged: BTreeMap<i64, Vec<(i64, Instant)>> = BTreeMap::new();
            for line in output.lines().map_while(Result::ok) {
                let Some((client, number)) = line.split_once(' ') else { continue };
                let (Ok(client), Ok(number)) = (client.parse(), number.parse()) else { continue };
                acknowledged.entry(client).or_default().push((number, Instant::now()));
            }
            acknowledged
        });
        let run = Duration::from_millis(3000 + u64::from(loss) * 370);
        std::thread::sleep(run);
        let died = Instant::now();
        child.kill()?;
        child.wait()?;
        std::fs::remove_dir_all(&folder)?;
        let acknowledged = reader.join().map_err(|_| "the reader panicked")?;

        let into: PathBuf = scratch.path().join(format!("successor-{loss}"));
        let begun = Instant::now();
        let disk: Arc<dyn Disk> = Arc::new(OsDisk::buffered());
        let (place, options) = (Place::of_url(&store)?, FromArchive::default());
        let report = restore(&disk, &place, &into, &options, &CheckProgress::default())?;
        let restored = begun.elapsed();
        let database = open(&into)?;
        let table = database.table("numbers")?;
        let mut session = database.session()?;
        session.insert(&table, &[i64::MAX.into(), "back".into()])?;
        back.push(begun.elapsed());

        let mut counts = vec![0_i64; CLIENTS as usize];
        for row in session.scan(&table, &ScanOptions::default())? {
            let Some(row) = row?[0].as_i64().filter(|row| *row != i64::MAX) else { continue };
            let (client, number) = (row / ROWS_A_CLIENT, row % ROWS_A_CLIENT);
            let count = &mut counts[usize::try_from(client)?];
            if number != *count {
                return Err(format!("client {client}: row {number} behind {count} rows").into());
            }
            *count += 1;
        }
        for (client, rows) in &acknowledged {
            let count = counts[usize::try_from(*client)?];
            let lost: Vec<_> = rows.iter().filter(|(number, _)| *number >= count).collect();
            if client % 2 == 0 && !lost.is_empty() {
                return Err(format!("client {client} waited, and lost {} rows", lost.len()).into());
            }
            if let Some((_, at)) = lost.first() {
                worst = worst.max(died.duration_since(*at));
                worst_rows = worst_rows.max(lost.len());
            }
            if client % 2 == 0 {
                waiting += rows.len() as f64 / run.as_secs_f64() / f64::from(losses);
            }
        }
        println!(
            "loss {loss}: {} rows, {:.1} MB of log in {} objects, restored in {:.2} s",
            counts.iter().sum::<i64>(),
            report.log_bytes as f64 / 1e6,
            report.log_objects,
            restored.as_secs_f64()
        );
        drop((session, table, database));
        std::fs::remove_dir_all(&into)?;
    }
    back.sort();
    println!(
        "{losses} losses: who waited lost nothing; who did not lost at most {worst_rows} rows of a client, the oldest \
         {:.2} s old. An insert after {:.2} s (median), at most {:.2} s. Who waited: {waiting:.0} rows/s",
        worst.as_secs_f64(),
        back[back.len() / 2].as_secs_f64(),
        back[back.len() - 1].as_secs_f64()
    );
    Ok(())
}
