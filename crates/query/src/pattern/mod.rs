//! Patterns of `to_char`, `to_date`, `to_timestamp` and `to_number`, as PostgreSQL has them:
//! `YYYY-MM-DD HH24:MI`, `9,999.00`.

mod found;
mod numbers;
mod parts;
mod regular;
mod template;
mod timestamps;

pub(crate) use found::{Found, Pattern, behind};
pub(crate) use numbers::{read_number, write_float, write_number};
pub(crate) use regular::{Flags, in_library};
pub(crate) use timestamps::{Broken, read_date, read_timestamp, write_timestamp};

use crate::error::QueryError;

/// A pattern that PostgreSQL has and that is not understood here.
fn not_supported(what: &str) -> QueryError {
    QueryError::NotSupported { message: format!("{what} in a pattern is not supported") }
}

#[cfg(test)]
mod tests {
    use onrush::Decimal;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_pattern_is_followed_or_refused(
            pattern in "(\\PC|[YMDHS9.,0\"FMIPRäı年]){0,20}",
            text in "\\PC{0,20}",
            micros in -62_000_000_000_000_000i64..253_000_000_000_000_000,
            units in any::<i64>(),
            scale in 0u32..19,
        ) {
            let timestamp = Broken::timestamp(micros, Some((0, "UTC")));
            let _ = write_timestamp(&pattern, &timestamp);
            let _ = write_number(&pattern, &Decimal::new(units, scale).into());
            let _ = read_date(&pattern, &text);
            let _ = read_timestamp(&pattern, &text);
            let _ = read_number(&pattern, &text);
        }

        #[test]
        fn a_timestamp_comes_back_from_its_pattern(
            micros in -62_000_000_000_000_000i64..253_000_000_000_000_000,
        ) {
            let pattern = "YYYY-MM-DD HH24:MI:SS.US";
            let timestamp = Broken::timestamp(micros, Some((0, "UTC")));
            let written = write_timestamp(pattern, &timestamp).expect("written");
            prop_assert_eq!(read_timestamp(pattern, &written).expect("read"), micros);
        }
    }
}
