//! Changes of roles, and whether the client may run a plan.

use super::{Answer, Backend};
use crate::access::Right;
use crate::error::Result;
use crate::sql::{Conflict, Explained, InsertPlan, InsertRows, Plan, RoleStatement};

impl Backend {
    /// Makes, changes or drops roles, or what is granted to them; durable when it is answered.
    pub(super) fn change_roles(&mut self, statement: &RoleStatement) -> Result<Answer> {
        self.outside_transaction(statement.tag())?;
        self.check_superuser_or_own_password(statement)?;
        let access = &self.access;
        tokio::task::block_in_place(|| match statement {
            RoleStatement::Create { names, change, if_not_exists } => {
                names.iter().try_for_each(|name| access.create_role(name, change, *if_not_exists))
            }
            RoleStatement::Alter { name, change } => access.alter_role(name, change),
            RoleStatement::Drop { names, if_exists } => {
                names.iter().try_for_each(|name| access.drop_role(name, *if_exists))
            }
            RoleStatement::Grant { roles, tables, rights, is_grant } => {
                let pairs = roles.iter().flat_map(|role| tables.iter().map(move |t| (role, t)));
                pairs
                    .into_iter()
                    .try_for_each(|(role, table)| access.grant(role, table, rights, *is_grant))
            }
        })?;
        Ok(Answer::Done(statement.tag().into()))
    }

    /// Everyone may change the password of his own role.
    fn check_superuser_or_own_password(&self, statement: &RoleStatement) -> Result<()> {
        if let RoleStatement::Alter { name, change } = statement
            && *name == self.who.name
            && change.is_superuser.is_none()
            && change.can_login.is_none()
        {
            return Ok(());
        }
        self.access.check_superuser(&self.who, statement.tag())
    }

    /// Refuses an INSERT that the client's role may not run.
    pub(super) fn check_insert(&self, insert: &InsertPlan) -> Result<()> {
        let table = |right, name: &str| self.access.check(&self.who, right, name);
        table(Right::Insert, insert.table.name())?;
        if let Conflict::Update(update) = &insert.conflict {
            table(Right::Update, insert.table.name())?;
            // What comes of it tells what is there.
            if update.computed.is_some() {
                table(Right::Select, insert.table.name())?;
            }
        }
        if let InsertRows::Found { query, .. } = &insert.rows {
            query.table_names().try_for_each(|name| table(Right::Select, name))?;
        }
        match insert.returning.is_some() {
            true => table(Right::Select, insert.table.name()),
            false => Ok(()),
        }
    }

    /// Refuses a plan that the client's role may not run.
    pub(super) fn check_rights(&self, plan: &Plan) -> Result<()> {
        let table = |right, name: &str| self.access.check(&self.who, right, name);
        let superuser = |what| self.access.check_superuser(&self.who, what);
        match plan {
            Plan::Insert(insert) => self.check_insert(insert),
            Plan::Get(get) | Plan::Explain(Explained::Get(get), _) => {
                table(Right::Select, get.table.name())
            }
            Plan::Query(query) | Plan::Explain(Explained::Query(query), _) => {
                query.table_names().try_for_each(|name| table(Right::Select, name))
            }
            Plan::Explain(Explained::Write(plan), _) => self.check_rights(plan),
            Plan::Declare(declared) => self.check_rights(&declared.query),
            Plan::Update(update) => {
                table(Right::Update, update.table.name())?;
                table(Right::Select, update.table.name())
            }
            Plan::Delete(delete) => {
                table(Right::Delete, delete.table.name())?;
                table(Right::Select, delete.table.name())
            }
            Plan::Truncate { names } => {
                names.iter().try_for_each(|name| table(Right::Truncate, name))
            }
            Plan::CopyIn(copy) => table(Right::Insert, copy.table.name()),
            Plan::CopyOut(copy) => table(Right::Select, copy.table.name()),
            Plan::CreateTable { .. } => superuser("CREATE TABLE"),
            Plan::Comment(_) => superuser("COMMENT"),
            Plan::Schema(_) => superuser("CREATE and DROP SCHEMA"),
            Plan::AlterTable(_) => superuser("ALTER TABLE"),
            Plan::AlterDatabase(_) => superuser("ALTER DATABASE"),
            Plan::DropTables { .. } => superuser("DROP TABLE"),
            Plan::Checkpoint => superuser("CHECKPOINT"),
            Plan::Call(_) => superuser("CALL"),
            Plan::Roles(_)
            | Plan::DropNothing { .. }
            | Plan::Scalars { .. }
            | Plan::Explain(Explained::Values, _)
            | Plan::Begin { .. }
            | Plan::Commit
            | Plan::Rollback
            | Plan::Savepoint(_)
            | Plan::Fetch(_)
            | Plan::CloseCursor(_)
            | Plan::Set(_)
            | Plan::SetTransaction { .. }
            | Plan::Show(_)
            | Plan::Discard { .. }
            | Plan::Prepare(_)
            // What it runs is looked at by itself.
            | Plan::Execute(_)
            | Plan::Deallocate(_)
            | Plan::Nothing(_) => Ok(()),
        }
    }
}
