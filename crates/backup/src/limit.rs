//! What to restore: from where, and up to which moment.

use std::path::PathBuf;

use onrush_check::{CheckOptions, LogLimit};

use crate::error::BackupError;

/// What to restore.
#[derive(Clone, Debug, Default)]
pub struct RestoreOptions {
    /// How to check what is copied.
    pub check: CheckOptions,
    /// Folders with log segments that were kept since the backup. They are looked at first, so that
    /// the log goes on where the backup's ends.
    pub log_folders: Vec<PathBuf>,
    /// Up to where.
    pub limit: LogLimit,
}

/// A moment as people write it, `2026-03-01T14:05:00.5Z` or with another offset, as microseconds
/// since 1970.
///
/// # Errors
/// A text that is no timestamp, one without an offset, or one before 1970.
pub fn parse_time(text: &str) -> Result<u64, BackupError> {
    let bad = |cause: String| BackupError::BadTime { text: text.to_owned(), cause };
    let timestamp: jiff::Timestamp =
        text.parse().map_err(|error: jiff::Error| bad(error.to_string()))?;
    u64::try_from(timestamp.as_microsecond()).map_err(|_| bad("it is before 1970".to_owned()))
}

/// A moment for people, in UTC.
pub(crate) fn time_words(time_us: u64) -> Option<String> {
    let timestamp = jiff::Timestamp::from_microsecond(i64::try_from(time_us).ok()?).ok()?;
    Some(timestamp.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_timestamp_is_read_with_its_offset() {
        let expected = 1_772_373_900_500_000;
        assert_eq!(parse_time("2026-03-01T14:05:00.5Z").unwrap(), expected);
        assert_eq!(parse_time("2026-03-01 15:05:00.5+01:00").unwrap(), expected);
        assert_eq!(time_words(expected).unwrap(), "2026-03-01T14:05:00.5Z");
    }

    #[test]
    fn what_is_no_timestamp_is_refused_with_its_words() {
        for text in
            ["yesterday", "", "2026-03-01T14:05:00", "2026-13-01T00:00:00Z", "1960-01-01T00:00:00Z"]
        {
            let error = parse_time(text).unwrap_err().to_string();
            assert!(error.contains(&format!("'{text}'")), "{error}");
        }
    }
}
