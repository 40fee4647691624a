//! CHECK constraints as a table's definition keeps them. What an expression means is not known here:
//! whoever speaks its language makes it into something that looks at rows.
//!
//! Invariant: an expression names columns by their numbers, which they keep whatever is added, dropped
//! or renamed.

use super::TableDefinition;
use super::definition::check_name;
use crate::TypeError;

/// Longest expression of a CHECK constraint or of a default, in bytes.
pub const CHECK_BYTES_MAX: usize = 8000;

/// A condition that every row of a table must meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckConstraint {
    /// Its name, unique in its table.
    pub name: String,
    /// The numbers of the columns that it looks at; see [`TableDefinition::column_number`]. It goes
    /// with the first of them that is dropped.
    pub columns: Vec<u16>,
    /// What must not be false, in SQL, with `$1` for the column of number 0 and so on.
    pub expression: String,
}

impl TableDefinition {
    /// The conditions that every row must meet.
    pub fn checks(&self) -> &[CheckConstraint] {
        &self.checks
    }

    /// The position of the column with this number.
    pub fn column_with_number(&self, number: u16) -> Option<usize> {
        (0..self.columns.len()).find(|column| self.column_number(*column) == usize::from(number))
    }

    pub(super) fn check_checks(&self) -> Result<(), TypeError> {
        for (position, check) in self.checks.iter().enumerate() {
            check_name(&check.name)?;
            let name = || check.name.as_str().into();
            let table = || self.name.as_str().into();
            if self.checks[..position].iter().any(|other| other.name == check.name) {
                return Err(TypeError::DuplicateCheck { table: table(), name: name() });
            }
            let bytes = check.expression.len();
            if bytes > CHECK_BYTES_MAX {
                let limit = CHECK_BYTES_MAX;
                return Err(TypeError::CheckTooLong { table: table(), name: name(), bytes, limit });
            }
            if check.columns.iter().any(|number| self.column_with_number(*number).is_none()) {
                let reason = "a check looks at a column that does not exist";
                return Err(TypeError::DefinitionDamaged { at: 0, reason });
            }
        }
        Ok(())
    }

    /// The position of a check.
    pub(super) fn check_index(&self, name: &str) -> Result<usize, TypeError> {
        self.checks.iter().position(|check| check.name == name).ok_or_else(|| {
            TypeError::UnknownCheck { table: self.name.as_str().into(), name: name.into() }
        })
    }
}
