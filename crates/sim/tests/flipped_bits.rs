//! Bits of a cleanly closed database are flipped, one at a time: it is refused, a scan reports
//! it, or all rows are right. Never other rows, never a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onrush::{
    Background, ColumnDefinition, DataType, Database, KeyStrategy, Options, TableDefinition, Value,
};
use onrush_files::{Disk, DiskFile, OpenMode};
use onrush_sim::disk::{CrashDisk, CrashMode};
use onrush_sim::gate::database_folder;
use onrush_sim::random::Random;
use onrush_sim::world::digest_of;

fn options() -> Options {
    Options { background: Background::Callers, ..Options::small() }
}

/// A database of two tables and a few checkpoints, closed.
fn closed_database() -> (CrashDisk, u128) {
    let disk = CrashDisk::new();
    let database =
        Database::create_on(Arc::new(disk.clone()), database_folder(), options()).unwrap();
    for name in ["one", "two"] {
        let definition = TableDefinition::builder(name)
            .column(
                ColumnDefinition::new("id", DataType::Int64)
                    .not_null()
                    .default_key(KeyStrategy::Identity { start: 1, strict: false }),
            )
            .column(ColumnDefinition::new("payload", DataType::Bytes))
            .primary_key(["id"])
            .build()
            .unwrap();
        let table = database.create_table(definition).unwrap();
        let mut session = database.session().unwrap();
        for number in 0..60u8 {
            let payload = vec![number; usize::from(number) * 9];
            session.insert(&table, &[Value::Default, payload.into()]).unwrap();
            if number % 25 == 24 {
                database.checkpoint().unwrap();
            }
        }
    }
    let digest = digest_of(&database).unwrap();
    database.close().unwrap();
    (disk, digest)
}

fn files_below(disk: &CrashDisk, folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for name in disk.list(folder).unwrap() {
        let path = folder.join(name);
        match disk.list(&path) {
            Ok(_) => files.extend(files_below(disk, &path)),
            Err(_) => files.push(path),
        }
    }
    files
}

fn flip(file: &dyn DiskFile, bit: u64) {
    let mut byte = [0];
    file.read_at(&mut byte, bit / 8).unwrap();
    byte[0] ^= 1 << (bit % 8);
    file.write_at(&byte, bit / 8).unwrap();
}

/// Whether the flip was noticed; panics if it led to other rows.
fn noticed(disk: &CrashDisk, path: &Path, bit: u64, digest: u128) -> bool {
    let copy = disk.crash_image(disk.operation_count(), CrashMode::AllKept, 0);
    flip(&*copy.open(path, OpenMode::ReadWrite).unwrap(), bit);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let database =
            Database::open_on(Arc::new(copy), database_folder(), options()).map_err(|_| ())?;
        digest_of(&database).map_err(|_| ())
    }));
    match outcome {
        Ok(Err(())) => true,
        Ok(Ok(found)) => {
            assert_eq!(found, digest, "{} bit {bit}: other rows, and no error", path.display());
            false
        }
        Err(_) => panic!("{} bit {bit}: a panic", path.display()),
    }
}

#[test]
fn a_flipped_bit_is_found_or_harmless() {
    let (disk, digest) = closed_database();
    let mut random = Random::new(7);
    let mut found = 0;
    let mut flips = 0;
    for path in files_below(&disk, &database_folder()) {
        let file = disk.open(&path, OpenMode::ReadOnly).unwrap();
        let bytes = file.len().unwrap();
        let mut content = vec![0; usize::try_from(bytes.min(4 << 20)).unwrap()];
        file.read_at(&mut content, 0).unwrap();
        // Bytes that are not zero, and some that are.
        let is_superblock = path.extension().is_some_and(|ending| ending == "superblock")
            || bytes <= 64 << 10 && !path.to_string_lossy().contains("segment");
        for (offset, byte) in content.iter().enumerate() {
            let wanted = match (is_superblock, *byte != 0) {
                (true, true) => true,
                (true, false) => random.chance(1, 20),
                (false, true) => random.chance(1, 40),
                (false, false) => random.chance(1, 20_000),
            };
            if wanted {
                flips += 1;
                let bit = offset as u64 * 8 + random.below(8);
                found += u64::from(noticed(&disk, &path, bit, digest));
            }
        }
    }
    println!("{flips} bits flipped, {found} noticed, the others were of no use any more");
    assert!(flips > 1000 && found > 100, "{flips} flips, {found} noticed");
}
