//! A server of its own for each test, and clients for it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};

use onrush::{Database, Options};
use onrush_files::MemoryDisk;
use onrush_server::{Server, ServerError, ServerOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// What all servers of this process have logged as a warning or an error, from the first call on.
pub fn logged_warnings() -> Arc<Mutex<Vec<u8>>> {
    static LINES: OnceLock<Arc<Mutex<Vec<u8>>>> = OnceLock::new();
    let begin = || {
        let lines = Arc::default();
        let log = Log(Arc::clone(&lines));
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::WARN)
            .with_ansi(false)
            .with_writer(move || log.clone());
        subscriber.init();
        lines
    };
    Arc::clone(LINES.get_or_init(begin))
}

#[derive(Clone)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A running server on a small database.
pub struct World {
    pub server: Option<Server>,
    pub database: Database,
    pub address: SocketAddr,
    folder: tempfile::TempDir,
}

impl World {
    pub fn new() -> World {
        World::with(ServerOptions::default())
    }

    pub fn with(options: ServerOptions) -> World {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::create(folder.path().join("db"), Options::small()).unwrap();
        World::of(database, folder, options)
    }

    pub fn with_engine(engine: Options, options: ServerOptions) -> World {
        World::try_with_engine(engine, options).unwrap()
    }

    pub fn try_with_engine(engine: Options, options: ServerOptions) -> Result<World, ServerError> {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::create(folder.path().join("db"), engine).unwrap();
        World::try_of(database, folder, options)
    }

    /// With space for transactions of a hundred thousand rows.
    pub fn with_space() -> World {
        let folder = tempfile::tempdir().unwrap();
        let (log_ring_bytes, log_capacity_bytes) = (32 << 20, 128 << 20);
        let leaf_memory_bytes = 256 << 20;
        let options =
            Options { log_ring_bytes, log_capacity_bytes, leaf_memory_bytes, ..Options::small() };
        let database = Database::create(folder.path().join("db"), options).unwrap();
        World::of(database, folder, ServerOptions::default())
    }

    /// On a disk that can be full.
    pub fn on(disk: MemoryDisk) -> World {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        // Space for a piece of a COPY in one record.
        let (log_ring_bytes, log_capacity_bytes) = (16 << 20, 36 << 20);
        let options = Options { log_ring_bytes, log_capacity_bytes, ..Options::small() };
        let database = Database::create_on(Arc::new(disk), path, options).unwrap();
        World::of(database, folder, ServerOptions::default())
    }

    /// On any disk.
    pub fn on_disk(disk: Arc<dyn onrush_files::Disk>, options: Options) -> World {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::create_on(disk, folder.path().join("db"), options).unwrap();
        World::of(database, folder, ServerOptions::default())
    }

    /// What was logged of this server's files as a warning or an error.
    pub fn warnings(&self) -> Vec<String> {
        let folder = self.folder.path().to_str().unwrap();
        let bytes = logged_warnings().lock().unwrap().clone();
        let lines = String::from_utf8(bytes).unwrap();
        lines.lines().filter(|line| line.contains(folder)).map(str::to_owned).collect()
    }

    /// The database of this server as it is on another disk.
    pub fn open_on(&self, disk: MemoryDisk) -> Database {
        let folder = self.folder.path().join("db");
        Database::open_on(Arc::new(disk), folder, Options::small()).unwrap()
    }

    fn of(database: Database, folder: tempfile::TempDir, options: ServerOptions) -> World {
        World::try_of(database, folder, options).unwrap()
    }

    fn try_of(
        database: Database,
        folder: tempfile::TempDir,
        options: ServerOptions,
    ) -> Result<World, ServerError> {
        let listen = Some("127.0.0.1:0".parse().unwrap());
        let options = ServerOptions { listen, threads: 2, ..options };
        let server = Server::start(database.clone(), options)?;
        let address = server.address().unwrap();
        Ok(World { server: Some(server), database, address, folder })
    }

    /// A server of its own on what is on the disk of this one.
    pub fn after_a_crash(&self, disk: &MemoryDisk) -> (Server, Database) {
        let (disk, folder) = (Arc::new(disk.copy()), self.folder.path().join("db"));
        let database = Database::open_on(disk, folder, Options::small()).unwrap();
        let listen = Some("127.0.0.1:0".parse().unwrap());
        let options = ServerOptions { listen, threads: 2, ..ServerOptions::default() };
        (Server::start(database.clone(), options).unwrap(), database)
    }

    /// A client that is in.
    pub async fn client(&self) -> Client {
        self.try_client().await.unwrap()
    }

    pub async fn try_client(&self) -> Result<Client, tokio_postgres::Error> {
        let settings = format!("host=127.0.0.1 port={} user=test", self.address.port());
        let (client, connection) = tokio_postgres::connect(&settings, NoTls).await?;
        // Its end is seen by the client's next call.
        tokio::spawn(connection);
        Ok(client)
    }

    /// A socket on which nothing was said yet.
    pub async fn socket(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// A socket whose client is in: everything up to the first *ready* was read.
    pub async fn raw_client(&self) -> TcpStream {
        let mut socket = self.socket().await;
        socket.write_all(&startup_message()).await.unwrap();
        loop {
            let (kind, _) = read_message(&mut socket).await.unwrap();
            if kind == b'Z' {
                return socket;
            }
        }
    }
}

/// A client of another server.
pub async fn client_of(server: &Server) -> Client {
    let settings = format!("host=127.0.0.1 port={} user=test", server.address().unwrap().port());
    let (client, connection) = tokio_postgres::connect(&settings, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The first message of a client.
pub fn startup_message() -> Vec<u8> {
    let body = b"\0\x03\0\0user\0test\0\0";
    let mut message = (body.len() as u32 + 4).to_be_bytes().to_vec();
    message.extend_from_slice(body);
    message
}

/// A message of a client.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    message.extend_from_slice(body);
    message
}

/// The next message of the server; none when it has hung up.
pub async fn read_message(socket: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut header = [0; 5];
    socket.read_exact(&mut header).await.ok()?;
    let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
    let mut body = vec![0; length - 4];
    socket.read_exact(&mut body).await.ok()?;
    Some((header[0], body))
}

/// The SQLSTATE of an error message.
pub fn state_of(body: &[u8]) -> String {
    let mut fields = body.split(|byte| *byte == 0);
    let code = fields.find(|field| field.first() == Some(&b'C')).unwrap_or_default();
    String::from_utf8(code[1..].to_vec()).unwrap()
}

/// The SQLSTATE of an error.
pub fn code(error: &tokio_postgres::Error) -> String {
    error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned())
}

/// All rows of a simple query as text, columns joined by `|`, NULL as `∅`; then the count of the
/// tag.
pub async fn query(client: &Client, text: &str) -> Vec<String> {
    let messages =
        client.simple_query(text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let mut lines = Vec::new();
    for message in messages {
        if let SimpleQueryMessage::Row(row) = message {
            let fields: Vec<&str> = (0..row.len()).map(|at| row.get(at).unwrap_or("∅")).collect();
            lines.push(fields.join("|"));
        }
    }
    lines
}

/// The SQLSTATE that a simple query fails with.
pub async fn failure(client: &Client, text: &str) -> String {
    match client.simple_query(text).await {
        Ok(_) => "no error".to_owned(),
        Err(error) => code(&error),
    }
}
