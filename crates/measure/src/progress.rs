//! What a long measurement is doing, for whoever shows it.

use serde::{Deserialize, Serialize};

/// One part of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// The device's sync time.
    MeasureSync,
    /// The device's bandwidth.
    MeasureBandwidth,
    /// Rows inserted before the measured ones.
    Preload,
    /// Rows inserted just before the measured ones, in the same way.
    WarmUp,
    /// The measured inserts.
    Load,
    /// Making everything durable and closing.
    Close,
    /// Opening again.
    Reopen,
    /// Checking what is stored, which is what is measured.
    Check,
    /// Comparing what is there with what was acknowledged.
    Verify,
}

impl Step {
    /// A short verb phrase.
    pub fn name(self) -> &'static str {
        match self {
            Step::MeasureSync => "measuring the sync time",
            Step::MeasureBandwidth => "measuring the bandwidth",
            Step::Preload => "preloading",
            Step::WarmUp => "warming up",
            Step::Load => "inserting",
            Step::Close => "closing",
            Step::Reopen => "reopening",
            Step::Check => "checking",
            Step::Verify => "verifying",
        }
    }
}

/// Is told what a measurement is doing. All calls come from the thread that runs it, a few times a
/// second.
pub trait Observer {
    /// A step begins; `rows` is its length where it is known.
    fn begin(&self, step: Step, rows: Option<u64>);
    /// So many rows of the step are done.
    fn advance(&self, rows_done: u64);
    /// The step is over.
    fn end(&self);
    /// Something that the user should know at once.
    fn warn(&self, message: &str);
    /// Something worth a line, no more.
    fn tell(&self, _message: &str) {}
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Observer for Quiet {
    fn begin(&self, _step: Step, _rows: Option<u64>) {}
    fn advance(&self, _rows_done: u64) {}
    fn end(&self) {}
    fn warn(&self, _message: &str) {}
}
