//! Encryption: offered where there is a certificate, demanded where other machines reach the server.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use crate::common::startup_message;
use onrush::{Database, Options};
use onrush_server::{Server, ServerError, ServerOptions, TlsFiles};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f];

/// A certificate for localhost, signed by itself, as files; and a client that trusts it.
fn certificate(folder: &Path) -> (TlsFiles, TlsConnector) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let files = TlsFiles { certificate: folder.join("cert.pem"), key: folder.join("key.pem") };
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (files, TlsConnector::from(Arc::new(config)))
}

fn database(folder: &Path) -> Database {
    Database::open_or_create(folder.join("db"), Options::small()).unwrap()
}

fn options(address: &str, tls: Option<TlsFiles>) -> ServerOptions {
    let listen = Some(address.parse().unwrap());
    ServerOptions { listen, tls, threads: 2, ..ServerOptions::default() }
}

async fn socket(server: &Server) -> TcpStream {
    let port = server.address().unwrap().port();
    TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).await.unwrap()
}

async fn encrypted(server: &Server, connector: &TlsConnector) -> TlsStream<TcpStream> {
    let mut socket = socket(server).await;
    socket.write_all(&SSL_REQUEST).await.unwrap();
    assert_eq!(socket.read_u8().await.unwrap(), b'S');
    let name = ServerName::try_from("localhost").unwrap();
    connector.connect(name, socket).await.unwrap()
}

async fn client(stream: TlsStream<TcpStream>, user: &str, password: &str) -> Client {
    let mut config = Config::new();
    config.user(user).password(password).ssl_mode(SslMode::Disable); // it is encrypted already
    let (client, connection) = config.connect_raw(stream, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_asks_for_encryption_gets_it_and_others_are_served_without() {
    let folder = tempfile::tempdir().unwrap();
    let (files, connector) = certificate(folder.path());
    let server =
        Server::start(database(folder.path()), options("127.0.0.1:0", Some(files))).unwrap();
    let secret = client(encrypted(&server, &connector).await, "test", "").await;
    secret.batch_execute("CREATE TABLE t (id bigint PRIMARY KEY)").await.unwrap();
    secret.batch_execute("INSERT INTO t VALUES (1)").await.unwrap();
    let mut open = socket(&server).await;
    open.write_all(&startup_message()).await.unwrap();
    assert_eq!(open.read_u8().await.unwrap(), b'R', "it is let in");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_encryption_ends_its_connection_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (files, connector) = certificate(folder.path());
    let server =
        Server::start(database(folder.path()), options("127.0.0.1:0", Some(files))).unwrap();
    let mut garbage = socket(&server).await;
    garbage.write_all(&SSL_REQUEST).await.unwrap();
    assert_eq!(garbage.read_u8().await.unwrap(), b'S');
    garbage.write_all(&[0x55; 4096]).await.unwrap();
    let mut rest = Vec::new();
    // The server answers with an alert or nothing, and ends it.
    let _ = garbage.read_to_end(&mut rest).await;
    client(encrypted(&server, &connector).await, "test", "").await;
}

/// What came before the encryption could be somebody else's.
#[tokio::test(flavor = "multi_thread")]
async fn bytes_in_front_of_the_encryption_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (files, _) = certificate(folder.path());
    let server =
        Server::start(database(folder.path()), options("127.0.0.1:0", Some(files))).unwrap();
    let mut socket = socket(&server).await;
    let early = [&SSL_REQUEST[..], &startup_message()].concat();
    socket.write_all(&early).await.unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer.first(), Some(&b'E'), "an error, and no S: {answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_others_reach_needs_encryption_and_a_password() {
    let folder = tempfile::tempdir().unwrap();
    let (files, connector) = certificate(folder.path());
    let refused = Server::start(database(folder.path()), options("0.0.0.0:0", None)).err();
    assert!(matches!(refused, Some(ServerError::NotEncrypted { .. })), "{refused:?}");
    let everywhere = options("0.0.0.0:0", Some(files.clone()));
    let refused = Server::start(database(folder.path()), everywhere.clone()).err();
    assert!(matches!(refused, Some(ServerError::NoPassword { .. })), "{refused:?}");

    let here = options("127.0.0.1:0", Some(files));
    let server = Server::start(database(folder.path()), here).unwrap();
    let owner = client(encrypted(&server, &connector).await, "anyone", "").await;
    let create = "CREATE ROLE admin SUPERUSER LOGIN PASSWORD 'a secret'";
    owner.batch_execute(create).await.unwrap();
    drop(owner);
    server.stop().unwrap();

    let server = Server::start(database(folder.path()), everywhere).unwrap();
    let port = server.address().unwrap().port();
    let mut open = Config::new();
    open.host("127.0.0.1").port(port).user("admin").password("a secret");
    let refused = open.ssl_mode(SslMode::Disable).connect(NoTls).await.err().unwrap();
    assert_eq!(refused.code(), Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION));
    let admin = client(encrypted(&server, &connector).await, "admin", "a secret").await;
    admin.batch_execute("CREATE TABLE t (id bigint PRIMARY KEY)").await.unwrap();
}

/// Whatever becomes of roles while the server runs.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_others_reach_lets_nobody_in_without_a_password() {
    let folder = tempfile::tempdir().unwrap();
    let (files, connector) = certificate(folder.path());
    let socket_path = folder.path().join(".s.PGSQL.5433");
    let everywhere = ServerOptions {
        unix_socket: Some(socket_path.clone()),
        ..options("0.0.0.0:0", Some(files.clone()))
    };
    let server =
        Server::start(database(folder.path()), options("127.0.0.1:0", Some(files))).unwrap();
    let owner = client(encrypted(&server, &connector).await, "anyone", "").await;
    owner.batch_execute("CREATE ROLE admin SUPERUSER LOGIN PASSWORD 'a secret'").await.unwrap();
    drop(owner);
    server.stop().unwrap();

    let server = Server::start(database(folder.path()), everywhere).unwrap();
    let mut config = Config::new();
    config.host_path(folder.path()).port(5433).user("owner");
    let (owner, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    for statement in
        ["ALTER ROLE admin NOLOGIN", "ALTER ROLE admin PASSWORD NULL", "DROP ROLE admin"]
    {
        // What is tried may succeed or not: the door must not open by it.
        let _ = owner.batch_execute(statement).await;
        for user in ["anyone", "admin", "postgres"] {
            let mut config = Config::new();
            config.user(user).password("").ssl_mode(SslMode::Disable);
            let stream = encrypted(&server, &connector).await;
            let refused = config.connect_raw(stream, NoTls).await.err();
            let refused = refused.unwrap_or_else(|| panic!("{user} came in after {statement}"));
            assert_ne!(refused.code(), None, "the server refused {user} after {statement}");
        }
        let logins = server.logins("0.0.0.0:1".parse().unwrap()).unwrap();
        assert!(!logins.accepts("anyone", "") && !logins.accepts("admin", ""), "{statement}");
    }
    client(encrypted(&server, &connector).await, "admin", "a secret").await;
}

#[test]
fn a_certificate_that_cannot_be_used_is_told_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let (files, _) = certificate(folder.path());
    let start = |files: &TlsFiles| {
        Server::start(database(folder.path()), options("127.0.0.1:0", Some(files.clone())))
    };
    let missing = TlsFiles { key: folder.path().join("nothing.pem"), ..files.clone() };
    let told = start(&missing).err().unwrap().to_string();
    assert!(told.contains("nothing.pem"), "{told}");
    let swapped = TlsFiles { certificate: files.key.clone(), key: files.certificate.clone() };
    let told = start(&swapped).err().unwrap().to_string();
    assert!(told.contains("key.pem"), "{told}");
}
