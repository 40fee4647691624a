//! CREATE and ALTER TYPE of composite types: changes of a transaction, as those of tables.

use onrush::TableChange;

use super::Backend;
use super::definition::Touched;
use super::enum_type::exists;
use crate::error::Result;
use crate::own_types;
use crate::sql::CompositePlan;

impl Backend {
    pub(super) fn change_composites(&mut self, plan: &CompositePlan) -> Result<()> {
        match plan {
            CompositePlan::Create(definition) => self.define_own(Touched::NOTHING, |transaction| {
                own_types::hold(transaction, definition.columns())?;
                transaction.create_table((**definition).clone()).map(|_| ()).map_err(exists)
            }),
            CompositePlan::Rename { name, to } => self.define(Touched::NOTHING, |transaction| {
                transaction.lock_table(name)?;
                let rename = TableChange::Rename { to: to.clone() };
                let altered = transaction.alter_table(name, &[rename]).map_err(exists)?;
                Ok(own_types::follow(transaction, &altered)?)
            }),
        }
    }
}
