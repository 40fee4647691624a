//! Texts of users: files to import, and studies.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use onrush::{Background, ColumnDefinition, DataType, Database, Options, Table, TableDefinition};
use onrush_files::MemoryDisk;
use onrush_lab::study::{Size, Study, shipped};
use onrush_transfer::csv::CsvOptions;
use onrush_transfer::{ImportFormat, ImportOptions, ImportReport, Rejects, import};

/// A database with a table of every kind of column; one for all inputs, truncated before each.
fn table() -> &'static (Database, Table) {
    static TABLE: OnceLock<(Database, Table)> = OnceLock::new();
    TABLE.get_or_init(|| {
        let options = Options { background: Background::Callers, ..Options::small() };
        let made = Database::create_on(Arc::new(MemoryDisk::new()), "/fuzz", options).and_then(
            |database| {
                let builder = TableDefinition::builder("t")
                    .column(ColumnDefinition::new("id", DataType::Int64).not_null())
                    .column(ColumnDefinition::new("flag", DataType::Boolean))
                    .column(ColumnDefinition::new(
                        "amount",
                        DataType::Decimal { precision: 9, scale: 2 },
                    ))
                    .column(ColumnDefinition::new("share", DataType::Float64))
                    .column(ColumnDefinition::new("code", DataType::Char(4)))
                    .column(ColumnDefinition::new("name", DataType::Varchar(20)))
                    .column(ColumnDefinition::new("bytes", DataType::Bytes))
                    .column(ColumnDefinition::new("uuid", DataType::Uuid))
                    .column(ColumnDefinition::new("day", DataType::Date))
                    .column(ColumnDefinition::new("time", DataType::Time))
                    .column(ColumnDefinition::new("at", DataType::TimestampTz))
                    .primary_key(["id"]);
                let table = database.create_table(builder.build()?)?;
                Ok((database, table))
            },
        );
        made.expect("a small database in memory")
    })
}

fn read(input: &[u8], format: ImportFormat) {
    let (database, table) = table();
    database.truncate_table("t").expect("truncate");
    // The log of a database without threads is used again by checkpoints alone.
    database.checkpoint().expect("checkpoint");
    let options = ImportOptions { rows_per_commit: 7, ..ImportOptions::new(format) };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut rejects = Rejects::new(folder.path().join("rejects"));
    // An error is an answer.
    if let Ok(report) =
        import(database, table, input, &options, &mut rejects, &mut |_: &ImportReport| {})
    {
        assert_eq!(report.rows_read, report.rows_imported + report.rows_rejected);
    }
}

/// A CSV file to import.
pub fn import_csv(input: &[u8]) {
    read(input, ImportFormat::Csv(CsvOptions::default()));
}

/// A file with a JSON object on each line.
pub fn import_json(input: &[u8]) {
    read(input, ImportFormat::Json);
}

/// A study, in both sizes.
pub fn study(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for size in [Size::Quick, Size::Full] {
        let _ = Study::read(&text, "fuzz", size);
    }
}

fn named(seeds: &[(&str, &[u8])]) -> Vec<(String, Vec<u8>)> {
    seeds.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect()
}

/// Files that import.
#[must_use]
pub fn csv_seeds() -> Vec<(String, Vec<u8>)> {
    named(&[
        (
            "all-columns.csv",
            br#"id,flag,amount,share,code,name,bytes,uuid,day,time,at
1,true,12.34,0.5,ab,"a ""name""",\x00ff,00000000-0000-0000-0000-000000000001,2026-01-31,23:59:59.5,
2,,,,,,,,,,2026-01-31T23:59:59Z
"#,
        ),
        ("quoted-lines.csv", b"id,name\r\n3,\"two\r\nlines\"\r\n4,\"\"\r\n"),
        ("bad-rows.csv", b"id,name\n1,a\n1,again\nx,y\n5\n6,7,8\n"),
    ])
}

/// Lines that import.
#[must_use]
pub fn json_seeds() -> Vec<(String, Vec<u8>)> {
    named(&[
        (
            "all-columns.json",
            br#"{"id":1,"flag":true,"amount":12.34,"share":1e-3,"code":"ab","name":"\u00e9"}
{"id":2,"uuid":"00000000-0000-0000-0000-000000000001","day":"2026-01-31","time":"01:02:03"}
{"id":3,"bytes":"\\x00","at":"2026-01-31T00:00:00Z"}
"#,
        ),
        (
            "bad-rows.json",
            b"{\"id\":1}\n[1]\n{\"id\":\"x\"}\n{\"id\":3,\"other\":{\"deep\":[[[1]]]}}\n{\n",
        ),
    ])
}

/// Two of the studies that come with the laboratory.
#[must_use]
pub fn study_seeds() -> Vec<(String, Vec<u8>)> {
    let source = |name: &str| {
        let text = shipped::source(name).unwrap_or_default();
        (Path::new(name).with_extension("toml").display().to_string(), text.as_bytes().to_vec())
    };
    ["generator", "batching", "layouts"].map(source).into()
}
