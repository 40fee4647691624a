//! Nothing is damaged: the new database has the same tables and rows, and goes on with keys that were
//! never used; the old one is as it was.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{COUNTING, Left, files, folder, options, target};
use onrush::expression::Expression;
use onrush::{
    CheckConstraint, ColumnDefinition, ColumnDomain, ColumnInDomain, DOMAIN_VALUE, DataType,
    Database, DomainDefinition, Error, ExpressionCompiler, KeyStrategy, NewForeignKey, NewIndex,
    RowCheck, RowView, ScanOptions, TableChange, TableDefinition, Value,
};
use onrush_files::{Disk, MemoryDisk};
use onrush_repair::{Outcome, RepairError, RepairOptions};

fn all_is_there(left: Left) {
    let disk = MemoryDisk::new();
    let history = common::sample(&disk, 400, left);
    let before = files(&disk, &folder());

    let report = common::repair_disk(&disk).unwrap();

    assert_eq!(report.outcome, Outcome::NothingLost, "{report}");
    assert_eq!(files(&disk, &folder()), before);
    let repaired = common::repaired_rows(&disk);
    let mut expected = history.last;
    // Rows that are not logged are gone whenever a database is opened.
    expected.get_mut("notes").unwrap().clear();
    assert_eq!(repaired.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (table, rows) in &expected {
        assert_eq!(&repaired[table], rows, "{table}");
        let told = report.repaired.iter().find(|told| told.name == *table).unwrap();
        assert_eq!((told.rows, told.is_logged), (rows.len() as u64, table != "notes"));
    }
    let (old, new) = (common::open(&disk, &folder()), common::open(&disk, &target()));
    // Tables of long values are new, and numbered behind all others.
    let alone = |db: &Database| -> Vec<TableDefinition> {
        let tables = db.tables();
        tables.iter().map(|table| TableDefinition::clone(table).with_long_values(None)).collect()
    };
    assert_eq!(alone(&old), alone(&new));
}

#[test]
fn after_a_close() {
    all_is_there(Left::Closed);
}

#[test]
fn after_a_crash_with_much_in_the_log() {
    all_is_there(Left::Dropped);
}

/// The part of a key that ascends with its number, where there is one.
fn ascending(strategy: KeyStrategy, key: &Value<'_>) -> Option<i64> {
    match (strategy, key) {
        (KeyStrategy::Identity { .. } | KeyStrategy::NodeOffset { .. }, key) => key.as_i64(),
        (KeyStrategy::SequentialGuid, Value::Uuid(guid)) => Some((guid.as_u128() >> 80) as i64),
        _ => None,
    }
}

#[test]
fn generated_keys_go_on_beyond_the_old_ones() {
    for left in [Left::Closed, Left::Dropped] {
        let disk = MemoryDisk::new();
        common::sample(&disk, 100, left);
        common::repair_disk(&disk).unwrap();
        let (old, new) = (common::open(&disk, &folder()), common::open(&disk, &target()));
        let (mut old_session, mut new_session) = (old.session().unwrap(), new.session().unwrap());
        for strategy in COUNTING {
            let name = strategy.name();
            let next_old = common::insert_keyed(&mut old_session, &old, name, 1).remove(0);
            // None of them is taken: a duplicate would be an error.
            let keys = common::insert_keyed(&mut new_session, &new, name, 300);
            if let Some(next_old) = ascending(strategy, &next_old[0]) {
                let lowest = keys.iter().filter_map(|key| ascending(strategy, &key[0])).min();
                assert!(lowest >= Some(next_old), "{name}: {lowest:?}, not {next_old}");
            }
        }
    }
}

#[test]
fn generated_keys_go_on_beyond_those_written_by_hand() {
    let disk = MemoryDisk::new();
    let database = Database::create_on(Arc::new(disk.clone()), folder(), options()).unwrap();
    let identity = KeyStrategy::Identity { start: 1, strict: false };
    for name in ["imaged", "logged"] {
        let table = database.create_table(common::keyed_table(name, identity)).unwrap();
        let mut session = database.session().unwrap();
        let by_hand = [5_000_000i64.into(), Value::Default, 7_000_000i64.into()];
        session.insert(&table, &by_hand).unwrap();
        if name == "imaged" {
            database.checkpoint().unwrap();
        }
    }
    drop(database);
    assert_eq!(common::repair_disk(&disk).unwrap().outcome, Outcome::NothingLost);
    let new = common::open(&disk, &target());
    let mut session = new.session().unwrap();
    for name in ["imaged", "logged"] {
        common::insert_keyed(&mut session, &new, name, 1);
        let rows = &common::rows_of(&new)[name];
        assert_eq!(rows[1][0], 5_000_001i64.into(), "{name}");
        assert_eq!(rows[1][2], 7_000_001i64.into(), "{name}");
    }
}

#[test]
fn altered_tables_have_their_columns_of_today_and_the_rows_of_all_versions() {
    for left in [Left::Closed, Left::Dropped] {
        let disk = MemoryDisk::new();
        let database = Database::create_on(Arc::new(disk.clone()), folder(), options()).unwrap();
        let identity = KeyStrategy::Identity { start: 1, strict: false };
        database.create_table(common::keyed_table("before", identity)).unwrap();
        let mut session = database.session().unwrap();
        common::insert_keyed(&mut session, &database, "before", 30);
        let weight = ColumnDefinition::new("weight", DataType::Int32).default_value(7i32);
        database.alter_table("before", &[TableChange::AddColumn(weight)]).unwrap();
        database.checkpoint().unwrap();
        // The images know of the first change, the log alone of the others.
        let of_three = database.table("before").unwrap();
        session.insert(&of_three, &[100i64.into(), "x".into(), 1i64.into(), 8i32.into()]).unwrap();
        let changes = [
            TableChange::DropColumn { name: "note".into() },
            TableChange::Rename { to: "after".into() },
        ];
        let altered = database.alter_table("before", &changes).unwrap();
        session.insert(&altered, &[101i64.into(), 2i64.into(), Value::Null]).unwrap();
        let expected = common::rows_of(&database);
        match left {
            Left::Closed => {
                drop((session, of_three, altered));
                database.close().unwrap();
            }
            Left::Dropped => drop((session, of_three, altered, database)),
        }

        let report = common::repair_disk(&disk).unwrap();

        assert_eq!(report.outcome, Outcome::NothingLost, "{left:?}: {report}");
        assert_eq!(common::repaired_rows(&disk), expected, "{left:?}");
        assert_eq!(expected["after"].len(), 32);
        let (old, new) = (common::open(&disk, &folder()), common::open(&disk, &target()));
        assert_eq!(old.tables(), new.tables());
    }
}

#[test]
fn one_table_may_be_named() {
    let disk = MemoryDisk::new();
    let history = common::sample(&disk, 100, Left::Dropped);
    let only = |name: &str| RepairOptions { tables: vec![name.to_owned()], engine: options() };
    let error = common::repair_with(&disk, &only("typos")).unwrap_err();
    assert!(error.to_string().contains("the tables are: "), "{error}");
    assert!(!disk.exists(&target()).unwrap());

    common::repair_with(&disk, &only("types")).unwrap();
    let repaired = common::repaired_rows(&disk);
    assert_eq!(repaired.len(), 1);
    assert_eq!(repaired["types"], history.last["types"]);
}

#[test]
fn a_folder_that_exists_is_refused() {
    let disk = MemoryDisk::new();
    common::sample(&disk, 100, Left::Closed);
    disk.create_folder(&target()).unwrap();
    let error = common::repair_disk(&disk).unwrap_err();
    assert!(matches!(error, RepairError::TargetExists { .. }), "{error}");
    assert!(disk.list(&target()).unwrap().is_empty());
}

#[test]
fn a_folder_inside_the_damaged_database_is_refused() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let (options, progress) = Default::default();
    let into = folder().join("new");
    let error = onrush_repair::repair(disk, &folder(), &into, &options, &progress).unwrap_err();
    assert!(matches!(error, RepairError::TargetInside { .. }), "{error}");
}

#[test]
fn an_open_database_is_refused() {
    let disk = MemoryDisk::new();
    common::sample(&disk, 100, Left::Closed);
    let _database = common::open(&disk, &folder());
    let error = common::repair_disk(&disk).unwrap_err();
    assert!(error.to_string().contains("while a database is open"), "{error}");
    assert!(!disk.exists(&target()).unwrap());
}

/// Nothing is lost of a table of this definition with one row.
fn only_item_is_there(disk: &MemoryDisk, definition: &TableDefinition) {
    let report = common::repair_disk(disk).unwrap();
    assert_eq!(report.outcome, Outcome::NothingLost, "{report}");
    assert_eq!(common::repaired_rows(disk)["items"].len(), 1);
    assert_eq!(*common::open(disk, &target()).tables()[0], *definition);
}

/// Its rows met the constraint, which nobody here understands.
#[test]
fn rows_of_a_table_with_a_check_are_saved_with_it() {
    struct Anything;
    impl ExpressionCompiler for Anything {
        fn compile_check(
            &self,
            _: &TableDefinition,
            _: &CheckConstraint,
        ) -> onrush::Result<Box<dyn RowCheck>> {
            Ok(Box::new(Anything))
        }
    }
    impl RowCheck for Anything {
        fn is_met(&self, _: &RowView<'_>) -> onrush::Result<bool> {
            Ok(true)
        }
    }
    let disk = MemoryDisk::new();
    let db = Database::create_on(Arc::new(disk.clone()), folder(), options()).unwrap();
    db.set_expression_compiler(Arc::new(Anything));
    let expression = "$1 > 0".to_owned();
    let check = CheckConstraint {
        name: "positive".to_owned(),
        columns: vec![0],
        expression,
        form: None,
        is_validated: true,
    };
    let items = TableDefinition::builder("items")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .primary_key(["id"])
        .check_constraint(check);
    let items = db.create_table(items.build().unwrap()).unwrap();
    db.session().unwrap().insert(&items, &[1i64.into()]).unwrap();
    let definition = items.definition().clone();
    drop(items);
    db.close().unwrap();
    only_item_is_there(&disk, &definition);
}

/// A domain's condition that is not validated holds for rows that come; those that were there may not meet it.
#[test]
fn rows_that_do_not_meet_a_condition_which_came_later_are_saved() {
    let domain = TableDefinition::builder("above_zero")
        .column(ColumnDefinition::new(DOMAIN_VALUE, DataType::Int64))
        .domain(DomainDefinition { unvalidated: vec!["is_above".to_owned()] })
        .check("is_above", Expression::column(DOMAIN_VALUE).greater_than(0))
        .build()
        .unwrap();
    let disk = MemoryDisk::new();
    let db = Database::create_on(Arc::new(disk.clone()), folder(), options()).unwrap();
    let of = ColumnDomain { number: 1, name: "above_zero".to_owned(), gives_default: false };
    let items = TableDefinition::builder("items")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .column(ColumnDefinition::new("number", DataType::Int64).of_domain(of.clone()))
        .primary_key(["id"]);
    let items = db.create_table(items.build().unwrap()).unwrap();
    db.session().unwrap().insert(&items, &[1i64.into(), (-1i64).into()]).unwrap();
    let column = ColumnInDomain {
        name: "number".to_owned(),
        domain: Some(of),
        rules: domain.rules_for(1),
        default: None,
    };
    let change = TableChange::SetDomainOfColumns(vec![column]);
    let items = db.alter_table("items", &[change]).unwrap();
    let refused = db.session().unwrap().insert(&items, &[2i64.into(), (-2i64).into()]);
    assert!(matches!(refused, Err(Error::DomainViolated(_))), "{refused:?}");
    let definition = items.definition().clone();
    drop(items);
    db.close().unwrap();
    only_item_is_there(&disk, &definition);
}

#[test]
fn indexes_are_made_anew() {
    let disk = MemoryDisk::new();
    let db = Database::create_on(Arc::new(disk.clone()), folder(), options()).unwrap();
    let column = |name| ColumnDefinition::new(name, DataType::Int64).not_null();
    let items = TableDefinition::builder("items").column(column("id")).column(column("number"));
    db.create_table(items.primary_key(["id"]).build().unwrap()).unwrap();
    let by_number = NewIndex::new("by_number", ["number"]).unique();
    let items = db.create_index("items", &by_number).unwrap();
    let mut session = db.session().unwrap();
    for id in 0..300i64 {
        session.insert(&items, &[id.into(), (1000 - id).into()]).unwrap();
    }
    assert!(session.delete(&items, &[7i64.into()]).unwrap());
    drop(session);
    db.close().unwrap();

    let report = common::repair_disk(&disk).unwrap();

    assert_eq!(report.outcome, Outcome::NothingLost, "{report}");
    assert_eq!(report.rows(), 299);
    let new = common::open(&disk, &target());
    let items = new.table("items").unwrap();
    let snapshot = new.session().unwrap().snapshot().unwrap();
    let entries = snapshot.index_entries(&items, 0).unwrap();
    assert_eq!(snapshot.scan(&entries, &ScanOptions::default()).unwrap().count(), 299);
    let taken = new.session().unwrap().insert(&items, &[7i64.into(), 1000i64.into()]);
    assert!(matches!(taken, Err(Error::UniqueViolated { .. })), "{taken:?}");
}

#[test]
fn tables_are_named_by_the_same_numbers_and_keep_their_foreign_keys() {
    let disk = MemoryDisk::new();
    let database = Database::create_on(Arc::new(disk.clone()), folder(), options()).unwrap();
    let number = |name: &str| ColumnDefinition::new(name, DataType::Int64).not_null();
    let table = |name: &str| {
        let table = TableDefinition::builder(name).column(number("id")).column(number("author"));
        table.primary_key(["id"]).build().unwrap()
    };
    // What is gone leaves a number free.
    database.create_table(table("gone")).unwrap();
    database.create_table(table("books")).unwrap();
    database.create_table(table("authors")).unwrap();
    database.drop_table("gone").unwrap();
    database.add_foreign_key("books", &NewForeignKey::new("of", ["author"], "authors")).unwrap();
    let numbers =
        |database: &Database| ["books", "authors"].map(|name| database.table(name).unwrap().id());
    let before = numbers(&database);
    let mut session = database.session().unwrap();
    let authors = database.table("authors").unwrap();
    session.insert(&authors, &[1i64.into(), 1i64.into()]).unwrap();
    session.insert(&database.table("books").unwrap(), &[1i64.into(), 1i64.into()]).unwrap();
    drop(session);
    database.close().unwrap();

    assert_eq!(common::repair_disk(&disk).unwrap().outcome, Outcome::NothingLost);
    let repaired = common::open(&disk, &target());
    assert_eq!(numbers(&repaired), before);
    let books = repaired.table("books").unwrap();
    assert!(books.definition().foreign_keys()[0].is_validated);
    let mut session = repaired.session().unwrap();
    let orphan = session.insert(&books, &[2i64.into(), 9i64.into()]);
    assert!(matches!(orphan, Err(Error::ReferenceMissing { .. })), "{orphan:?}");
}
