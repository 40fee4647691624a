//! Tells the statistics to whoever connects, one after the other, from a thread of its own.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use onrush::Database;

use crate::view::View;

/// A client that takes longer to read, or to ask, is left.
const PATIENCE: Duration = Duration::from_secs(1);
/// More of a request than this is not read.
const REQUEST_BYTES_MAX: usize = 8192;

/// Serves until dropped. It keeps the database open: drop it before closing.
#[derive(Debug)]
pub struct Server {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    door: Door,
}

/// How to reach the own thread, and what to take away at the end.
#[derive(Debug)]
enum Door {
    #[cfg(unix)]
    Socket(std::path::PathBuf),
    Http(SocketAddr),
}

impl Server {
    /// Serves on the socket `stats.sock` in the folder of an open database, which no other process
    /// has: one that is there was left by a process that is gone.
    ///
    /// # Errors
    /// A path too long for a socket (about 100 bytes), or a folder that cannot be written.
    #[cfg(unix)]
    pub fn in_folder(database: &Database, folder: &std::path::Path) -> io::Result<Server> {
        let path = folder.join(crate::SOCKET_NAME);
        let listener = bind_private(folder, &path)?;
        Server::start(database, Door::Socket(path), move |database, stop| {
            for stream in listener.incoming() {
                if stop.load(Ordering::Acquire) {
                    return;
                }
                let Ok(mut stream) = stream else { continue };
                // A client that goes away is its own affair.
                let _ = stream
                    .set_write_timeout(Some(PATIENCE))
                    .and_then(|()| tell_all(&mut stream, database));
            }
        })
    }

    /// Unix sockets are needed.
    ///
    /// # Errors
    /// Always, on this system.
    #[cfg(not(unix))]
    pub fn in_folder(_database: &Database, _folder: &std::path::Path) -> io::Result<Server> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Serves the page for Prometheus over HTTP on `address`, for example `127.0.0.1:9187`. Anyone
    /// who can reach the address can read it.
    ///
    /// # Errors
    /// An address that cannot be used.
    pub fn http(database: &Database, address: impl ToSocketAddrs) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        let door = Door::Http(listener.local_addr()?);
        Server::start(database, door, move |database, stop| {
            for stream in listener.incoming() {
                if stop.load(Ordering::Acquire) {
                    return;
                }
                let Ok(mut stream) = stream else { continue };
                let _ = tell_page(&mut stream, database);
            }
        })
    }

    fn start(
        database: &Database,
        door: Door,
        serve: impl FnOnce(&Database, &AtomicBool) + Send + 'static,
    ) -> io::Result<Server> {
        let stop = Arc::new(AtomicBool::new(false));
        let (database, told) = (database.clone(), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("onrush-watch".into())
            .spawn(move || serve(&database, &told))?;
        Ok(Server { stop, thread: Some(thread), door })
    }

    /// The address of an HTTP server, with the port that was chosen.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.door {
            Door::Http(address) => Some(*address),
            #[cfg(unix)]
            Door::Socket(_) => None,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let is_woken = match &self.door {
            #[cfg(unix)]
            Door::Socket(path) => std::os::unix::net::UnixStream::connect(path).is_ok(),
            Door::Http(address) => TcpStream::connect(address).is_ok(),
        };
        // Where the socket was removed from outside nothing reaches the thread: it ends with the process.
        if let Some(thread) = self.thread.take()
            && (is_woken || thread.is_finished())
        {
            let _ = thread.join();
        }
        #[cfg(unix)]
        if let Door::Socket(path) = &self.door {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Listens on a socket at `path`, in `folder`, that its owner alone can reach, at any moment: it is
/// made in a folder that nobody else can enter, and moved once its own mode is right. What is at
/// `path` is replaced.
///
/// # Errors
/// A path too long for a socket (about 100 bytes), or a folder that cannot be written.
#[cfg(unix)]
pub fn bind_private(
    folder: &std::path::Path,
    path: &std::path::Path,
) -> io::Result<std::os::unix::net::UnixListener> {
    use std::fs;
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};

    let private = folder.join(".watch");
    let _ = fs::remove_dir_all(&private);
    fs::DirBuilder::new().mode(0o700).create(&private)?;
    let made = private.join(crate::SOCKET_NAME);
    let listener = std::os::unix::net::UnixListener::bind(&made).and_then(|listener| {
        fs::set_permissions(&made, fs::Permissions::from_mode(0o600))?;
        fs::rename(&made, path)?;
        Ok(listener)
    });
    fs::remove_dir_all(&private)?;
    listener
}

#[cfg(unix)]
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
