//! A Parquet file, read by the Parquet library's own reader, has the table's types and values.

#![allow(clippy::unwrap_used)]

use std::fs::File;

use onrush::{
    ColumnDefinition, DataType, Database, Decimal, Options, ScanOptions, TableDefinition, Value,
};
use onrush_transfer::{ExportFormat, ExportOptions, export};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

#[test]
fn types_values_and_nulls() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path().join("db"), Options::small()).unwrap();
    let table = TableDefinition::builder("t")
        .column(ColumnDefinition::new("id", DataType::Int64))
        .column(ColumnDefinition::new("money", DataType::Decimal { precision: 12, scale: 2 }))
        .column(ColumnDefinition::new("wide", DataType::Decimal { precision: 28, scale: 0 }))
        .column(ColumnDefinition::new("fixed", DataType::Char(5)))
        .column(ColumnDefinition::new("day", DataType::Date))
        .column(ColumnDefinition::new("at", DataType::TimestampTz))
        .column(ColumnDefinition::new("uuid", DataType::Uuid))
        .column(ColumnDefinition::new("small", DataType::Int16))
        .primary_key(["id"])
        .build()
        .unwrap();
    let table = database.create_table(table).unwrap();
    let mut session = database.session().unwrap();
    for id in 0..1000_i64 {
        let row = [
            Value::Int64(id),
            Value::Decimal(Decimal::new(-id, 2)),
            Value::Decimal("-1234567890123456789012345678".parse::<Decimal>().unwrap()),
            if id % 3 == 0 { Value::Null } else { Value::from("ab   ") },
            Value::Date(19_000),
            Value::TimestampTz(1_700_000_000_000_001),
            Value::Null,
            Value::Int16(-5),
        ];
        session.insert(&table, &row).unwrap();
    }
    let path = folder.path().join("t.parquet");
    let scan = session.scan(&table, &ScanOptions::default()).unwrap();
    let options = ExportOptions { format: ExportFormat::Parquet };
    let out = File::create(&path).unwrap();
    assert_eq!(export(&table, scan, out, &options, &mut |_| {}).unwrap(), 1000);

    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 1000);
    let mut count = 0;
    for (id, row) in reader.get_row_iter(None).unwrap().enumerate() {
        let fields: Vec<_> = row.unwrap().into_columns();
        let text = |index: usize| fields[index].1.to_string();
        assert_eq!(fields[0].1, Field::Long(i64::try_from(id).unwrap()));
        assert_eq!(text(1), Decimal::new(-i64::try_from(id).unwrap(), 2).to_string());
        assert_eq!(text(2).trim_end_matches('.'), "-1234567890123456789012345678");
        let expected = if id % 3 == 0 { Field::Null } else { Field::Str("ab".into()) };
        assert_eq!(fields[3].1, expected);
        assert_eq!(fields[4].1, Field::Date(19_000));
        assert_eq!(fields[5].1, Field::TimestampMicros(1_700_000_000_000_001));
        assert_eq!(fields[6].1, Field::Null);
        assert_eq!(fields[7].1, Field::Short(-5));
        count += 1;
    }
    assert_eq!(count, 1000);
}

#[test]
fn an_infinite_date_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path().join("db"), Options::small()).unwrap();
    let table = TableDefinition::builder("t").column(ColumnDefinition::new("day", DataType::Date));
    let table = database.create_table(table.primary_key(["day"]).build().unwrap()).unwrap();
    let mut session = database.session().unwrap();
    session.insert(&table, &[Value::Date(i32::MAX)]).unwrap();
    let scan = session.scan(&table, &ScanOptions::default()).unwrap();
    let options = ExportOptions { format: ExportFormat::Parquet };
    let refused = export(&table, scan, Vec::new(), &options, &mut |_| {});
    assert!(refused.unwrap_err().to_string().contains("no date or timestamp infinity"));
}
