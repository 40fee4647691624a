//! A restore ends exactly where it is told: at the backup, at the end of the log that is there, at a
//! position in the log, or at a moment.

#![allow(clippy::unwrap_used)]

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use onrush::{
    Background, CheckOptions, CheckProgress, ColumnDefinition, DataType, Database, Options,
    ScanOptions, Session, Table, TableDefinition,
};
use onrush_backup::{BackupError, RestoreOptions, backup, parse_time, restore};
use onrush_check::{LogLimit, check};
use onrush_files::{Disk, MemoryDisk, OpenMode};
use onrush_lsn::Lsn;
use proptest::prelude::*;

/// A database with the table `numbers (n bigint)`, on a disk in memory.
struct World {
    disk: MemoryDisk,
    /// The folder of the backup.
    backup: &'static str,
}

impl World {
    fn new() -> World {
        World { disk: MemoryDisk::new(), backup: "/backup" }
    }

    fn options(&self) -> Options {
        Options {
            background: Background::Callers,
            kept_log_folder: Some("/kept".into()),
            ..Options::small()
        }
    }

    fn create(&self) -> (Database, Table) {
        let db = Database::create_on(self.disk(), "/shop", self.options()).unwrap();
        let table = TableDefinition::builder("numbers")
            .column(ColumnDefinition::new("n", DataType::Int64).not_null())
            .column(ColumnDefinition::new("text", DataType::Text))
            .primary_key(["n"])
            .build()
            .unwrap();
        let table = db.create_table(table).unwrap();
        (db, table)
    }

    fn backup(&self) {
        let (options, progress) = Default::default();
        backup(self.disk(), Path::new("/shop"), Path::new("/backup"), &options, &progress).unwrap();
    }

    fn restore(&self, log_folders: &[&str], limit: LogLimit) -> Result<(), BackupError> {
        let log_folders = log_folders.iter().map(PathBuf::from).collect();
        let options = RestoreOptions { log_folders, limit, check: CheckOptions::default() };
        let (from, into) = (Path::new(self.backup), Path::new("/restored"));
        restore(self.disk(), from, into, &options, &CheckProgress::default()).map(drop)
    }

    /// The numbers in the restored database, which is sound, before and after it was opened.
    fn restored(&self) -> Vec<i64> {
        let (options, progress) = Default::default();
        let is_sound = || {
            let report = check(self.disk(), Path::new("/restored"), &options, &progress).unwrap();
            assert!(report.is_sound(), "{report}");
        };
        is_sound();
        let opened = Options { kept_log_folder: None, ..self.options() };
        let db = Database::open_on(self.disk(), "/restored", opened).unwrap();
        let mut session = db.session().unwrap();
        let table = db.table("numbers").unwrap();
        let scan = session.scan(&table, &ScanOptions::default()).unwrap();
        let numbers: Vec<i64> = scan.map(|row| row.unwrap()[0].as_i64().unwrap()).collect();
        insert(&mut session, &table, i64::MAX);
        drop(session);
        db.close().unwrap();
        is_sound();
        numbers
    }

    fn disk(&self) -> Arc<dyn Disk> {
        Arc::new(self.disk.clone())
    }
}

/// Inserts a durable row and returns its position in the log.
fn insert(session: &mut Session, table: &Table, number: i64) -> Lsn {
    let text = "t".repeat((number % 700) as usize);
    let token = session.insert_token(table, &[number.into(), text.into()]).unwrap();
    token.wait().unwrap();
    token.lsn()
}

fn insert_all(session: &mut Session, table: &Table, numbers: Range<i64>) {
    for number in numbers {
        insert(session, table, number);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Restored to the position of commit k, the database has the commits up to k and no other:
    /// whether they are in the images of the backup, in its log, or in segments kept since.
    #[test]
    fn to_a_position(
        before in 0_i64..200,
        in_log in 0_i64..50,
        later in 1_i64..600,
        checkpoint_every in 20_i64..300,
        choice in 0.0_f64..1.0,
    ) {
        let world = World::new();
        let (db, table) = world.create();
        let mut session = db.session().unwrap();
        let mut lsns: Vec<Lsn> = (0..before).map(|n| insert(&mut session, &table, n)).collect();
        db.checkpoint().unwrap();
        lsns.extend((before..before + in_log).map(|n| insert(&mut session, &table, n)));
        drop((session, table, db));
        world.backup();
        let db = Database::open_on(world.disk(), "/shop", world.options()).unwrap();
        let table = db.table("numbers").unwrap();
        let mut session = db.session().unwrap();
        for number in before + in_log..before + in_log + later {
            lsns.push(insert(&mut session, &table, number));
            if number % checkpoint_every == 0 {
                db.checkpoint().unwrap();
            }
        }
        drop((session, table, db));
        let candidates = lsns.len() - before as usize;
        let chosen = before as usize + (choice * candidates as f64) as usize;
        let limit = LogLimit::Lsn(lsns[chosen]);
        world.restore(&["/kept", "/shop/log"], limit).unwrap();
        prop_assert_eq!(world.restored(), (0..=chosen as i64).collect::<Vec<_>>());
    }
}

/// Not at the end of what comes before it, as if nothing had been committed later.
#[test]
fn a_kept_segment_that_is_missing_is_no_end_of_the_log() {
    let world = World::new();
    let (db, table) = world.create();
    drop((table, db));
    world.backup();
    let db = Database::open_on(world.disk(), "/shop", world.options()).unwrap();
    let table = db.table("numbers").unwrap();
    let mut session = db.session().unwrap();
    insert_all(&mut session, &table, 0..1500);
    db.checkpoint().unwrap();
    drop((session, table, db));
    let kept = world.disk.list(Path::new("/kept")).unwrap();
    assert!(kept.len() > 3, "{kept:?}");
    let lost = &kept[kept.len() / 2];
    world.disk.remove(&Path::new("/kept").join(lost)).unwrap();
    let refused = world.restore(&["/kept", "/shop/log"], LogLimit::None);
    let Err(BackupError::Damaged(report)) = refused else { panic!("{refused:?}") };
    assert!(report.to_string().contains(lost), "{report}");
    assert!(!world.disk.exists(Path::new("/restored/superblock.onrush")).unwrap());
}

#[test]
fn to_a_timestamp() {
    let world = World::new();
    let (db, table) = world.create();
    let mut session = db.session().unwrap();
    insert(&mut session, &table, 0);
    db.checkpoint().unwrap();
    insert_all(&mut session, &table, 1..20);
    let timestamp_us = now_us();
    while now_us() <= timestamp_us {}
    insert_all(&mut session, &table, 20..40);
    drop((session, table, db));
    world.backup();
    world.restore(&[], LogLimit::TimeUs(timestamp_us)).unwrap();
    assert_eq!(world.restored(), (0..20).collect::<Vec<_>>());
}

fn now_us() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros() as u64
}

#[test]
fn to_the_backup_and_to_the_end_of_the_log_that_is_there() {
    let world = World::new();
    let (db, table) = world.create();
    let mut session = db.session().unwrap();
    insert_all(&mut session, &table, 0..10);
    drop((session, table, db));
    world.backup();
    let db = Database::open_on(world.disk(), "/shop", world.options()).unwrap();
    let (table, mut session) = (db.table("numbers").unwrap(), db.session().unwrap());
    insert_all(&mut session, &table, 10..20);
    drop((session, table, db));
    world.restore(&[], LogLimit::None).unwrap();
    assert_eq!(world.restored(), (0..10).collect::<Vec<_>>());
    let options = RestoreOptions { log_folders: vec!["/shop/log".into()], ..Default::default() };
    let (from, into) = (Path::new("/backup"), Path::new("/newest"));
    restore(world.disk(), from, into, &options, &CheckProgress::default()).unwrap();
    let db = Database::open_on(world.disk(), into, Options::small()).unwrap();
    assert_eq!(db.table("numbers").unwrap().definition().name(), "numbers");
    let count = db.session().unwrap().scan(&db.table("numbers").unwrap(), &ScanOptions::default());
    assert_eq!(count.unwrap().count(), 20);
}

#[test]
fn a_timestamp_before_the_images_and_a_position_behind_the_log_are_refused() {
    let world = World::new();
    let (db, table) = world.create();
    let mut session = db.session().unwrap();
    let first = insert(&mut session, &table, 0);
    insert(&mut session, &table, 1);
    drop((session, table));
    db.close().unwrap();
    world.backup();
    for limit in [LogLimit::Lsn(first), LogLimit::TimeUs(1)] {
        let error = world.restore(&[], limit).unwrap_err();
        assert!(matches!(error, BackupError::TooEarly { .. }), "{error}");
    }
    let error = world.restore(&[], LogLimit::Lsn(Lsn(1 << 40))).unwrap_err();
    assert!(matches!(error, BackupError::TooLate { .. }), "{error}");
    assert!(error.to_string().contains("later log segments"), "{error}");
}

/// How the database was left that a backup is taken of.
#[derive(Clone, Copy, Debug)]
enum Left {
    New,
    Closed,
    /// Opened and closed again since it was written to.
    ClosedTwice,
    CrashedBeforeTheFirstCheckpoint,
    CrashedAfterOne,
    /// Nothing came behind the checkpoint.
    CrashedRightAfterOne,
    Running,
    /// A restored one.
    Restored,
}

const ALL_LEFT: [Left; 8] = [
    Left::New,
    Left::Closed,
    Left::ClosedTwice,
    Left::CrashedBeforeTheFirstCheckpoint,
    Left::CrashedAfterOne,
    Left::CrashedRightAfterOne,
    Left::Running,
    Left::Restored,
];

/// A world with a backup of a database that was left so.
fn backed_up(left: Left) -> World {
    let world = World::new();
    let (db, table) = world.create();
    let mut session = db.session().unwrap();
    if !matches!(left, Left::New) {
        insert_all(&mut session, &table, 0..10);
    }
    if matches!(left, Left::CrashedAfterOne | Left::CrashedRightAfterOne | Left::Running) {
        db.checkpoint().unwrap();
    }
    if matches!(left, Left::CrashedAfterOne) {
        insert_all(&mut session, &table, 10..20);
    }
    drop((session, table));
    match left {
        Left::Running => {
            let (options, progress) = Default::default();
            db.backup("/backup", &options, &progress).unwrap();
            return world;
        }
        Left::New | Left::Closed => db.close().unwrap(),
        Left::ClosedTwice | Left::Restored => {
            db.close().unwrap();
            Database::open_on(world.disk(), "/shop", world.options()).unwrap().close().unwrap();
        }
        _ => drop(db),
    }
    world.backup();
    if !matches!(left, Left::Restored) {
        return world;
    }
    let (options, progress) = Default::default();
    for (from, into) in [("/backup", "/middle"), ("/middle", "/second")] {
        backup(world.disk(), Path::new(from), Path::new(into), &options, &progress).unwrap();
    }
    World { backup: "/second", ..world }
}

#[test]
fn a_limit_that_a_backup_cannot_meet_is_refused_before_anything_is_made() {
    const YEAR_2020_US: u64 = 1_577_836_800_000_000;
    for left in ALL_LEFT {
        let world = backed_up(left);
        let before = world.disk.list(Path::new("/")).unwrap_or_default();
        let far_us = now_us() + 3_600_000_000;
        for (limit, is_early) in [
            (LogLimit::Lsn(Lsn::ZERO), true),
            (LogLimit::TimeUs(YEAR_2020_US), true),
            (LogLimit::Lsn(Lsn(1 << 40)), false),
            (LogLimit::TimeUs(far_us), false),
        ] {
            let error = world.restore(&[], limit).expect_err(&format!("{left:?}, {limit:?}"));
            let is_as_told = match error {
                BackupError::TooEarly { .. } => is_early,
                BackupError::TooLate { .. } | BackupError::TimeTooLate { .. } => !is_early,
                _ => false,
            };
            assert!(is_as_told, "{left:?}, {limit:?}: {error}");
            let after = world.disk.list(Path::new("/")).unwrap_or_default();
            assert_eq!(after, before, "{left:?}, {limit:?}");
        }
    }
}

#[test]
fn a_backup_is_restored_to_its_own_end_by_position_and_by_time() {
    for left in ALL_LEFT {
        let world = backed_up(left);
        let manifest = manifest(&world);
        let time = |name: &str| manifest[name].as_str().map(|text| parse_time(text).unwrap());
        let end_us = time("end_time").or(time("must_reach_time")).unwrap();
        let rows = match left {
            Left::New => 0,
            Left::CrashedAfterOne => 20,
            _ => 10,
        };
        let end_lsn = manifest["end_lsn"].as_u64().unwrap();
        for limit in [LogLimit::Lsn(Lsn(end_lsn)), LogLimit::TimeUs(end_us)] {
            let world = World { disk: world.disk.copy(), ..world };
            world
                .restore(&[], limit)
                .unwrap_or_else(|error| panic!("{left:?}, {limit:?}: {error}"));
            assert_eq!(world.restored(), (0..rows).collect::<Vec<_>>(), "{left:?}, {limit:?}");
        }
    }
}

/// What stands in the backup for people.
fn manifest(world: &World) -> serde_json::Value {
    let path = Path::new(world.backup).join("backup.json");
    let file = world.disk.open(&path, OpenMode::ReadOnly).unwrap();
    let mut text = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut text, 0).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn a_folder_of_log_that_is_missing_or_of_another_database_is_refused() {
    let world = backed_up(Left::Closed);
    let error = world.restore(&["/nowhere"], LogLimit::None).unwrap_err();
    assert!(matches!(error, BackupError::NoLogFolder { .. }), "{error}");
    let other = Database::create_on(world.disk(), "/other", world.options()).unwrap();
    other.close().unwrap();
    let error = world.restore(&["/other/log"], LogLimit::None).unwrap_err();
    assert!(matches!(error, BackupError::ForeignLog { .. }), "{error}");
    assert!(!world.disk.exists(Path::new("/restored")).unwrap());
}

#[test]
fn a_gap_in_the_kept_segments_is_damage() {
    let world = World::new();
    let (db, table) = world.create();
    world_with_kept_segments(&world, &db, &table);
    let kept = world.disk.list(Path::new("/kept")).unwrap();
    assert!(kept.len() >= 4, "{kept:?}");
    world.disk.remove(&Path::new("/kept").join(&kept[2])).unwrap();
    let error = world.restore(&["/kept", "/shop/log"], LogLimit::None).unwrap_err();
    assert!(matches!(error, BackupError::Damaged(_)), "{error}");
}

/// A backup at the beginning, and then enough rows for several segments.
fn world_with_kept_segments(world: &World, db: &Database, table: &Table) {
    let options = onrush::OnlineOptions::default();
    db.backup("/backup", &options, &CheckProgress::default()).unwrap();
    let mut session = db.session().unwrap();
    for number in 0..1000 {
        insert(&mut session, table, number);
        if number % 100 == 99 {
            db.checkpoint().unwrap();
        }
    }
    assert!(world.disk.exists(Path::new("/kept")).unwrap());
}

#[test]
fn segments_of_another_course_of_events_are_not_overwritten() {
    let world = World::new();
    let (db, table) = world.create();
    world_with_kept_segments(&world, &db, &table);
    drop((table, db));
    world.restore(&[], LogLimit::None).unwrap();
    let before = world.disk.list(Path::new("/kept")).unwrap();
    let opened = Database::open_on(world.disk(), "/restored", world.options());
    let Err(error) = opened else { panic!("the kept segments belong to another database") };
    let message = error.to_string();
    assert!(message.contains("kept_log_folder") && message.contains("its own"), "{message}");
    assert_eq!(world.disk.list(Path::new("/kept")).unwrap(), before);
}

#[test]
fn an_open_database_is_not_copied_from_outside() {
    let world = World::new();
    let (_db, _table) = world.create();
    let (options, progress) = Default::default();
    let copied =
        backup(world.disk(), Path::new("/shop"), Path::new("/backup"), &options, &progress);
    assert!(copied.unwrap_err().to_string().contains("while a database is open"));
    assert!(!world.disk.exists(Path::new("/backup")).unwrap());
}

#[test]
fn a_damaged_backup_is_not_restored() {
    let world = World::new();
    let (db, table) = world.create();
    insert(&mut db.session().unwrap(), &table, 1);
    drop(table);
    db.close().unwrap();
    world.backup();
    let file = world.disk.open(Path::new("/backup/data-00.onrush"), OpenMode::ReadWrite).unwrap();
    file.write_at(b"!", (16 << 10) + 100).unwrap();
    let error = world.restore(&[], LogLimit::None).unwrap_err();
    assert!(matches!(error, BackupError::Damaged(_)), "{error}");
}
