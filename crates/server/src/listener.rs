//! Listens, lets clients in, and sends them home when the server stops.
//!
//! Clients are tasks on few threads. A client that is just beginning and one that is in are counted
//! apart, so that those who never finish to begin cannot keep everyone else out for long.
//!
//! Invariant: when [`Server::stop`] returns, no client is left, and everything that was committed is
//! durable.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use onrush::{Database, MemoryPart};
use onrush_query::{QueryEngine, QueryError, QueryOptions};
use tokio::net::{TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::access::{Access, Logins};
use crate::archive::Archives;
use crate::bound::{BACKLOG, BoundServer};
use crate::catalog;
use crate::checks::Compiler;
use crate::clients::Clients;
use crate::connection::{self, ConnectionMemory, Door, Line, Peer};
use crate::defaults::DatabaseDefaults;
use crate::execute::drop_leftovers;
use crate::lake::Lake;
use crate::node;
use crate::options::ServerOptions;
use crate::sequences::Sequences;
use crate::threads::{ClientThread, ClientThreads};

/// Sockets that may be open beyond those of clients that are in.
const BEGINNING_MAX: usize = 64;
/// Threads that may be blocked beyond those of clients that wait for others.
const BLOCKING_THREADS_MAX: usize = 512;
/// After a failed accept: most likely the system has no space for another socket.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why a server does not start or stop in good order.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// An address that others can reach, without encryption.
    #[error(
        "cannot listen on {address} without encryption: it can be reached from other machines. Give a \
         certificate and its key, or listen on 127.0.0.1, ::1 or a Unix socket"
    )]
    NotEncrypted {
        /// The address.
        address: SocketAddr,
    },
    /// An address that others can reach, and nobody has a password.
    #[error(
        "cannot listen on {address}: it can be reached from other machines, and no role has a password. \
         Listen on 127.0.0.1 or a Unix socket first, and CREATE ROLE admin SUPERUSER LOGIN PASSWORD \
         '...' there (psql's \\password does not show it)"
    )]
    NoPassword {
        /// The address.
        address: SocketAddr,
    },
    /// A certificate or key that cannot be used.
    #[error("cannot encrypt with {}: {cause}", path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// A setting outside its range.
    #[error("setting {setting} is {given}: {reason}")]
    BadOption {
        /// Which setting.
        setting: &'static str,
        /// Its value.
        given: String,
        /// What is allowed.
        reason: &'static str,
    },
    /// Another node than the database is.
    #[error(
        "the database is node {known}, and is to be node {asked}: keys and marks of a node are its own for ever. \
         Start it without --node, or make a database for node {asked}"
    )]
    OtherNode {
        /// What it is.
        known: u32,
        /// What it was to be.
        asked: u32,
    },
    /// A number of a node whose database was lost.
    #[error(
        "the number {asked} belongs to the history that was lost: the database was restored from a backup, and rows \
         and keys of node {asked} may be elsewhere. Give it a number that no node has had"
    )]
    LostNode {
        /// What it was to be.
        asked: u32,
    },
    /// A database whose backup was restored twice, and never started as a server in between.
    #[error(
        "the database cannot be node {asked}: it was restored from a backup of node {lost} more than once, and no \
         server ran in between, so up to where it has that node's rows is not known. Restore the backup of node {lost} \
         itself"
    )]
    UnknownHistory {
        /// What it was to be.
        asked: u32,
        /// What the database was that was lost.
        lost: u32,
    },
    /// An address or socket that cannot be listened on.
    #[error("cannot listen on {place}: {cause}; choose another, or end what is listening there")]
    Listen {
        /// Where.
        place: String,
        /// What the system said.
        cause: io::Error,
    },
    /// The threads could not be started.
    #[error("cannot start threads: {0}")]
    Threads(io::Error),
    /// The query engine could not be started.
    #[error("cannot start the query engine: {0}")]
    Queries(#[from] QueryError),
    /// The lake drain could not be started.
    #[error("cannot start the lake drain: {0}")]
    Lake(#[from] onrush_lake::LakeError),
    /// The archive could not be started.
    #[error("cannot start the archive: {0}")]
    Archive(#[from] onrush_archive::ArchiveError),
    /// The database.
    #[error(transparent)]
    Database(#[from] onrush::Error),
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) database: Database,
    pub(crate) queries: Arc<QueryEngine>,
    pub(crate) access: Arc<Access>,
    pub(crate) defaults: Arc<DatabaseDefaults>,
    pub(crate) sequences: Arc<Sequences>,
    pub(crate) options: ServerOptions,
    pub(crate) shutdown: watch::Sender<bool>,
    seats: Arc<Semaphore>,
    /// Those of them that are kept for superusers.
    reserved: Arc<Semaphore>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) connection_memory: Arc<ConnectionMemory>,
    /// Which of many nodes the database is.
    pub(crate) node: Option<u32>,
    pub(crate) lake: Arc<Lake>,
    pub(crate) archives: Arc<Archives>,
}

impl Shared {
    /// A place for one more client, until it is dropped, if there is one; of the reserved ones
    /// only where that is allowed and all others are taken.
    pub(crate) fn seat(&self, may_be_reserved: bool) -> Option<OwnedSemaphorePermit> {
        let free = Arc::clone(&self.seats).try_acquire_owned();
        let reserved = || Arc::clone(&self.reserved).try_acquire_owned();
        free.or_else(|full| if may_be_reserved { reserved() } else { Err(full) }).ok()
    }
}

/// A running server.
///
/// ```
/// use onrush::{Database, Options};
/// use onrush_server::{Server, ServerOptions};
///
/// let folder = tempfile::tempdir()?;
/// let database = Database::open_or_create(folder.path().join("shop"), Options::small())?;
/// let listen = Some("127.0.0.1:0".parse()?);
/// let server = Server::start(database, ServerOptions { listen, ..ServerOptions::default() })?;
/// println!("psql -h 127.0.0.1 -p {}", server.address().expect("it listens").port());
/// server.stop()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server {
    shared: Arc<Shared>,
    sockets: Arc<Semaphore>,
    sockets_max: usize,
    threads: Option<ClientThreads>,
    address: Option<SocketAddr>,
    unix_socket: Option<PathBuf>,
}

impl Server {
    /// Takes the addresses of a server, before there is a database: what keeps it from starting is found
    /// before one is made.
    ///
    /// # Errors
    /// An address that other machines reach, without encryption; one that is taken; a setting out of range; a
    /// certificate that cannot be used.
    pub fn bind(options: ServerOptions) -> Result<BoundServer, ServerError> {
        BoundServer::new(options)
    }

    /// Starts to serve the database. It listens when this returns.
    ///
    /// # Errors
    /// As [`bind`](Self::bind) and [`BoundServer::start`].
    pub fn start(database: Database, options: ServerOptions) -> Result<Server, ServerError> {
        Server::bind(options)?.start(database)
    }

    pub(crate) fn start_bound(
        bound: BoundServer,
        database: Database,
    ) -> Result<Server, ServerError> {
        let BoundServer { options, tls, tcp } = bound;
        drop_leftovers(&database)?;
        let node = node::of(&database, options.node)?;
        let lake = Arc::new(Lake::start(&database, node.clone(), &options.catalogues)?);
        let node = node.map(|identity| identity.node.0);
        let archives = Arc::new(Archives::start(&database, options.archive.as_ref())?);
        let access = Arc::new(Access::load(&database)?);
        let defaults = Arc::new(DatabaseDefaults::load(&database)?);
        options.listen.map_or(Ok(()), |address| check_passwords(address, &access))?;
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let count = if options.threads > 0 { options.threads } else { processors };
        // Each client may wait for another one's definition, on a thread of its own, and none of those that are
        // waited for may lack one.
        let blocking_max = options.connections_max + BLOCKING_THREADS_MAX;
        let threads = ClientThreads::start(count, blocking_max).map_err(ServerError::Threads)?;
        let queries = QueryOptions {
            threads: count,
            memory_bytes: options.query_memory_bytes,
            statement_memory_bytes: options.statement_memory_bytes,
            spill: options.spill.clone(),
        };
        let sequences = Arc::new(Sequences::new(&database, &access));
        let functions = catalog::functions(&database, &sequences);
        let queries = Arc::new(QueryEngine::new(queries, functions)?);
        let memory = queries.memory();
        database.count_memory(move || {
            let [used, limit] =
                [memory.used_bytes(), memory.limit_bytes()].map(|bytes| bytes as u64);
            MemoryPart::new("queries", used, Some(limit))
        });
        let connection_memory = ConnectionMemory::new(options.connection_memory_bytes);
        let counted = Arc::clone(&connection_memory);
        database.count_memory(move || {
            let [used, limit] =
                [counted.used_bytes(), counted.limit_bytes()].map(|bytes| bytes as u64);
            MemoryPart::new("connections", used, Some(limit))
        });
        let compiler = Compiler { queries: Arc::downgrade(&queries) };
        database.set_expression_compiler(Arc::new(compiler));
        let sockets_max = options.connections_max + BEGINNING_MAX;
        let sockets = Arc::new(Semaphore::new(sockets_max));
        let shared = Arc::new(Shared {
            seats: Arc::new(Semaphore::new(options.connections_max - options.connections_reserved)),
            reserved: Arc::new(Semaphore::new(options.connections_reserved)),
            database,
            queries,
            access,
            defaults,
            sequences,
            shutdown: watch::Sender::new(false),
            clients: Arc::default(),
            connection_memory,
            node,
            lake,
            archives,
            options: options.clone(),
        });
        let mut server = Server {
            shared,
            sockets,
            sockets_max,
            threads: None,
            address: None,
            unix_socket: options.unix_socket.clone(),
        };
        if let Some((socket, address)) = tcp.zip(options.listen) {
            server.listen_tcp(&threads, socket, address, tls)?;
        }
        if let Some(path) = &options.unix_socket {
            server.listen_unix(&threads, path.clone())?;
        }
        server.threads = Some(threads);
        Ok(server)
    }

    fn listen_tcp(
        &mut self,
        threads: &ClientThreads,
        socket: TcpSocket,
        address: SocketAddr,
        tls: Option<TlsAcceptor>,
    ) -> Result<(), ServerError> {
        let failed = |cause| ServerError::Listen { place: address.to_string(), cause };
        let _inside = threads.first().enter();
        let listener = socket.listen(BACKLOG).map_err(failed)?;
        self.address = Some(listener.local_addr().map_err(failed)?);
        let door = Door::on(address, tls);
        self.serve_all(threads, door, move |context| {
            let accepted = listener.poll_accept(context)?;
            accepted.map(|(stream, peer)| {
                // Answers are sent when they are complete; nothing is gained by waiting.
                let _ = stream.set_nodelay(true);
                Ok((Socket::Tcp(stream.into_std()?), Peer::Tcp(peer)))
            })
        });
        Ok(())
    }

    fn listen_unix(&mut self, threads: &ClientThreads, path: PathBuf) -> Result<(), ServerError> {
        let failed = |cause| ServerError::Listen { place: path.display().to_string(), cause };
        let path = std::path::absolute(&path).map_err(failed)?;
        let folder = path.parent().unwrap_or(&path);
        let listener = onrush_watch::server::bind_private(folder, &path).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let _inside = threads.first().enter();
        let listener = UnixListener::from_std(listener).map_err(failed)?;
        let door = Door::of_owner();
        self.serve_all(threads, door, move |context| {
            let accepted = listener.poll_accept(context)?;
            accepted.map(|(stream, _)| Ok((Socket::Unix(stream.into_std()?), Peer::Unix)))
        });
        Ok(())
    }

    /// Lets clients in until the server stops.
    fn serve_all(
        &self,
        threads: &ClientThreads,
        door: Door,
        mut poll_accept: impl FnMut(&mut Context<'_>) -> Poll<io::Result<(Socket, Peer)>>
        + Send
        + 'static,
    ) {
        let (shared, sockets) = (Arc::clone(&self.shared), Arc::clone(&self.sockets));
        let choice = threads.choice().clone();
        threads.first().spawn(async move {
            let mut shutdown = shared.shutdown.subscribe();
            loop {
                let accepted = tokio::select! {
                    accepted = std::future::poll_fn(&mut poll_accept) => accepted,
                    _ = shutdown.wait_for(|is_down| *is_down) => return,
                };
                match accepted {
                    Ok((socket, peer)) => {
                        let door = Door { peer, line: socket.line(), ..door.clone() };
                        let_begin(socket, &shared, &sockets, door, choice.least_busy());
                    }
                    Err(error) => pause_after(&error).await,
                }
            }
        });
    }

    /// The address that is listened on, with the port that was chosen.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// A client's end of a new connection from within this process. It comes in as by the Unix socket, so no
    /// password is asked for: whoever holds the database may do everything with it anyway.
    ///
    /// ```
    /// # use std::io::{Read, Write};
    /// # use onrush::{Database, Options};
    /// # use onrush_server::{Server, ServerOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let database = Database::open_or_create(folder.path().join("shop"), Options::small())?;
    /// # let listen = Some("127.0.0.1:0".parse()?);
    /// # let server = Server::start(database, ServerOptions { listen, ..ServerOptions::default() })?;
    /// let mut client = server.client()?;
    /// client.write_all(b"\0\0\0\x13\0\x03\0\0user\0shop\0\0")?; // the first message of the protocol
    /// let mut kind = [0];
    /// client.read_exact(&mut kind)?;
    /// assert_eq!(&kind, b"R"); // what follows says that it is in
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The system has no space for sockets; the server is being stopped.
    pub fn client(&self) -> io::Result<std::os::unix::net::UnixStream> {
        let (ours, its) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let Some(threads) = &self.threads else {
            return Err(io::Error::other("the server is being stopped"));
        };
        let thread = threads.choice().least_busy();
        let_begin(Socket::Unix(ours), &self.shared, &self.sockets, Door::of_owner(), thread);
        Ok(its)
    }

    /// Who can log in, for another door to this database on `address`.
    ///
    /// # Errors
    /// [`NoPassword`](ServerError::NoPassword): other machines reach the address, and nobody has one.
    pub fn logins(&self, address: SocketAddr) -> Result<Logins, ServerError> {
        check_passwords(address, &self.shared.access)?;
        Ok(Logins::new(Arc::clone(&self.shared.access)))
    }

    /// Lets nobody in any more, lets clients end the statements that they are running, sends them
    /// away, makes everything durable, and closes the database.
    ///
    /// # Errors
    /// What [`Database::close`] reports.
    pub fn stop(mut self) -> Result<(), ServerError> {
        self.end_clients();
        let closed = self.shared.database.clone().close();
        // Behind the last commit, so that the archive has all of them.
        self.shared.archives.stop();
        Ok(closed?)
    }

    fn end_clients(&mut self) {
        // Before the clients: the catalogue of the lake may be this very server.
        self.shared.lake.stop();
        self.shared.shutdown.send_replace(true);
        let Some(threads) = self.threads.take() else { return };
        let all = u32::try_from(self.sockets_max).unwrap_or(u32::MAX);
        let (timeout, sockets) = (self.shared.options.drain_timeout, &self.sockets);
        // In a thread of its own, because the caller may be a task of another runtime.
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let drained = threads.first().block_on(async {
                    tokio::time::timeout(timeout, sockets.acquire_many(all)).await.is_ok()
                });
                if !drained {
                    tracing::warn!("clients that did not end in time are cut off");
                }
                threads.shut_down(timeout);
            });
        });
        if let Some(path) = &self.unix_socket {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end_clients();
    }
}

/// Where other machines come in, somebody must have a password.
fn check_passwords(address: SocketAddr, access: &Access) -> Result<(), ServerError> {
    match address.ip().is_loopback() || access.has_passwords() {
        true => Ok(()),
        false => Err(ServerError::NoPassword { address }),
    }
}

/// A client's socket, before its thread has it.
enum Socket {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Socket {
    fn line(&self) -> Option<Arc<Line>> {
        let line = match self {
            Socket::Tcp(stream) => Line::of(stream),
            Socket::Unix(stream) => Line::of(stream),
        };
        line.map(Arc::new)
    }

    /// Serves the client, in the thread that this is called in.
    async fn serve(self, shared: Arc<Shared>, door: Door) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => {
                connection::serve(TcpStream::from_std(stream)?, shared, door).await;
            }
            Socket::Unix(stream) => {
                connection::serve(UnixStream::from_std(stream)?, shared, door).await;
            }
        }
        Ok(())
    }
}

fn let_begin(
    socket: Socket,
    shared: &Arc<Shared>,
    sockets: &Arc<Semaphore>,
    door: Door,
    thread: ClientThread,
) {
    let Ok(permit) = Arc::clone(sockets).try_acquire_owned() else {
        tracing::warn!(peer = %door.peer, "too many sockets are open; a client was turned away");
        return;
    };
    let shared = Arc::clone(shared);
    let ClientThread { runtime, presence } = thread;
    runtime.spawn(async move {
        let peer = door.peer;
        if let Err(error) = socket.serve(shared, door).await {
            tracing::warn!(%error, %peer, "a client could not be let in");
        }
        drop((permit, presence));
    });
}

async fn pause_after(error: &io::Error) {
    tracing::warn!(%error, "a client could not be let in");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}
