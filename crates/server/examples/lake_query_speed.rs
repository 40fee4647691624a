//! How long queries over all rows take, against the part of them that is in the lake alone.
//!
//! ```sh
//! cargo run --release -p onrush-server --features speed --example lake_query_speed -- 2000000 100000
//! ```
//!
//! Two nodes of one lake, in a new folder: node 1 has so many rows in the lake, and so many behind them that are not
//! there yet; node 2 has none, so what it reads is the cold part alone. Each query runs on both, in turn; medians of
//! seven runs in milliseconds, and the one divided by the other.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Instant;

use onrush::{Database, Options};
use onrush_server::{CatalogueConfig, CatalogueKind, Server, ServerOptions};
use tokio_postgres::{Client, NoTls};

type Outcome<T> = Result<T, Box<dyn Error>>;

const RUNS: usize = 7;
/// Rounds that bring the rows: as many files.
const ROUNDS: u64 = 8;
const QUERIES: [(&str, &str); 6] = [
    ("count", "SELECT count(*) FROM lake.events"),
    ("sum", "SELECT sum(amount), max(id) FROM lake.events"),
    ("group", "SELECT kind, count(*), avg(amount) FROM lake.events GROUP BY kind"),
    ("text", "SELECT count(*) FROM lake.events WHERE note LIKE '%77%'"),
    ("top", "SELECT id, amount FROM lake.events ORDER BY amount DESC, id LIMIT 10"),
    ("key", "SELECT note FROM lake.events WHERE id = 4711"),
];

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| -> Outcome<u64> {
        Ok(arguments.next().map(|given| given.parse()).transpose()?.unwrap_or(default))
    };
    let (cold, hot) = (number(2_000_000)?, number(100_000)?);
    let folder = tempfile::tempdir_in(".")?;
    let catalogue = start(&folder.path().join("catalogue"), None, BTreeMap::new())?;
    let address = catalogue.address().ok_or("no address")?;
    let config = CatalogueConfig {
        kind: CatalogueKind::Sql,
        uri: Some(format!("postgres://speed@127.0.0.1:{}/onrush", address.port())),
        warehouse: Some(format!("file://{}/lake", folder.path().canonicalize()?.display())),
        token_variable: None,
        credential_variable: None,
        allow_plain_text: false,
        properties: BTreeMap::new(),
    };
    let catalogues = BTreeMap::from([("prod".to_owned(), config)]);
    let one = start(&folder.path().join("one"), Some(1), catalogues.clone())?;
    let two = start(&folder.path().join("two"), Some(2), catalogues)?;
    let (first, second) = (client(&one).await?, client(&two).await?);
    for client in [&first, &second] {
        client
            .batch_execute(
                "CREATE TABLE events (id bigint PRIMARY KEY, kind int, amount numeric(12,2), note text);
                 SET synchronous_commit = off; CALL onrush.lake_attach('events', 'prod.shop.events', 86400)",
            )
            .await?;
    }
    for round in 0..ROUNDS {
        insert(&first, cold * round / ROUNDS, cold * (round + 1) / ROUNDS).await?;
        first.batch_execute("CALL onrush.lake_flush('events')").await?;
    }
    insert(&first, cold, cold + hot).await?;
    println!("{cold} rows in {ROUNDS} files of the lake, {hot} behind them");
    println!("{:<6} {:>10} {:>10} {:>6}", "query", "all ms", "cold ms", "ratio");
    for (name, query) in QUERIES {
        let (mut all, mut alone) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            all.push(millis(&first, query).await?);
            alone.push(millis(&second, query).await?);
        }
        let (all, alone) = (median(all), median(alone));
        println!("{name:<6} {all:>10.1} {alone:>10.1} {:>6.2}", all / alone);
    }
    for server in [one, two, catalogue] {
        server.stop()?;
    }
    Ok(())
}

fn start(
    folder: &std::path::Path,
    node: Option<u32>,
    catalogues: BTreeMap<String, CatalogueConfig>,
) -> Outcome<Server> {
    let database = Database::create(folder, Options::default())?;
    let listen = Some("127.0.0.1:0".parse()?);
    Ok(Server::start(
        database,
        ServerOptions { listen, node, catalogues, ..ServerOptions::default() },
    )?)
}

async fn client(server: &Server) -> Outcome<Client> {
    let port = server.address().ok_or("no address")?.port();
    let settings = format!("host=127.0.0.1 port={port} user=speed");
    let (client, connection) = tokio_postgres::connect(&settings, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn insert(client: &Client, from: u64, to: u64) -> Outcome<()> {
    let mut next = from;
    while next < to {
        let end = (next + 50_000).min(to);
        let insert = format!(
            "INSERT INTO events SELECT n, n % 100, n % 100000 / 4.0, 'note of the event ' || n
             FROM generate_series({next}, {}) AS n",
            end - 1
        );
        client.batch_execute(&insert).await?;
        next = end;
    }
    Ok(())
}

async fn millis(client: &Client, query: &str) -> Outcome<f64> {
    let began = Instant::now();
    client.simple_query(query).await?;
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
