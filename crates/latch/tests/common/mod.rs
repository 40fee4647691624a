//! What the models of latches and admission share.

use std::sync::{Arc, LazyLock};

use onrush_waits::{Recorder, Registry, Statistics};

/// One for all threads of all models: statistics are off, so nothing is written. It is made on a
/// thread of its own, since those of a model have small stacks.
static RECORDER: LazyLock<Arc<Recorder>> = LazyLock::new(|| {
    let make = || Recorder::new(&Registry::with_statistics(Statistics::Off), "model");
    std::thread::spawn(make).join().expect("making a recorder does not panic")
});

/// A recorder that records nothing.
pub fn recorder() -> Arc<Recorder> {
    Arc::clone(&RECORDER)
}
