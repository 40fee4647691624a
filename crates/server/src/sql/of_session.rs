//! What tables and views keep as text is read again by other sessions, whose time zone and order of dates may be
//! others.

use onrush_query::style::constant_of_session;

use crate::error::{Result, SqlError};

/// Refuses text with a constant that this session would read otherwise than one in which nothing is set.
///
/// # Errors
/// There is such a constant.
pub(super) fn check_constants(what: &str, sql: &str) -> Result<()> {
    match constant_of_session(sql) {
        None => Ok(()),
        Some(constant) => Err(SqlError::not_supported(
            format!(
                "the constant \"{constant}\" in {what}, in a session of another timezone or datestyle"
            ),
            "Write dates as 2024-05-31 and timestamps with their offset.",
        )),
    }
}
