//! The archive of a node that may burn: its log and backups go to an object store, and a successor comes from there.
//!
//! In `<place>/<history>/`, where the history is [`Database::id`](onrush::Database::id) as 32 hexadecimal digits:
//!
//! | object | what |
//! |---|---|
//! | `log/<segment>-<offset>` | whole blocks of the log, byte by byte, named by where the one before ends |
//! | `backup/<end LSN>/<attempt>/part-<number>` | pages of one checkpoint |
//! | `backup/<end LSN>/manifest` | written last: what makes a backup of the parts, with the log from its C on |
//!
//! Objects are created, never overwritten. The name of the next object of the log follows from the one before, so of
//! two who archive the same history, a copied folder, one is refused; and a restore closes the history by an object
//! of its own under that name, so whoever was thought lost is refused, too, and what it acknowledged as archived is
//! in the successor.
//!
//! - [`store`]: folders and buckets. `object`, `manifest`: what is in objects.
//! - [`archiver`]: from one object to the next. [`archive`]: a thread that does so, and who waits for it. `backup`:
//!   pages of a checkpoint into the store.
//! - [`restore`](restore()): back into a folder.

#![forbid(unsafe_code)]

pub mod archive;
pub mod archiver;
mod backup;
pub mod error;
mod manifest;
mod object;
pub mod options;
pub mod restore;
pub mod store;

pub use archive::{Archive, ArchiveState, Phase};
pub use archiver::{Archiver, Step, Totals};
pub use error::{ArchiveError, FencedBecause};
pub use options::ArchiveOptions;
pub use restore::{FromArchive, FromArchiveReport, restore};
pub use store::{Bucket, Created, Folder, Listed, Place, Store, StoreError};
