//! The statistics of a running database, for other processes: a Unix socket in its folder, and a page
//! for Prometheus.
//!
//! - [`view`]: what is told.
//! - [`server`]: who tells it, inside the process that has the database open.
//! - [`client`]: who asks.
//!
//! Invariants
//! 1. Read-only: whoever connects is told everything and is not listened to.
//! 2. The socket is reachable by the owner of the folder alone, from its first moment on.
//! 3. A server holds no session and no latch; a client that stalls holds up other clients for a
//!    second, and never the database.

pub mod client;
pub mod server;
pub mod view;

pub use client::{WatchError, look};
pub use server::Server;
pub use view::View;

/// The name of the socket in the database's folder.
pub const SOCKET_NAME: &str = "stats.sock";
