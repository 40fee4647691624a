//! Functions that tools have values written by.

use onrush::Value;
use onrush_query::SystemFunction;

use super::kinds::TEXT;

pub(super) fn functions() -> Vec<SystemFunction> {
    vec![SystemFunction::new("pg_size_pretty", TEXT, |given| {
        given.first().and_then(Value::as_i64).map_or(Value::Null, |bytes| size(bytes).into())
    })]
}

/// As PostgreSQL: the largest unit of which there are ten at least, rounded.
fn size(bytes: i64) -> String {
    const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    let mut unit = 0;
    let mut size = i128::from(bytes);
    while size.abs() >= 10_240 && unit + 1 < UNITS.len() {
        size = (size + 512 * size.signum()) / 1024;
        unit += 1;
    }
    format!("{size} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size(10_239), "10239 bytes");
        assert_eq!(size(10_240), "10 kB");
        assert_eq!(size(3 << 30), "3072 MB");
    }
}
