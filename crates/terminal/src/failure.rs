//! From an error to a message and an exit code.
//!
//! 0: done. 1: not done, or not all of it. 2: the command line makes no sense (clap's code, too).
//! 3: damage: `check` found it, or it kept `backup` from copying, or `repair` from saving everything.
//! 4: `repair` could save nothing.

use std::fmt;
use std::io::ErrorKind;
use std::process::ExitCode;

use onrush_measure::MeasureError;

use crate::arguments::engine::flag_of;
use crate::program;

/// What a command returns.
pub type Outcome = anyhow::Result<()>;

/// A command line that cannot be meant so; the message says what is wrong and how to write it.
pub fn usage_error(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(UsageError(message.into()))
}

#[derive(Debug)]
struct UsageError(String);

impl fmt::Display for UsageError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl std::error::Error for UsageError {}

/// A failure that has been told already; only the exit code is left.
#[derive(Clone, Copy, Debug)]
pub enum AlreadyTold {
    /// Not done, or not all of it.
    NotDone = 1,
    /// There is damage, or a repair with losses.
    Damage = 3,
    /// A repair that could save nothing.
    NothingSaved = 4,
}

impl fmt::Display for AlreadyTold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("see above")
    }
}

impl std::error::Error for AlreadyTold {}

/// Prints the error, if there is one, and chooses the exit code.
pub fn report(outcome: Outcome) -> ExitCode {
    let Err(error) = outcome else { return ExitCode::SUCCESS };
    if is_closed_pipe(&error) {
        // Whoever reads, `head` for example, has seen enough.
        return ExitCode::SUCCESS;
    }
    if let Some(told) = error.downcast_ref::<AlreadyTold>() {
        return ExitCode::from(*told as u8);
    }
    if let Some(told) = wrong_setting(&error) {
        crate::tell(&format!("{}: {told}", program()));
        return ExitCode::from(2);
    }
    crate::tell(&format!("{}: {}", program(), message(&error)));
    if is_wrong_usage(&error) { ExitCode::from(2) } else { ExitCode::from(1) }
}

/// A setting out of its range, under the name by which it is typed.
fn wrong_setting(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(onrush::Error::BadOption { setting, given, reason }) => {
            let flag = flag_of(setting)?;
            Some(format!("{flag} is {given}: {reason}"))
        }
        _ => None,
    })
}

/// The error and its causes; a cause that the text before it already holds is not repeated.
fn message(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text += ": ";
            text += &cause;
        }
    }
    text
}

fn is_wrong_usage(error: &anyhow::Error) -> bool {
    let is_setting = |error: &MeasureError| matches!(error, MeasureError::Setting(_));
    let is_told_by =
        |cause: &(dyn std::error::Error + 'static)| cause.downcast_ref().is_some_and(is_setting);
    error.is::<UsageError>() || error.chain().any(is_told_by)
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|io_error| io_error.kind() == ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_setting_has_the_name_by_which_it_is_typed() {
        let options = onrush::Options { log_capacity_bytes: 1 << 20, ..onrush::Options::default() };
        let error = anyhow::Error::from(options.validate().unwrap_err());
        let told = wrong_setting(&error.context("cannot open shop")).unwrap();
        assert!(told.starts_with("--log-capacity is 1 MiB: at least"), "{told}");
        assert!(told.ends_with(": 640 MiB"), "{told}");
    }

    #[test]
    fn a_setting_that_makes_no_sense_is_wrong_usage_whoever_passes_it_on() {
        #[derive(Debug, thiserror::Error)]
        #[error("{0}")]
        struct PassedOn(#[from] MeasureError);

        let setting = || MeasureError::Setting("a load needs at least one session".into());
        assert!(is_wrong_usage(&setting().into()));
        assert!(is_wrong_usage(&PassedOn(setting()).into()));
        assert!(!is_wrong_usage(&MeasureError::NotEmpty("shop".into()).into()));
    }

    #[test]
    fn causes_are_told_once() {
        let inner = anyhow::anyhow!("the disk is full; free some space");
        let told: anyhow::Result<()> = Err(inner).context("cannot import orders.csv");
        assert_eq!(
            message(&told.unwrap_err()),
            "cannot import orders.csv: the disk is full; free some space"
        );
        let twice: anyhow::Result<()> =
            Err(anyhow::anyhow!("no table x")).context("there is no table x: no table x");
        assert_eq!(message(&twice.unwrap_err()), "there is no table x: no table x");
    }
}
