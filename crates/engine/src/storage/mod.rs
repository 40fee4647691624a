//! Leaves between memory and disk: headers that stay, rows that come and go, images.
//!
//! A leaf is in one of three states: *clean in memory* (rows as in its image), *dirty* (rows newer
//! than its image; on the list of its epoch), *on disk* (no rows in memory). A change makes it
//! dirty, an image makes it clean, the evictor drops the rows of a clean leaf, a load brings them
//! back. Leaves that a scan is about to come to are loaded ahead of it.
//!
//! Where a table is larger than memory and its keys come in no order, a *range* of keys has a *stock* on the disk
//! instead of images ([`range`], [`stock`], [`run`]), and *front leaves* with what is newer.

mod dirty;
mod emptied;
mod evict;
mod headers;
mod image;
mod imager;
mod leaf;
mod load;
mod pace;
mod range;
mod read_ahead;
mod run;
mod run_head;
mod stock;
mod stock_read;
#[allow(clippy::module_inception)]
mod storage;

pub(crate) use dirty::DirtyLists;
pub(crate) use emptied::EmptiedLeaves;
pub(crate) use evict::{EVICTORS, Evictors};
pub(crate) use image::{Image, ImageWrites};
pub(crate) use imager::Imager;
pub(crate) use leaf::{Leaf, LeafState, OnDisk};
pub(crate) use pace::Pace;
pub(crate) use range::{Range, Ranges};
pub(crate) use read_ahead::{AskedAhead, ReadAhead};
pub(crate) use run::{Run, RunKeys, RunWriter};
pub(crate) use run_head::{RunHead, read_head};
pub(crate) use stock::Stock;
pub(crate) use stock_read::{PART_IMAGES_MAX, StockKey, StockPart, WantedPart};
pub(crate) use storage::Storage;
