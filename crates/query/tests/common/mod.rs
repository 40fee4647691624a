//! A database in memory, and queries of its tables.
#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use onrush::{Database, Options, Row, Snapshot, Table, Value};
use onrush_files::MemoryDisk;
use onrush_query::{
    Client, QueryEngine, QueryError, QueryOptions, Relation, Relations, Result, Statement, Want,
};
use tokio::runtime::Runtime;

pub struct Fixture {
    pub db: Database,
    engine: QueryEngine,
    waiting: Runtime,
    _folder: tempfile::TempDir,
}

/// The table that a query may name: `t`, or `changed` as a statement knows it that changes its rows.
struct Known<'t>(&'t Table);

impl Relations for Known<'_> {
    fn find(&self, _: Option<&str>, name: &str) -> Result<Relation> {
        match name {
            "t" => Ok(Relation::Table(self.0.clone())),
            "changed" => Ok(Relation::TableWithRowIds(self.0.clone())),
            _ => Err(QueryError::refused("42P01", format!("there is no {name}"))),
        }
    }

    fn is_always_empty(&self, _: Option<&str>, _: &str) -> bool {
        false
    }
}

impl Fixture {
    pub fn new() -> Fixture {
        Fixture::with(Options::small())
    }

    pub fn with(options: Options) -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(MemoryDisk::new());
        let db = Database::create_on(disk, folder.path().join("db"), options).unwrap();
        let options = QueryOptions {
            threads: 2,
            memory_bytes: 64 << 20,
            statement_memory_bytes: 32 << 20,
            spill: None,
        };
        let engine = QueryEngine::new(options, Vec::new()).unwrap();
        let waiting = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Fixture { db, engine, waiting, _folder: folder }
    }

    /// What is committed now.
    pub fn now(&self) -> Snapshot {
        self.db.session().unwrap().snapshot().unwrap()
    }

    fn run(&self, view: Snapshot, table: &Table, sql: &str, want: Want) -> Result<Vec<Row>> {
        let mut parsed = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap();
        let Some(ast::Statement::Query(query)) = parsed.pop() else { panic!("no query: {sql}") };
        let query = self.engine.plan(*query, &Known(table), &[])?;
        let statement = Statement::new(view, Client::default(), 0);
        let mut rows = self.engine.run(&query, want, statement, &[])?;
        let mut found = Vec::new();
        while self.waiting.block_on(rows.wait())? {
            while let Some(row) = rows.next_here()? {
                found.push(row);
            }
        }
        Ok(found)
    }

    /// The rows of a query in which the table is `t`.
    pub fn rows(&self, view: Snapshot, table: &Table, sql: &str) -> Vec<Row> {
        self.run(view, table, sql, Want::Rows).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The first column of the rows, which is a number, in ascending order.
    pub fn ids(&self, table: &Table, sql: &str) -> Vec<i64> {
        let rows = self.rows(self.now(), table, sql);
        let mut ids: Vec<i64> = rows.iter().map(|row| row[0].as_i64().unwrap()).collect();
        ids.sort_unstable();
        ids
    }

    /// How a query would be done.
    pub fn plan(&self, view: Snapshot, table: &Table, sql: &str) -> String {
        let line = |row: &Row| match &row[0] {
            Value::Text(line) => line.to_string(),
            other => panic!("{other:?}"),
        };
        let lines = self.run(view, table, sql, Want::Plan).unwrap();
        lines.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}
