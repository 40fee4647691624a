//! A lake that fails on demand, for tests that are the same whatever it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use futures::TryStreamExt;
use iceberg::{Catalog, TableIdent};
use onrush_lake::DrainCatalogue;

use super::catalogue::{Fault, FaultyCatalogue};
use super::postgres::PostgresLake;

/// A row in the lake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LakeRow {
    pub id: i64,
    pub node: i32,
    pub lsn: i64,
}

/// Whether faults are planted in this process: `iceberg` makes a commit again, if one lets it, after a while only.
pub static IS_FAULT_PLANTED: AtomicBool = AtomicBool::new(false);

pub enum Lake {
    /// Iceberg tables of a catalogue in memory.
    Iceberg(Arc<FaultyCatalogue>),
    /// Tables of a PostgreSQL.
    Postgres(PostgresLake),
}

impl Lake {
    pub fn iceberg() -> Lake {
        Lake::Iceberg(Arc::new(FaultyCatalogue::new()))
    }

    /// None where PostgreSQL is not installed.
    pub async fn postgres() -> Option<Lake> {
        PostgresLake::start().await.map(Lake::Postgres)
    }

    /// An empty one of the same kind.
    pub async fn another(&self) -> Lake {
        match self {
            Lake::Iceberg(_) => Lake::iceberg(),
            Lake::Postgres(lake) => Lake::Postgres(lake.another().await),
        }
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self, Lake::Postgres(_))
    }

    pub fn catalogue(&self) -> DrainCatalogue {
        match self {
            Lake::Iceberg(lake) => {
                let catalogue: Arc<dyn Catalog> = Arc::clone(lake) as _;
                DrainCatalogue::Open(catalogue)
            }
            Lake::Postgres(lake) => lake.catalogue(),
        }
    }

    /// How long a drain asks. A real server takes longer.
    pub fn patience(&self) -> Duration {
        Duration::from_millis(match self {
            _ if IS_FAULT_PLANTED.load(Ordering::Relaxed) => 2000,
            Lake::Postgres(_) => 10_000,
            Lake::Iceberg(_) => 100,
        })
    }

    /// What becomes of the next commits.
    pub async fn fail_commits(&self, faults: impl IntoIterator<Item = Fault>) {
        match self {
            Lake::Iceberg(lake) => lake.fail_commits(faults).await,
            Lake::Postgres(lake) => lake.fail_commits(faults),
        }
    }

    /// With the next commit it is away, until it is healed.
    pub async fn go_away_after_commit(&self) {
        match self {
            Lake::Iceberg(lake) => lake.fail_loads_after_commit(usize::MAX).await,
            Lake::Postgres(lake) => lake.go_away_after_commit(),
        }
    }

    /// Forgets all faults. What is on its way stays so.
    pub async fn heal(&self) {
        match self {
            Lake::Iceberg(lake) => lake.heal().await,
            Lake::Postgres(lake) => lake.heal(),
        }
    }

    /// Lets the oldest commit that is on its way arrive: whether it was applied, if there is one.
    pub async fn release(&self) -> Option<bool> {
        match self {
            Lake::Iceberg(lake) => lake.release().await,
            Lake::Postgres(lake) => lake.release().await,
        }
    }

    /// What somebody else does to keep the table tidy: of snapshots the newest stays, and it is none of a node's.
    pub async fn keep_up(&self) {
        match self {
            Lake::Iceberg(lake) => {
                let base = super::table(lake).await;
                super::commit_blindly(&**lake, &base, &[], None).await.unwrap();
                super::expire(lake).await;
            }
            Lake::Postgres(lake) => {
                lake.client().batch_execute("VACUUM FULL lake.events").await.unwrap();
            }
        }
    }

    /// The rows of a table, in order and with repetitions.
    pub async fn rows(&self, table: &str) -> Vec<LakeRow> {
        match self {
            Lake::Iceberg(lake) => iceberg_rows(lake, table).await,
            Lake::Postgres(lake) => lake.rows(table).await,
        }
    }

    pub async fn ids(&self) -> Vec<i64> {
        self.rows(super::node::EVENTS).await.into_iter().map(|row| row.id).collect()
    }
}

async fn iceberg_rows(lake: &FaultyCatalogue, table: &str) -> Vec<LakeRow> {
    let ident = TableIdent::from_strs(["lake", table]).unwrap();
    let table = lake.load_table(&ident).await.unwrap();
    let scan = table.scan().select(["id", "_node", "_lsn"]).build().unwrap();
    let batches: Vec<_> = scan.to_arrow().await.unwrap().try_collect().await.unwrap();
    let mut rows = Vec::new();
    for batch in batches {
        let column = |name: &str| batch.column_by_name(name).unwrap().clone();
        let (ids, nodes, lsns) = (column("id"), column("_node"), column("_lsn"));
        let ids = ids.as_primitive::<Int64Type>().values();
        let nodes = nodes.as_primitive::<Int32Type>().values();
        let lsns = lsns.as_primitive::<Int64Type>().values();
        let values = ids.iter().zip(nodes).zip(lsns);
        rows.extend(values.map(|((id, node), lsn)| LakeRow { id: *id, node: *node, lsn: *lsn }));
    }
    rows.sort_unstable();
    rows
}

/// Makes of each scenario a test for each kind of lake.
#[macro_export]
macro_rules! over_every_lake {
    ($scenarios:ident: $($scenario:ident),* $(,)?) => {
        mod iceberg_tables {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $scenario() {
                $crate::world::$scenarios::$scenario($crate::world::lake::Lake::iceberg()).await;
            })*
        }

        mod postgres_tables {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $scenario() {
                if let Some(lake) = $crate::world::lake::Lake::postgres().await {
                    $crate::world::$scenarios::$scenario(lake).await;
                }
            })*
        }
    };
}
