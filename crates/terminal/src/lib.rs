//! What the commands `onrush` and `onrush-lab` share: the engine's settings as flags, progress, output, the heap of
//! the process, and the way from an error to a message and an exit code.

pub mod arguments;
pub mod failure;
pub mod heap;
pub mod interruption;
pub mod output;
pub mod progress;

/// A line on standard error. Whoever read it may be gone: that is no reason to fail, least of all on the way out.
pub fn tell(message: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{message}");
}

/// As [`tell()`], with the arguments of `format!`. `eprintln!` panics where standard error is closed.
#[macro_export]
macro_rules! tell {
    ($($text:tt)*) => { $crate::tell(&format!($($text)*)) };
}

/// The name by which this program was started, for the head of its messages.
pub fn program() -> String {
    let words = std::env::args_os().next();
    let name = words.as_ref().and_then(|word| std::path::Path::new(word).file_stem());
    name.map_or_else(|| "onrush".to_owned(), |name| name.to_string_lossy().into_owned())
}
