//! Nodes of one lake, and what clients ask of them.

use std::collections::BTreeMap;

use onrush_server::{CatalogueConfig, CatalogueKind, ServerOptions};
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::common::{World, code};

/// A server that has the catalogue, and where files of the lake are.
pub struct Lake {
    pub catalogue: World,
    pub files: tempfile::TempDir,
}

impl Lake {
    pub fn new() -> Lake {
        Lake { catalogue: World::new(), files: tempfile::tempdir().unwrap() }
    }

    /// A server that is a node of it.
    pub fn node(&self, number: u32) -> World {
        self.node_by(number, self.catalogue.address.port())
    }

    /// The same, where the catalogue is reached by another port.
    pub fn node_by(&self, number: u32, port: u16) -> World {
        let config = CatalogueConfig {
            kind: CatalogueKind::Sql,
            uri: Some(format!("postgres://test@127.0.0.1:{port}/onrush")),
            warehouse: Some(format!("file://{}", self.files.path().display())),
            token_variable: None,
            credential_variable: None,
            allow_plain_text: false,
            properties: BTreeMap::new(),
        };
        let catalogues = BTreeMap::from([("prod".to_owned(), config)]);
        World::with(ServerOptions { node: Some(number), catalogues, ..ServerOptions::default() })
    }
}

pub const EVENTS: &str = "CREATE TABLE events (id bigint PRIMARY KEY, kind char(3), note text)";

pub async fn attach(client: &Client, table: &str) {
    let call = format!("CALL onrush.lake_attach('{table}', 'prod.shop.{table}', 3600)");
    client.batch_execute(&call).await.unwrap();
}

pub async fn flush(client: &Client, table: &str) {
    client.batch_execute(&format!("CALL onrush.lake_flush('{table}')")).await.unwrap();
}

/// Rows as psql shows them.
pub async fn shown(client: &Client, query: &str) -> Vec<String> {
    let messages = client.simple_query(query).await.unwrap_or_else(|error| {
        panic!("{query}: {error}, {:?}", error.as_db_error());
    });
    let line = |message: SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => {
            let column = |at| row.get(at).unwrap_or("NULL").to_owned();
            Some((0..row.len()).map(column).collect::<Vec<_>>().join("|"))
        }
        _ => None,
    };
    messages.into_iter().filter_map(line).collect()
}

pub async fn one(client: &Client, query: &str) -> String {
    shown(client, query).await.concat()
}

pub async fn refused(client: &Client, statement: &str) -> (String, String, String) {
    let error = client.simple_query(statement).await.expect_err(statement);
    let told = error.as_db_error().unwrap();
    (code(&error), told.message().to_owned(), told.hint().unwrap_or_default().to_owned())
}
