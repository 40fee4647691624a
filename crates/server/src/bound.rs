//! A server's addresses, taken before there is anything to serve: one that is in use, a certificate that cannot be
//! used or a setting out of range is found before a database is opened, or made.
//!
//! Nobody gets in before the server starts: an address is taken, and not listened on.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use onrush::Database;
use tokio::net::TcpSocket;
use tokio_rustls::TlsAcceptor;

use crate::listener::{Server, ServerError};
use crate::options::ServerOptions;
use crate::tls::TlsFiles;

/// Connections that the system holds until they are accepted.
pub(crate) const BACKLOG: u32 = 1024;

/// A server that has its address, and no database yet; see [`Server::bind`].
pub struct BoundServer {
    pub(crate) options: ServerOptions,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) tcp: Option<TcpSocket>,
}

impl BoundServer {
    pub(crate) fn new(options: ServerOptions) -> Result<BoundServer, ServerError> {
        options.validate()?;
        let tls = options.tls.as_ref().map(TlsFiles::acceptor).transpose()?;
        let tcp = options.listen.map(taken).transpose()?;
        options.unix_socket.as_deref().map_or(Ok(()), refuse_taken_path)?;
        Ok(BoundServer { options, tls, tcp })
    }

    /// Whether the server can serve a database that is yet to be made, and so has no roles.
    ///
    /// # Errors
    /// [`NoPassword`](ServerError::NoPassword): other machines reach the address.
    pub fn check_without_roles(&self) -> Result<(), ServerError> {
        match self.options.listen {
            Some(address) if !address.ip().is_loopback() => {
                Err(ServerError::NoPassword { address })
            }
            _ => Ok(()),
        }
    }

    /// Starts to serve the database. It listens when this returns.
    ///
    /// # Errors
    /// An address that other machines reach, and no role with a password; one that was taken meanwhile.
    pub fn start(self, database: Database) -> Result<Server, ServerError> {
        Server::start_bound(self, database)
    }
}

/// A socket that has the address.
fn taken(address: SocketAddr) -> Result<TcpSocket, ServerError> {
    let take = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // Connections of a server that has ended may linger; one that runs has the address all the same.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(socket)
    };
    take().map_err(|cause| ServerError::Listen { place: address.to_string(), cause })
}

/// Refuses the path of a socket that somebody serves, or of a file that is none; one that nobody serves any more is
/// replaced.
fn refuse_taken_path(path: &Path) -> Result<(), ServerError> {
    let cause = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => error,
        Ok(metadata) if !metadata.file_type().is_socket() => {
            io::Error::new(io::ErrorKind::AlreadyExists, "a file of that name is there")
        }
        Ok(_) if UnixStream::connect(path).is_ok() => io::ErrorKind::AddrInUse.into(),
        Ok(_) => return Ok(()),
    };
    Err(ServerError::Listen { place: path.display().to_string(), cause })
}
