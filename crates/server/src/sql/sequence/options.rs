//! What the options of a sequence make of it, as PostgreSQL says.

use onrush::{DataType, SequenceDefinition};
use sqlparser::ast;

use crate::error::{Result, SqlError, state};
use crate::sequences::Position;
use crate::values;

/// The column that a sequence is to go with, by the engine's name of its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) table: String,
    pub(crate) column: String,
}

/// What is said of a sequence; none of what stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SequenceOptions {
    pub(crate) data_type: Option<DataType>,
    pub(crate) increment: Option<i64>,
    /// `Some(None)`: as it is where nothing is said.
    pub(crate) least: Option<Option<i64>>,
    pub(crate) greatest: Option<Option<i64>>,
    pub(crate) start: Option<i64>,
    /// `Some(None)`: at the start.
    pub(crate) restart: Option<Option<i64>>,
    pub(crate) cache: Option<i64>,
    pub(crate) cycles: Option<bool>,
    /// `Some(None)`: no column.
    pub(crate) owner: Option<Option<Owner>>,
}

/// The type of a sequence.
pub(super) fn data_type(written: &ast::DataType) -> Result<DataType> {
    match written.to_string().to_lowercase().parse() {
        Ok(whole @ (DataType::Int16 | DataType::Int32 | DataType::Int64)) => Ok(whole),
        _ => Err(refused("sequence type must be smallint, integer, or bigint")),
    }
}

fn refused(message: impl Into<String>) -> SqlError {
    SqlError::new(state::INVALID_PARAMETER_VALUE, message)
}

/// The least and the greatest number of a type.
fn range(data_type: DataType) -> (i64, i64) {
    match data_type {
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}

impl SequenceOptions {
    /// A new sequence, whose owner is not looked for.
    ///
    /// # Errors
    /// Options that do not go together (`22023`).
    pub(crate) fn of_new(&self) -> Result<SequenceDefinition> {
        let data_type = self.data_type.unwrap_or(DataType::Int64);
        let ascending = self.increment.is_none_or(|increment| increment > 0);
        let (type_least, type_greatest) = range(data_type);
        let (least, greatest) = if ascending { (1, type_greatest) } else { (type_least, -1) };
        let new = SequenceDefinition {
            data_type,
            start: 0,
            increment: self.increment.unwrap_or(1),
            least: self.least.flatten().unwrap_or(least),
            greatest: self.greatest.flatten().unwrap_or(greatest),
            cache: self.cache.unwrap_or(1),
            cycles: self.cycles.unwrap_or(false),
            generation: 0,
            owner: None,
        };
        let start = self.start.unwrap_or(if ascending { new.least } else { new.greatest });
        checked(SequenceDefinition { start, ..new })
    }

    /// What they make of a sequence that is there, and of where it stands.
    ///
    /// # Errors
    /// Options that do not go together (`22023`).
    pub(crate) fn applied_to(
        &self,
        old: &SequenceDefinition,
        position: Position,
    ) -> Result<(SequenceDefinition, Position)> {
        let data_type = self.data_type.unwrap_or(old.data_type);
        let increment = self.increment.unwrap_or(old.increment);
        let (old_least, old_greatest) = range(old.data_type);
        let (type_least, type_greatest) = range(data_type);
        // Limits that were those of the old type become those of the new one.
        let has_type = self.data_type.is_some();
        let greatest = match self.greatest {
            None if !(has_type && old.greatest == old_greatest) => old.greatest,
            Some(Some(greatest)) => greatest,
            _ if increment > 0 || self.greatest.is_none() => type_greatest,
            _ => -1,
        };
        let least = match self.least {
            None if !(has_type && old.least == old_least) => old.least,
            Some(Some(least)) => least,
            _ if increment < 0 || self.least.is_none() => type_least,
            _ => 1,
        };
        let altered = checked(SequenceDefinition {
            data_type,
            increment,
            least,
            greatest,
            start: self.start.unwrap_or(old.start),
            cache: self.cache.unwrap_or(old.cache),
            cycles: self.cycles.unwrap_or(old.cycles),
            generation: old.generation,
            owner: old.owner,
        })?;
        let is_more = *self != SequenceOptions { owner: self.owner.clone(), ..Self::default() };
        let position = match self.restart {
            Some(value) => Position::before(value.unwrap_or(altered.start)),
            None if is_more => Position { logged: 0, ..position },
            None => position,
        };
        check_between("RESTART", position.last, &altered)?;
        Ok((altered, position))
    }
}

fn checked(sequence: SequenceDefinition) -> Result<SequenceDefinition> {
    let SequenceDefinition { data_type, increment, least, greatest, start, cache, .. } = sequence;
    let (type_least, type_greatest) = range(data_type);
    let is_of_type = |value: i64| (type_least..=type_greatest).contains(&value);
    let named = values::type_name(data_type);
    if increment == 0 {
        return Err(refused("INCREMENT must not be zero"));
    }
    for (what, value) in [("MAXVALUE", greatest), ("MINVALUE", least)] {
        if !is_of_type(value) {
            let message =
                format!("{what} ({value}) is out of range for sequence data type {named}");
            return Err(refused(message));
        }
    }
    if least >= greatest {
        return Err(refused(format!("MINVALUE ({least}) must be less than MAXVALUE ({greatest})")));
    }
    check_between("START", start, &sequence)?;
    if cache < 1 {
        return Err(refused(format!("CACHE ({cache}) must be greater than zero")));
    }
    Ok(sequence)
}

fn check_between(what: &str, value: i64, sequence: &SequenceDefinition) -> Result<()> {
    let SequenceDefinition { least, greatest, .. } = sequence;
    if value < *least {
        return Err(refused(format!(
            "{what} value ({value}) cannot be less than MINVALUE ({least})"
        )));
    }
    if value > *greatest {
        let message =
            format!("{what} value ({value}) cannot be greater than MAXVALUE ({greatest})");
        return Err(refused(message));
    }
    Ok(())
}
