//! Export and import are each other's inverse: every type, NULL, empty text, the extremes.

#![allow(clippy::unwrap_used)]

use onrush::{
    ColumnDefinition, DataType, Database, Decimal, Options, Row, ScanOptions, Table,
    TableDefinition, Uuid, Value,
};
use onrush_transfer::csv::CsvOptions;
use onrush_transfer::{
    ExportFormat, ExportOptions, ImportFormat, ImportOptions, ImportReport, Rejects, export, import,
};

fn definition(name: &str) -> TableDefinition {
    TableDefinition::builder(name)
        .column(ColumnDefinition::new("id", DataType::Int64))
        .column(ColumnDefinition::new("yes", DataType::Boolean))
        .column(ColumnDefinition::new("small", DataType::Int16))
        .column(ColumnDefinition::new("middle", DataType::Int32))
        .column(ColumnDefinition::new("single", DataType::Float32))
        .column(ColumnDefinition::new("double", DataType::Float64))
        .column(ColumnDefinition::new("money", DataType::Decimal { precision: 12, scale: 2 }))
        .column(ColumnDefinition::new("wide", DataType::Decimal { precision: 28, scale: 8 }))
        .column(ColumnDefinition::new("fixed", DataType::Char(8)))
        .column(ColumnDefinition::new("note", DataType::Varchar(200)))
        .column(ColumnDefinition::new("long", DataType::Text).not_null().default_value("default"))
        .column(ColumnDefinition::new("raw", DataType::Bytes))
        .column(ColumnDefinition::new("uuid", DataType::Uuid))
        .column(ColumnDefinition::new("day", DataType::Date))
        .column(ColumnDefinition::new("time", DataType::Time))
        .column(ColumnDefinition::new("local", DataType::Timestamp))
        .column(ColumnDefinition::new("timestamp", DataType::TimestampTz))
        .primary_key(["id"])
        .build()
        .unwrap()
}

fn rows() -> Vec<Row> {
    let full = |id: i64, note: &'static str, double: f64| {
        vec![
            Value::Int64(id),
            Value::Boolean(id % 2 == 0),
            Value::Int16(i16::MIN),
            Value::Int32(i32::MAX),
            Value::Float32(0.1),
            Value::Float64(double),
            Value::Decimal("-1234567890.12".parse::<Decimal>().unwrap()),
            Value::Decimal("12345678901234567890.12345678".parse::<Decimal>().unwrap()),
            Value::from(format!("{:<8}", "é x")[..8].to_owned()),
            Value::from(note),
            // Longer than a leaf.
            Value::from(if id == 2 { "a \"line\"\n".repeat(50_000) } else { String::new() }),
            Value::from(if id == 3 { vec![7; 1 << 20] } else { vec![0_u8, 255, 34] }),
            Value::Uuid(Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff)),
            Value::Date(-1),
            Value::Time(86_399_999_999),
            Value::Timestamp(1_234_567_890_123_456),
            Value::TimestampTz(-1),
        ]
    };
    let infinite = |id: i64, day: i32, micros: i64| {
        let mut row = full(id, "far", 0.5);
        row[13] = Value::Date(day);
        row[15] = Value::Timestamp(micros);
        row[16] = Value::TimestampTz(micros);
        row
    };
    let mut nothing = vec![Value::Null; 17];
    nothing[0] = Value::Int64(i64::MIN);
    nothing[10] = Value::from("NULL");
    vec![
        nothing,
        full(1, "", f64::MAX),
        full(2, "two\nlines, \"quoted\", \\ and\ttabulated\r\n", 5e-324),
        full(3, " blanks ", f64::NAN),
        infinite(4, i32::MIN, i64::MIN),
        infinite(5, i32::MAX, i64::MAX),
        // 44 BC.
        infinite(6, -735_160, -63_517_824_000_000_001),
        full(i64::MAX, "żółw 🐢 \u{1}", f64::NEG_INFINITY),
    ]
}

fn all(database: &Database, table: &Table) -> Vec<String> {
    let mut session = database.session().unwrap();
    let scan = session.scan(table, &ScanOptions::default()).unwrap();
    // As text, since NaN does not equal itself.
    scan.map(|row| format!("{:?}", row.unwrap())).collect()
}

fn round_trip(export_format: ExportFormat, import_format: ImportFormat) {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path().join("db"), Options::small()).unwrap();
    let from = database.create_table(definition("from")).unwrap();
    let to = database.create_table(definition("to")).unwrap();
    let mut session = database.session().unwrap();
    for row in rows() {
        session.insert(&from, &row).unwrap();
    }
    let scan = session.scan(&from, &ScanOptions::default()).unwrap();
    let mut bytes = Vec::new();
    let options = ExportOptions { format: export_format };
    assert_eq!(export(&from, scan, &mut bytes, &options, &mut |_| {}).unwrap(), 8);
    for rows_per_commit in [1, 3] {
        database.truncate_table("to").unwrap();
        let to_again = database.table("to").unwrap();
        let mut rejects = Rejects::new(folder.path().join("rejected.csv"));
        let options =
            ImportOptions { rows_per_commit, ..ImportOptions::new(import_format.clone()) };
        let report = import(
            &database,
            &to_again,
            &*bytes,
            &options,
            &mut rejects,
            &mut |_: &ImportReport| {},
        )
        .unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(report.rows_imported, 8, "{:?}\n{text}", rejects.examples());
        assert_eq!(all(&database, &from), all(&database, &to_again), "{text}");
    }
    drop((from, to));
}

#[test]
fn as_csv() {
    let options = CsvOptions::default();
    round_trip(ExportFormat::Csv(options.clone()), ImportFormat::Csv(options));
}

#[test]
fn as_csv_with_other_signs_and_no_header() {
    let options = CsvOptions { delimiter: b'-', null: "NULL".into(), header: false };
    round_trip(ExportFormat::Csv(options.clone()), ImportFormat::Csv(options));
}

#[test]
fn as_json() {
    round_trip(ExportFormat::Json, ImportFormat::Json);
}
