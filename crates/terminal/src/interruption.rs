//! Ctrl-C and its like, while something is measured.

use crate::{program, tell};

/// The exit code of an interrupted command, as shells have it.
const INTERRUPTED: i32 = 130;

/// An interrupted measurement leaves no database behind: `remove` takes away its files, and ends what it has
/// started. The process ends here, engine and all: what it had acknowledged goes with its files.
pub fn clean_up_when_interrupted(mut remove: impl FnMut() + Send + 'static) {
    let handler = move || {
        remove();
        std::process::exit(INTERRUPTED);
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        let program = program();
        tell!("{program}: warning: an interruption will leave files behind: {error}");
    }
}
