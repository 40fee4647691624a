//! The guard: a catalogue that shows a table only while the marks that a commit moves are where they
//! should be.
//!
//! `iceberg`'s `Transaction::commit` is blind by design: before *every* attempt it loads the table
//! again and applies itself to whatever it finds. After a lost answer that doubles the rows. The
//! guard stands between it and the catalogue: the metadata that an attempt is based on passes
//! through [`Guard::load_table`], and is handed on only if it is the right table with the expected
//! marks. Since the commit then requires main to be at that metadata's snapshot, and everything that
//! moves a mark moves main, the mark cannot move between.
//!
//! Every error that passes is made final, so that one commit is one attempt and whoever calls
//! decides, from the mark, whether there is another.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use iceberg::spec::TableMetadata;
use iceberg::table::Table;
use iceberg::{
    Catalog, Error, ErrorKind, Namespace, NamespaceIdent, Result, TableCommit, TableCreation,
    TableIdent,
};
use onrush_fault::{Fault, planted};
use uuid::Uuid;

use crate::error::FencedBecause;
use crate::line::mark_on_main;
use crate::mark::{Mark, NodeId};

/// A catalogue around the real one, for one attempt to commit.
pub(crate) struct Guard {
    catalogue: Arc<dyn Catalog>,
    table_uuid: Uuid,
    /// Of each node that the commit touches; `None`: it must have no mark yet.
    expected: Vec<(NodeId, Option<Mark>)>,
}

/// Without the catalogue, which holds secrets and would show them.
impl fmt::Debug for Guard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Guard { catalogue: _, table_uuid, expected } = self;
        write!(formatter, "Guard of {table_uuid}")?;
        for (node, mark) in expected {
            write!(formatter, ", node {node} at {}", shown(*mark))?;
        }
        Ok(())
    }
}

impl Guard {
    pub(crate) fn new(
        catalogue: Arc<dyn Catalog>,
        table_uuid: Uuid,
        expected: Vec<(NodeId, Option<Mark>)>,
    ) -> Guard {
        Guard { catalogue, table_uuid, expected }
    }

    fn check(&self, metadata: &TableMetadata) -> Result<()> {
        if planted(Fault::LakeUnguarded) {
            return Ok(());
        }
        let refuse = |cause: String| Err(Error::new(ErrorKind::PreconditionFailed, cause));
        if metadata.uuid() != self.table_uuid {
            let (expected, found) = (self.table_uuid, metadata.uuid());
            return refuse(FencedBecause::OtherTable { expected, found }.to_string());
        }
        for (node, expected) in self.expected.iter().copied() {
            match mark_on_main(metadata, node) {
                Ok(found) if found == expected => {}
                Ok(found) => {
                    let (found, expected) = (shown(found), shown(expected));
                    return refuse(format!("the mark of node {node} is {found}, not {expected}"));
                }
                Err(because) => return refuse(because.to_string()),
            }
        }
        Ok(())
    }
}

fn shown(mark: Option<Mark>) -> String {
    mark.map_or_else(|| "missing".to_owned(), |mark| mark.to_string())
}

/// The error, after which nothing is tried again.
fn finally(error: Error) -> Error {
    if planted(Fault::LakeUnguarded) { error } else { error.with_retryable(false) }
}

fn forbid<T>() -> Result<T> {
    Err(Error::new(ErrorKind::FeatureUnsupported, "the guard loads and commits, and nothing else"))
}

/// `Transaction::commit` loads and updates. Nothing else has a way through.
#[async_trait]
impl Catalog for Guard {
    async fn load_table(&self, table: &TableIdent) -> Result<Table> {
        let table = self.catalogue.load_table(table).await.map_err(finally)?;
        self.check(table.metadata())?;
        Ok(table)
    }

    async fn update_table(&self, commit: TableCommit) -> Result<Table> {
        self.catalogue.update_table(commit).await.map_err(finally)
    }

    async fn list_namespaces(&self, _: Option<&NamespaceIdent>) -> Result<Vec<NamespaceIdent>> {
        forbid()
    }

    async fn create_namespace(
        &self,
        _: &NamespaceIdent,
        _: HashMap<String, String>,
    ) -> Result<Namespace> {
        forbid()
    }

    async fn get_namespace(&self, _: &NamespaceIdent) -> Result<Namespace> {
        forbid()
    }

    async fn namespace_exists(&self, _: &NamespaceIdent) -> Result<bool> {
        forbid()
    }

    async fn update_namespace(&self, _: &NamespaceIdent, _: HashMap<String, String>) -> Result<()> {
        forbid()
    }

    async fn drop_namespace(&self, _: &NamespaceIdent) -> Result<()> {
        forbid()
    }

    async fn list_tables(&self, _: &NamespaceIdent) -> Result<Vec<TableIdent>> {
        forbid()
    }

    async fn create_table(&self, _: &NamespaceIdent, _: TableCreation) -> Result<Table> {
        forbid()
    }

    async fn drop_table(&self, _: &TableIdent) -> Result<()> {
        forbid()
    }

    async fn purge_table(&self, _: &TableIdent) -> Result<()> {
        forbid()
    }

    async fn table_exists(&self, _: &TableIdent) -> Result<bool> {
        forbid()
    }

    async fn rename_table(&self, _: &TableIdent, _: &TableIdent) -> Result<()> {
        forbid()
    }

    async fn register_table(&self, _: &TableIdent, _: String) -> Result<Table> {
        forbid()
    }
}
