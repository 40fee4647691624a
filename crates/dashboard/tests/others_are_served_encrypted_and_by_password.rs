//! What is answered to other machines: nothing without encryption, and hardly anything without a
//! password.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use onrush::{Database, Options};
use onrush_dashboard::{Dashboard, Guard};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned,
};

struct World {
    database: Database,
    dashboard: Dashboard,
    client: Arc<ClientConfig>,
    /// How often somebody was asked whether a password is right.
    asked: Arc<AtomicUsize>,
    _folder: tempfile::TempDir,
}

/// A page on every address of this machine, which `ada` may read by `a:secret`.
fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path().join("db"), Options::small()).unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let may_read = Arc::new(move |name: &str, password: &str| {
        count.fetch_add(1, Ordering::Relaxed);
        (name, password) == ("ada", "a:secret")
    });
    let guard = Guard { encryption: TlsAcceptor::from(Arc::new(server)), may_read };
    let address = "0.0.0.0:0".parse().unwrap();
    let dashboard = Dashboard::start(&database, address, Some(guard)).unwrap();
    World { database, dashboard, client: Arc::new(client), asked, _folder: folder }
}

impl World {
    fn socket(&self) -> TcpStream {
        let port = self.dashboard.address().port();
        TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).unwrap()
    }

    /// The whole answer, head and body, to a request with these credentials.
    fn get(&self, path: &str, credentials: Option<&str>) -> String {
        let name = ServerName::try_from("localhost").unwrap();
        let encryption = ClientConnection::new(Arc::clone(&self.client), name).unwrap();
        let mut stream = StreamOwned::new(encryption, self.socket());
        let proof = credentials.map_or(String::new(), |credentials| {
            format!("Authorization: Basic {}\r\n", STANDARD.encode(credentials))
        });
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: db.example\r\nConnection: close\r\n{proof}\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

#[test]
fn without_encryption_nothing_is_answered() {
    let world = world();
    let mut socket = world.socket();
    write!(socket, "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // The end may be an abrupt one.
    let _ = socket.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&answer));
}

#[test]
fn without_a_password_one_is_asked_for() {
    let world = world();
    for path in ["/", "/view.json", "/metrics", "/other"] {
        let answer = world.get(path, None);
        assert!(answer.starts_with("HTTP/1.1 401 "), "{path}: {answer}");
        assert!(answer.contains("www-authenticate: Basic realm=\"Onrush\""), "{path}: {answer}");
        assert!(!answer.contains("onrush_") && !answer.contains("statistics"), "{path}: {answer}");
    }
    assert_eq!(world.asked.load(Ordering::Relaxed), 0);
}

#[test]
fn a_wrong_name_or_password_is_refused_each_time() {
    let world = world();
    for wrong in ["ada:", "ada:a", "ada:a:secret ", "eve:a:secret", ":", "ada"] {
        let answer = world.get("/metrics", Some(wrong));
        assert!(answer.starts_with("HTTP/1.1 401 "), "{wrong}: {answer}");
    }
    assert_eq!(world.asked.load(Ordering::Relaxed), 5, "all but the one without a colon");
}

#[test]
fn with_the_right_password_everything_is_there() {
    let world = world();
    for (path, part) in [
        ("/", "<title>Onrush</title>"),
        ("/view.json", "statistics"),
        ("/metrics", "onrush_leaves"),
    ] {
        let answer = world.get(path, Some("ada:a:secret"));
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains(part), "{path}: {answer}");
    }
}

#[test]
fn health_is_one_word_for_everyone() {
    let world = world();
    let answer = world.get("/health", None);
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nok\n"), "{answer}");
    world.database.clone().close().unwrap();
    let answer = world.get("/health", None);
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\nstopped\n"), "{answer}");
}
