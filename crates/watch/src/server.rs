//! Tells the statistics to whoever connects, one after the other, from a thread of its own.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use onrush::Database;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::view::View;

/// A client that takes longer to read, or to ask, is left.
const PATIENCE: Duration = Duration::from_secs(1);
/// More of a request than this is not read.
const REQUEST_BYTES_MAX: usize = 8192;

/// Serves until dropped. It keeps the database open: drop it before closing.
#[derive(Debug)]
pub struct Server {
    thread: Option<(JoinHandle<()>, UnixStream)>, // it ends when the other end of its stream is closed
    door: Door,
}

/// Where clients come in, and what to take away at the end.
#[derive(Debug)]
enum Door {
    Socket(PathBuf),
    Http(SocketAddr),
}

impl Server {
    /// Serves on the socket `stats.sock` in the folder of an open database, which no other process
    /// has: one that is there was left by a process that is gone.
    ///
    /// # Errors
    /// A path too long for a socket (about 100 bytes), or a folder that cannot be written.
    pub fn in_folder(database: &Database, folder: &Path) -> io::Result<Server> {
        let path = folder.join(crate::SOCKET_NAME);
        let listener = bind_private(folder, &path)?;
        listener.set_nonblocking(true)?;
        Server::start(database, Door::Socket(path), listener, |listener, database| {
            let (mut stream, _) = listener.accept()?;
            stream.set_nonblocking(false)?;
            stream.set_write_timeout(Some(PATIENCE))?;
            tell_all(&mut stream, database)
        })
    }

    /// Serves the page for Prometheus over HTTP on `address`, for example `127.0.0.1:9187`. Anyone
    /// who can reach the address can read it.
    ///
    /// # Errors
    /// An address that cannot be used.
    pub fn http(database: &Database, address: impl ToSocketAddrs) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let door = Door::Http(listener.local_addr()?);
        Server::start(database, door, listener, |listener, database| {
            let (mut stream, _) = listener.accept()?;
            stream.set_nonblocking(false)?;
            tell_page(&mut stream, database)
        })
    }

    fn start<L: AsFd + Send + 'static>(
        database: &Database,
        door: Door,
        listener: L,
        answer: fn(&L, &Database) -> io::Result<()>,
    ) -> io::Result<Server> {
        let (end, ended) = UnixStream::pair()?;
        let database = database.clone();
        let thread = std::thread::Builder::new().name("onrush-watch".into()).spawn(move || {
            while is_called(&listener, &ended) {
                // A client that goes away is its own affair.
                let _ = answer(&listener, &database);
            }
        })?;
        Ok(Server { thread: Some((thread, end)), door })
    }

    /// The address of an HTTP server, with the port that was chosen.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.door {
            Door::Http(address) => Some(*address),
            Door::Socket(_) => None,
        }
    }
}

/// Waits for a client; false when the server has been dropped, whatever became of the name of its socket.
fn is_called(listener: &impl AsFd, ended: &UnixStream) -> bool {
    let mut watched = [PollFd::new(listener, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
    loop {
        match poll(&mut watched, None) {
            Err(Errno::INTR) => {}
            Err(_) => return false,
            Ok(_) => return watched[1].revents().is_empty(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some((thread, end)) = self.thread.take() {
            drop(end);
            let _ = thread.join();
        }
        if let Door::Socket(path) = &self.door {
            let _ = fs::remove_file(path);
        }
    }
}

/// Listens on a socket at `path`, in `folder`, that its owner alone can reach, at any moment: it is
/// made in a folder that nobody else can enter, and moved once its own mode is right. What is at
/// `path` is replaced.
///
/// # Errors
/// A path too long for a socket (about 100 bytes), or a folder that cannot be written.
pub fn bind_private(folder: &Path, path: &Path) -> io::Result<UnixListener> {
    let private = folder.join(".watch");
    let _ = fs::remove_dir_all(&private);
    fs::DirBuilder::new().mode(0o700).create(&private)?;
    let made = private.join(crate::SOCKET_NAME);
    let listener = UnixListener::bind(&made).and_then(|listener| {
        fs::set_permissions(&made, fs::Permissions::from_mode(0o600))?;
        fs::rename(&made, path)?;
        Ok(listener)
    });
    fs::remove_dir_all(&private)?;
    listener
}

fn tell_all(stream: &mut impl Write, database: &Database) -> io::Result<()> {
    let mut line = serde_json::to_vec(&View::of(database))?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Any request is answered with the page.
fn tell_page(stream: &mut TcpStream, database: &Database) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_BYTES_MAX {
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            bytes => request.extend_from_slice(&piece[..bytes]),
        }
    }
    let page = database.statistics().to_prometheus();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        page.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(page.as_bytes())
}
