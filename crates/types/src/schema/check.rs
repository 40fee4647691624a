//! CHECK constraints as a table's definition keeps them: as they were written, and in the form that
//! everybody understands who writes rows. What the form does not have means something only to whoever
//! speaks the language it was written in.
//!
//! Invariant: an expression names columns by their numbers, which they keep whatever is added, dropped
//! or renamed.

use std::sync::Arc;

use super::TableDefinition;
use super::definition::check_name;
use crate::TypeError;
use crate::expression::{Expression, Kind, TypedExpression};

/// Longest expression of a CHECK constraint or of a default, in bytes.
pub const CHECK_BYTES_MAX: usize = 8000;

/// Most CHECK constraints of one table, and most conditions that it has of the domains of its columns.
pub const CHECKS_MAX: usize = 10_000;

/// A condition that every row of a table must meet.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckConstraint {
    /// Its name, unique in its table.
    pub name: String,
    /// The numbers of the columns that it looks at; see [`TableDefinition::column_number`]. It goes
    /// with the first of them that is dropped.
    pub columns: Vec<u16>,
    /// What must not be false, in SQL, with `$1` for the column of number 0 and so on.
    pub expression: String,
    /// The same in the form that is evaluated; none for what the form does not have.
    pub form: Option<Arc<TypedExpression>>,
    /// Whether the rows that were there before it meet it; else only those that come or change.
    pub is_validated: bool,
}

impl CheckConstraint {
    /// A condition on the rows of a table.
    ///
    /// # Errors
    /// [`TypeError::Expression`] for what is neither true nor false, or not always the same for a row;
    /// [`TypeError::UnknownColumn`].
    pub fn new(
        name: impl Into<String>,
        expression: &Expression,
        table: &TableDefinition,
    ) -> Result<CheckConstraint, TypeError> {
        let form = CheckConstraint::form(expression, table)?;
        Ok(CheckConstraint {
            name: name.into(),
            columns: form.columns().iter().map(|(number, _)| *number).collect(),
            expression: expression.written(Some(table))?,
            form: Some(form),
            is_validated: true,
        })
    }

    /// A condition in the form that is evaluated.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn form(
        expression: &Expression,
        table: &TableDefinition,
    ) -> Result<Arc<TypedExpression>, TypeError> {
        let form = expression.bound(table)?;
        match form.fault_of_condition() {
            Some(reason) => Err(TypeError::Expression { reason: reason.into() }),
            None => Ok(Arc::new(form)),
        }
    }

    /// Why the form does not suit the table, if so.
    fn fault_of_form(&self, table: &TableDefinition) -> Option<&'static str> {
        let form = self.form.as_ref()?;
        let suits = |(number, kind): &(u16, _)| {
            let column = table.column_with_number(*number);
            self.columns.contains(number)
                && column.is_some_and(|at| Kind::of(table.columns[at].data_type) == *kind)
        };
        if form.columns().iter().all(suits) {
            form.fault_of_condition()
        } else {
            Some("the form of a check looks at a column that is not there, or of another type")
        }
    }
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
        let count = self.checks.len().max(self.rules.len());
        if count > CHECKS_MAX {
            let table = self.name.as_str().into();
            return Err(TypeError::TooManyChecks { table, count, limit: CHECKS_MAX });
        }
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
            if let Some(reason) = check.fault_of_form(self) {
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
