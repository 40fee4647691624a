//! Where processor time goes, stack by stack: a flame graph of a load in this process.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use inferno::flamegraph;
use pprof::{Frames, ProfilerGuard, ProfilerGuardBuilder, Report};

/// Samples in each second of processor time. A prime, so that nothing that is regular keeps step with it.
const SAMPLES_PER_S: i32 = 499;
/// A sample that lies in one of these is left out: they cannot be unwound there without a risk of a deadlock.
const LEFT_OUT: &[&str] = &["libc", "libgcc", "pthread", "vdso"];

/// Samples are taken until it is dropped.
pub(super) struct Stacks(ProfilerGuard<'static>);

impl Stacks {
    /// Begins; or says why there are none.
    pub(super) fn start() -> Result<Stacks, String> {
        let builder = ProfilerGuardBuilder::default().frequency(SAMPLES_PER_S).blocklist(LEFT_OUT);
        builder
            .build()
            .map(Stacks)
            .map_err(|error| format!("stacks cannot be sampled here: {error}"))
    }

    /// Ends. Names are looked up now, which takes a while.
    pub(super) fn end(self) -> Result<Report, String> {
        let report = self.0.report().build();
        report.map_err(|error| format!("the stacks that were sampled cannot be read: {error}"))
    }
}

/// Writes the graph to `path`; returns the name of the file, or why there is none.
pub(super) fn write(report: &Report, path: &Path) -> Result<String, String> {
    if report.data.is_empty() {
        return Err("no stack was sampled: the load took too little time in this process".into());
    }
    let lines: Vec<String> = report
        .data
        .iter()
        .map(|(frames, samples)| format!("{} {samples}", folded(frames)))
        .collect();
    let mut options = flamegraph::Options::default();
    let mut graph = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut graph)
        .map_err(|error| format!("the flame graph cannot be drawn: {error}"))?;
    std::fs::write(path, graph).map_err(|error| {
        format!("the flame graph {} cannot be written: {error}", path.display())
    })?;
    Ok(path.file_name().map(OsStr::to_string_lossy).unwrap_or_default().into_owned())
}

/// The thread, then its frames, the outermost first, with semicolons between them.
fn folded(frames: &Frames) -> String {
    let name = |symbol: &pprof::Symbol| symbol.name().replace(';', ",");
    let inward = frames.frames.iter().rev().flat_map(|inlined| inlined.iter().rev().map(name));
    std::iter::once(frames.thread_name.clone()).chain(inward).collect::<Vec<_>>().join(";")
}

/// The graph of a run, beside the result file.
pub(super) fn path_of(results: &Path, case: usize, repeat: usize) -> PathBuf {
    let stem = results.file_stem().unwrap_or_default().to_string_lossy();
    results.with_file_name(format!("{stem}-stacks-{}-{}.svg", case + 1, repeat + 1))
}
