//! Every setting of the server: default, range and reason.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use onrush_lake::CatalogueConfig;
use onrush_query::SpillOptions;
use onrush_types::NODE_MAX;

use crate::archive::ArchiveTarget;
use crate::listener::ServerError;
use crate::tls::TlsFiles;

/// The port that is listened on unless another one is given.
pub const DEFAULT_PORT: u16 = 5433;

/// The shortest and the longest that log may wait for the archive.
const ARCHIVE_INTERVAL_MIN: Duration = Duration::from_millis(10);
const ARCHIVE_INTERVAL_MAX: Duration = Duration::from_secs(3600);

/// The settings of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// The address to listen on; port 0 lets the system choose. None: no TCP. One that other machines
    /// reach needs [`tls`](Self::tls), and a role with a password in the database.
    pub listen: Option<SocketAddr>,
    /// A Unix socket that only its owner can reach. psql finds `DIR/.s.PGSQL.PORT` by
    /// `-h DIR -p PORT`.
    pub unix_socket: Option<PathBuf>,
    /// Encryption for clients over TCP that ask for it, and for all on an address that other machines
    /// reach.
    pub tls: Option<TlsFiles>,
    /// Most clients at a time, 1 to 100,000.
    pub connections_max: usize,
    /// How many of these places are kept for superusers who have proven a password, and for the
    /// owner, who comes by the Unix socket; fewer than all.
    pub connections_reserved: usize,
    /// Largest message of a client in bytes, 64 KiB to 1 GiB. A row has to fit, and so has the text of
    /// an INSERT with many rows.
    pub message_bytes_max: usize,
    /// Memory in bytes that all connections together may have, at least 1 MiB: 48 KiB each, and buffers, long
    /// messages, prepared statements, portals and copies. What does not fit is refused.
    pub connection_memory_bytes: usize,
    /// How long a connection may take to begin. One deadline, which no byte puts off.
    pub handshake_timeout: Duration,
    /// A client that does not read its answers is left after so long.
    pub write_timeout: Duration,
    /// How long clients have to end what they are doing when the server stops.
    pub drain_timeout: Duration,
    /// Threads that serve clients; 0 is one for each processor. Queries have as many of their own.
    pub threads: usize,
    /// Memory in bytes that all statements together may have for sorting, grouping and joining, at least
    /// 1 MiB.
    pub query_memory_bytes: usize,
    /// Memory in bytes that one statement may have of it, at least 1 MiB. What a sort or a group needs
    /// beyond is written to temporary files; the smaller side of a join has to fit.
    pub statement_memory_bytes: usize,
    /// Which of many nodes the database is, 0 to 92,232: what `node_offset()` takes. Kept in the database from the
    /// first start that names one. None: what is kept, if there is something.
    pub node: Option<u32>,
    /// The catalogues of a lake that tables may be attached to, by their names. With some, the server needs a node.
    pub catalogues: BTreeMap<String, CatalogueConfig>,
    /// Where log and backups go, so that another machine can go on from there. The database needs
    /// [`archive_log_bytes`](onrush::Options::archive_log_bytes).
    pub archive: Option<ArchiveTarget>,
    /// Where temporary files of queries go. None: a statement that needs more memory than it may have
    /// fails.
    pub spill: Option<SpillOptions>,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT))),
            unix_socket: None,
            tls: None,
            connections_max: 1000,
            connections_reserved: 3,
            message_bytes_max: 256 << 20,
            connection_memory_bytes: 256 << 20,
            handshake_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(10),
            threads: 0,
            query_memory_bytes: 512 << 20,
            statement_memory_bytes: 256 << 20,
            node: None,
            catalogues: BTreeMap::new(),
            archive: None,
            spill: None,
        }
    }
}

impl ServerOptions {
    /// Whether a server can be started with these, before any database is opened for it.
    ///
    /// # Errors
    /// An address that other machines reach, without encryption; a setting out of range.
    pub fn validate(&self) -> Result<(), ServerError> {
        let ServerOptions {
            listen,
            unix_socket,
            tls,
            connections_max,
            connections_reserved,
            message_bytes_max,
            connection_memory_bytes,
            handshake_timeout: _,
            write_timeout: _,
            drain_timeout: _,
            threads: _,
            query_memory_bytes,
            statement_memory_bytes,
            node,
            catalogues: _,
            archive,
            spill: _,
        } = self;
        if let Some(address) = listen
            && !address.ip().is_loopback()
            && tls.is_none()
        {
            return Err(ServerError::NotEncrypted { address: *address });
        }
        let bad =
            |setting, given: String, reason| Err(ServerError::BadOption { setting, given, reason });
        if listen.is_none() && unix_socket.is_none() {
            return bad("listen", "none".into(), "an address or a Unix socket is needed");
        }
        if !(1..=100_000).contains(connections_max) {
            return bad("connections_max", connections_max.to_string(), "1 to 100,000 clients");
        }
        if connections_reserved >= connections_max {
            let given = connections_reserved.to_string();
            return bad("connections_reserved", given, "fewer than connections_max");
        }
        if !(64 << 10..=1 << 30).contains(message_bytes_max) {
            return bad("message_bytes_max", message_bytes_max.to_string(), "64 KiB to 1 GiB");
        }
        if *connection_memory_bytes < 1 << 20 {
            let given = connection_memory_bytes.to_string();
            return bad("connection_memory_bytes", given, "at least 1 MiB");
        }
        if *query_memory_bytes < 1 << 20 {
            return bad("query_memory_bytes", query_memory_bytes.to_string(), "at least 1 MiB");
        }
        if *statement_memory_bytes < 1 << 20 {
            let given = statement_memory_bytes.to_string();
            return bad("statement_memory_bytes", given, "at least 1 MiB");
        }
        if let Some(node) = node.filter(|node| *node > NODE_MAX) {
            return bad("node", node.to_string(), "0 to 92,232");
        }
        if let Some(target) = archive
            && !(ARCHIVE_INTERVAL_MIN..=ARCHIVE_INTERVAL_MAX).contains(&target.interval)
        {
            let given = format!("{} s", target.interval.as_secs_f64());
            return bad("archive_seconds", given, "0.01 to 3600 seconds");
        }
        Ok(())
    }
}
