//! A running database as a page for the browser: what it does, and what its sessions wait for, live.
//!
//! - `/`: the page, all of it in one answer; it loads nothing from anywhere else.
//! - `/view.json`: what the page shows, once a second.
//! - `/metrics`: the statistics for Prometheus. `/health`: whether the database takes work.
//!
//! Invariants
//! 1. Read-only: no request changes anything, and only GET is answered.
//! 2. On a loopback address nobody outside of the machine gets in, nor a page from elsewhere that runs in
//!    a browser here: requests must name it as their host. Any other address takes a [`Guard`]: all is
//!    encrypted, and who asks proves by a password that he may read. `/health` alone is for everyone,
//!    and tells one word there.
//! 3. One thread of its own: many or slow readers never hold up the database.

mod guard;
mod page;
mod routes;
mod serve;

use std::io;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use onrush::Database;
use tokio::net::TcpSocket;
use tokio::sync::oneshot;

pub use guard::{Guard, MayRead};

/// Connections that the system holds until they are accepted.
const BACKLOG: u32 = 1024;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DashboardError {
    /// An address that others can reach, without encryption.
    #[error(
        "cannot serve the page on {0} without encryption: other machines can reach it. Give a certificate \
         and its key, or 127.0.0.1 or ::1, which an SSH tunnel reaches from elsewhere"
    )]
    NotGuarded(SocketAddr),
    /// An address that cannot be listened on.
    #[error(
        "cannot serve the page on {address}: {cause}; choose another port, or end what is there"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        cause: io::Error,
    },
    /// Its thread could not be started.
    #[error("cannot start the page's thread: {0}")]
    Thread(io::Error),
}

/// The page of a database, until it is dropped.
///
/// ```
/// use onrush::{Database, Options};
/// use onrush_dashboard::Dashboard;
///
/// let folder = tempfile::tempdir()?;
/// let database = Database::open_or_create(folder.path().join("shop"), Options::small())?;
/// let dashboard = Dashboard::start(&database, "127.0.0.1:0".parse()?, None)?;
/// println!("http://{}", dashboard.address());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Dashboard {
    address: SocketAddr,
    is_guarded: bool,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Dashboard {
    /// Whether there can be a page on this address, with or without encryption.
    ///
    /// # Errors
    /// An address that other machines reach, without encryption.
    pub fn validate(address: SocketAddr, is_encrypted: bool) -> Result<(), DashboardError> {
        match address.ip().is_loopback() || is_encrypted {
            true => Ok(()),
            false => Err(DashboardError::NotGuarded(address)),
        }
    }

    /// Takes an address for the page, before there is a database; port 0 lets the system choose. Nobody can
    /// connect until the page is served.
    ///
    /// # Errors
    /// An address that is taken, or that other machines reach and nothing will guard.
    pub fn bind(address: SocketAddr, is_encrypted: bool) -> Result<BoundDashboard, DashboardError> {
        Dashboard::validate(address, is_encrypted)?;
        let take = || {
            let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            Ok(socket)
        };
        let socket = take().map_err(|cause| DashboardError::Listen { address, cause })?;
        Ok(BoundDashboard { socket, address })
    }

    /// Serves the page on an address, behind a guard if there is one; port 0 lets the system choose.
    ///
    /// # Errors
    /// An address that is taken, or that other machines reach and nothing guards.
    pub fn start(
        database: &Database,
        address: SocketAddr,
        guard: Option<Guard>,
    ) -> Result<Dashboard, DashboardError> {
        Dashboard::bind(address, guard.is_some())?.start(database, guard)
    }

    /// The address of the page, with the port that was chosen.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it is encrypted, and asks for a password.
    #[must_use]
    pub fn is_guarded(&self) -> bool {
        self.is_guarded
    }
}

/// A page that has its address, and no database yet; see [`Dashboard::bind`].
pub struct BoundDashboard {
    socket: TcpSocket,
    address: SocketAddr,
}

impl BoundDashboard {
    /// The address that was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves the page, behind a guard if there is one.
    ///
    /// # Errors
    /// An address that was taken meanwhile, or that other machines reach and nothing guards.
    pub fn start(
        self,
        database: &Database,
        guard: Option<Guard>,
    ) -> Result<Dashboard, DashboardError> {
        let BoundDashboard { socket, address } = self;
        Dashboard::validate(address, guard.is_some())?;
        let failed = |cause| DashboardError::Listen { address, cause };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(DashboardError::Thread)?;
        let listener = {
            let _inside = runtime.enter();
            socket.listen(BACKLOG).map_err(failed)?
        };
        let address = listener.local_addr().map_err(failed)?;
        let is_guarded = guard.is_some();
        let encryption = guard.as_ref().map(|guard| guard.encryption.clone());
        let routes = routes::routes(database.clone(), guard);
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve::serve(listener, routes, encryption) => {}
                    _ = stopped => {}
                }
            });
        };
        let builder = std::thread::Builder::new().name("onrush-dashboard".into());
        let thread = builder.spawn(serve).map_err(DashboardError::Thread)?;
        Ok(Dashboard { address, is_guarded, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
