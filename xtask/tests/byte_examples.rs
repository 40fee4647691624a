//! The byte examples in `docs/log-format.md` and `docs/data-file.md` are what the engine writes.
//!
//! A small database is made in memory. Its bytes, field by field, must be the blocks of text that
//! follow the lines `<!-- example: name -->` in those pages; `xx` stands for bytes that differ from
//! run to run (the random database id, and the checksums over it). `cargo xtask generate` writes
//! the blocks anew.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onrush::{Background, ColumnDefinition, DataType, Database, Options, TableDefinition, Value};
use onrush_files::{Disk, MemoryDisk, OpenMode};

const FOLDER: &str = "/shop";

/// A field of a structure: how many bytes, whether they differ from run to run, what they are.
struct Field(usize, Bytes, &'static str);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bytes {
    Same,
    Random,
}

use Bytes::{Random, Same};

/// The table of the examples with one row, one checkpoint, and one more row after it.
fn example_disk() -> Arc<MemoryDisk> {
    let disk = Arc::new(MemoryDisk::new());
    let options = Options { background: Background::Callers, ..Options::small() };
    let db = Database::create_on(disk.clone(), FOLDER, options).unwrap();
    let column = ColumnDefinition::new;
    let definition = TableDefinition::builder("orders")
        .column(column("id", DataType::Int64).not_null())
        .column(column("note", DataType::Varchar(40)))
        .column(column("state", DataType::Int16).not_null().default_value(1i16))
        .primary_key(["id"])
        .build()
        .unwrap();
    let orders = db.create_table(definition).unwrap();
    let mut session = db.session().unwrap();
    session.insert(&orders, &[7i64.into(), "seven".into(), Value::Default]).unwrap();
    db.checkpoint().unwrap();
    disk
}

fn read(disk: &MemoryDisk, name: &str, offset: u64, bytes: usize) -> Vec<u8> {
    let file = disk.open(&Path::new(FOLDER).join(name), OpenMode::ReadOnly).unwrap();
    let mut found = vec![0; bytes];
    file.read_at(&mut found, offset).unwrap();
    found
}

/// Offset, bytes and meaning of each field, with `{}` for its number; the rest must be zero.
fn render(bytes: &[u8], fields: &[Field]) -> String {
    let mut text = String::new();
    let mut at = 0;
    for Field(length, kind, meaning) in fields {
        let field = &bytes[at..at + length];
        let meaning = meaning.replace("{}", &number(field).to_string());
        for (line, piece) in field.chunks(8).enumerate() {
            let hex: Vec<String> = match kind {
                Same => piece.iter().map(|byte| format!("{byte:02x}")).collect(),
                Random => piece.iter().map(|_| "xx".to_owned()).collect(),
            };
            let meaning = if line == 0 { meaning.as_str() } else { "" };
            let line = format!("{:5}  {:23}  {meaning}", at + line * 8, hex.join(" "));
            let _ = writeln!(text, "{}", line.trim_end());
        }
        at += length;
    }
    assert!(bytes[at..].iter().all(|byte| *byte == 0), "bytes after the last field: {text}");
    let _ = writeln!(text, "{at:5}  zeros up to byte {}", bytes.len());
    text
}

/// The field as a little-endian number, if it is short enough for one.
fn number(field: &[u8]) -> u64 {
    let mut word = [0; 8];
    let length = field.len().min(8);
    word[..length].copy_from_slice(&field[..length]);
    u64::from_le_bytes(word)
}

fn log_segment() -> Vec<Field> {
    vec![
        Field(8, Same, "magic \"ONRUSHLS\""),
        Field(4, Same, "format version {}"),
        Field(4, Random, "checksum"),
        Field(16, Random, "database id"),
        Field(8, Same, "number of the segment: {}"),
        Field(8, Same, "bytes of the file: {}"),
    ]
}

fn log_block() -> Vec<Field> {
    vec![
        Field(8, Same, "magic \"ONRUSHLB\""),
        Field(4, Same, "format version {}"),
        Field(4, Same, "flags: not the first block of its incarnation"),
        Field(16, Random, "database id"),
        Field(8, Same, "incarnation {}"),
        Field(8, Same, "in log segment {}"),
        Field(8, Same, "at byte {} of its file"),
        Field(8, Same, "start LSN {}: after the record of CREATE TABLE"),
        Field(8, Same, "durable-up-to LSN {}"),
        Field(8, Random, "when it was built"),
        Field(4, Same, "record bytes: {}"),
        Field(4, Random, "checksum of the block before"),
        Field(4, Same, "zero"),
        Field(4, Random, "checksum of this block"),
        Field(1, Same, "frame: a record of {} bytes"),
        Field(1, Same, "kind {}: a row without its constant defaults"),
        Field(1, Same, "object {}"),
        Field(1, Same, "key bytes: {}"),
        Field(8, Same, "key: id = 7, big-endian, sign bit flipped"),
        Field(1, Same, "elided row: bit 1 is set, so column note is present, state is not"),
        Field(2, Same, "note has {} bytes"),
        Field(5, Same, "\"seven\""),
    ]
}

fn superblock() -> Vec<Field> {
    vec![
        Field(8, Same, "magic \"ONRUSH\""),
        Field(4, Same, "format version {}"),
        Field(4, Random, "checksum"),
        Field(16, Random, "database id"),
        Field(8, Same, "generation {}"),
        Field(8, Same, "checkpoint {}"),
        Field(8, Same, "incarnation {}"),
        Field(8, Same, "E: the log must reach LSN {}"),
        Field(8, Same, "C: redo from LSN {},"),
        Field(8, Same, "in log segment {}"),
        Field(8, Same, "at byte {}"),
        Field(8, Same, "of incarnation {} or later,"),
        Field(4, Random, "after a block with this checksum"),
        Field(1, Same, "1: there is a directory"),
        Field(8, Same, "root: in slot {} of data file 0"),
        Field(8, Same, "root: {} bytes"),
        Field(4, Random, "root: checksum"),
        Field(8, Random, "when the log was durable up to E"),
        Field(1, Same, "0: was not restored"),
    ]
}

fn data_file_header() -> Vec<Field> {
    vec![
        Field(8, Same, "magic \"ONRDATA\""),
        Field(4, Same, "format version {}"),
        Field(4, Same, "zero"),
        Field(16, Random, "database id"),
        Field(2, Same, "number of this data file: {}"),
        Field(2, Same, "how many data files there are: {}"),
        Field(24, Same, "zero"),
        Field(4, Random, "checksum"),
    ]
}

fn image() -> Vec<Field> {
    vec![
        Field(4, Same, "magic \"ONRI\""),
        Field(4, Random, "checksum"),
        Field(16, Random, "database id"),
        Field(8, Same, "slot {} of data file 0"),
        Field(4, Same, "rows: {}"),
        Field(4, Same, "bytes of all entries: {}"),
        Field(4, Same, "object {}"),
        Field(1, Same, "fences behind the entries: a low one, no high one"),
        Field(1, Same, "zero"),
        Field(2, Same, "bytes of the low fence: {}, from the smallest key on"),
        Field(2, Same, "bytes of the high fence: {}"),
        Field(14, Same, "zero"),
        Field(8, Same, "entry: the row was written at LSN {}"),
        Field(2, Same, "key bytes: {}"),
        Field(2, Same, "value bytes: {}"),
        Field(8, Same, "key: id = 7"),
        Field(2, Same, "value: schema version {}"),
        Field(1, Same, "no column is NULL"),
        Field(2, Same, "state = {}"),
        Field(2, Same, "note ends {} bytes after this"),
        Field(5, Same, "note = \"seven\""),
    ]
}

fn directory_segment() -> Vec<Field> {
    vec![
        Field(4, Same, "magic \"ONRB\""),
        Field(4, Random, "checksum"),
        Field(16, Random, "database id"),
        Field(8, Same, "slot {} of data file 0"),
        Field(8, Same, "no further slot"),
        Field(4, Same, "bytes in this slot: {}"),
        Field(4, Same, "zero"),
        Field(4, Same, "object {}"),
        Field(1, Same, "leaves: {}"),
        Field(1, Same, "low fence of {} bytes: from the smallest key on"),
        Field(8, Same, "its image is in slot {} of data file 0"),
        Field(4, Random, "checksum of that image"),
    ]
}

fn root() -> Vec<Field> {
    vec![
        Field(4, Same, "magic \"ONRB\""),
        Field(4, Random, "checksum"),
        Field(16, Random, "database id"),
        Field(8, Same, "slot {} of data file 0"),
        Field(8, Same, "no further slot"),
        Field(4, Same, "bytes in this slot: {}"),
        Field(4, Same, "zero"),
        Field(4, Same, "objects below {} were handed out"),
        Field(1, Same, "tables: {}"),
        Field(4, Same, "table {}"),
        Field(4, Same, "object {}"),
        Field(1, Same, "bytes of the definition: {}"),
        Field(4, Same, "definition: \"ORTD\""),
        Field(1, Same, "format {}"),
        Field(2, Same, "schema version {}"),
        Field(2, Same, "a name of {} bytes"),
        Field(6, Same, "\"orders\""),
        Field(2, Same, "columns: {}"),
        Field(2, Same, "a name of {} bytes"),
        Field(2, Same, "\"id\""),
        Field(3, Same, "bigint, not nullable, no default"),
        Field(2, Same, "a name of {} bytes"),
        Field(4, Same, "\"note\""),
        Field(1, Same, "varchar"),
        Field(2, Same, "of {} bytes"),
        Field(2, Same, "nullable, no default"),
        Field(2, Same, "a name of {} bytes"),
        Field(5, Same, "\"state\""),
        Field(2, Same, "smallint, not nullable"),
        Field(1, Same, "constant default"),
        Field(2, Same, "of {} bytes"),
        Field(2, Same, "{}"),
        Field(2, Same, "columns of the key: {}"),
        Field(2, Same, "column {}"),
        Field(1, Same, "generated columns: {}"),
        Field(1, Same, "directory segments: {}"),
        Field(1, Same, "low fence of {} bytes"),
        Field(8, Same, "in slot {} of data file 0"),
        Field(8, Same, "{} bytes"),
        Field(4, Random, "checksum"),
    ]
}

/// Name, page and text of each example.
fn examples() -> Vec<(&'static str, &'static str, String)> {
    let disk = example_disk();
    let segment = "log/log-0000000000000001.segment";
    let slot = |number: u64| read(&disk, "data-00.onrush", number * 16384, 16384);
    let (log, data) = ("docs/log-format.md", "docs/data-file.md");
    vec![
        ("log-segment", log, render(&read(&disk, segment, 0, 4096), &log_segment())),
        ("log-block", log, render(&read(&disk, segment, 8192, 4096), &log_block())),
        ("superblock", data, render(&read(&disk, "superblock.onrush", 0, 4096), &superblock())),
        ("data-file-header", data, render(&slot(0)[..4096], &data_file_header())),
        ("image", data, render(&slot(1), &image())),
        ("directory-segment", data, render(&slot(64), &directory_segment())),
        ("root", data, render(&slot(128), &root())),
    ]
}

fn page_path(page: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page)
}

/// Where the example's text stands in its page.
fn place_in(page: &str, name: &str) -> std::ops::Range<usize> {
    let marker = format!("<!-- example: {name} -->\n```text\n");
    let start = page.find(&marker).unwrap_or_else(|| panic!("no example {name}")) + marker.len();
    let end = page[start..].find("```").unwrap_or_else(|| panic!("no end of {name}"));
    start..start + end
}

#[test]
fn the_pages_show_what_the_engine_writes() {
    let update = std::env::var_os("ONRUSH_UPDATE_DOCS").is_some();
    for (name, page, text) in examples() {
        let path = page_path(page);
        let mut written = std::fs::read_to_string(&path).unwrap();
        let place = place_in(&written, name);
        if update {
            written.replace_range(place, &text);
            std::fs::write(&path, written).unwrap();
        } else {
            assert_eq!(written[place], text, "{page}, example {name}: cargo xtask generate");
        }
    }
}
