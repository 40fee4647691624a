//! CREATE and ALTER TYPE of enumerated types: changes of a transaction, as those of tables.

use onrush::{Error, TableChange, TableDefinition};

use super::Backend;
use super::definition::Touched;
use crate::error::{Result, SqlError, state};
use crate::sql::{EnumChange, EnumPlan, bad_label};
use crate::{own_types, schemas};

impl Backend {
    pub(super) fn change_enums(&mut self, plan: &EnumPlan) -> Result<()> {
        match plan {
            EnumPlan::Create { name, labels } => {
                let definition = TableDefinition::builder(name).labels(labels.clone()).build()?;
                self.define_own(Touched::NOTHING, |transaction| {
                    transaction.create_table(definition.clone()).map(|_| ()).map_err(exists)
                })
            }
            EnumPlan::Alter { name, change } => self.alter_enum(name, change),
        }
    }

    fn alter_enum(&mut self, name: &str, change: &EnumChange) -> Result<()> {
        let notice = self.define(Touched::NOTHING, |transaction| {
            let table = transaction.lock_table(name)?;
            let Some(labels) = table.definition().labels().cloned() else {
                return Err(Error::UnknownTable { name: name.to_owned() }.into());
            };
            let change = match change {
                EnumChange::Rename(to) => TableChange::Rename { to: to.clone() },
                EnumChange::AddLabel { label, place, if_not_exists } => {
                    let is_there = labels.iter().any(|(_, own)| own == label);
                    if *if_not_exists && is_there {
                        let message = format!("enum label \"{label}\" already exists, skipping");
                        let notice = SqlError::new(state::DUPLICATE_OBJECT, message).notice();
                        return Ok(Some(notice));
                    }
                    let labels = labels.with(label, place.borrowed()).map_err(bad_label)?;
                    TableChange::SetLabels(labels)
                }
                EnumChange::RenameLabel { from, to } => {
                    TableChange::SetLabels(labels.renamed(from, to).map_err(bad_label)?)
                }
            };
            let altered = transaction.alter_table(name, &[change]).map_err(exists)?;
            own_types::follow(transaction, &altered)?;
            Ok(None)
        })?;
        self.notices.extend(notice);
        Ok(())
    }
}

/// A type of this name is there.
pub(super) fn exists(error: Error) -> SqlError {
    match error {
        Error::TableExists { name } => {
            let message = format!("type \"{}\" already exists", schemas::own_name(&name));
            SqlError::new(state::DUPLICATE_OBJECT, message)
        }
        other => other.into(),
    }
}
