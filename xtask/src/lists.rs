//! The lists that the rules read: what is allowed where, and what is still to be mended.
//!
//! An entry that is no longer needed is a finding too, so the lists only shrink by themselves.

/// The most lines of a Rust file, tests inside it included.
pub(crate) const FILE_LINES_MAX: usize = 600;
/// Above this a file is named as long, but passes.
pub(crate) const FILE_LINES_NOTED: usize = 400;
/// The most characters of a line. Code is held to 100 by rustfmt, which leaves comments and long
/// strings as they are; this is the limit for those.
pub(crate) const LINE_CHARS_MAX: usize = 120;

/// Files over [`FILE_LINES_MAX`], each with the most lines it may have.
pub(crate) const LONG_FILES: &[(&str, usize)] = &[];

/// Files with lines over [`LINE_CHARS_MAX`], each with the longest line it may have.
pub(crate) const WIDE_FILES: &[(&str, usize)] = &[];

/// The only files with `unsafe` code. Each block says why it is sound and which test covers it.
pub(crate) const UNSAFE_FILES: &[&str] = &[
    "crates/engine/src/memory/advice.rs",
    "crates/engine/src/memory/frame.rs",
    "crates/engine/src/memory/prefetch.rs",
    "crates/engine/src/memory/region.rs",
    "crates/engine/src/node/fingerprint.rs",
    "crates/engine/tests/memory_follows_the_table.rs",
    "crates/filter/src/zeroed.rs",
    "crates/lab/src/target/lmdb.rs",
    "crates/lab/src/target/server/process.rs",
    "crates/lab/src/target/sqlite.rs",
    "crates/latch/src/guards.rs",
    "crates/latch/src/latch.rs",
    "crates/latch/src/sync.rs",
    "crates/latch/tests/loom_admission.rs",
    "crates/log/src/log.rs",
    "crates/log/src/prefix.rs",
    "crates/log/src/ring.rs",
    "crates/log/src/writer.rs",
    "crates/terminal/src/heap.rs",
];

/// Crates that may call the system for files. The engine and what it stands on go through the
/// disk of `files`; these bring files in and out for the user, or look at the machine (`waits` asks the
/// scheduler how long a thread was ready to run, `watch` and `server` make sockets, `sim` keeps an account of
/// its own of what was acknowledged, `fuzz` keeps inputs).
pub(crate) const FILE_CALLERS: &[&str] = &[
    "files", "transfer", "lab", "measure", "cli", "waits", "watch", "server", "sim", "fuzz",
    "browser", "sharing", "lake", "archive",
];

/// Crates that decide nothing by the words of an error of others: an upgrade may change them.
pub(crate) const TYPED_ERROR_CRATES: &[&str] = &["query", "server"];

/// Files of theirs that still do, each with the most lines that do.
pub(crate) const MESSAGE_READERS: &[(&str, usize)] = &[("crates/server/src/error.rs", 1)];

/// Crates in which no name may say "flush": bytes are published, written or durable. In the engine it is said of
/// key ranges alone.
pub(crate) const ENGINE_CRATES: &[&str] = &["files", "latch", "log", "types"];

/// Uses of a module of the engine by one of a lower layer, which are to go: user, used.
pub(crate) const UPWARD_ARROWS: &[(&str, &str)] = &[];
