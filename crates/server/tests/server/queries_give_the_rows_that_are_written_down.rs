//! The SQL subset, written down as statements and the rows that they give: `tests/slt/*.slt`, in the
//! form of sqllogictest, run over the wire. What is written down is what PostgreSQL gives, too; what
//! only one of them has is marked in the files, `onlyif onrush` or `skipif onrush`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use async_trait::async_trait;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::common::World;
use crate::postgresql::Cluster;

/// A client as sqllogictest wants it.
struct Wire {
    client: Client,
}

/// What the server said: `23514: new row ...`.
#[derive(Debug)]
struct Told(tokio_postgres::Error);

impl fmt::Display for Told {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_db_error() {
            Some(error) => write!(formatter, "{}: {}", error.code().code(), error.message()),
            None => self.0.fmt(formatter),
        }
    }
}

impl std::error::Error for Told {}

#[async_trait]
impl AsyncDB for Wire {
    type Error = Told;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Self::Error> {
        let (mut rows, mut columns, mut changed) = (Vec::new(), None, 0);
        for message in self.client.simple_query(sql).await.map_err(Told)? {
            match message {
                SimpleQueryMessage::RowDescription(described) => columns = Some(described.len()),
                SimpleQueryMessage::Row(row) => rows.push(
                    (0..row.len())
                        .map(|at| match row.get(at) {
                            None => "NULL".to_owned(),
                            Some("") => "(empty)".to_owned(),
                            Some(value) => value.to_owned(),
                        })
                        .collect(),
                ),
                SimpleQueryMessage::CommandComplete(count) => changed = count,
                _ => {}
            }
        }
        Ok(match columns {
            None => DBOutput::StatementComplete(changed),
            Some(columns) => DBOutput::Rows { types: vec![DefaultColumnType::Any; columns], rows },
        })
    }

    async fn shutdown(&mut self) {}

    fn error_sql_state(error: &Self::Error) -> Option<String> {
        error.0.code().map(|code| code.code().to_owned())
    }
}

/// The files, in the order of their names.
fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let entries = std::fs::read_dir(&folder).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files
}

/// Runs a file to its end; what is not as it is written down.
async fn run(file: &Path, label: &str, client: Client) -> Vec<String> {
    let client = Mutex::new(Some(client));
    let mut runner = Runner::new(|| async {
        Ok(Wire { client: client.lock().unwrap().take().expect("one connection a file") })
    });
    runner.add_label(label);
    let mut differences = Vec::new();
    for record in sqllogictest::parse_file(file).expect("the file is read") {
        if let Err(error) = runner.run_async(record).await {
            differences.push(format!("{label}, {}: {error}", file.display()));
        }
    }
    differences
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_give_the_rows_that_are_written_down() {
    let mut differences = Vec::new();
    for file in files() {
        let world = World::new();
        differences.extend(run(&file, "onrush", world.client().await).await);
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_gives_the_same_rows() {
    let Some(cluster) = Cluster::start() else { return };
    let mut differences = Vec::new();
    for (number, file) in files().iter().enumerate() {
        let client = cluster.client_in_new_database(&format!("file{number}")).await;
        differences.extend(run(file, "postgresql", client).await);
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
