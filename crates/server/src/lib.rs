//! Onrush for PostgreSQL clients: SQL over the PostgreSQL wire protocol.
//!
//! The life of one insert here, before it becomes [an insert of the engine](onrush):
//!
//! 1. **Listener**: each client is a task, and stays with one of few threads (`listener.rs`, `threads.rs`); the address
//!    was taken before there was a database (`bound.rs`).
//! 2. **Wire**: messages are cut out of the input, each within its bounds
//!    (`connection/wire.rs`, `connection/message.rs`).
//! 3. **Plan**: the text is read once by sqlparser and resolved against the tables (`sql/`). A
//!    prepared statement keeps its plan; parameters are decoded straight into the row (`values/`).
//! 4. **Run**: the plan runs on the client's session (`execute/`). A durable commit leaves a token.
//! 5. **Settle**: before the client's answers are sent, its newest token is waited for, without a
//!    thread: many clients, and many inserts of one client, share a sync (`connection/mod.rs`).
//!
//! What works and what does not: `docs/sql.md`.

mod access;
mod advisory;
mod archive;
mod bound;
mod catalog;
mod checks;
mod clients;
mod column_change;
mod comments;
mod connection;
mod control;
mod defaults;
mod domains;
mod error;
mod execute;
mod kept;
mod lake;
mod lake_table;
mod listener;
mod made_up;
mod node;
mod notifications;
mod options;
mod own_types;
mod rewrite;
mod schemas;
mod seen;
mod sequences;
mod session_objects;
mod sql;
mod threads;
mod tls;
mod values;
mod views;

pub use access::Logins;
pub use archive::ArchiveTarget;
pub use bound::BoundServer;
pub use listener::{Server, ServerError};
pub use onrush_lake::{CatalogueConfig, CatalogueKind};
pub use onrush_query::SpillOptions;
pub use options::{DEFAULT_PORT, ServerOptions};
pub use tls::TlsFiles;
