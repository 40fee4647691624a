//! What is known in memory of keys on the disk, so that a new key is proved new without a read.
//!
//! A cold key range keeps its rows in a large sorted base and in small sorted fragments. A key is given as a hash of 64
//! bits; equal hashes of different keys only cost a read that finds nothing.
//!
//! - [`filter`]: is the key in the base? Static, built when a base is written, 4 to 10 bits a key and 13 % more.
//! - [`locator`]: which fragments may have the key? Up to eight fragments share one, and each adds its keys.
//!
//! Invariants
//! 1. No false negative: a key that was put in is found. The uniqueness of primary keys rests on it.
//! 2. What is read back from the disk is refused if its parts do not fit each other; damage that fits is what
//!    the checksum of the caller's block is for.

pub mod filter;
pub mod locator;
mod zeroed;

pub use filter::{DamagedFilter, Filter, FingerprintBits};
pub use locator::{Fragments, Locator};
