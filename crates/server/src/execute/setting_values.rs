//! Values of settings: how they are read and shown.

use std::time::Duration;

use crate::error::{Result, SqlError, state};

pub(super) fn on_or_off(is_on: bool) -> String {
    if is_on { "on" } else { "off" }.to_owned()
}

/// In lower case.
pub(super) fn boolean(name: &str, value: &str) -> Result<bool> {
    match value {
        "on" | "true" | "t" | "yes" | "y" | "1" => Ok(true),
        "off" | "false" | "f" | "no" | "n" | "0" => Ok(false),
        other => Err(bad_value(name, other, "on or off")),
    }
}

pub(super) fn shown(duration: Duration) -> String {
    match duration.as_millis() {
        0 => "0".to_owned(),
        millis => format!("{millis}ms"),
    }
}

/// Milliseconds unless there is a unit.
pub(super) fn duration(name: &str, value: Option<&str>) -> Result<Duration> {
    let Some(value) = value else { return Ok(Duration::ZERO) };
    let digits = value.trim().trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let millis_per_unit = match value.trim()[digits.len()..].trim() {
        "" | "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(bad_value(name, value, "a time such as 500ms, 10s or 5min")),
    };
    let count = digits.trim().parse::<u32>();
    let count = count.map_err(|_| bad_value(name, value, "a time such as 500ms, 10s or 5min"))?;
    Ok(Duration::from_millis(u64::from(count) * millis_per_unit))
}

pub(super) fn bad_value(name: &str, value: &str, expected: &str) -> SqlError {
    let message = format!("invalid value for parameter {name:?}: \"{value}\"");
    SqlError::new(state::INVALID_PARAMETER_VALUE, message)
        .with_hint(format!("It can be: {expected}."))
}
