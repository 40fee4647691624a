//! What reads bytes that somebody else wrote, each as a function of bytes: it may refuse them, and
//! must not panic, hang, or take memory out of proportion.
//!
//! - [`store`]: superblock, root, directory segment, image and log block of a small database, with
//!   the checksums above them repaired, so that the decoders behind the checksums are reached; by
//!   check and by engine.
//! - [`text`]: files to import, and studies.
//! - [`wire`]: what clients send, before and after they are let in.
//! - [`mutate`]: inputs made from the kept ones. The kept ones are in `fuzz/corpus`.
//!
//! Three ways to run them: the test of this crate (kept inputs and some made from them, on every
//! change), `cargo run -p onrush-fuzz --release -- run` (as long as one likes), and cargo-fuzz in
//! `fuzz/`, which follows coverage and needs a nightly compiler.

pub mod mutate;
pub mod store;
pub mod text;
pub mod wire;

use std::path::{Path, PathBuf};

/// One reader of bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// Reads an input. Panics where something is wrong.
    pub read: fn(&[u8]),
    /// Inputs to begin with, each with a name.
    pub seeds: fn() -> Vec<(String, Vec<u8>)>,
}

/// All of them.
pub const TARGETS: [Target; 10] = [
    Target {
        name: "superblock",
        read: store::superblock,
        seeds: || store::seeds(store::Part::Superblock),
    },
    Target { name: "root", read: store::root, seeds: || store::seeds(store::Part::Root) },
    Target {
        name: "directory",
        read: store::directory,
        seeds: || store::seeds(store::Part::Directory),
    },
    Target { name: "image", read: store::image, seeds: || store::seeds(store::Part::Image) },
    Target {
        name: "log_block",
        read: store::log_block,
        seeds: || store::seeds(store::Part::LogBlock),
    },
    Target { name: "import_csv", read: text::import_csv, seeds: text::csv_seeds },
    Target { name: "import_json", read: text::import_json, seeds: text::json_seeds },
    Target { name: "study", read: text::study, seeds: text::study_seeds },
    Target { name: "wire_before_start", read: wire::before_start, seeds: wire::start_seeds },
    Target { name: "wire_after_start", read: wire::after_start, seeds: wire::message_seeds },
];

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}

/// Where the kept inputs of a target are.
#[must_use]
pub fn corpus(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target.name)
}

/// The kept inputs of a target with their names, in order.
///
/// # Errors
/// The folder cannot be read.
pub fn kept(target: &Target) -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut inputs = Vec::new();
    for entry in std::fs::read_dir(corpus(target))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        inputs.push((name, std::fs::read(path)?));
    }
    inputs.sort();
    Ok(inputs)
}
