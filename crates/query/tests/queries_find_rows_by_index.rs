//! A query whose conditions an index serves reads the entries that they leave, and gives the rows that it would give
//! without one.

#![allow(clippy::unwrap_used)]

mod common;

use common::Fixture;
use onrush::{
    ColumnDefinition, DataType, KeyOrder, NewIndex, Options, ROW_ID, Session, Table,
    TableDefinition, Value,
};

const DESCENDING: KeyOrder = KeyOrder { descending: true, nulls_first: true };

/// id, a number and a text, both of which may be NULL, and a note that no index has.
fn items() -> TableDefinition {
    TableDefinition::builder("items")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .column(ColumnDefinition::new("number", DataType::Int32))
        .column(ColumnDefinition::new("name", DataType::Text))
        .column(ColumnDefinition::new("note", DataType::Text))
        .primary_key(["id"])
        .build()
        .unwrap()
}

fn insert(session: &mut Session, table: &Table, id: i64, number: Option<i32>, name: Option<&str>) {
    let number = number.map_or(Value::Null, Value::Int32);
    let name = name.map_or(Value::Null, |name| name.to_owned().into());
    session.insert(table, &[id.into(), number, name, "a note".into()]).unwrap();
}

/// Of six rows the first has NULLs; number is id / 2, name is a letter.
fn six(index: &NewIndex) -> (Fixture, Table) {
    let fixture = Fixture::new();
    fixture.db.create_table(items()).unwrap();
    let table = fixture.db.create_index("items", index).unwrap();
    let mut session = fixture.db.session().unwrap();
    insert(&mut session, &table, 0, None, None);
    for (id, name) in (1..).zip(["a", "b", "c", "d", "e"]) {
        insert(&mut session, &table, id, Some(id as i32 / 2), Some(name));
    }
    (fixture, table)
}

fn with_order(mut index: NewIndex, orders: &[KeyOrder]) -> NewIndex {
    for (column, order) in index.columns.iter_mut().zip(orders) {
        column.1 = *order;
    }
    index
}

/// 20,000 rows whose number is their id.
fn many() -> (Fixture, Table) {
    let fixture = Fixture::new();
    fixture.db.create_table(items()).unwrap();
    let table = fixture.db.create_index("items", &NewIndex::new("by_number", ["number"])).unwrap();
    let mut session = fixture.db.session().unwrap();
    let mut transaction = session.begin().unwrap();
    for id in 0..20_000i64 {
        let number = Value::Int32(id as i32);
        transaction.insert(&table, &[id.into(), number, Value::Null, "a note".into()]).unwrap();
    }
    transaction.commit().unwrap();
    (fixture, table)
}

/// The line of the plan that reads the table.
fn way(fixture: &Fixture, table: &Table, sql: &str) -> String {
    let plan = fixture.plan(fixture.now(), table, sql);
    plan.lines().last().unwrap().trim().to_owned()
}

#[test]
fn an_equal_value_is_found_by_its_index() {
    let (fixture, table) = six(&NewIndex::new("by_number", ["number"]));
    let sql = "SELECT id, note FROM t WHERE number = 1";
    assert_eq!(fixture.ids(&table, sql), [2, 3]);
    assert_eq!(
        way(&fixture, &table, sql),
        "OnrushIndexScan: items, index=by_number, columns=[id, note], key=[number = Int32(1)]"
    );
}

#[test]
fn columns_that_the_entries_have_are_read_there() {
    let mut index = NewIndex::new("by_number", ["number"]);
    index.included = vec!["name".to_owned()];
    let (fixture, table) = six(&index);
    let sql = "SELECT id, name FROM t WHERE number = 2";
    let rows = fixture.rows(fixture.now(), &table, sql);
    assert_eq!(rows, [[4i64.into(), "d".into()], [5i64.into(), "e".into()]]);
    assert!(way(&fixture, &table, sql).ends_with(", index only"));
    assert_eq!(fixture.ids(&table, "SELECT count(*) FROM t WHERE number = 2"), [2]);
}

#[test]
fn a_range_leaves_null_out_on_either_side_and_in_either_order() {
    let nulls_last = KeyOrder { descending: true, nulls_first: false };
    let nulls_first = KeyOrder { descending: false, nulls_first: true };
    for order in [KeyOrder::ASCENDING, DESCENDING, nulls_first, nulls_last] {
        let index = with_order(NewIndex::new("by_number", ["number"]), &[order]);
        let (fixture, table) = six(&index);
        for (condition, expected) in [
            ("number < 1", &[1][..]),
            ("number <= 1", &[1, 2, 3]),
            ("number > 1", &[4, 5]),
            ("number >= 1", &[2, 3, 4, 5]),
            ("number > 0 AND number < 2", &[2, 3]),
            ("number BETWEEN 0 AND 1", &[1, 2, 3]),
            ("number IN (2, 0)", &[1, 4, 5]),
            ("number IS NULL", &[0]),
            ("number IS NULL OR number = 0", &[0, 1]),
            ("number = NULL", &[]),
        ] {
            let sql = format!("SELECT id, note FROM t WHERE {condition}");
            assert_eq!(fixture.ids(&table, &sql), expected, "{condition}, {order:?}");
        }
    }
}

#[test]
fn a_second_column_narrows_what_the_first_leaves() {
    let index = with_order(
        NewIndex::new("by_number_and_name", ["number", "name"]),
        &[KeyOrder::ASCENDING, DESCENDING],
    );
    let (fixture, table) = six(&index);
    let sql = "SELECT id, note FROM t WHERE number IN (1, 2) AND name >= 'c' AND note LIKE 'a%'";
    assert_eq!(fixture.ids(&table, sql), [3, 4, 5]);
    let plan = fixture.plan(fixture.now(), &table, sql);
    assert!(
        plan.contains(
            "key=[number = Int32(1) OR number = Int32(2) AND name >= Utf8(\"c\")], ranges=2"
        ),
        "{plan}"
    );
    assert!(plan.contains("FilterExec: note@1 LIKE a%"), "{plan}");
}

#[test]
fn the_table_s_key_goes_first() {
    let (fixture, table) = six(&NewIndex::new("by_number", ["number"]));
    let sql = "SELECT id, note FROM t WHERE number = 1 AND id = 3";
    assert_eq!(fixture.ids(&table, sql), [3]);
    let way = way(&fixture, &table, sql);
    assert_eq!(way, "OnrushScan: items, columns=[id, note, number], key=[id = Int64(3)]");
}

#[test]
fn the_index_that_says_most_is_taken() {
    let (fixture, _) = six(&NewIndex::new("by_number", ["number"]));
    fixture.db.create_index("items", &NewIndex::new("by_both", ["number", "name"])).unwrap();
    let table =
        fixture.db.create_index("items", &NewIndex::new("by_name", ["name"]).unique()).unwrap();
    let taken = |condition: &str, index: &str| {
        let way = way(&fixture, &table, &format!("SELECT note FROM t WHERE {condition}"));
        assert!(way.contains(&format!("index={index},")), "{condition}: {way}");
    };
    taken("number = 1", "by_number");
    taken("number = 1 AND name > 'a'", "by_both");
    // One row at most.
    taken("number = 1 AND name = 'b'", "by_name");
    taken("name < 'c'", "by_name");
}

#[test]
fn a_range_of_many_rows_is_read_from_the_table() {
    let (fixture, table) = many();
    let many = "SELECT id, note FROM t WHERE number >= 2000";
    let plan = fixture.plan(fixture.now(), &table, many);
    assert!(plan.contains("OnrushScan: items, columns=[id, note, number]"), "{plan}");
    assert_eq!(fixture.ids(&table, many).len(), 18_000);
    let few = "SELECT id, note FROM t WHERE number >= 19500";
    assert!(way(&fixture, &table, few).contains("index=by_number"));
    assert_eq!(fixture.ids(&table, few), (19_500..20_000).collect::<Vec<_>>());
    // Entries that are enough are read however many they are, and so are those of the first rows.
    let entries = "SELECT id FROM t WHERE number >= 2000";
    assert!(fixture.plan(fixture.now(), &table, entries).contains("index only"));
    assert_eq!(fixture.ids(&table, entries).len(), 18_000);
    let first = format!("{many} LIMIT 3");
    assert!(fixture.plan(fixture.now(), &table, &first).contains("index=by_number"));
    assert_eq!(fixture.ids(&table, &first), [2000, 2001, 2002]);
}

#[test]
fn rows_come_in_the_order_of_the_index_where_that_is_asked_for() {
    let index = with_order(
        NewIndex::new("by_name", ["number", "name"]),
        &[KeyOrder::ASCENDING, DESCENDING],
    );
    let (fixture, table) = six(&index);
    for (order, expected) in [
        ("number, name DESC", Some([1, 3, 2, 5, 4])),
        ("number DESC, name", Some([4, 5, 2, 3, 1])),
        // NULL stands elsewhere.
        ("number, name DESC NULLS LAST", None),
        ("number, name", None),
    ] {
        let sql = format!("SELECT id, note FROM t WHERE number >= 0 ORDER BY {order}");
        let plan = fixture.plan(fixture.now(), &table, &sql);
        assert_eq!(plan.contains("SortExec"), expected.is_none(), "{plan}");
        if let Some(expected) = expected {
            let rows = fixture.rows(fixture.now(), &table, &sql);
            let ids: Vec<i64> = rows.iter().map(|row| row[0].as_i64().unwrap()).collect();
            assert_eq!(ids, expected, "{sql}");
        }
    }
}

#[test]
fn the_first_rows_in_the_order_of_an_index_are_read_by_it() {
    let (fixture, table) = many();
    for (clauses, expected) in [
        ("ORDER BY number LIMIT 3", [0, 1, 2]),
        ("ORDER BY number DESC LIMIT 3", [19_999, 19_998, 19_997]),
        ("WHERE number >= 2000 ORDER BY number LIMIT 3 OFFSET 2", [2002, 2003, 2004]),
    ] {
        let sql = format!("SELECT id, note FROM t {clauses}");
        let plan = fixture.plan(fixture.now(), &table, &sql);
        assert!(plan.contains("index=by_number") && !plan.contains("SortExec"), "{plan}");
        let rows = fixture.rows(fixture.now(), &table, &sql);
        let ids: Vec<i64> = rows.iter().map(|row| row[0].as_i64().unwrap()).collect();
        assert_eq!(ids, expected, "{sql}");
    }
}

#[test]
fn an_order_is_no_reason_for_an_index_where_all_rows_may_have_to_be_read() {
    let (fixture, table) = many();
    for clauses in [
        "ORDER BY number",
        "ORDER BY number LIMIT 2000",
        "ORDER BY name, number LIMIT 3",
        "WHERE note LIKE 'b%' ORDER BY number LIMIT 3",
    ] {
        let sql = format!("SELECT id, note FROM t {clauses}");
        let plan = fixture.plan(fixture.now(), &table, &sql);
        assert!(plan.contains("SortExec") && !plan.contains("by_number"), "{plan}");
    }
}

#[test]
fn a_column_of_one_value_does_not_matter_for_the_order() {
    let (fixture, table) = six(&NewIndex::new("by_both", ["number", "name"]));
    let sql = "SELECT id, note FROM t WHERE number = 2 ORDER BY name DESC LIMIT 1";
    let plan = fixture.plan(fixture.now(), &table, sql);
    assert!(!plan.contains("SortExec"), "{plan}");
    assert_eq!(fixture.rows(fixture.now(), &table, sql), [[5i64.into(), "a note".into()]]);
}

#[test]
fn blanks_behind_a_char_do_not_count() {
    let fixture = Fixture::new();
    let code = ColumnDefinition::new("code", DataType::Char(4));
    let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    let definition = TableDefinition::builder("codes").column(id).column(code).primary_key(["id"]);
    fixture.db.create_table(definition.build().unwrap()).unwrap();
    let table = fixture.db.create_index("codes", &NewIndex::new("by_code", ["code"])).unwrap();
    let mut session = fixture.db.session().unwrap();
    for (id, code) in (1i64..).zip(["ab", "ab  ", "abc", "a"]) {
        session.insert(&table, &[id.into(), code.into()]).unwrap();
    }
    assert_eq!(fixture.ids(&table, "SELECT id FROM t WHERE code = 'ab'"), [1, 2]);
    assert_eq!(fixture.ids(&table, "SELECT id FROM t WHERE code > 'ab'"), [3]);
    let codes = fixture.rows(fixture.now(), &table, "SELECT code FROM t WHERE code = 'ab'");
    assert_eq!(codes, [["ab  ".into()], ["ab  ".into()]]);
}

#[test]
fn a_float_comes_back_as_it_was_stored() {
    let fixture = Fixture::new();
    let weight = ColumnDefinition::new("weight", DataType::Float64);
    let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    let definition =
        TableDefinition::builder("things").column(id).column(weight).primary_key(["id"]);
    fixture.db.create_table(definition.build().unwrap()).unwrap();
    let table = fixture.db.create_index("things", &NewIndex::new("by_weight", ["weight"])).unwrap();
    let mut session = fixture.db.session().unwrap();
    for (id, weight) in (1i64..).zip([-0.0, 0.0, 1.5, f64::NAN]) {
        session.insert(&table, &[id.into(), weight.into()]).unwrap();
    }
    // The entry has 0 for both.
    let sql = "SELECT weight FROM t WHERE weight < 1";
    assert!(way(&fixture, &table, sql).contains("index=by_weight"));
    let found = fixture.rows(fixture.now(), &table, sql);
    let found: Vec<String> = found.iter().map(|row| format!("{:?}", row[0])).collect();
    assert_eq!(found, ["Float64(-0.0)", "Float64(0.0)"]);
    assert_eq!(fixture.ids(&table, "SELECT id FROM t WHERE weight > 1"), [3, 4]);
    assert_eq!(fixture.ids(&table, "SELECT id FROM t WHERE weight = 0"), [1, 2]);
}

#[test]
fn a_view_from_before_the_index_reads_the_table() {
    let fixture = Fixture::new();
    let before = fixture.db.create_table(items()).unwrap();
    let mut session = fixture.db.session().unwrap();
    insert(&mut session, &before, 1, Some(7), None);
    let view = session.snapshot().unwrap();
    let table = fixture.db.create_index("items", &NewIndex::new("by_number", ["number"])).unwrap();
    let sql = "SELECT id, note FROM t WHERE number = 7";
    assert!(!fixture.plan(view.same(), &table, sql).contains("by_number"));
    assert_eq!(fixture.rows(view, &table, sql), [[1i64.into(), "a note".into()]]);
    assert!(way(&fixture, &table, sql).contains("by_number"));
}

#[test]
fn a_transaction_finds_what_it_has_changed_itself() {
    // The second one is so large that its changes are in the leaves.
    for rows in [10, 20_000] {
        let fixture =
            Fixture::with(Options { large_transaction_bytes: 64 << 10, ..Options::small() });
        fixture.db.create_table(items()).unwrap();
        let table =
            fixture.db.create_index("items", &NewIndex::new("by_number", ["number"])).unwrap();
        let mut session = fixture.db.session().unwrap();
        for id in 0..5 {
            insert(&mut session, &table, id, Some(0), None);
        }
        let mut transaction = session.begin().unwrap();
        transaction.update(&table, &[1.into()], &[("number", Value::Int32(1))]).unwrap();
        transaction.delete(&table, &[2.into()]).unwrap();
        for id in 5..rows {
            let number = Value::Int32(i32::from(id >= 8));
            transaction.insert(&table, &[id.into(), number, Value::Null, "a note".into()]).unwrap();
        }
        let sql = "SELECT id, note FROM t WHERE number = 0";
        let view = transaction.snapshot();
        assert!(fixture.plan(view.same(), &table, sql).contains("by_number"));
        let found = fixture.rows(view, &table, sql);
        let mut found: Vec<i64> = found.iter().map(|row| row[0].as_i64().unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found, [0, 3, 4, 5, 6, 7]);
        assert_eq!(fixture.ids(&table, sql), [0, 1, 2, 3, 4]);
    }
}

#[test]
fn a_statement_that_changes_rows_finds_their_keys_by_index() {
    let fixture = Fixture::new();
    let number = ColumnDefinition::new("number", DataType::Int32);
    let definition = TableDefinition::builder("log").column(number).keyed_by_row_id();
    fixture.db.create_table(definition.build().unwrap()).unwrap();
    let table = fixture.db.create_index("log", &NewIndex::new("by_number", ["number"])).unwrap();
    let mut session = fixture.db.session().unwrap();
    for id in 0..10i64 {
        session.insert(&table, &[Value::Int32(id as i32 / 2), id.into()]).unwrap();
    }
    let keys = format!("SELECT {ROW_ID} FROM changed WHERE number >= 3");
    let plan = fixture.plan(fixture.now(), &table, &keys);
    assert!(plan.contains("index=by_number") && plan.contains("index only"), "{plan}");
    // Rows that are changed while they are looked for are not found again.
    let mut transaction = session.begin().unwrap();
    for key in fixture.rows(transaction.snapshot(), &table, &keys) {
        assert!(transaction.update(&table, &key, &[("number", Value::Int32(9))]).unwrap());
    }
    transaction.commit().unwrap();
    let changed = format!("SELECT {ROW_ID} FROM changed WHERE number = 9");
    assert_eq!(fixture.ids(&table, &changed), [6, 7, 8, 9]);
}
