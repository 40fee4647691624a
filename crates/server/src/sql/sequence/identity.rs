//! The options of GENERATED AS IDENTITY: what the engine's own counter of a column can do is its, for anything else the
//! column gets a sequence.

use onrush::DataType;
use sqlparser::ast::{self, Expr};

use super::options::SequenceOptions;
use crate::error::{Result, SqlError, state};

/// Where the values of an identity come from.
pub(in crate::sql) enum IdentitySource {
    /// The engine's counter, which ascends by 1.
    Counter {
        start: i64,
    },
    Sequence(SequenceOptions),
}

/// What these options ask for, of a column of this type.
pub(in crate::sql) fn of_identity(
    written: &[ast::SequenceOptions],
    data_type: DataType,
) -> Result<IdentitySource> {
    let mut options = SequenceOptions { data_type: Some(data_type), ..SequenceOptions::default() };
    for option in written {
        match option {
            ast::SequenceOptions::IncrementBy(value, _) => options.increment = Some(number(value)?),
            ast::SequenceOptions::MinValue(value) => {
                options.least = Some(value.as_ref().map(number).transpose()?);
            }
            ast::SequenceOptions::MaxValue(value) => {
                options.greatest = Some(value.as_ref().map(number).transpose()?);
            }
            ast::SequenceOptions::StartWith(value, _) => options.start = Some(number(value)?),
            ast::SequenceOptions::Cache(value) => options.cache = Some(number(value)?),
            // The parser says whether NO is there.
            ast::SequenceOptions::Cycle(is_none) => options.cycles = Some(!is_none),
        }
    }
    let plain = SequenceOptions { data_type: Some(data_type), ..SequenceOptions::default() };
    let start = options.start.unwrap_or(1);
    // The counter has no least value, so a start below 1 is no fault there.
    let is_limited =
        [options.least, options.greatest].iter().any(|limit| limit.flatten().is_some());
    let asked = SequenceOptions { least: None, greatest: None, cache: None, ..options.clone() };
    let counted = SequenceOptions { start: options.start, ..plain };
    let is_plain = SequenceOptions {
        increment: asked.increment.filter(|by| *by != 1),
        cycles: asked.cycles.filter(|cycles| *cycles),
        ..asked
    } == counted;
    if is_plain && !is_limited {
        return Ok(IdentitySource::Counter { start });
    }
    options.of_new()?;
    Ok(IdentitySource::Sequence(options))
}

fn number(value: &Expr) -> Result<i64> {
    value.to_string().replace(' ', "").parse().map_err(|_| {
        let message = format!("value \"{value}\" is out of range for type bigint");
        SqlError::new(state::NUMERIC_OUT_OF_RANGE, message)
    })
}
