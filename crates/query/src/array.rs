//! Arrays in the text that PostgreSQL writes, on their way between clients and DataFusion.

use onrush_types::array;
pub use onrush_types::array::{Elements, write_array};

use crate::error::{QueryError, Result};

/// Reads the elements of an array.
///
/// # Errors
/// Text that is no array, or one of arrays.
pub fn read_array(written: &str) -> Result<Elements<'_>> {
    array::read_array(written).map_err(|_| {
        let shown: String = written.chars().take(80).collect();
        match written.trim_start().strip_prefix('{').map(str::trim_start) {
            Some(inner) if inner.starts_with('{') => QueryError::NotSupported {
                message: format!("an array of arrays, {shown}, is not supported"),
            },
            _ => QueryError::BadText { message: format!("malformed array literal: \"{shown}\"") },
        }
    })
}
