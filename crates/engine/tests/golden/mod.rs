//! Folders of databases, kept for ever: how they are packed, made, and written down as text.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use onrush::{
    Background, ColumnDefinition, DataType, Database, Durability, KeyStrategy, Options, Row,
    ScanOptions, Session, Table, TableDefinition, Uuid, Value,
};

/// Where they are kept: a folder for each format version.
pub fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Bytes that are left out as one when they are all zero.
const GRAIN: usize = 64;

/// All files under a folder, without their zeros: for each the path, the length, and the pieces in
/// between. All numbers are 8 bytes, little-endian.
pub fn pack(folder: &Path) -> Vec<u8> {
    let mut files = BTreeMap::new();
    collect(folder, folder, &mut files);
    let mut packed = Vec::new();
    let number = |number: usize, packed: &mut Vec<u8>| {
        packed.extend_from_slice(&(number as u64).to_le_bytes());
    };
    for (path, bytes) in files {
        let pieces = pieces(&bytes);
        number(path.len(), &mut packed);
        packed.extend_from_slice(path.as_bytes());
        number(bytes.len(), &mut packed);
        number(pieces.len(), &mut packed);
        for (at, piece) in pieces {
            number(at, &mut packed);
            number(piece.len(), &mut packed);
            packed.extend_from_slice(piece);
        }
    }
    packed
}

fn pieces(bytes: &[u8]) -> Vec<(usize, &[u8])> {
    let mut pieces: Vec<(usize, usize)> = Vec::new();
    for (number, grain) in bytes.chunks(GRAIN).enumerate() {
        let at = number * GRAIN;
        match pieces.last_mut() {
            _ if grain.iter().all(|byte| *byte == 0) => {}
            Some((_, end)) if *end == at => *end += grain.len(),
            _ => pieces.push((at, at + grain.len())),
        }
    }
    pieces.into_iter().map(|(from, to)| (from, &bytes[from..to])).collect()
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            files.insert(name, std::fs::read(&path).unwrap());
        }
    }
}

/// Writes what [`pack`] has packed into a new folder.
pub fn unpack(packed: &[u8], folder: &Path) {
    let mut rest = packed;
    while !rest.is_empty() {
        let path = folder.join(std::str::from_utf8(take(&mut rest, None)).unwrap());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut bytes = vec![0; take_number(&mut rest)];
        for _ in 0..take_number(&mut rest) {
            let at = take_number(&mut rest);
            let piece = take(&mut rest, None);
            bytes[at..at + piece.len()].copy_from_slice(piece);
        }
        std::fs::write(path, bytes).unwrap();
    }
}

fn take<'p>(rest: &mut &'p [u8], bytes: Option<usize>) -> &'p [u8] {
    let bytes = bytes.unwrap_or_else(|| take_number(rest));
    let (taken, after) = rest.split_at(bytes);
    *rest = after;
    taken
}

fn take_number(rest: &mut &[u8]) -> usize {
    let bytes = take(rest, Some(8));
    u64::from_le_bytes(bytes.try_into().unwrap()) as usize
}

/// Every table and every row, a line each.
pub fn write_down(db: &Database) -> String {
    let mut text = String::new();
    let mut session = db.session().unwrap();
    for definition in db.tables() {
        let columns = definition.columns().iter();
        let columns: Vec<String> =
            columns.map(|column| format!("{} {}", column.name, column.data_type)).collect();
        writeln!(text, "table {}: {}", definition.name(), columns.join(", ")).unwrap();
        let table = db.table(definition.name()).unwrap();
        for row in session.scan(&table, &ScanOptions::default()).unwrap() {
            let cells: Vec<String> = row.unwrap().iter().map(cell).collect();
            writeln!(text, "  {}", cells.join(" | ")).unwrap();
        }
    }
    text
}

fn cell(value: &Value<'_>) -> String {
    match value.as_bytes() {
        Some(bytes) if bytes.len() > 100 && bytes.iter().all(|byte| *byte == 0) => {
            format!("{} zeros", bytes.len())
        }
        _ => value.to_string(),
    }
}

/// Small, and with log segments of the least length.
pub fn options() -> Options {
    Options { key_reserve: 16, ..Options::small() }
}

/// A database with some of everything: every data type, every key strategy, several leaves, rows
/// changed and deleted, tables truncated, dropped and not logged, in images and in the log.
pub fn make(folder: &Path) -> Database {
    // Without threads, whose files come and go while they are packed.
    let options = Options { background: Background::Callers, ..options() };
    let db = Database::create(folder, options).unwrap();
    let mut session = db.session().unwrap();
    session.set_durability(Durability::Delayed);
    let types = db.create_table(every_type()).unwrap();
    for id in 0..12 {
        session.insert(&types, &every_value(id)).unwrap();
    }
    for (number, strategy) in KeyStrategy::ALL.into_iter().enumerate() {
        let table = db.create_table(with_key(&format!("key_{number}"), strategy)).unwrap();
        for _ in 0..3 {
            session.insert(&table, &[]).unwrap();
        }
    }
    let texts = db.create_table(texts()).unwrap();
    for id in 0..40 {
        session.insert(&texts, &text(id)).unwrap();
    }
    let emptied = db.create_table(with_key("emptied", KeyStrategy::ALL[0])).unwrap();
    session.insert(&emptied, &[]).unwrap();
    db.truncate_table("emptied").unwrap();
    db.create_table(with_key("dropped", KeyStrategy::ALL[0])).unwrap();
    db.drop_table("dropped").unwrap();
    let unlogged = TableDefinition::builder("unlogged")
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .primary_key(["id"])
        .unlogged();
    let unlogged = db.create_table(unlogged.build().unwrap()).unwrap();
    session.insert(&unlogged, &[1i64.into()]).unwrap();
    db.checkpoint().unwrap();
    behind_the_checkpoint(&db, &mut session, &texts, &types);
    db.barrier().unwrap();
    db
}

/// What only the log has.
fn behind_the_checkpoint(db: &Database, session: &mut Session, texts: &Table, types: &Table) {
    for id in 40..50 {
        session.insert(texts, &text(id)).unwrap();
    }
    session.update(types, &[3i64.into()], &[("varchar", "changed".into())]).unwrap();
    assert!(session.delete(types, &[4i64.into()]).unwrap());
    let batch: Vec<Row> = (50..55).map(text).collect();
    session.insert_many(texts, batch.iter().map(Vec::as_slice)).unwrap();
    let emptied = db.table("emptied").unwrap();
    let mut transaction = session.begin().unwrap();
    transaction.insert(&emptied, &[]).unwrap();
    transaction.delete(texts, &text(7)[..1]).unwrap();
    transaction.commit().unwrap();
}

fn texts() -> TableDefinition {
    TableDefinition::builder("texts")
        .column(ColumnDefinition::new("name", DataType::Text).not_null())
        .column(ColumnDefinition::new("number", DataType::Int64))
        .column(ColumnDefinition::new("zeros", DataType::Bytes))
        .primary_key(["name"])
        .build()
        .unwrap()
}

/// Long for a leaf, short when packed.
fn text(id: i64) -> Row {
    vec![format!("name {}", id * 7919 % 1000).into(), id.into(), vec![0u8; 900].into()]
}

fn with_key(name: &str, strategy: KeyStrategy) -> TableDefinition {
    let id = ColumnDefinition::new("id", strategy.natural_type()).not_null().default_key(strategy);
    TableDefinition::builder(name)
        .column(id)
        .column(ColumnDefinition::new("note", DataType::Varchar(10)).default_value("n"))
        .primary_key(["id"])
        .build()
        .unwrap()
}

fn types() -> [(&'static str, DataType); 16] {
    [
        ("boolean", DataType::Boolean),
        ("smallint", DataType::Int16),
        ("integer", DataType::Int32),
        ("bigint", DataType::Int64),
        ("real", DataType::Float32),
        ("double", DataType::Float64),
        ("decimal", DataType::Decimal { precision: 9, scale: 2 }),
        ("char", DataType::Char(6)),
        ("varchar", DataType::Varchar(20)),
        ("text", DataType::Text),
        ("bytes", DataType::Bytes),
        ("uuid", DataType::Uuid),
        ("date", DataType::Date),
        ("time", DataType::Time),
        ("timestamp", DataType::Timestamp),
        ("timestamptz", DataType::TimestampTz),
    ]
}

fn every_type() -> TableDefinition {
    let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    let mut builder = TableDefinition::builder("every_type").column(id);
    for (name, data_type) in types() {
        builder = builder.column(ColumnDefinition::new(name, data_type));
    }
    builder.primary_key(["id"]).build().unwrap()
}

/// Row 0 is all NULL but for its key.
fn every_value(id: i64) -> Row {
    let mut row: Row = vec![id.into()];
    if id == 0 {
        row.resize(types().len() + 1, Value::Null);
        return row;
    }
    let sign = if id % 2 == 0 { 1 } else { -1 };
    row.extend([
        (id % 2 == 0).into(),
        Value::Int16((sign * id * 1000) as i16),
        Value::Int32((sign * id * 100_000) as i32),
        (sign * id * 1_000_000_000_000).into(),
        Value::Float32(id as f32 / 4.0),
        Value::Float64(sign as f64 * id as f64 / 8.0),
        Value::Int32((sign * id * 11) as i32),
        format!("c{id}").into(),
        format!("é{id}").into(),
        "t".repeat(id as usize).into(),
        vec![id as u8; id as usize].into(),
        Value::Uuid(Uuid::from_u128(id as u128)),
        Value::Date((sign * id * 1000) as i32),
        Value::Time(id * 1_000_001),
        Value::Timestamp(sign * id * 1_000_000_000_001),
        Value::TimestampTz(sign * id * 1_000_000_000_001),
    ]);
    row
}
