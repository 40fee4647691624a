//! FOREIGN KEY and REFERENCES.

use onrush::{Deferral, NewForeignKey, ReferentialAction, TableDefinition};
use sqlparser::ast::{
    self, ConstraintCharacteristics, ConstraintReferenceMatchKind, DeferrableInitial,
    ForeignKeyConstraint, Ident, ObjectName,
};

use super::{Planner, names};
use crate::error::{Result, SqlError, state};
use crate::{made_up, schemas};

/// A foreign key as it was written: its columns are not looked at yet.
#[derive(Clone, Debug)]
pub(crate) struct ForeignKeyPlan {
    /// None: one is made up, as PostgreSQL does.
    name: Option<String>,
    columns: Vec<String>,
    /// The engine's name of the referenced table.
    pub(crate) referenced_table: String,
    referenced_columns: Vec<String>,
    on_delete: ReferentialAction,
    on_update: ReferentialAction,
    deferral: Deferral,
    is_match_full: bool,
    is_validated: bool,
}

/// When a constraint is looked at.
pub(super) fn deferral(written: Option<&ConstraintCharacteristics>) -> Result<Deferral> {
    let Some(ConstraintCharacteristics { deferrable, initially, enforced }) = written else {
        return Ok(Deferral::NotDeferrable);
    };
    if *enforced == Some(false) {
        return Err(SqlError::not_supported("NOT ENFORCED", "Leave it out: all are enforced."));
    }
    match (deferrable, initially) {
        (Some(false), Some(DeferrableInitial::Deferred)) => {
            let message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
            Err(SqlError::new(state::SYNTAX_ERROR, message))
        }
        (_, Some(DeferrableInitial::Deferred)) => Ok(Deferral::InitiallyDeferred),
        (Some(true), _) => Ok(Deferral::InitiallyImmediate),
        (_, _) => Ok(Deferral::NotDeferrable),
    }
}

impl ForeignKeyPlan {
    /// A foreign key of `table`, as the engine calls it, which may not be there yet; `outer` is a name that stands in
    /// front of it, `column` the one that it stands behind.
    pub(super) fn new(
        planner: &Planner<'_>,
        table: &str,
        written: &ForeignKeyConstraint,
        (outer, column): (Option<&Ident>, Option<&str>),
    ) -> Result<ForeignKeyPlan> {
        let ForeignKeyConstraint {
            name,
            index_name,
            columns,
            foreign_table,
            referred_columns,
            on_delete,
            on_update,
            match_kind,
            characteristics,
        } = written;
        if index_name.is_some() {
            return Err(SqlError::not_supported("a name of the index in FOREIGN KEY", FORM));
        }
        let is_match_full = match match_kind {
            None | Some(ConstraintReferenceMatchKind::Simple) => false,
            Some(ConstraintReferenceMatchKind::Full) => true,
            Some(ConstraintReferenceMatchKind::Partial) => {
                return Err(SqlError::not_supported("MATCH PARTIAL", FORM));
            }
        };
        let named = |names: &[Ident]| names.iter().map(names::own_column).collect::<Result<_>>();
        let columns = match column {
            Some(column) => vec![column.to_owned()],
            None => named(columns)?,
        };
        let referenced_table = match is_called(foreign_table, table)? {
            true => table.to_owned(),
            false => planner.lookup().table_named(foreign_table)?,
        };
        Ok(ForeignKeyPlan {
            name: name.as_ref().or(outer).map(names::identifier),
            columns,
            referenced_table,
            referenced_columns: named(referred_columns)?,
            on_delete: action(*on_delete),
            on_update: action(*on_update),
            deferral: deferral(characteristics.as_ref())?,
            is_match_full,
            is_validated: true,
        })
    }

    /// NOT VALID: rows that are there are not looked at.
    pub(super) fn or_not_valid(self, is_not_valid: bool) -> ForeignKeyPlan {
        ForeignKeyPlan { is_validated: !is_not_valid, ..self }
    }

    /// What the engine makes, under a name that `is_free`.
    pub(crate) fn new_foreign_key(
        &self,
        table: &TableDefinition,
        referenced: &TableDefinition,
        is_free: impl Fn(&str) -> bool,
    ) -> Result<NewForeignKey> {
        for (definition, columns) in
            [(table, &self.columns), (referenced, &self.referenced_columns)]
        {
            for column in columns {
                definition.shown_column_index(column).map_err(|_| {
                    let message = format!(
                        "column {column:?} referenced in foreign key constraint does not exist"
                    );
                    SqlError::new(state::UNDEFINED_COLUMN, message)
                })?;
            }
        }
        if self.referenced_columns.is_empty() && referenced.row_id().is_some() {
            let name = schemas::own_name(referenced.name());
            let message = format!("there is no primary key for referenced table {name:?}");
            return Err(SqlError::new(state::UNDEFINED_OBJECT, message));
        }
        let count = match self.referenced_columns.len() {
            0 => referenced.primary_key().len(),
            count => count,
        };
        if count != self.columns.len() {
            let message = "number of referencing and referenced columns for foreign key disagree";
            return Err(SqlError::new(state::INVALID_FOREIGN_KEY, message));
        }
        let name = match &self.name {
            Some(name) if is_free(name) => name.clone(),
            Some(name) => {
                let relation = schemas::own_name(table.name());
                let message =
                    format!("constraint {name:?} for relation {relation:?} already exists");
                return Err(SqlError::new(state::DUPLICATE_OBJECT, message));
            }
            None => self.made_up_name(table, is_free),
        };
        Ok(NewForeignKey {
            name,
            columns: self.columns.clone(),
            referenced_table: self.referenced_table.clone(),
            referenced_columns: self.referenced_columns.clone(),
            on_delete: self.on_delete,
            on_update: self.on_update,
            deferral: self.deferral,
            is_match_full: self.is_match_full,
            is_validated: self.is_validated,
        })
    }

    /// As PostgreSQL: table and columns, a word for the kind, and a number where that is taken.
    fn made_up_name(&self, table: &TableDefinition, is_free: impl Fn(&str) -> bool) -> String {
        let own = schemas::own_name(table.name());
        let columns = made_up::joined(self.columns.iter().map(String::as_str));
        made_up::free_name(own, Some(&columns), "fkey", is_free)
    }
}

const FORM: &str = "Write FOREIGN KEY (columns) REFERENCES table [(columns)] [MATCH FULL] [ON DELETE action] \
                    [ON UPDATE action] [DEFERRABLE] [INITIALLY DEFERRED].";

fn action(written: Option<ast::ReferentialAction>) -> ReferentialAction {
    match written {
        None | Some(ast::ReferentialAction::NoAction) => ReferentialAction::NoAction,
        Some(ast::ReferentialAction::Restrict) => ReferentialAction::Restrict,
        Some(ast::ReferentialAction::Cascade) => ReferentialAction::Cascade,
        Some(ast::ReferentialAction::SetNull) => ReferentialAction::SetNull,
        Some(ast::ReferentialAction::SetDefault) => ReferentialAction::SetDefault,
    }
}

/// Whether a table that may not be there yet is meant.
fn is_called(written: &ObjectName, table: &str) -> Result<bool> {
    let (schema, own) = schemas::parts(table);
    Ok(match names::parts(written)?.as_slice() {
        [name] => name == own,
        [its, name] => its == schema && name == own,
        _ => false,
    })
}
