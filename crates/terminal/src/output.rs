//! To standard output, so that a closed pipe is an error and not a panic.

use std::io::{BufWriter, StdoutLock, Write};

use serde::Serialize;

use crate::failure::Outcome;

/// Prints text as it is.
pub fn text(text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Prints one JSON object over several lines.
pub fn json(value: &impl Serialize) -> Outcome {
    let mut out = writer();
    serde_json::to_writer_pretty(&mut out, value)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Prints one JSON object on one line.
pub fn json_line(value: &impl Serialize) -> Outcome {
    let mut out = writer();
    serde_json::to_writer(&mut out, value)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// For many lines. To be flushed by the caller, who then sees the error.
pub fn writer() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 << 10, std::io::stdout().lock())
}
