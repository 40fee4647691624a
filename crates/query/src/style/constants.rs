//! Constants in text that is kept: what one of them means must not depend on who reads it.

use onrush::DataType;

use super::{DateOrder, IntervalStyle, by_default, current};
use crate::datetime;

/// A constant in quotes that the session reads otherwise than one in which nothing is set.
#[must_use]
pub fn constant_of_session(sql: &str) -> Option<String> {
    let style = current();
    let reads_by_default = style.zone.is_utc()
        && style.order == DateOrder::default()
        && style.intervals != IntervalStyle::Sql;
    if reads_by_default {
        return None;
    }
    let mut rest = sql;
    while let Some((_, behind)) = rest.split_once('\'') {
        let (constant, behind) = behind.split_once('\'')?;
        if is_of_session(constant) {
            return Some(constant.to_owned());
        }
        rest = behind;
    }
    None
}

fn is_of_session(constant: &str) -> bool {
    let read = |data_type| datetime::read(data_type, constant).ok();
    let differs = |data_type| read(data_type) != by_default(|| read(data_type));
    let is_signed = constant.contains('-') && current().intervals == IntervalStyle::Sql;
    differs(DataType::Date) || differs(DataType::TimestampTz) || is_signed
}
