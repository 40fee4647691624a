//! Patterns of `to_char`, `to_date`, `to_timestamp` and `to_number`, as PostgreSQL has them:
//! `YYYY-MM-DD HH24:MI`, `9,999.00`.

mod moments;
mod numbers;
mod template;

pub(crate) use moments::{Broken, read_date, read_moment, write_moment};
pub(crate) use numbers::{read_number, write_number};

use crate::error::QueryError;

/// A pattern that PostgreSQL has and that is not understood here.
fn not_supported(what: &str) -> QueryError {
    QueryError::NotSupported { message: format!("{what} in a pattern is not supported") }
}
