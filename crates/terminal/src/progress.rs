//! Progress on the terminal: to standard error, and only when that is a terminal.

use std::cell::RefCell;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use onrush_measure::{Observer, Step};

const LENGTH_KNOWN: &str =
    "{msg} {wide_bar:.green/black} {human_pos}/{human_len} rows  {rows_per_s}  {eta} left";
const LENGTH_UNKNOWN: &str = "{spinner} {msg} {elapsed}";
const ROWS_ONLY: &str = "{spinner} {msg} {human_pos} rows  {rows_per_s}  {elapsed}";
const BYTES: &str =
    "{msg} {wide_bar:.green/black} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left";

/// What is over sooner gets no bar: it would only flicker.
const BEFORE_A_BAR: Duration = Duration::from_millis(300);

/// Whether progress is shown at all.
pub fn is_shown(quiet: bool) -> bool {
    !quiet && std::io::stderr().is_terminal()
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key(
            "rows_per_s",
            |state: &indicatif::ProgressState, out: &mut dyn std::fmt::Write| {
                let rate = onrush_measure::units::rounded(state.per_sec());
                // A bar that cannot be drawn is not worth an error.
                let _ = write!(out, "{rate} rows/s");
            },
        );
    style.progress_chars("━━─")
}

/// A bar over a number of bytes.
pub fn bytes_bar(quiet: bool, total_bytes: u64, message: &str) -> ProgressBar {
    bar(quiet, Some(total_bytes), message, BYTES)
}

/// Works, and shows beside it how far that is, if it takes longer than a moment: `show` sets the bar
/// every tenth of a second.
pub fn beside_bytes_bar<T>(
    quiet: bool,
    message: &str,
    show: impl Fn(&ProgressBar) + Sync,
    work: impl FnOnce() -> T,
) -> T {
    let is_done = AtomicBool::new(false);
    let follow = || {
        std::thread::park_timeout(BEFORE_A_BAR);
        if is_done.load(Ordering::Acquire) {
            return;
        }
        let bar = bytes_bar(quiet, 0, message);
        while !is_done.load(Ordering::Acquire) {
            show(&bar);
            std::thread::park_timeout(Duration::from_millis(100));
        }
        bar.finish_and_clear();
    };
    std::thread::scope(|scope| {
        let follower = scope.spawn(follow);
        let result = work();
        is_done.store(true, Ordering::Release);
        follower.thread().unpark();
        result
    })
}

/// A count of rows whose end is not known.
pub fn rows_bar(quiet: bool, message: &str) -> ProgressBar {
    bar(quiet, None, message, ROWS_ONLY)
}

fn bar(quiet: bool, length: Option<u64>, message: &str, template: &str) -> ProgressBar {
    if !is_shown(quiet) {
        return ProgressBar::hidden();
    }
    let bar = match length {
        Some(length) => ProgressBar::new(length),
        None => ProgressBar::new_spinner(),
    };
    bar.set_style(style(template));
    bar.set_message(message.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Shows what the lab is doing. On a terminal a bar, else one line a step, unless quiet.
pub struct LabProgress {
    quiet: bool,
    bar: RefCell<Option<ProgressBar>>,
}

impl LabProgress {
    /// Quiet: warnings only.
    pub fn new(quiet: bool) -> LabProgress {
        LabProgress { quiet, bar: RefCell::new(None) }
    }
}

impl Observer for LabProgress {
    fn begin(&self, step: Step, rows: Option<u64>) {
        if self.quiet {
            return;
        }
        if !is_shown(self.quiet) {
            crate::tell(&format!("{} ...", step.name()));
            return;
        }
        let template = if rows.is_some() { LENGTH_KNOWN } else { LENGTH_UNKNOWN };
        *self.bar.borrow_mut() = Some(bar(self.quiet, rows, step.name(), template));
    }

    fn advance(&self, rows_done: u64) {
        if let Some(bar) = &*self.bar.borrow() {
            bar.set_position(rows_done);
        }
    }

    fn end(&self) {
        if let Some(bar) = self.bar.borrow_mut().take() {
            bar.finish_and_clear();
        }
    }

    fn warn(&self, message: &str) {
        crate::tell(&format!("{}: warning: {message}", crate::program()));
    }

    fn tell(&self, message: &str) {
        if !self.quiet {
            crate::tell(message);
        }
    }
}
