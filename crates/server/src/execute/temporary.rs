//! Temporary tables: those of one client alone, which go when it goes.
//!
//! They are tables of the engine that are not logged, in a schema with the session's number in its name. That schema is
//! searched before the others, so such a table hides one of the same name.
//!
//! Invariants
//! 1. Nobody reads or writes the rows of another client's temporary table.
//! 2. A table of a client that is gone, or of a server that has stopped, goes when the server starts at the latest.

use std::collections::BTreeMap;

use onrush::{Database, Error, Identities, ScanOptions, Transaction};
use tokio::task::block_in_place;

use super::Backend;
use super::definition::{Touched, drop_table};
use super::foreign_key;
use super::transaction::Work;
use crate::error::Result;
use crate::schemas;

/// What becomes of a temporary table with the transaction that has used it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnCommit {
    DeleteRows,
    Drop,
}

/// The temporary tables of one client.
#[derive(Default)]
pub(super) struct Temporaries {
    /// Whether there may be any.
    is_used: bool,
    /// Of those that do not stay as they are, by number: the name that each was made with.
    on_commit: BTreeMap<u32, (String, OnCommit)>,
}

impl Temporaries {
    /// A table was made.
    pub(super) fn note(&mut self, number: u32, name: &str, on_commit: Option<OnCommit>) {
        self.is_used |= schemas::has_temporary(name);
        if let Some(on_commit) = on_commit {
            self.on_commit.insert(number, (name.to_owned(), on_commit));
        }
    }
}

impl Backend {
    /// Whether it is a table of this client alone.
    pub(super) fn is_own_temporary(&self, table: &str) -> bool {
        schemas::parts(table).0 == self.who.temporary_schema
    }

    /// No transaction is open: does what ON COMMIT says.
    pub(crate) fn end_temporaries(&mut self) {
        if self.temporaries.on_commit.is_empty() || !matches!(self.work, Work::Idle(_)) {
            return;
        }
        let mut noted = std::mem::take(&mut self.temporaries.on_commit);
        // One that is not there was dropped, or rolled back.
        noted.retain(|number, (name, _)| {
            self.database.table(name).is_ok_and(|table| table.id() == *number)
        });
        let ended =
            noted.values().try_for_each(|(name, on_commit)| self.end_temporary(name, *on_commit));
        self.temporaries.on_commit = noted;
        if let Err(error) = ended {
            self.notices.push(error.warning());
        }
    }

    fn end_temporary(&mut self, name: &str, on_commit: OnCommit) -> Result<()> {
        match on_commit {
            OnCommit::Drop => self.drop_tables(&[name.to_owned()], true, true),
            OnCommit::DeleteRows => {
                let table = self.database.table(name)?;
                let one = ScanOptions { limit: Some(1), ..ScanOptions::default() };
                let has_rows = self.idle()?.scan(&table, &one)?.next().is_some();
                if has_rows {
                    self.truncate(&[name.to_owned()], true, Identities::GoOn)
                } else {
                    Ok(())
                }
            }
        }
    }

    /// DISCARD TEMP.
    pub(super) fn discard_temporaries(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.temporaries).is_used {
            return Ok(());
        }
        let (database, schema) = (self.database.clone(), self.who.temporary_schema.clone());
        self.define(Touched::ROLES, |transaction| {
            Ok(drop_all(&database, transaction, |of| of == schema)?)
        })
    }

    /// The client goes.
    pub(super) fn leave_temporaries(&self) {
        if !self.temporaries.is_used {
            return;
        }
        let of_client = |schema: &str| schema == self.who.temporary_schema;
        if let Err(error) = block_in_place(|| drop_temporaries(&self.database, of_client)) {
            let schema = &self.who.temporary_schema;
            tracing::warn!(%error, schema, "temporary tables of a client stay until the next start");
        }
    }
}

/// Drops what clients of a server that has stopped have left.
pub(crate) fn drop_leftovers(database: &Database) -> onrush::Result<()> {
    drop_temporaries(database, schemas::is_temporary)
}

fn drop_temporaries(
    database: &Database,
    is_of: impl Fn(&str) -> bool + Copy,
) -> onrush::Result<()> {
    let mut session = database.session()?;
    let mut transaction = session.begin()?;
    drop_all(database, &mut transaction, is_of)?;
    transaction.commit()
}

/// Drops the tables of such schemas.
fn drop_all(
    database: &Database,
    transaction: &mut Transaction<'_>,
    is_of: impl Fn(&str) -> bool,
) -> onrush::Result<()> {
    let tables = transaction.tables();
    let names = tables.iter().map(|table| table.name());
    let names: Vec<String> =
        names.filter(|name| is_of(schemas::parts(name).0)).map(str::to_owned).collect();
    for (child, foreign_key, _) in foreign_key::references_to(transaction, &names)? {
        transaction.drop_foreign_key(&child, &foreign_key)?;
    }
    for name in &names {
        match drop_table(database, transaction, name) {
            Err(Error::UnknownTable { .. }) => {}
            other => other?,
        }
    }
    Ok(())
}
