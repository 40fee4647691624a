//! A running database as a page for the browser: what it does, and what its sessions wait for, live.
//!
//! - `/`: the page, all of it in one answer; it loads nothing from anywhere else.
//! - `/view.json`: what the page shows, once a second.
//! - `/metrics`: the statistics for Prometheus. `/health`: whether the database takes work.
//!
//! Invariants
//! 1. Read-only: no request changes anything, and only GET is answered.
//! 2. Nobody outside of the machine gets in, nor a page from elsewhere that runs in a browser here: the
//!    address is a loopback address, and requests must name it as their host.
//! 3. One thread of its own: many or slow readers never hold up the database.

mod page;
mod routes;

use std::io;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use onrush::Database;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DashboardError {
    /// An address that others can reach.
    #[error(
        "cannot serve the page on {0}: other machines can reach it, and the page asks nobody who he is. \
         Give 127.0.0.1 or ::1, and reach it from elsewhere through an SSH tunnel"
    )]
    NotLoopback(SocketAddr),
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
/// let dashboard = Dashboard::start(&database, "127.0.0.1:0".parse()?)?;
/// println!("http://{}", dashboard.address());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Dashboard {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Dashboard {
    /// Whether there can be a page on this address.
    ///
    /// # Errors
    /// An address that is not a loopback address.
    pub fn validate(address: SocketAddr) -> Result<(), DashboardError> {
        match address.ip().is_loopback() {
            true => Ok(()),
            false => Err(DashboardError::NotLoopback(address)),
        }
    }

    /// Serves the page on a loopback address; port 0 lets the system choose.
    ///
    /// # Errors
    /// An address that is not a loopback address, or is taken.
    pub fn start(database: &Database, address: SocketAddr) -> Result<Dashboard, DashboardError> {
        Dashboard::validate(address)?;
        let failed = |cause| DashboardError::Listen { address, cause };
        let listener = std::net::TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(DashboardError::Thread)?;
        let routes = routes::routes(database.clone());
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            runtime.block_on(async {
                let listener = match TcpListener::from_std(listener) {
                    Ok(listener) => listener,
                    Err(error) => return tracing::error!(%error, "the page cannot be served"),
                };
                tokio::select! {
                    served = axum::serve(listener, routes) => {
                        tracing::error!(?served, "the page is not served any more");
                    }
                    _ = stopped => {}
                }
            });
        };
        let builder = std::thread::Builder::new().name("onrush-dashboard".into());
        let thread = builder.spawn(serve).map_err(DashboardError::Thread)?;
        Ok(Dashboard { address, stop: Some(stop), thread: Some(thread) })
    }

    /// The address of the page, with the port that was chosen.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
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
