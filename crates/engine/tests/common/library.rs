//! Books that reference their authors.

use onrush::{
    ColumnDefinition, DataType, Database, NewForeignKey, Row, ScanOptions, Table, TableDefinition,
    Value,
};

pub fn number(name: &str) -> ColumnDefinition {
    ColumnDefinition::new(name, DataType::Int64)
}

/// authors: id, and a code that may be NULL.
pub fn authors(db: &Database) -> Table {
    let authors = TableDefinition::builder("authors");
    let authors = authors.column(number("id").not_null()).column(number("code"));
    db.create_table(authors.primary_key(["id"]).build().unwrap()).unwrap()
}

/// books: id, and the author, 7 where it has its default.
pub fn books(db: &Database) -> Table {
    let books = TableDefinition::builder("books").column(number("id").not_null());
    let books = books.column(number("author").default_value(7i64)).primary_key(["id"]);
    db.create_table(books.build().unwrap()).unwrap()
}

pub fn books_author() -> NewForeignKey {
    NewForeignKey::new("books_author", ["author"], "authors")
}

pub fn row<const N: usize>(values: [Option<i64>; N]) -> [Value<'static>; N] {
    values.map(|value| value.map_or(Value::Null, Value::Int64))
}

/// Rows in key order; NULL as none.
pub fn rows(db: &Database, table: &str) -> Vec<Vec<Option<i64>>> {
    let table = db.table(table).unwrap();
    let mut session = db.session().unwrap();
    let rows = session.scan(&table, &ScanOptions::default()).unwrap().map(Result::unwrap);
    rows.map(|row: Row| row.iter().map(Value::as_i64).collect()).collect()
}
