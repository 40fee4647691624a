//! What comparing comes to where something is not as it must be.

use std::fmt;

/// Something is not as it must be: a power cut, for example, left what it must not leave.
#[derive(Clone, Debug)]
pub struct Violation(pub String);

impl Violation {
    /// The violation, and the command of the simulator that has it again.
    pub fn with_command(&self, mode: &str, seed: impl fmt::Display) -> String {
        let command = "cargo run -p onrush-sim --release --bin simulate --";
        format!("{}\nagain: {command} {mode} --seed {seed} --seeds 1", self.0)
    }
}

/// What everything returns that can find one.
pub type Checked<T> = Result<T, Violation>;

/// Fails with a text.
#[macro_export]
macro_rules! violation {
    ($($text:tt)*) => { return Err($crate::Violation(format!($($text)*))) };
}
