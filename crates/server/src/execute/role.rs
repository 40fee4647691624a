//! Changes of roles, and whether the client may run a plan.

use onrush::Table;

use super::definition::Touched;
use super::{Answer, Backend};
use crate::access::{Right, RoleChanges, place_of_schema};
use crate::error::Result;
use crate::schemas;
use crate::sql::{Conflict, Explained, InsertPlan, InsertRows, Plan, RoleStatement};

impl Backend {
    /// Makes, changes or drops roles, or what is granted to them; durable when it is answered.
    pub(super) fn change_roles(&mut self, statement: &RoleStatement) -> Result<Answer> {
        self.check_superuser_or_own_password(statement)?;
        let database = self.database.clone();
        self.define(Touched::ROLES, |transaction| {
            let mut held = Vec::new();
            if let RoleStatement::Grant { tables, .. } = statement {
                for name in tables {
                    let table = transaction.table(name)?;
                    transaction.hold_table(&table)?;
                    held.push(i64::from(table.id()));
                }
            }
            if let RoleStatement::Grant { schemas, .. } = statement {
                for name in schemas {
                    let number = schemas::hold(&database, transaction, name)?;
                    held.push(place_of_schema(number));
                }
            }
            let mut changes = RoleChanges { database: &database, transaction };
            match statement {
                RoleStatement::Create { names, change, if_not_exists } => {
                    names.iter().try_for_each(|name| changes.create(name, change, *if_not_exists))
                }
                RoleStatement::Alter { name, change } => changes.alter(name, change),
                RoleStatement::Drop { names, if_exists } => {
                    names.iter().try_for_each(|name| changes.drop(name, *if_exists))
                }
                RoleStatement::Grant { roles, rights, is_grant, .. } => {
                    let pairs = roles.iter().flat_map(|role| held.iter().map(move |on| (role, on)));
                    pairs
                        .into_iter()
                        .try_for_each(|(role, on)| changes.grant(role, *on, rights, *is_grant))
                }
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
        let may = |right, table: &Table| self.access.check(&self.who, right, table);
        may(Right::Insert, &insert.table)?;
        if let Conflict::Update(update) = &insert.conflict {
            may(Right::Update, &insert.table)?;
            // What comes of it tells what is there.
            if update.computed.is_some() {
                may(Right::Select, &insert.table)?;
            }
        }
        if let InsertRows::Found { query, .. } = &insert.rows {
            query.tables().try_for_each(|table| may(Right::Select, table))?;
        }
        match insert.returning.is_some() {
            true => may(Right::Select, &insert.table),
            false => Ok(()),
        }
    }

    /// Refuses a plan that the client's role may not run.
    pub(super) fn check_rights(&self, plan: &Plan) -> Result<()> {
        let may = |right, table: &Table| self.access.check(&self.who, right, table);
        let superuser = |what| self.access.check_superuser(&self.who, what);
        match plan {
            Plan::Insert(insert) => self.check_insert(insert),
            Plan::Get(get) | Plan::Explain(Explained::Get(get), _) => {
                may(Right::Select, &get.table)
            }
            Plan::Query(query) | Plan::Explain(Explained::Query(query), _) => {
                query.tables().try_for_each(|table| may(Right::Select, table))
            }
            Plan::Explain(Explained::Write(plan), _) => self.check_rights(plan),
            Plan::Declare(declared) => self.check_rights(&declared.query),
            Plan::Update(update) => {
                may(Right::Update, &update.table)?;
                may(Right::Select, &update.table)
            }
            Plan::Delete(delete) => {
                may(Right::Delete, &delete.table)?;
                may(Right::Select, &delete.table)
            }
            Plan::Truncate { names } => {
                names.iter().try_for_each(|name| may(Right::Truncate, &self.seen.table(name)?))
            }
            Plan::CopyIn(copy) => may(Right::Insert, &copy.table),
            Plan::CopyOut(copy) => may(Right::Select, &copy.table),
            Plan::CreateTable { .. } => superuser("CREATE TABLE"),
            Plan::Comment(_) => superuser("COMMENT"),
            Plan::Schema(_) => superuser("CREATE, ALTER and DROP SCHEMA"),
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
