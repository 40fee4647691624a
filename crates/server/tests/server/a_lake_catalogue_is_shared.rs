//! Several clients share the tables of a catalogue in an SQL database, and none loses what another
//! one committed. The database is Onrush's own server, in this process; or the server that
//! `ONRUSH_LAKE_SQL` names, a PostgreSQL for instance.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use iceberg::spec::{NestedField, PrimitiveType, Schema, Type};
use iceberg::table::Table;
use iceberg::transaction::{ApplyTransactionAction, Transaction};
use iceberg::{
    Catalog, ErrorKind, Namespace, NamespaceIdent, Result, TableCommit, TableCreation, TableIdent,
};
use onrush::{Database, Options};
use onrush_lake::{CatalogueConfig, CatalogueKind};
use onrush_server::{Server, ServerOptions};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, Notify};
use tokio_postgres::NoTls;

/// A database and a folder for the tables.
struct World {
    folder: TempDir,
    server: Option<Server>,
    uri: String,
    /// Differs from run to run, as a database that stands elsewhere remembers the last one.
    catalogue: String,
}

impl World {
    fn new() -> World {
        let elsewhere = std::env::var("ONRUSH_LAKE_SQL").ok();
        elsewhere.map_or_else(World::within, |uri| World::at(uri, None, TempDir::new().unwrap()))
    }

    fn within() -> World {
        let folder = TempDir::new().unwrap();
        let database =
            Database::open_or_create(folder.path().join("db"), Options::small()).unwrap();
        let listen = Some("127.0.0.1:0".parse().unwrap());
        let options = ServerOptions { listen, ..ServerOptions::default() };
        let server = Server::start(database, options).unwrap();
        let address = server.address().unwrap();
        World::at(format!("postgres://drain@{address}/catalogue"), Some(server), folder)
    }

    fn at(uri: String, server: Option<Server>, folder: TempDir) -> World {
        World { folder, server, uri, catalogue: uuid::Uuid::new_v4().to_string() }
    }

    fn address(&self) -> SocketAddr {
        let config: tokio_postgres::Config = self.uri.parse().unwrap();
        SocketAddr::from(([127, 0, 0, 1], config.get_ports()[0]))
    }

    async fn catalogue(&self) -> Arc<dyn Catalog> {
        self.catalogue_by(&self.uri).await
    }

    async fn catalogue_by(&self, uri: &str) -> Arc<dyn Catalog> {
        let config = CatalogueConfig {
            kind: CatalogueKind::Sql,
            uri: Some(uri.to_owned()),
            warehouse: Some(format!("file://{}/tables", self.folder.path().display())),
            token_variable: None,
            credential_variable: None,
            allow_plain_text: false,
            properties: [("catalog_name".to_owned(), self.catalogue.clone())].into(),
        };
        config.connect("prod").await.unwrap()
    }

    /// A catalogue that reaches the database by way of the wire.
    async fn catalogue_over(&self, wire: &Wire) -> Arc<dyn Catalog> {
        let from = format!(":{}/", self.address().port());
        let uri = self.uri.replace(&from, &format!(":{}/", wire.port));
        self.catalogue_by(&uri).await
    }

    fn stop(self) {
        if let Some(server) = self.server {
            server.stop().unwrap();
        }
    }
}

fn namespace(levels: &[&str]) -> NamespaceIdent {
    NamespaceIdent::from_strs(levels).unwrap()
}

fn events() -> TableIdent {
    TableIdent::from_strs(["shop", "events"]).unwrap()
}

fn creation(name: &str, properties: &[(&str, &str)]) -> TableCreation {
    let id = NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long));
    let schema = Schema::builder().with_fields([Arc::new(id)]).build().unwrap();
    let properties = properties.iter().map(|(key, value)| (key.to_string(), value.to_string()));
    TableCreation::builder().name(name.to_owned()).schema(schema).properties(properties).build()
}

/// `shop.events`.
async fn make_events(catalogue: &dyn Catalog, properties: &[(&str, &str)]) -> Table {
    catalogue.create_namespace(&namespace(&["shop"]), HashMap::new()).await.unwrap();
    let creation = creation("events", properties);
    catalogue.create_table(&namespace(&["shop"]), creation).await.unwrap()
}

async fn set(catalogue: &dyn Catalog, base: &Table, key: String) -> Result<Table> {
    let transaction = Transaction::new(base);
    let action = transaction.update_table_properties().set(key, "yes".to_owned());
    action.apply(transaction)?.commit(catalogue).await
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

/// A catalogue whose clients wait for each other before they commit.
#[derive(Debug)]
struct Meeting {
    catalogue: Arc<dyn Catalog>,
    barrier: Arc<Barrier>,
}

#[async_trait]
impl Catalog for Meeting {
    async fn load_table(&self, table: &TableIdent) -> Result<Table> {
        self.catalogue.load_table(table).await
    }
    async fn update_table(&self, commit: TableCommit) -> Result<Table> {
        self.barrier.wait().await;
        self.catalogue.update_table(commit).await
    }
    async fn list_namespaces(&self, _: Option<&NamespaceIdent>) -> Result<Vec<NamespaceIdent>> {
        unimplemented!()
    }
    async fn create_namespace(
        &self,
        _: &NamespaceIdent,
        _: HashMap<String, String>,
    ) -> Result<Namespace> {
        unimplemented!()
    }
    async fn get_namespace(&self, _: &NamespaceIdent) -> Result<Namespace> {
        unimplemented!()
    }
    async fn namespace_exists(&self, _: &NamespaceIdent) -> Result<bool> {
        unimplemented!()
    }
    async fn update_namespace(&self, _: &NamespaceIdent, _: HashMap<String, String>) -> Result<()> {
        unimplemented!()
    }
    async fn drop_namespace(&self, _: &NamespaceIdent) -> Result<()> {
        unimplemented!()
    }
    async fn list_tables(&self, _: &NamespaceIdent) -> Result<Vec<TableIdent>> {
        unimplemented!()
    }
    async fn create_table(&self, _: &NamespaceIdent, _: TableCreation) -> Result<Table> {
        unimplemented!()
    }
    async fn drop_table(&self, _: &TableIdent) -> Result<()> {
        unimplemented!()
    }
    async fn purge_table(&self, _: &TableIdent) -> Result<()> {
        unimplemented!()
    }
    async fn table_exists(&self, _: &TableIdent) -> Result<bool> {
        unimplemented!()
    }
    async fn rename_table(&self, _: &TableIdent, _: &TableIdent) -> Result<()> {
        unimplemented!()
    }
    async fn register_table(&self, _: &TableIdent, _: String) -> Result<Table> {
        unimplemented!()
    }
}

/// Stands between client and server, and cuts.
struct Wire {
    port: u16,
    cut: Arc<Notify>,
    /// Of the next commit: it is cut when the answer is there.
    loses_answer: Arc<AtomicBool>,
}

impl Wire {
    async fn new(server: SocketAddr) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (cut, loses_answer) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let wire = Wire { port, cut: Arc::clone(&cut), loses_answer: Arc::clone(&loses_answer) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (cut, loses_answer) = (Arc::clone(&cut), Arc::clone(&loses_answer));
                tokio::spawn(async move {
                    tokio::select! {
                        () = cut.notified() => {}
                        () = carry(client, server, &loses_answer) => {}
                    }
                });
            }
        });
        wire
    }
}

async fn carry(mut client: TcpStream, server: SocketAddr, loses_answer: &AtomicBool) {
    let mut server = TcpStream::connect(server).await.unwrap();
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            count = client.read(&mut asked) => {
                let bytes = &asked[..count.unwrap_or(0)];
                if bytes.is_empty() || server.write_all(bytes).await.is_err() {
                    return;
                }
                let is_commit = bytes.windows(21).any(|part| part == b"UPDATE iceberg_tables");
                if is_commit && loses_answer.swap(false, Ordering::SeqCst) {
                    let _ = server.read(&mut answered).await;
                    return;
                }
            }
            count = server.read(&mut answered) => {
                let bytes = &answered[..count.unwrap_or(0)];
                if bytes.is_empty() || client.write_all(bytes).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_commits_wins() {
    let world = World::new();
    let catalogues = [world.catalogue().await, world.catalogue().await];
    // Both make the catalogue's tables.
    let [one, other] = &catalogues;
    let found = tokio::join!(one.list_namespaces(None), other.list_namespaces(None));
    assert!(found.0.unwrap().is_empty() && found.1.unwrap().is_empty());
    make_events(&**one, &[("commit.retry.num-retries", "0")]).await;
    let barrier = Arc::new(Barrier::new(2));
    let commits = catalogues.iter().cloned().map(|catalogue| {
        let meeting = Meeting { catalogue, barrier: Arc::clone(&barrier) };
        tokio::spawn(async move {
            let base = meeting.load_table(&events()).await.unwrap();
            let transaction = Transaction::new(&base);
            let summary = HashMap::from([("round".to_owned(), "1".to_owned())]);
            let append = transaction.fast_append().set_snapshot_properties(summary);
            append.apply(transaction).unwrap().commit(&meeting).await
        })
    });
    let (mut winners, mut losers) = (0, Vec::new());
    for commit in commits.collect::<Vec<_>>() {
        match commit.await.unwrap() {
            Ok(_) => winners += 1,
            Err(loser) => losers.push((loser.kind(), loser.retryable())),
        }
    }
    assert_eq!((winners, losers), (1, vec![(ErrorKind::CatalogCommitConflicts, true)]));
    for catalogue in &catalogues {
        let table = catalogue.load_table(&events()).await.unwrap();
        assert_eq!(table.metadata().snapshots().count(), 1);
    }
    world.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_commit_replaces_another() {
    let world = World::new();
    let maker = world.catalogue().await;
    // These commits require nothing of the table, so the swap alone keeps them apart.
    let retries = [("commit.retry.num-retries", "100"), ("commit.retry.min-wait-ms", "1")];
    make_events(&*maker, &retries).await;
    let mut writers = Vec::new();
    for writer in 0..3 {
        let catalogue = world.catalogue().await;
        writers.push(tokio::spawn(async move {
            for round in 0..8 {
                let base = catalogue.load_table(&events()).await.unwrap();
                set(&*catalogue, &base, format!("set.{writer}.{round}")).await.unwrap();
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let table = maker.load_table(&events()).await.unwrap();
    let set = table.metadata().properties().keys().filter(|key| key.starts_with("set."));
    assert_eq!(set.count(), 24);
    assert_eq!(table.metadata().metadata_log().len(), 24);
    world.stop();
}

#[tokio::test]
async fn a_table_is_seen_renamed_and_dropped() {
    let world = World::new();
    let (one, other) = (world.catalogue().await, world.catalogue().await);
    let missing = kind(one.create_table(&namespace(&["shop"]), creation("events", &[])).await);
    assert_eq!(missing, ErrorKind::NamespaceNotFound);
    let made = make_events(&*one, &[]).await;
    let again = other.create_table(&namespace(&["shop"]), creation("events", &[])).await;
    assert_eq!(kind(again), ErrorKind::TableAlreadyExists);
    let loaded = other.load_table(&events()).await.unwrap();
    assert_eq!(loaded.metadata(), made.metadata());
    assert!(loaded.metadata().location().ends_with("/tables/shop/events"));
    assert_eq!(other.list_tables(&namespace(&["shop"])).await.unwrap(), [events()]);

    let past = TableIdent::from_strs(["shop", "old", "past"]).unwrap();
    assert_eq!(kind(other.rename_table(&events(), &past).await), ErrorKind::NamespaceNotFound);
    other.create_namespace(past.namespace(), HashMap::new()).await.unwrap();
    other.rename_table(&events(), &past).await.unwrap();
    assert_eq!(kind(one.rename_table(&events(), &past).await), ErrorKind::TableNotFound);
    assert_eq!(kind(one.load_table(&events()).await), ErrorKind::TableNotFound);
    let renamed = one.load_table(&past).await.unwrap();
    assert_eq!(renamed.metadata().uuid(), made.metadata().uuid());

    one.create_table(&namespace(&["shop"]), creation("events", &[])).await.unwrap();
    assert_eq!(kind(one.rename_table(&past, &events()).await), ErrorKind::TableAlreadyExists);
    one.drop_table(&past).await.unwrap();
    assert!(!other.table_exists(&past).await.unwrap());
    assert_eq!(kind(other.drop_table(&past).await), ErrorKind::TableNotFound);
    let location = renamed.metadata_location().unwrap().to_owned();
    let back = other.register_table(&past, location.clone()).await.unwrap();
    assert_eq!(back.metadata().uuid(), made.metadata().uuid());
    assert_eq!(kind(one.register_table(&past, location).await), ErrorKind::TableAlreadyExists);
    assert_eq!(kind(one.purge_table(&events()).await), ErrorKind::FeatureUnsupported);
    one.drop_table(&events()).await.unwrap();
    assert!(!one.table_exists(&events()).await.unwrap());
    world.stop();
}

#[tokio::test]
async fn a_namespace_keeps_its_properties() {
    let world = World::new();
    let (one, other) = (world.catalogue().await, world.catalogue().await);
    assert!(one.list_namespaces(None).await.unwrap().is_empty());
    let deep = namespace(&["shop", "it's_a%", "deep"]);
    let properties = HashMap::from([("owner".to_owned(), "it's me".to_owned())]);
    one.create_namespace(&deep, properties.clone()).await.unwrap();
    let again = other.create_namespace(&deep, HashMap::new()).await;
    assert_eq!(kind(again), ErrorKind::NamespaceAlreadyExists);
    other.create_namespace(&namespace(&["shopping"]), HashMap::new()).await.unwrap();
    let found = other.get_namespace(&deep).await.unwrap();
    assert_eq!(found.properties()["owner"], "it's me");

    let [shop, middle] = [namespace(&["shop"]), namespace(&["shop", "it's_a%"])];
    assert!(other.namespace_exists(&shop).await.unwrap());
    assert!(!other.namespace_exists(&namespace(&["sho"])).await.unwrap());
    let all = other.list_namespaces(None).await.unwrap();
    assert_eq!(all, [shop.clone(), namespace(&["shopping"])]);
    assert_eq!(other.list_namespaces(Some(&shop)).await.unwrap(), std::slice::from_ref(&middle));
    assert_eq!(other.list_namespaces(Some(&middle)).await.unwrap(), std::slice::from_ref(&deep));
    assert_eq!(other.list_namespaces(Some(&deep)).await.unwrap(), []);
    let nowhere = namespace(&["nowhere"]);
    let missing = other.list_namespaces(Some(&nowhere)).await;
    assert_eq!(kind(missing), ErrorKind::NamespaceNotFound);
    let missing = other.update_namespace(&nowhere, HashMap::new()).await;
    assert_eq!(kind(missing), ErrorKind::NamespaceNotFound);

    let place = format!("file://{}/place/", world.folder.path().display());
    let properties = HashMap::from([("location".to_owned(), place.clone())]);
    other.update_namespace(&deep, properties).await.unwrap();
    let found = one.get_namespace(&deep).await.unwrap();
    assert_eq!(found.properties()["location"], place);
    assert!(!found.properties().contains_key("owner"));
    let table = one.create_table(&deep, creation("events", &[])).await.unwrap();
    assert_eq!(table.metadata().location(), format!("{place}events"));

    assert_eq!(kind(one.drop_namespace(&deep).await), ErrorKind::PreconditionFailed);
    assert_eq!(kind(one.drop_namespace(&shop).await), ErrorKind::PreconditionFailed);
    one.drop_table(table.identifier()).await.unwrap();
    one.drop_namespace(&deep).await.unwrap();
    assert!(!other.namespace_exists(&shop).await.unwrap());
    assert_eq!(kind(other.drop_namespace(&deep).await), ErrorKind::NamespaceNotFound);
    world.stop();
}

#[tokio::test]
async fn a_lost_connection_is_made_again() {
    let world = World::new();
    let wire = Wire::new(world.address()).await;
    let catalogue = world.catalogue_over(&wire).await;
    let made = make_events(&*catalogue, &[]).await;
    wire.cut.notify_waiters();
    let table = catalogue.load_table(&events()).await.unwrap();
    assert_eq!(table.metadata().uuid(), made.metadata().uuid());
    wire.cut.notify_waiters();
    set(&*catalogue, &table, "one".to_owned()).await.unwrap();

    wire.loses_answer.store(true, Ordering::SeqCst);
    let lost = set(&*catalogue, &table, "two".to_owned()).await.unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Unexpected);
    assert!(!lost.retryable(), "{lost}");
    let table = catalogue.load_table(&events()).await.unwrap();
    let has = |key| table.metadata().properties().contains_key(key);
    assert!(has("one") && has("two"));
    // Each was committed once.
    assert_eq!(table.metadata().metadata_log().len(), 2);
    world.stop();
}

#[tokio::test]
async fn a_catalogue_of_an_older_client_is_gone_on_with() {
    let world = World::within();
    let (client, connection) = tokio_postgres::connect(&world.uri, NoTls).await.unwrap();
    tokio::spawn(connection);
    let older = "CREATE TABLE iceberg_tables (catalog_name varchar(255), \
                 table_namespace varchar(255), table_name varchar(255), \
                 metadata_location varchar(1000), previous_metadata_location varchar(1000), \
                 PRIMARY KEY (catalog_name, table_namespace, table_name))";
    client.batch_execute(older).await.unwrap();
    let catalogue = world.catalogue().await;
    let made = make_events(&*catalogue, &[]).await;
    set(&*catalogue, &made, "one".to_owned()).await.unwrap();

    let newer = "ALTER TABLE iceberg_tables ADD COLUMN iceberg_type varchar(5)";
    client.batch_execute(newer).await.unwrap();
    let catalogue = world.catalogue().await;
    let table = catalogue.load_table(&events()).await.unwrap();
    set(&*catalogue, &table, "two".to_owned()).await.unwrap();
    client.batch_execute("UPDATE iceberg_tables SET iceberg_type = 'VIEW'").await.unwrap();
    assert_eq!(kind(catalogue.load_table(&events()).await), ErrorKind::TableNotFound);
    let again = catalogue.create_table(&namespace(&["shop"]), creation("events", &[])).await;
    assert_eq!(kind(again), ErrorKind::TableAlreadyExists);
    world.stop();
}
