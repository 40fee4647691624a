//! Whatever the engine leaves on disk is sound, however the check is told to look.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Left, check_disk, check_with, sample};
use onrush_check::CheckOptions;
use onrush_files::MemoryDisk;

#[test]
fn a_closed_and_a_dropped_database_are_sound() {
    for left in [Left::Closed, Left::Dropped] {
        for rows in [0, 16, 4000] {
            let disk = MemoryDisk::new();
            sample(&disk, rows, left);
            let report = check_disk(&disk);
            assert_eq!(report.findings, [], "{left:?}, {rows} rows");
            assert!(report.is_sound());
            let types = report.tables.iter().find(|table| table.name == "types").unwrap();
            if left == Left::Closed {
                assert_eq!(types.rows, (rows - rows / 4) as u64);
            }
            assert_eq!(report.log_records > 0, left == Left::Dropped && rows > 0);
        }
    }
}

#[test]
fn every_way_of_checking_sees_the_same() {
    let disk = MemoryDisk::new();
    sample(&disk, 3000, Left::Dropped);
    let expected = check_disk(&disk);
    for dop in [1, 3, 32] {
        for (read_stream_per_file, one_batch) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            let options =
                CheckOptions { dop, read_stream_per_file, one_batch, ..CheckOptions::default() };
            let report = check_with(&disk, &options);
            assert!(report.is_sound(), "{options:?}: {report}");
            assert_eq!(report.tables, expected.tables, "{options:?}");
            let physical = check_with(&disk, &CheckOptions { physical_only: true, ..options });
            assert!(physical.is_sound());
            let images = |report: &onrush_check::CheckReport| -> Vec<u64> {
                report.tables.iter().map(|table| table.images).collect()
            };
            assert_eq!(images(&physical), images(&expected));
        }
    }
}

#[test]
fn one_table_alone_can_be_checked_and_an_unknown_one_is_refused() {
    let disk = MemoryDisk::new();
    sample(&disk, 400, Left::Closed);
    let only = |table: &str| CheckOptions { table: Some(table.into()), ..CheckOptions::default() };
    let report = check_with(&disk, &only("types"));
    let read = report.tables.iter().filter(|table| table.images > 0);
    assert_eq!(read.map(|table| table.name.as_str()).collect::<Vec<_>>(), ["types"]);
    let unknown = onrush_check::check(
        std::sync::Arc::new(disk),
        &common::folder(),
        &only("ordres"),
        &onrush_check::Progress::default(),
    );
    let message = unknown.unwrap_err().to_string();
    assert!(message.contains("ordres") && message.contains("types"), "{message}");
}

#[test]
fn tables_that_are_not_logged_are_sound_and_empty() {
    use onrush::{ColumnDefinition, DataType, Database, Options, TableDefinition};
    let disk = MemoryDisk::new();
    let shared = std::sync::Arc::new(disk.clone());
    let database = Database::create_on(shared, common::folder(), Options::small()).unwrap();
    let definition = TableDefinition::builder("visits")
        .column(ColumnDefinition::new("id", DataType::Int64))
        .primary_key(["id"])
        .unlogged()
        .build()
        .unwrap();
    let table = database.create_table(definition).unwrap();
    let mut session = database.session().unwrap();
    for id in 0..500i64 {
        session.insert(&table, &[id.into()]).unwrap();
        if id == 250 {
            database.checkpoint().unwrap();
        }
    }
    drop(session);
    drop(table);
    drop(database);
    let report = check_disk(&disk);
    assert_eq!(report.findings, []);
    assert!(report.log_records > 0);
    assert_eq!((report.tables[0].leaves, report.tables[0].images), (1, 0));
}

/// A table for each thing that a definition may say, beside types of columns.
/// Checks the disk while an index is being built.
struct LooksAtDisk {
    disk: MemoryDisk,
    database: onrush::Database,
}

impl onrush::Waiting for LooksAtDisk {
    fn is_interrupted(&self) -> bool {
        let table = self.database.table("boxes").unwrap();
        assert!(table.definition().indexes().iter().any(|index| index.is_building));
        self.database.checkpoint().unwrap();
        assert_eq!(check_disk(&MemoryDisk::copy(&self.disk)).findings, []);
        false
    }
}

#[test]
fn every_kind_of_definition_is_known() {
    use onrush::expression::{Arithmetic, Expression};
    use onrush::{
        ColumnDefinition, ColumnDomain, CompositeType, DataType, Database, DomainDefinition,
        EnumLabels, EnumType, KeyStrategy, NewForeignKey, NewIndex, Options, ReferentialAction,
        RowExpression, SequenceDefinition, SequenceOwner, TableChange, TableDefinition,
        ViewColumnKind, ViewDefinition, ViewRows, ViewSource,
    };
    use onrush_types::DOMAIN_VALUE;
    let disk = MemoryDisk::new();
    let shared = std::sync::Arc::new(disk.clone());
    let database = Database::create_on(shared, common::folder(), Options::small()).unwrap();
    let number = |name: &str| ColumnDefinition::new(name, DataType::Int64);
    let identity = KeyStrategy::Identity { start: 1, strict: false };
    let mut always = number("id").not_null().default_key(identity);
    always.is_always_generated = true;
    let mut computed = number("computed").not_null().default_expression("nextval(1)");
    computed.is_always_generated = true;
    let authors = TableDefinition::builder("authors").column(always).column(computed);
    let authors = database.create_table(authors.primary_key(["id"]).build().unwrap()).unwrap();
    database.create_index("authors", &NewIndex::new("once", ["computed"]).unique()).unwrap();
    let appended = TableDefinition::builder("appended").column(number("id").not_null());
    database.create_table(appended.primary_key(["id"]).build().unwrap()).unwrap();
    database.alter_table("appended", &[TableChange::SetAppendsOnly(true)]).unwrap();
    let books = TableDefinition::builder("books").column(number("id").not_null());
    let books = books.column(number("author")).primary_key(["id"]).key_name("books_by_id");
    let books = books.build().unwrap();
    database.create_table(books).unwrap();
    let by_id = NewForeignKey::new("by_id", ["author"], "authors");
    let by_other = NewForeignKey {
        referenced_columns: vec!["computed".into()],
        is_validated: false,
        is_match_full: true,
        ..NewForeignKey::new("by_other", ["author"], "authors")
    };
    database.add_foreign_key("books", &by_id.on_delete(ReferentialAction::SetNull)).unwrap();
    database.add_foreign_key("books", &by_other).unwrap();
    let sequence = SequenceDefinition {
        data_type: DataType::Int32,
        start: -1,
        increment: -2,
        least: -100,
        greatest: -1,
        cache: 5,
        cycles: true,
        generation: 3,
        owner: Some(SequenceOwner { table: authors.id(), column: 0 }),
    };
    let sequence = TableDefinition::builder("numbers").sequence(sequence).build().unwrap();
    database.create_table(sequence).unwrap();
    let boxes = TableDefinition::builder("boxes").column(number("id").not_null());
    let boxes = boxes.column(number("twice")).primary_key(["id"]).build().unwrap();
    let twice = Expression::column("id").arithmetic(Arithmetic::Multiply, 2i64);
    let twice = RowExpression::new(&twice, &boxes).unwrap();
    let boxes = database.create_table(boxes.with_generated("twice", twice).unwrap()).unwrap();
    let halved = Expression::column("id").arithmetic(Arithmetic::Divide, 2i64);
    let halved = RowExpression::new(&halved, boxes.definition()).unwrap();
    let large = Expression::column("twice").greater_than(5i64);
    let large = RowExpression::condition(&large, boxes.definition()).unwrap();
    let halves = NewIndex::new("halves", ["twice"]).expression(halved).only_where(large);
    let boxes = database.create_index("boxes", &halves).unwrap();
    let row = [4i64.into(), onrush::Value::Default];
    database.session().unwrap().insert(&boxes, &row).unwrap();
    let looked_at =
        std::sync::Arc::new(LooksAtDisk { disk: disk.clone(), database: database.clone() });
    let options = onrush::IndexBuildOptions { waiting: Some(looked_at), ..Default::default() };
    database.build_index("boxes", &NewIndex::new("by_twice", ["twice"]), &options).unwrap();
    drop(options);
    let amount = ColumnDefinition::new("amount", DataType::Numeric(None));
    let amounts = TableDefinition::builder("amounts").column(number("id").not_null());
    let amounts = amounts.column(amount).primary_key(["id"]).build().unwrap();
    let amounts = database.create_table(amounts).unwrap();
    let amount = onrush::Numeric::new(15, 1).unwrap();
    database.session().unwrap().insert(&amounts, &[1i64.into(), amount.into()]).unwrap();
    let labels = EnumLabels::new(["sad", "happy"]).unwrap();
    let mood = TableDefinition::builder("mood").labels(labels.clone()).build().unwrap();
    let mood = database.create_table(mood).unwrap();
    let mood = DataType::Enum(EnumType::new(mood.id(), "mood", &labels));
    let feels = ColumnDefinition::new("feels", mood).default_value("happy");
    let people = TableDefinition::builder("people").column(feels.not_null());
    let people = people.column(ColumnDefinition::new("was", mood)).primary_key(["feels"]);
    let people = database.create_table(people.build().unwrap()).unwrap();
    database.session().unwrap().insert(&people, &["sad".into(), "happy".into()]).unwrap();
    let place = TableDefinition::builder("place").column(number("house")).composite();
    let place = database.create_table(place.build().unwrap()).unwrap();
    let fields = vec![("house".into(), DataType::Int64)];
    let place = DataType::Composite(CompositeType::new(place.id(), "place", fields));
    let stands = TableDefinition::builder("stands").column(number("id").not_null());
    let stands = stands.column(ColumnDefinition::new("at", place)).primary_key(["id"]);
    let stands = database.create_table(stands.build().unwrap()).unwrap();
    database.session().unwrap().insert(&stands, &[1i64.into(), "(7)".into()]).unwrap();
    let positive = Expression::column(DOMAIN_VALUE).greater_than(0i64);
    let domain = TableDefinition::builder("positive")
        .column(number(DOMAIN_VALUE).not_null())
        .domain(DomainDefinition { unvalidated: vec!["is_positive".into()] })
        .check("is_positive", positive);
    let domain = database.create_table(domain.build().unwrap()).unwrap();
    let of = ColumnDomain { number: domain.id(), name: "positive".into(), gives_default: true };
    let counts = TableDefinition::builder("counts").column(number("id").not_null());
    let counts = counts.column(number("count").of_domain(of)).primary_key(["id"]).build().unwrap();
    let counts = counts.with_rules(domain.definition().rules_for(1)).unwrap();
    let counts = database.create_table(counts).unwrap();
    database.session().unwrap().insert(&counts, &[1i64.into(), 2i64.into()]).unwrap();
    let view = ViewDefinition {
        query: "SELECT id FROM authors".into(),
        sources: vec![ViewSource { table: authors.id(), columns: vec![0, 1], used: vec![0] }],
        kinds: vec![(0, ViewColumnKind::Array)],
        rows: ViewRows::None,
    };
    for rows in [ViewRows::Kept, ViewRows::Missing] {
        let kept = ViewDefinition { kinds: Vec::new(), rows, ..view.clone() };
        let kept = TableDefinition::builder(format!("{rows:?}")).column(number("ids")).view(kept);
        let kept = database.create_table(kept.build().unwrap()).unwrap();
        if rows == ViewRows::Kept {
            database
                .session()
                .unwrap()
                .insert(&kept, &[1i64.into(), onrush::Value::Default])
                .unwrap();
        }
    }
    let view = TableDefinition::builder("views").column(number("ids")).view(view).build().unwrap();
    database.create_table(view).unwrap();
    assert_eq!(check_disk(&MemoryDisk::copy(&disk)).findings, []);
    database.checkpoint().unwrap();
    database.close().unwrap();
    assert_eq!(check_disk(&disk).findings, []);
}
