//! A row that cannot be imported is put aside with its line and the reason; its neighbours are
//! imported, whatever the size of a transaction.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use onrush::expression::{Arithmetic, Expression};
use onrush::{ColumnDefinition, DataType, Database, KeyStrategy, Options, TableDefinition, Value};
use onrush_transfer::csv::CsvOptions;
use onrush_transfer::{ImportFormat, ImportOptions, ImportReport, Rejects, TransferError, import};

struct World {
    _folder: tempfile::TempDir,
    database: Database,
    rejects: Rejects,
}

/// Fails for zero.
fn hundred_over(column: &str) -> Expression {
    Expression::value(100).arithmetic(Arithmetic::Divide, Expression::column(column))
}

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path().join("db"), Options::small()).unwrap();
    let table = TableDefinition::builder("orders")
        .column(
            ColumnDefinition::new("id", DataType::Int64)
                .default_key(KeyStrategy::Identity { start: 100, strict: true }),
        )
        .column(ColumnDefinition::new("amount", DataType::Int32).not_null())
        .column(ColumnDefinition::new("note", DataType::Varchar(10)))
        .primary_key(["id"])
        .check("few", hundred_over("amount").at_least(1))
        .build()
        .unwrap();
    database.create_table(table).unwrap();
    let rejects = Rejects::new(folder.path().join("rejected.csv"));
    World { _folder: folder, database, rejects }
}

impl World {
    fn import(
        &mut self,
        text: &str,
        format: ImportFormat,
        rows_per_commit: usize,
    ) -> Result<ImportReport, TransferError> {
        let table = self.database.table("orders").unwrap();
        let options = ImportOptions { rows_per_commit, ..ImportOptions::new(format) };
        import(
            &self.database,
            &table,
            text.as_bytes(),
            &options,
            &mut self.rejects,
            &mut |_: &ImportReport| {},
        )
    }

    fn amount(&self, id: i64) -> Option<Value<'static>> {
        let table = self.database.table("orders").unwrap();
        let row = self.database.session().unwrap().get(&table, &[Value::Int64(id)]).unwrap();
        row.map(|row| row[1].clone())
    }
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

const CSV: &str = "\
id,amount,note
1,10,good
2,ten,not a number
3,30,\"a note that is too long\"
1,40,duplicate
5,50
6,,no amount
7,70,\"good, too\"
";

#[test]
fn csv_rows_whatever_the_transaction() {
    for rows_per_commit in [1, 2, 100] {
        let mut world = world();
        let csv = ImportFormat::Csv(CsvOptions::default());
        let report = world.import(CSV, csv, rows_per_commit).unwrap();
        assert_eq!((report.rows_read, report.rows_imported, report.rows_rejected), (7, 2, 5));
        assert_eq!(world.amount(1), Some(Value::Int32(10)));
        assert_eq!(world.amount(7), Some(Value::Int32(70)));
        let mut rejected = lines(world.rejects.path());
        assert_eq!(rejected.remove(0), "line,reason,row");
        rejected.sort();
        for (line, (number, word)) in rejected.iter().zip([
            (3, "is not integer"),
            (4, "varchar(10)"),
            (5, "already has a row"),
            (6, "2 fields"),
            (7, "NOT NULL"),
        ]) {
            assert!(line.starts_with(&format!("{number},")), "{rows_per_commit}: {line}");
            assert!(line.contains(word), "{rows_per_commit}: {line}");
        }
    }
}

#[test]
fn json_rows_and_generated_keys() {
    let mut world = world();
    let text = "\
{\"amount\": 10}
{\"amount\": 10, \"colour\": \"red\"}

{\"amount\": 20, \"note\": null}
{\"amount\": [1]}
not json
{\"note\": \"no amount\"}
{\"amount\": 1, \"note\": 5}
{\"amount\": true}
{\"amount\": 1, \"amount\": 2}
";
    let report = world.import(text, ImportFormat::Json, 1).unwrap();
    assert_eq!((report.rows_imported, report.rows_rejected), (2, 7));
    assert_eq!(world.amount(100), Some(Value::Int32(10)));
    let rejected = lines(world.rejects.path());
    for (line, (number, word)) in rejected[1..].iter().zip([
        (2, "no column \"\"colour\"\""),
        (5, "array or object"),
        (6, "no JSON object"),
        (7, "NOT NULL"),
        (8, "5 is a number, and the column is varchar(10)"),
        (9, "true is a boolean, and the column is integer"),
        (10, "column amount is there twice"),
    ]) {
        assert!(line.starts_with(&format!("{number},")) && line.contains(word), "{line}");
    }
}

#[test]
fn a_clean_import_leaves_no_rejects_where_they_are_to_be_overwritten() {
    let mut world = world();
    world.import("{\"amount\": \"many\"}\n", ImportFormat::Json, 1).unwrap();
    assert!(world.rejects.path().exists());
    world.rejects = Rejects::overwriting(world.rejects.path());
    world.import("{\"amount\": 10}\n", ImportFormat::Json, 1).unwrap();
    assert!(!world.rejects.path().exists());
}

#[test]
fn a_header_that_does_not_fit_imports_nothing_and_names_the_columns() {
    let mut world = world();
    let csv = ImportFormat::Csv(CsvOptions::default());
    let refused = world.import("id,price\n1,2\n", csv.clone(), 1).unwrap_err().to_string();
    assert!(refused.contains("price") && refused.contains("id, amount, note"), "{refused}");
    let refused = world.import("id,id\n1,2\n", csv.clone(), 1).unwrap_err().to_string();
    assert!(refused.contains("twice"), "{refused}");
    let refused = world.import("", csv, 1).unwrap_err().to_string();
    assert!(refused.contains("empty"), "{refused}");
    let refused = world.import("[{\"id\": 1}]", ImportFormat::Json, 1).unwrap_err().to_string();
    assert!(refused.contains("JSON array"), "{refused}");
}

#[test]
fn rows_that_violate_a_check_whatever_the_transaction() {
    for rows_per_commit in [1, 100] {
        let mut world = world();
        let csv = ImportFormat::Csv(CsvOptions::default());
        let text = "id,amount,note\n1,50,good\n2,101,too many\n3,0,nothing\n4,5,good\n";
        let report = world.import(text, csv, rows_per_commit).unwrap();
        assert_eq!((report.rows_read, report.rows_imported, report.rows_rejected), (4, 2, 2));
        let mut rejected = lines(world.rejects.path());
        rejected.sort();
        assert!(rejected[0].contains("check constraint few"), "{}", rejected[0]);
        assert!(rejected[1].contains("division by zero"), "{}", rejected[1]);
    }
}
