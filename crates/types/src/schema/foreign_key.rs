//! Foreign keys as definitions keep them: columns of a row that name a row of another table, the *referenced* one.
//!
//! | side | what its definition says |
//! |---|---|
//! | the referencing table | each [`ForeignKey`] |
//! | the referenced table | the numbers of the tables that may have such a key |
//!
//! The referenced columns are the primary key or the columns of a unique index, in any order.
//!
//! Invariants
//! 1. Columns and tables are named by their numbers, which they keep whatever is renamed, added or dropped.
//! 2. A table that another one references knows the number of that one. It may know numbers of tables that are gone,
//!    or that reference it no more.

use super::definition::check_name;
use super::{IndexDefinition, TableDefinition, Uniqueness};
use crate::TypeError;

/// Most columns of a foreign key.
pub const FOREIGN_KEY_COLUMNS_MAX: usize = 32;

/// What becomes of the referencing rows where the referenced key is deleted, or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferentialAction {
    /// There must be none when references are looked at.
    NoAction,
    /// There must be none at once.
    Restrict,
    /// They are deleted, or get the new key.
    Cascade,
    /// Their columns become NULL.
    SetNull,
    /// Their columns get their defaults.
    SetDefault,
}

/// When references are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deferral {
    /// Behind every statement.
    NotDeferrable,
    /// Behind every statement, unless the transaction defers it.
    InitiallyImmediate,
    /// When the transaction commits, unless it asks for them earlier.
    InitiallyDeferred,
}

/// Columns of a table that name a row of another one, or of the same.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignKey {
    /// Its name, unique among the constraints of the table.
    pub name: String,
    /// Numbers of the referencing columns.
    pub columns: Vec<u16>,
    /// The number of the referenced table.
    pub referenced_table: u32,
    /// Numbers of the referenced columns, one for each referencing one.
    pub referenced_columns: Vec<u16>,
    /// What happens where a referenced row is deleted.
    pub on_delete: ReferentialAction,
    /// What happens where a referenced key is changed.
    pub on_update: ReferentialAction,
    /// When it is looked at.
    pub deferral: Deferral,
    /// Whether either all columns are NULL or none; else a row with any NULL references nothing.
    pub is_match_full: bool,
    /// Whether the rows that were there before it meet it, too.
    pub is_validated: bool,
}

/// The key of a table by which it is referenced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReferencedKey<'d> {
    /// Its primary key.
    Primary,
    /// The columns of a unique index.
    Unique(&'d IndexDefinition),
}

impl ForeignKey {
    fn check(&self, table: &TableDefinition) -> Result<(), TypeError> {
        check_name(&self.name)?;
        let damaged = |reason| TypeError::DefinitionDamaged { at: 0, reason };
        let count = self.columns.len();
        if count == 0 || count > FOREIGN_KEY_COLUMNS_MAX || count != self.referenced_columns.len() {
            return Err(damaged(
                "a foreign key has no columns, too many, or two different numbers of them",
            ));
        }
        let is_missing = |number: &&u16| table.column_with_number(**number).is_none();
        match self.columns.iter().find(is_missing) {
            Some(_) => Err(damaged("a foreign key has a column that does not exist")),
            None => Ok(()),
        }
    }

    /// Positions of the referencing columns.
    ///
    /// # Errors
    /// A column that the table does not have.
    pub fn positions(&self, table: &TableDefinition) -> Result<Vec<usize>, TypeError> {
        let reason = "a foreign key has a column that does not exist";
        let position = |number: &u16| table.column_with_number(*number);
        let positions = self.columns.iter().map(position).collect::<Option<Vec<_>>>();
        positions.ok_or(TypeError::DefinitionDamaged { at: 0, reason })
    }

    /// The key of the referenced table that has the referenced columns; none if it has no such key.
    pub fn referenced_key<'d>(&self, referenced: &'d TableDefinition) -> Option<ReferencedKey<'d>> {
        let numbers = |columns: &[usize]| -> Vec<u16> {
            columns.iter().map(|column| referenced.column_number(*column) as u16).collect()
        };
        if is_same_set(&numbers(referenced.primary_key()), &self.referenced_columns) {
            return Some(ReferencedKey::Primary);
        }
        let is_key = |index: &&IndexDefinition| {
            let columns = index.column_numbers().filter(|_| index.is_plain());
            index.uniqueness != Uniqueness::NotUnique
                && !index.is_building
                && columns.is_some_and(|it| is_same_set(&it, &self.referenced_columns))
        };
        referenced.indexes().iter().find(is_key).map(ReferencedKey::Unique)
    }

    /// Which of its columns stands for each column of the referenced key, in the order of that key.
    ///
    /// # Errors
    /// A key that has not the referenced columns.
    pub fn in_key_order(
        &self,
        referenced: &TableDefinition,
        key: ReferencedKey<'_>,
    ) -> Result<Vec<usize>, TypeError> {
        let number = |column: &usize| referenced.column_number(*column) as u16;
        let numbers: Vec<u16> = match key {
            ReferencedKey::Primary => referenced.primary_key().iter().map(number).collect(),
            ReferencedKey::Unique(index) => index.column_numbers().unwrap_or_default(),
        };
        let reason = "a referenced key has other columns";
        let place = |number: &u16| self.referenced_columns.iter().position(|own| own == number);
        let places = numbers.iter().map(place).collect::<Option<Vec<_>>>();
        places.ok_or(TypeError::DefinitionDamaged { at: 0, reason })
    }
}

fn is_same_set(one: &[u16], other: &[u16]) -> bool {
    one.len() == other.len() && one.iter().all(|number| other.contains(number))
}

impl TableDefinition {
    /// The foreign keys of the table, in the order in which they were made.
    pub fn foreign_keys(&self) -> &[ForeignKey] {
        &self.foreign_keys
    }

    /// Numbers of tables that may have foreign keys to this one.
    pub fn referenced_by(&self) -> &[u32] {
        &self.referenced_by
    }

    pub(super) fn check_foreign_keys(&self) -> Result<(), TypeError> {
        for (position, foreign_key) in self.foreign_keys.iter().enumerate() {
            foreign_key.check(self)?;
            let is_same = |other: &ForeignKey| other.name == foreign_key.name;
            if self.foreign_keys[..position].iter().any(is_same) {
                return Err(self.duplicate_constraint(&foreign_key.name));
            }
        }
        Ok(())
    }

    fn duplicate_constraint(&self, name: &str) -> TypeError {
        TypeError::DuplicateCheck { table: self.name.as_str().into(), name: name.into() }
    }

    /// The definition with one more foreign key.
    ///
    /// # Errors
    /// A name that another one has; columns that the table does not have.
    pub fn with_foreign_key(&self, foreign_key: ForeignKey) -> Result<TableDefinition, TypeError> {
        let mut altered = self.clone();
        altered.foreign_keys.push(foreign_key);
        altered.checked()
    }

    /// The definition without a foreign key.
    ///
    /// # Errors
    /// No foreign key of this name.
    pub fn without_foreign_key(&self, name: &str) -> Result<TableDefinition, TypeError> {
        let mut altered = self.clone();
        altered.foreign_keys.remove(self.foreign_key_position(name)?);
        Ok(altered)
    }

    /// The definition with a foreign key changed.
    ///
    /// # Errors
    /// No foreign key of this name; a name that is taken.
    pub fn with_foreign_key_changed(
        &self,
        name: &str,
        change: impl FnOnce(&mut ForeignKey),
    ) -> Result<TableDefinition, TypeError> {
        let mut altered = self.clone();
        change(&mut altered.foreign_keys[self.foreign_key_position(name)?]);
        altered.checked()
    }

    /// The definition of a table that the table of this number references.
    #[must_use]
    pub fn with_reference_by(mut self, table: u32) -> TableDefinition {
        if !self.referenced_by.contains(&table) {
            self.referenced_by.push(table);
        }
        self
    }

    /// The position of a foreign key.
    ///
    /// # Errors
    /// No foreign key of this name.
    pub fn foreign_key_position(&self, name: &str) -> Result<usize, TypeError> {
        self.foreign_keys.iter().position(|foreign_key| foreign_key.name == name).ok_or_else(|| {
            TypeError::UnknownCheck { table: self.name.as_str().into(), name: name.into() }
        })
    }
}
