//! CREATE SCHEMA with what is to be in it: one transaction, in which names without a schema mean the new one and
//! everything belongs to its owner.

use super::Backend;
use super::plan::{Plan, SchemaElements};
use crate::access::Identity;
use crate::error::{Result, SqlError, state};
use crate::sql::{Bound, Parameters, Parsed, RoleName, SchemaPlan, TransactionModes};

impl Backend {
    pub(super) fn create_schema_with(&mut self, plan: &SchemaElements) -> Result<()> {
        if self.is_in_transaction() {
            return self.fill_schema(plan);
        }
        self.begin(TransactionModes::default())?;
        match self.fill_schema(plan) {
            Ok(()) => self.commit().map(drop),
            Err(error) => {
                self.roll_back();
                Err(error)
            }
        }
    }

    fn fill_schema(&mut self, plan: &SchemaElements) -> Result<()> {
        let SchemaElements { schema, elements } = plan;
        self.change_schemas(schema)?;
        let SchemaPlan::Create { name, owner, .. } = schema else { return Ok(()) };
        let owner = self.role_named(owner.as_ref().unwrap_or(&RoleName::Current));
        let (path, who) = (self.settings.path.clone(), self.who.clone());
        let first = std::iter::once(name.clone());
        self.settings.path = first.chain(path.iter().cloned()).collect();
        self.acts_as(&owner);
        let done = elements.iter().try_for_each(|element| self.make_element(element));
        self.settings.path = path;
        let own_roles = self.who.own_roles.take();
        self.acts_for(Identity { own_roles, ..who });
        done
    }

    fn make_element(&mut self, element: &Parsed) -> Result<()> {
        let plan = element.plan(self.planner(), &mut Parameters::none())?;
        let Plan::Definition(plan) = plan else {
            return Err(SqlError::new(state::INTERNAL, "an element of a schema defines nothing"));
        };
        plan.check_rights(self)?;
        plan.run(self, &Bound::none()).map(drop)
    }
}
